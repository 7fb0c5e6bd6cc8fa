// Benches in Chromium: they run, their results are right, and are those of the native compiler.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  addBench,
  chip,
  dropFile,
  fixtures,
  pageTests,
  passes,
  settled,
  status,
  typeSource,
} from "./browser.mjs";
import { floatsOf, orders, resultsOf, watchKernels } from "./kernel_results.mjs";
import { lathe, options, runNatively } from "./native.mjs";
import { distance } from "./npz.mjs";

const page_test = pageTests();

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
  await kernels.first().locator("button.link").click();
  await page.locator(".bench .long pre").nth(1).waitFor();
  assert.match(await page.locator(".bench .long pre").first().innerText(), /kernel/);
  assert.match(await page.locator(".bench .long pre").nth(1).innerText(), /v128|f32/);
  assert.match(await page.locator(".bench .places").first().innerText(), /small_models\.py/);
  await page.locator(".kernel-code select").selectOption({ index: 1 });
  await page.waitForFunction(() => (CSS.highlights.get("linked")?.size ?? 0) >= 2);
});

page_test("figures say so when what they measured has changed", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  assert.match(await cell.locator(".totals").innerText(), /✓ agrees/);
  assert.match(await cell.innerText(), /weights from random:0/);
  const stale = async (what) => {
    assert.match(await cell.locator(".earlier").innerText(), /Measured before fast changed/, what);
    assert.doesNotMatch(await cell.locator(".totals").innerText(), /✓/, what);
    assert.match(await status(page, cell), /out of date/, what);
  };
  const fresh = async () => assert.equal(await cell.locator(".earlier").count(), 0);
  await chip(page, "fuse_epilogue").locator(".switch").click();
  await settled(page);
  await stale("a pass less");
  await chip(page, "fuse_epilogue").locator(".switch").click();
  await settled(page);
  await fresh();
  await typeSource(page, ".cell.model", 'block = import("small_ffnn")');
  await stale("another model");
  await typeSource(page, ".cell.model", "block = import(");
  await stale("no model");
  await typeSource(page, ".cell.model", 'block = import("attention_block")');
  await fresh();
});

page_test("figures of a shared notebook survive a reload", async (page) => {
  await addBench(page, "bench(fast, repeats=3)");
  const measured = await whole(page);
  await page.locator('header button:has-text("Share link")').click();
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  await page.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  assert.ok(page.url().includes("#s="));
  assert.equal(await whole(page), measured);
});

page_test("weights that came with a model are named", async (page) => {
  const file = readFileSync(join(fixtures, "attention_block.pt2"));
  await dropFile(page, "mine.pt2", file);
  await page.locator(".cell.model").nth(1).locator(".facts").waitFor();
  await settled(page);
  const cell = await addBench(page, "bench(mine_fast, repeats=3)");
  assert.match(await cell.innerText(), /weights from mine\.pt2/);
});

const whole = (page) => page.locator(".bench .totals tbody").innerText();
const times = (page) => page.locator(".bench .totals tbody td:nth-child(2)").innerText();

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
  await cell.locator(".kernels button.link").first().click();
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

page_test("figures outlive a cancelled run and passes that changed", async (page) => {
  const cell = await addBench(page, "bench(fast, repeats=3)");
  const measured = await times(page);
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      if (message?.name !== "compile" || !window.holdBack) postMessage.call(this, message, ...rest);
    };
    window.holdBack = true; // an engine that never answers
  });
  await page.locator('header button:has-text("Run all")').click();
  await page.locator('header button:has-text("Cancel")').click();
  await settled(page);
  assert.equal(await times(page), measured);
  assert.match(await status(page, cell), /measured earlier/);
  await page.evaluate(() => (window.holdBack = false));
  await typeSource(page, passes, 'fast = passes(block, "minimal")');
  await page.locator('.cell.model button:has-text("Run")').click();
  await settled(page);
  await cell.locator('.kernels button:has-text("gelu")').click();
  await cell.locator(".failure").waitFor();
  assert.match(await cell.locator(".failure").innerText(), /passes above no longer make matmul/);
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

page_test(
  "a bench computes what ./lathe run computes, in Node and on the processor",
  async (page) => {
    const model = "small_ffnn"; // others, and larger ones, in models_test.mjs
    const seed = 3;
    await watchKernels(page);
    await typeSource(page, ".cell.model", `block = import("${model}")`);
    const cell = await addBench(page, `bench(fast, repeats=1, seed=${seed})`);
    assert.match(await cell.innerText(), /✓ agrees/);
    const results = (await resultsOf(page)).map(floatsOf);
    for (const target of ["wasm", "cpu"]) {
      const expected = runNatively(model, target, seed);
      assert.equal(results.length, expected.length);
      for (const [i, { values }] of expected.entries()) {
        const far = distance(results[i], values);
        assert.ok(far <= 1, `output ${i} on ${target}: ${far} times the tolerance`);
        assert.ok(values.some((value) => value !== 0));
      }
    }
    assert.ok(distance(results[0], runNatively(model, "cpu", seed + 1)[0].values) > 1);
  },
  options,
);

