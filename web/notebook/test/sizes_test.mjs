// Programs that serve every size, in Chromium: sliders, what sizes cost, what is refused.
import assert from "node:assert/strict";
import {
  addBench,
  chip,
  dropFile,
  pageTests,
  passes,
  settled,
  status,
  typeSource,
} from "./browser.mjs";

const page_test = pageTests();
const sizes = `${passes} .sizes`;

// The built-in encoder, compiled with its number of tokens as a symbol.
async function openEncoder(page, pipeline = "default,-specialize_shapes") {
  await typeSource(page, ".cell.model", 'block = import("small_encoder")');
  await typeSource(page, passes, `fast = passes(block, "${pipeline}")`);
  await chip(page, "plan_memory").click();
}

async function slideTo(page, size, symbol = 0) {
  const slider = page.locator(`${sizes} input[type="range"]`).nth(symbol);
  await slider.evaluate((element, value) => {
    element.value = value;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(size));
}

const fact = (page, name) =>
  page.locator(`${sizes} .facts dt:text-is("${name}") + dd`).innerText();
const untilFact = (page, name, before) =>
  page.waitForFunction(
    ([word, old]) => {
      const terms = [...document.querySelectorAll(".cell.passes .sizes .facts dt")];
      const text = terms.find((term) => term.innerText === word)?.nextElementSibling?.innerText;
      return text !== undefined && text !== old;
    },
    [name, before],
  );

page_test("a program over a size says what every size costs", async (page) => {
  await openEncoder(page);
  await page.locator(`${sizes} .curve svg`).waitFor();
  assert.match(await page.locator(`${sizes} .served`).innerText(), /One program serves every size/);
  const before = await fact(page, "FLOP");
  assert.match(before, /= .*s27/);
  assert.match(await fact(page, "a call takes"), /(µs|ms) predicted/);
  assert.match(await page.locator(`${sizes} .curve svg`).getAttribute("aria-label"), /at 512/);
  const place = () => page.locator(`${sizes} .curve .here`).getAttribute("cx").then(Number);
  const left = await place();
  await slideTo(page, 512);
  await untilFact(page, "FLOP", before);
  await page.waitForFunction(
    (old) => Number(document.querySelector(".sizes .curve .here")?.getAttribute("cx")) > old,
    left,
  );
  assert.equal(await page.locator(`${sizes} input[type="number"]`).inputValue(), "512");
  const formula = (text) => text.replace(/^\S+ \S* ?=/, "");
  assert.equal(formula(await fact(page, "FLOP")), formula(before));
});

page_test("a size outside the range is refused, and the way back is open", async (page) => {
  await openEncoder(page);
  const number = page.locator(`${sizes} input[type="number"]`);
  await number.fill("513");
  await page.locator(`${sizes} .served:has-text("No program serves")`).waitFor();
  assert.match(await page.locator(`${sizes} .served`).innerText(), /1 to 512.*got 513/);
  assert.equal(await page.locator(`${sizes} dt:text-is("a call takes")`).count(), 0);
  for (const nonsense of ["", "-3", "1.5", "1e30"]) await number.fill(nonsense);
  await number.fill("1");
  await page.locator(`${sizes} .served:has-text("One program")`).waitFor();
  await untilFact(page, "a call takes", "");
});

page_test("many moves ask for the last size, and any pass can be switched", async (page) => {
  await openEncoder(page);
  for (let size = 1; size <= 512; size += 7) await slideTo(page, size);
  await slideTo(page, 100);
  await page.waitForFunction(
    () => document.querySelector('.sizes input[type="number"]')?.value === "100",
  );
  await chip(page, "fuse_pointwise").locator(".switch").click();
  await settled(page);
  await chip(page, "plan_memory").click();
  await page.locator(`${sizes} .curve svg`).waitFor();
  await chip(page, "specialize_shapes").locator(".switch").click();
  await settled(page);
  await chip(page, "plan_memory").click();
  await page.locator(`${passes} .long pre`).first().waitFor();
  assert.equal(await page.locator(sizes).count(), 0, "numbers have no sliders");
});

page_test("sizes without an end and guards are told", async (page) => {
  const text = `dim s0 hint 8
guard s0 % 8 == 0 because "a branch"
func @main(%x: f32[s0, 8]) -> f32[s0, 8] {
  %y = gelu(%x)
  return %y
}
`;
  await dropFile(page, "open.lathe", Buffer.from(text));
  await settled(page);
  const cell = page.locator(passes).nth(1);
  await typeSource(page, cell, 'fast = passes(open, "default,-specialize_shapes")');
  await cell.locator('.chip[aria-label^="plan_memory,"]').click();
  const panel = cell.locator(".sizes");
  await panel.locator(".curve svg").waitFor();
  assert.match(await panel.locator(".slider").innerText(), /0 or more/);
  assert.match(await panel.locator(".served").innerText(), /every size in range where s0 % 8 == 0; no size/);
  await panel.locator('input[type="number"]').fill("9");
  await panel.locator('.served:has-text("No program serves")').waitFor();
  assert.match(await panel.locator(".served").innerText(), /s0 % 8 == 0/);
});

page_test("a bench runs a program over sizes, and its results are right", async (page) => {
  await openEncoder(page);
  await typeSource(page, ".cell.model", 'block = import("small_encoder", s27=33)');
  const cell = await addBench(page, "bench(fast, repeats=3)");
  assert.match(await cell.locator(".totals").innerText(), /(ms|µs).*✓ agrees/s);
  const rows = await cell.locator(".kernels tbody tr").allInnerTexts();
  assert.ok(rows.length > 3);
  for (const row of rows) assert.doesNotMatch(row, /\b0 B\b|NaN|undefined/);
  await cell.locator(".kernels button.link").first().click();
  await cell.locator(".long pre").nth(1).waitFor();
  assert.match(await cell.locator(".long pre").first().innerText(), /kernel/);
});

page_test("a program over sizes is measured at several of them", async (page) => {
  await openEncoder(page);
  await page.locator(`${sizes} input[type="number"]`).fill("19");
  await page.waitForFunction(
    () => document.querySelectorAll(".sizes .curve .here").length === 1,
  );
  const button = (word) => page.locator(`${sizes} .measure button:text-is("${word}")`);
  await button("Measure").click();
  await button("Measure again").waitFor({ timeout: 120_000 });
  const words = await page.locator(`${sizes} .measure`).innerText();
  assert.match(words, /(ms|µs) at 19, .*(ms|µs) compiled for 19 alone; ✓ agrees/s);
  const points = await page.locator(`${sizes} .curve .measured title`).allTextContents();
  assert.ok(points.length >= 6, points.join("; "));
  assert.ok(points.some((text) => / at 1$/.test(text)), points.join("; "));
  assert.ok(points.some((text) => / at 19$/.test(text)), points.join("; "));
  assert.equal(await page.locator(`${sizes} .curve path.alone`).count(), 1);
  // Points stay while the size moves along them, and go with another program.
  await slideTo(page, 300);
  await untilFact(page, "FLOP", "");
  assert.equal(await page.locator(`${sizes} .curve circle.measured`).count(), points.length);
  await chip(page, "fuse_pointwise").locator(".switch").click();
  await settled(page);
  await chip(page, "plan_memory").click();
  await button("Measure").waitFor();
  assert.equal(await page.locator(`${sizes} .curve circle.measured`).count(), 0);
});

page_test("measuring is stopped by its button and by cancelling", async (page) => {
  await openEncoder(page);
  const button = (word) => page.locator(`${sizes} .measure button:text-is("${word}")`);
  await button("Measure").click();
  await button("Stop").click();
  await page.locator(`${sizes} .measure button:has-text("Measure")`).waitFor();
  assert.equal(await page.locator(`${sizes} .measure .bad`).count(), 0);
  await page.locator('header button:has-text("Run all")').waitFor();
  await page.locator(`${sizes} .measure button:has-text("Measure")`).click();
  await page.locator('header button:has-text("Cancel")').click();
  await page.locator(`${sizes} .measure .bad`).waitFor();
  assert.match(await page.locator(`${sizes} .measure .bad`).innerText(), /stopped/);
  await page.locator(`${passes} button:has-text("Run")`).click();
  await settled(page);
  assert.match(await status(page, passes), /passes/);
  await chip(page, "plan_memory").click();
  await button("Measure").waitFor();
});

page_test("where a size is refused nothing is measured", async (page) => {
  await openEncoder(page);
  await page.locator(`${sizes} input[type="number"]`).fill("513");
  await page.locator(`${sizes} .served:has-text("No program serves")`).waitFor();
  assert.equal(await page.locator(`${sizes} .measure button`).isDisabled(), true);
});
