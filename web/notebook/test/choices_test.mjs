// Choices of kernels in Chromium: what the table of launches tells, and what a person decides.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  addBench,
  dropFile,
  openPage,
  pageTests,
  passes,
  settled,
  source,
  typeSource,
} from "./browser.mjs";

const page_test = pageTests();

const rows = (cell) => cell.locator(".kernels tbody tr:not(.candidates, .candidates *)");
const column = { plan: 2, predicted: 4, bound: 6, ofLimit: 7 };
const cellsOf = (cell, name) =>
  rows(cell).locator(`td:nth-child(${column[name]})`).allInnerTexts();

page_test("the table of launches tells plans, prices and limits", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  const plans = await cellsOf(cell, "plan");
  assert.ok(plans.length > 3);
  for (const plan of plans) assert.match(plan, /^[a-z_]+$/);
  assert.ok(plans.includes("contraction"), plans.join());
  for (const time of await cellsOf(cell, "predicted")) assert.match(time, /^[\d.]+ (ms|µs)$/);
  const bounds = /^(arithmetic|memory|launch)$/;
  for (const word of await cellsOf(cell, "bound")) assert.match(word, bounds);
  for (const share of await cellsOf(cell, "ofLimit")) assert.match(share, /^(! )?\d+(\.\d)? %/);
  assert.match(await cell.innerText(), /is of a core of \d+ GHz/);
});

page_test("a row opens by keyboard to what it could have been", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  const plans = await cellsOf(cell, "plan");
  const place = plans.indexOf("contraction");
  const opener = rows(cell).nth(place).locator("button.fold");
  assert.equal(await opener.getAttribute("aria-expanded"), "false");
  await opener.focus();
  await page.keyboard.press("Enter");
  const candidates = cell.locator("tr.candidates");
  await candidates.locator("tbody tr").first().waitFor();
  assert.equal(await opener.getAttribute("aria-expanded"), "true");
  const [chosen, ...others] = await candidates.locator("tbody tr").allInnerTexts();
  assert.match(chosen, /✓\s*contraction\s+[\d.]+ (ms|µs)\s+chosen/);
  const loops = others.find((text) => /^\s*loops/.test(text));
  const price = /[\d.]+ (ms|µs)\s+[\d.]+ times what is chosen\s+Use this/;
  assert.match(loops ?? others.join("\n"), price);
  assert.match(await candidates.innerText(), /small_models\.py:\d+/);
  await page.keyboard.press("Enter");
  await candidates.waitFor({ state: "detached" });
});

page_test("a kind that lost is asked for, measured and taken back", async (page, { browser }) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  const place = (await cellsOf(cell, "plan")).indexOf("contraction");
  const opener = rows(cell).nth(place).locator("button.fold");
  await opener.click();
  const loops = cell.locator("tr.candidates tbody tr", { hasText: "loops" });
  await loops.locator('button:has-text("Use this")').click();
  await loops.locator('.why:has-text("chosen, as asked")').waitFor();
  await settled(page);
  const text = await source(page, passes);
  const [, line] = /^fast = passes\(block, "default", force="(kernel \S+ = loops)"\)$/.exec(text);
  assert.equal(await page.locator(`${passes} .force code`).innerText(), line);
  assert.ok(await opener.evaluate((button) => button === document.activeElement));
  assert.match(await cell.locator(".earlier").innerText(), /Measured before fast changed/);
  assert.equal((await cellsOf(cell, "plan"))[place], "contraction", "as it was measured");
  await cell.locator('.tools button:has-text("Run")').click();
  await settled(page);
  assert.equal(await cell.locator(".earlier").count(), 0);
  assert.match(await cell.locator(".totals").innerText(), /✓ agrees/);
  assert.equal((await cellsOf(cell, "plan"))[place], "loops");

  await page.locator('header button:has-text("Share link")').click();
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const other = await openPage(browser, page.url());
  assert.equal(await other.page.locator(`${passes} .force code`).innerText(), line);
  assert.deepEqual(other.problems, []);
  await other.context.close();

  await page.locator(`${passes} .force button`).click();
  await settled(page);
  assert.equal(await source(page, passes), 'fast = passes(block, "default")');
  assert.equal(await page.locator(`${passes} .force`).count(), 0);
  assert.match(await cell.locator(".earlier").innerText(), /Measured before fast changed/);
});

page_test(
  "on a narrow screen what a row opens to fits",
  async (page) => {
    const cell = await addBench(page, "bench(fast, repeats=3)");
    const place = (await cellsOf(cell, "plan")).indexOf("contraction");
    await rows(cell).nth(place).locator("button.fold").click();
    const use = cell.locator('tr.candidates button:has-text("Use this")').first();
    const { x, width } = await use.boundingBox();
    assert.ok(x + width <= 400, `the button ends at ${x + width}`);
    await use.click();
    await settled(page);
    assert.equal(await page.locator(`${passes} .force`).count(), 1);
  },
  { viewport: { width: 400, height: 844 } },
);

page_test("a decision that cannot be carried out is explained", async (page) => {
  const force = (line) =>
    typeSource(page, passes, `fast = passes(block, "default", force="${line}")`);
  const failure = page.locator(`${passes} .failure`);
  await force("kernel nothing = loops");
  assert.match(await failure.innerText(), /no kernel computes 'nothing'/);
  await force("kernle nothing = loops");
  assert.match(await failure.innerText(), /did you mean 'kernel'\?/);
});

page_test("figures of another target are out of date", async (page) => {
  await typeSource(page, passes, 'fast = passes(block, "default", target="simd128")');
  const cell = await addBench(page, "bench(fast, repeats=3)");
  assert.equal(await cell.locator(".earlier").count(), 0);
  await typeSource(page, passes, 'fast = passes(block, "default", target="relaxed")');
  assert.match(await cell.locator(".earlier").innerText(), /Measured before fast changed/);
});

page_test("what is far from its limit is marked, in words too", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator('header button:has-text("Download")').click(),
  ]);
  const file = JSON.parse(readFileSync(await download.path(), "utf8"));
  const figures = file.cells[3].outputs[0].data["application/vnd.lathe.bench+json"];
  const [near, far] = figures.runs[0].steps;
  near.mean = 3.9 * near.limit;
  far.mean = 4.1 * far.limit;
  await dropFile(page, "far.ipynb", Buffer.from(JSON.stringify(file)));
  await page.waitForFunction(() => document.querySelector(".title").value === "far");
  await settled(page);
  assert.equal(await rows(cell).nth(0).locator(".far").count(), 0);
  assert.equal(await rows(cell).nth(1).locator(".far").count(), 1);
  assert.match(await rows(cell).nth(1).innerText(), /! 24 %.*more than 4 times/s);
});
