// A bundle of lathe.capture in the page: lines that broke graphs, guards, recompiles, and what is
// refused.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dropFile, pageTests, repository, settled, source, status } from "./browser.mjs";

const page_test = pageTests();
const bundle = ".cell.bundle";
const file = readFileSync(join(repository, "tests/bundle/three_breaks.zip"));
const model = readFileSync(join(repository, "tests/bundle/three_breaks.py"), "utf8").split("\n");
const lineWith = (mark) => model.findIndex((code) => code.includes(mark)) + 1;
const broken = model.flatMap((code, i) => (code.includes("# break:") ? [i + 1] : []));

async function openBundle(page, bytes = file) {
  await dropFile(page, "mine.zip", bytes);
  await page.locator(`${bundle} .rows, ${bundle} .failure`).last().waitFor();
  await settled(page);
}

page_test("a bundle names the lines of three breaks and two recompiles", async (page) => {
  await openBundle(page);
  assert.equal(await source(page, bundle), 'bundle("mine.zip")');
  assert.match(await status(page, bundle), /3 graph breaks/);
  const text = await page.locator(bundle).innerText();
  assert.match(text, /Gated: 6 graphs, 3 graph breaks, 2 recompiles\./);
  assert.equal(broken.length, 3);
  const ends = page.locator(`${bundle} .rows .end`);
  assert.equal(await ends.count(), 4);
  for (const [i, line] of broken.entries()) {
    const end = ends.nth(i);
    assert.ok((await end.innerText()).includes(`Break ${i + 1} at three_breaks.py:${line}: `));
    const marked = await end.locator(".line.broke").innerText();
    assert.ok(marked.includes(model[line - 1].trim()), marked);
    assert.ok((await end.locator(".line").count()) > 3);
    assert.match(await end.innerText(), /Hint: \w+/);
  }
  assert.equal(await ends.nth(3).innerText(), "Returns.");
  const causes = await page.locator(`${bundle} .causes li`).allInnerTexts();
  assert.equal(causes.length, 2);
  for (const [i, id, guard, mark] of [
    [0, "0_1", "scale == 2", "self.inner(x) * scale"],
    [1, "0_2", "is_gated == True", "if is_gated:"],
  ])
    for (const part of [`Call ${i + 1} compiled ${id} (value): ${guard}`, `three_breaks.py:${lineWith(mark)}`, mark])
      assert.ok(causes[i].includes(part), `${part} in ${causes[i]}`);
});

page_test("the graphs of a frame stand beside the line that broke them", async (page) => {
  await openBundle(page);
  const rows = page.locator(`${bundle} .row`);
  assert.deepEqual(await rows.nth(0).locator(".captured b.mono").allInnerTexts(), [
    "0_0",
    "0_1",
    "0_2",
  ]);
  const [graphs, end] = await Promise.all(
    [".graphs", ".end"].map((side) => rows.nth(0).locator(side).boundingBox()),
  );
  assert.ok(graphs.x + graphs.width <= end.x + 1 && Math.abs(graphs.y - end.y) < 2);
  await page.setViewportSize({ width: 420, height: 900 });
  const [above, below] = await Promise.all(
    [".graphs", ".end"].map((side) => rows.nth(0).locator(side).boundingBox()),
  );
  assert.ok(above.y + above.height <= below.y + 1);
});

page_test("guards are unfolded as PyTorch prints them", async (page) => {
  await openBundle(page);
  const guards = page.locator(`${bundle} summary:has-text("guards of 1_0")`);
  assert.equal(await page.locator(`${bundle} .long`).count(), 0, "made when somebody looks");
  await guards.focus();
  await page.keyboard.press("Enter");
  const text = await page.locator(`${bundle} .long pre`).innerText();
  assert.match(text, /^TREE_GUARD_MANAGER:\n\+- RootGuardManager\n\| \+- /);
  assert.ok(text.includes("TENSOR_MATCH: check_tensor(L['h'], Tensor, "));
  const count = Number(/^(\d+) guards/.exec(await guards.innerText())[1]);
  assert.equal(count, text.split("\n").filter((row) => /\+- (?!\w*Manager)/.test(row)).length);
  await page.locator(`${bundle} summary:has-text("Python of 0_0")`).click();
  await page.locator(`${bundle} .long pre:has-text("torch.sigmoid")`).waitFor();
});

page_test("a graph of a bundle opens as a model below it", async (page) => {
  await openBundle(page);
  await page.locator('button[aria-label="Open graph 1_0 as a model"]').click();
  await page.locator(".cell.model").nth(1).locator(".facts").waitFor();
  await settled(page);
  const opened = page.locator(".cell.model").nth(1);
  assert.equal(await source(page, opened), 'mine_1_0 = import("mine.zip/graphs/1_0.json")');
  const passes = page.locator(".cell.passes").nth(1);
  assert.equal(await source(page, passes), 'mine_1_0_fast = passes(mine_1_0, "default")');
  assert.match(await status(page, passes), /\d+ passes/);
  await page.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  assert.match(await status(page, bundle), /3 graph breaks/);
  assert.match(await status(page, page.locator(".cell.passes").nth(1)), /\d+ passes/);
});

page_test("a broken bundle is refused in words, and the page lives on", async (page) => {
  const text = file.toString("latin1");
  const files = [
    [file.subarray(0, file.length / 2), /the file may be cut short/],
    [Buffer.from(""), /too short for a zip file/],
    [Buffer.from(text.replaceAll("manifest.json", "manifest.jsom"), "latin1"), /no 'manifest\.json'/],
    [readFileSync(join(repository, "tests/fixtures/ffnn.pt2")), /no bundle of lathe\.capture/],
    [Buffer.from(text.replaceAll("breaks.jsonl", "breaks.jsonm"), "latin1"), /no entry 'breaks/],
  ];
  for (const [i, [bytes, why]] of files.entries()) {
    await dropFile(page, `broken_${i}.zip`, bytes);
    const cell = page.locator(bundle).nth(i);
    await cell.locator(".failure").waitFor();
    assert.match(await cell.innerText(), why);
  }
  await openBundle(page);
  assert.match(await status(page, page.locator(bundle).last()), /3 graph breaks/);
  await dropFile(page, "folder", Buffer.from(""));
  await page.locator(".message").waitFor();
  assert.match(await page.locator(".message").innerText(), /a folder is not opened here/);
});
