// The models that Lathe answers for, in Chromium, against the interpreter. Most are larger than what
// a page checks by itself, so nothing else says that their results are right there.
import assert from "node:assert/strict";
import { pageTests, typeSource } from "./browser.mjs";
import { floatsOf, resultsOf, watchKernels } from "./kernel_results.mjs";
import { options, runNatively } from "./native.mjs";
import { distance } from "./npz.mjs";

const zoo = ["lerp", "ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16"];
const models = ["small_cnn", "attention_block", ...zoo.map((name) => `${name}.aten`)];

const page_test = pageTests();

for (const name of models)
  page_test(
    `${name} computes in the browser what the interpreter computes`,
    async (page) => {
      const expected = runNatively(name, "interp", 0);
      await watchKernels(page);
      await typeSource(page, ".cell.model", `block = import("${name}")`);
      await page.locator('.add button:has-text("Bench")').click();
      await page.keyboard.press("Escape");
      await typeSource(page, ".cell.bench", "bench(fast, repeats=1)");
      assert.equal(await page.locator(".failure").count(), 0);
      const results = (await resultsOf(page)).map(floatsOf);
      assert.ok(expected.length > 0 && results.length >= expected.length);
      for (const [i, { values }] of expected.entries()) {
        const far = distance(results[i], values);
        console.log(`${name}, output ${i}: ${far.toPrecision(3)} of the tolerance`);
        assert.ok(far <= 1, `output ${i} is ${far} times the tolerance away`);
        results[i][0] += 1;
        assert.ok(distance(results[i], values) > 1);
      }
    },
    { ...options, timeout: 900_000 },
  );
