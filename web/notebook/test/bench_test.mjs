// Benches in Chromium: they run, their results are right, and are those of the native compiler.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  dropFile,
  fixtures,
  pageTests,
  passes,
  repository,
  settled,
  status,
  typeSource,
} from "./browser.mjs";

const program = process.env.LATHE_PROGRAM ?? join(repository, "bazel-bin/frontend/cli/lathe");
const options = existsSync(program) ? {} : { skip: "the command line is not built" };

function native(args) {
  const env = { ...process.env, LATHE_ROOT: repository };
  return execFileSync(program, args, { cwd: repository, env, encoding: "utf8" });
}

const page_test = pageTests();

async function addBench(page, source) {
  await page.locator('.add button:has-text("Bench")').click();
  await page.keyboard.press("Escape");
  const cell = page.locator(".cell.bench").last();
  await typeSource(page, cell, source);
  return cell;
}

page_test("a bench runs both pipelines, and their results agree", async (page) => {
  await page.locator('.add button:has-text("Passes")').click();
  await page.keyboard.press("Escape");
  await typeSource(page, page.locator(passes).nth(1), 'plain = passes(block, "minimal")');
  await addBench(page, "bench(fast, plain, repeats=5)");
  const totals = await page.locator(".bench .totals tbody tr").allInnerTexts();
  assert.equal(totals.length, 2, await page.locator(".cell.bench").innerText());
  for (const row of totals) assert.match(row, /(ms|µs).*✓ agrees/s);
  const kernels = page.locator(".bench .kernels tbody tr");
  assert.ok((await kernels.count()) > 3);
  await kernels.first().locator("button").click();
  await page.locator(".bench .long pre").nth(1).waitFor();
  assert.match(await page.locator(".bench .long pre").first().innerText(), /kernel/);
  assert.match(await page.locator(".bench .long pre").nth(1).innerText(), /v128|f32/);
  assert.match(await page.locator(".bench .places").first().innerText(), /small_models\.py/);
  await page.locator(".kernel-code select").selectOption({ index: 1 });
  await page.waitForFunction(() => (CSS.highlights.get("linked")?.size ?? 0) >= 2);
});

const whole = (page) => page.locator(".bench .totals tbody").innerText();

page_test("figures survive a reload and a file, and say that they are older", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  assert.match(await cell.innerText(), /Measured .* with Chrome \d+/);
  assert.equal(await cell.locator(".earlier").count(), 0);
  const measured = await whole(page);
  await page.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  assert.equal(await whole(page), measured);
  assert.match(await cell.locator(".earlier").innerText(), /Measured earlier, .* with Chrome \d+/);
  assert.match(await status(page, cell), /measured earlier/);
  await cell.locator(".kernels button").first().click();
  await cell.locator(".long pre").first().waitFor();

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator('header button:has-text("Download")').click(),
  ]);
  const file = JSON.parse(readFileSync(await download.path(), "utf8"));
  const { data } = file.cells[3].outputs[0];
  data["application/vnd.lathe.bench+json"].runs[0].name = "<img src=x onerror=alert(1)>";
  await dropFile(page, "evil.ipynb", Buffer.from(JSON.stringify(file)));
  await page.waitForFunction(() => document.querySelector(".title").value === "evil");
  await settled(page);
  assert.match(await whole(page), /<img src=x/);
  assert.equal(await page.locator(".bench img").count(), 0);
  await cell.locator('button:has-text("Run")').click();
  await settled(page);
  assert.equal(await cell.locator(".earlier").count(), 0);
  assert.match(await whole(page), /fast/);
});

page_test(
  "a bench reads its weights from the file, and buffers that the model changes",
  async (page) => {
    let count = 0;
    for (const name of ["vit_tiny", "mutated_buffers"]) {
      await dropFile(page, `${name}.pt2`, readFileSync(join(fixtures, `${name}.pt2`)));
      await page.locator(".cell.model .facts").nth(++count).waitFor();
      await settled(page);
      const cell = await addBench(page, `bench(${name}_fast, repeats=3)`);
      assert.match(await cell.innerText(), /✓ agrees/);
    }
  },
);

page_test("the page agrees with the native compiler", async (page) => {
  const args = ["opt", "attention_block", "--weights", "random:0", "--passes=graph"];
  const printed = native(args);
  await typeSource(page, passes, 'fast = passes(block, "graph")');
  const steps = await page.locator(".chip").count();
  await page.locator('button:has-text("Next")').waitFor();
  for (let i = 0; i < steps; ++i) {
    const next = page.locator('button[aria-label="Next step"]');
    if (await next.isDisabled()) break;
    await next.click();
  }
  await page.locator('button[role="tab"]:has-text("Whole text")').click();
  const text = page.locator(`${passes} .long pre`).first();
  await text.waitFor();
  const ops = (ir) => [...ir.matchAll(/= (\w+)\(/g)].map(([, op]) => op);
  assert.deepEqual(ops(await text.innerText()), ops(printed));
}, options);