page_test("what does not fit is refused with its sum before any memory is taken", async (page) => {
  const text = `func @main(%x: f32[8, 30000]) -> f32[8, 30000] {
  %w0 = constant() {name = "w0", dtype = f32, shape = [30000, 30000]}
  %w1 = constant() {name = "w1", dtype = f32, shape = [30000, 30000]}
  %a = matmul(%x, %w0)
  %b = matmul(%a, %w1)
  return %b
}`;
  await dropFile(page, "huge.lathe", Buffer.from(text));
  await page.locator(".cell.model .facts").nth(1).waitFor();
  await settled(page);
  await watchKernels(page);
  const cell = await addBench(page, "bench(huge_fast, repeats=1)");
  const failure = await cell.locator(".failure").innerText();
  assert.match(failure, /too-large/);
  assert.match(failure, /needs \d+ MiB of memory, and WebAssembly has 4096/);
  for (const part of ["weights", "packed weights and constants", "inputs and outputs", "arena"])
    assert.match(failure, new RegExp(`${part}[a-z ]* \\d+`));
  const asked = await orders(page);
  assert.ok(asked.includes("emit"), asked.join());
  for (const order of ["load", "write", "make_weight", "make_input"])
    assert.ok(!asked.includes(order), `${order} was asked for`);
});

page_test("a check that cannot be made says why, and the engine lives on", async (page) => {
  const text = `func @main(%table: f32[5, 8], %ids: i64[4]) -> f32[4, 8] {
  %seven = constant() {value = [7], dtype = i64, shape = [1]}
  %far = add(%ids, %seven)
  %rows = embedding(%table, %far)
  return %rows
}`;
  await dropFile(page, "lookup.lathe", Buffer.from(text));
  await page.locator(".cell.model .facts").nth(1).waitFor();
  await settled(page);
  const cell = await addBench(page, "bench(lookup_fast, repeats=1)");
  const shown = await cell.innerText();
  assert.match(shown, /not checked: 'embedding' got position \d+ for a dim of size 5/);
  assert.match(shown, /lookup\.lathe:4/);
  await cell.locator(".kernels button.link").first().click(); // asks the same engine for its loops
  await cell.locator(".long pre").first().waitFor();
  assert.equal(await cell.locator(".failure").count(), 0);
});

page_test("what a model asserts of its data ends a run in its words", async (page) => {
  const text = `func @main(%table: f32[5, 8], %ids: i64[4]) -> f32[4, 8] {
  %seven = constant() {value = [7], dtype = i64, shape = [1]}
  %far = maximum(%ids, %seven)
  assert_index(%far) {low = -5, high = 5, message = "position {index} of a table of {size}"}
  %rows = embedding(%table, %ids)
  return %rows
}`;
  await dropFile(page, "asserted.lathe", Buffer.from(text));
  await page.locator(".cell.model .facts").nth(1).waitFor();
  await settled(page);
  const cell = await addBench(page, "bench(asserted_fast, repeats=1)");
  assert.match(await cell.locator(".failure").innerText(), /position \d+ of a table of 5/);
  assert.doesNotMatch(await cell.innerText(), /trapped/);
  await typeSource(page, cell, "bench(fast, repeats=1)"); // a module that trapped is gone
  assert.match(await cell.locator(".totals").innerText(), /✓ agrees/);
});

page_test("the browser validates what the engine emits, for both levels", async (page) => {
  await watchKernels(page);
  for (const [i, target] of ["simd128", "relaxed"].entries()) {
    await typeSource(page, passes, `fast = passes(block, "default", target="${target}")`);
    const cell = await addBench(page, "bench(fast, repeats=1)");
    assert.match(await cell.innerText(), new RegExp(`✓ agrees.*One thread, ${target}`, "s"));
    const verdicts = await page.evaluate(async (which) => {
      const bytes = window.kernels.modules[which];
      return [WebAssembly.validate(bytes), WebAssembly.validate(bytes.slice(0, -1))];
    }, i);
    assert.deepEqual(verdicts, [true, false]);
  }
});

page_test("the page agrees with the native compiler", async (page) => {
  const args = ["opt", "attention_block", "--weights", "random:0", "--passes=graph"];
  const printed = lathe(args);
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
