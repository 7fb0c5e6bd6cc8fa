// The page in Chromium: what a person does, and what must then be there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  chip,
  dropFile,
  fixtures,
  openPage,
  pageTests,
  passes,
  settled,
  source,
  status,
  typeSource,
} from "./browser.mjs";

const page_test = pageTests();

async function graphOf(page, cell) {
  await page.locator(`${cell} .graph canvas`).waitFor();
  await page.locator(`${cell} .graph button:has-text("List")`).click();
  return page.locator(`${cell} .graph-list li`).allInnerTexts();
}

page_test("the first page opens a model, compiles it and draws it", async (page) => {
  assert.match(await status(page, ".cell.model"), /31 nodes/);
  assert.match(await status(page, passes), /28 passes/);
  assert.ok((await page.locator(".chip").count()) >= 17);
  const rows = await graphOf(page, ".cell.model");
  assert.ok(
    rows.some((row) => row.includes("layer_norm")),
    rows.join("\n"),
  );
  const isPainted = await page.locator(`${passes} canvas`).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 10;
  });
  assert.ok(isPainted);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
});

page_test("switching a pass rewrites the text and compiles again", async (page) => {
  await chip(page, "fuse_epilogue").locator(".switch").click();
  await settled(page);
  assert.equal(await source(page, passes), 'fast = passes(block, "default,-fuse_epilogue")');
  assert.match(await status(page, passes), /27 passes/);
  assert.match(await chip(page, "fuse_epilogue").innerText(), /switched off/);
  await chip(page, "fuse_epilogue").locator(".switch").click();
  await settled(page);
  assert.equal(await source(page, passes), 'fast = passes(block, "default")');
});

page_test("passes are moved by dragging and by keyboard", async (page) => {
  await typeSource(page, passes, 'fast = passes(block, "functionalize,cse,dce")');
  await chip(page, "dce").dragTo(chip(page, "cse"));
  await settled(page);
  assert.equal(await source(page, passes), 'fast = passes(block, "functionalize,dce,cse")');
  await chip(page, "cse").focus();
  await page.keyboard.press("Alt+ArrowLeft");
  await settled(page);
  assert.equal(await source(page, passes), 'fast = passes(block, "functionalize,cse,dce")');
});

page_test("a selected pass shows what it changed, with lines of Python", async (page) => {
  await chip(page, "decompose").click();
  await page.locator(".diff .inserted").first().waitFor();
  assert.match(await page.locator(".diff").innerText(), /small_models\.py:\d+/);
  await page.locator('button[role="tab"]:has-text("Whole text")').click();
  await page.locator(".long pre").first().waitFor();
  assert.match(await page.locator(".long pre").first().innerText(), /func @main/);
  await chip(page, "plan_memory").click();
  await page.locator(`${passes} .long pre`).first().waitFor();
  assert.match(await page.locator(`${passes} .long pre`).first().innerText(), /kernel/);
});

page_test("cells below run again when one above changes", async (page) => {
  await typeSource(page, ".cell.model", 'block = import("small_ffnn")');
  assert.match(await status(page, passes), /28 passes/);
  await chip(page, "functionalize").click();
  const [first] = await graphOf(page, passes);
  assert.match(first, /param/);
  assert.match(await page.locator(".cell.model .facts").innerText(), /f32\[/);
});

page_test("errors are explained at their place", async (page) => {
  await typeSource(page, passes, 'fast = passes(blok, "default")');
  const failure = page.locator(`${passes} .failure`);
  assert.match(await failure.innerText(), /did you mean 'block'\?/);
  assert.equal(await failure.locator("mark").innerText(), "blok");
  await typeSource(page, passes, 'fast = passes(block, "defualt")');
  assert.match(await failure.innerText(), /no pass named 'defualt'; did you mean 'default'\?/);
  await typeSource(page, passes, 'fast = passes(block, "lower_to_loops")');
  assert.match(await page.locator(passes).innerText(), /Error/);
});

page_test("a dropped .pt2 opens with its weights, and a reload finds it again", async (page) => {
  const file = readFileSync(join(fixtures, "attention_block.pt2"));
  await dropFile(page, "mine.pt2", file);
  const cell = page.locator(".cell.model").nth(1);
  await cell.locator(".facts").waitFor();
  assert.match(await cell.innerText(), /mine = import\("mine\.pt2"\)/);
  assert.match(await cell.innerText(), /in the file/);
  await page.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  await page.locator(".cell.model").nth(1).locator(".facts").waitFor();
});

page_test("broken files are refused in words, and the page lives on", async (page) => {
  const good = readFileSync(join(fixtures, "attention_block.pt2"));
  const files = {
    "cut.pt2": good.subarray(0, good.length / 2),
    "noise.json": Buffer.from("{]"),
    "noise.json.gz": Buffer.from("not gzip"),
    "wrong.lathe": Buffer.from("func @main(%x: f32[4]) -> f32[4] { return %y }"),
  };
  let count = 1;
  for (const [name, bytes] of Object.entries(files)) {
    await dropFile(page, name, bytes);
    const cell = page.locator(".cell.model").nth(count++);
    await cell.locator(".failure").waitFor();
    assert.match(await cell.innerText(), /Error/, name);
  }
  await dropFile(page, "picture.png", Buffer.from("x"));
  await page.locator(".message").waitFor();
  assert.match(await page.locator(".message").innerText(), /picture\.png: expected/);
  const cell = page.locator(".cell.model").first();
  await typeSource(page, cell, 'block = import("small_cnn")');
  assert.match(await status(page, cell), /nodes/);
});

page_test("what is typed survives a reload, and a downloaded notebook reads back", async (page) => {
  await typeSource(page, passes, 'other = passes(block, "minimal")');
  await page.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  assert.equal(await source(page, passes), 'other = passes(block, "minimal")');
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator('header button:has-text("Download")').click(),
  ]);
  const text = readFileSync(await download.path(), "utf8");
  const file = JSON.parse(text);
  assert.match(file.cells[2].outputs[0].data["text/plain"].join(""), /9 passes in /);
  assert.match(file.cells[2].outputs[0].data["text/html"].join(""), /<table>/);
  assert.match(file.cells[2].outputs[0].data["image/svg+xml"], /^<svg .*matmul/s);
  file.cells[2].source = ['again = passes(block, "graph")'];
  await dropFile(page, "again.ipynb", Buffer.from(JSON.stringify(file)));
  await page.waitForFunction(() => document.querySelector(".title").value === "again");
  await settled(page);
  assert.equal(await source(page, passes), 'again = passes(block, "graph")');
});

page_test("a shared link opens elsewhere and takes nothing away", async (page, { browser }) => {
  await typeSource(page, passes, 'fast = passes(block, "default,-cse")');
  await page.locator('header button:has-text("Share link")').click();
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const link = page.url();
  const other = await openPage(browser, link);
  assert.equal(await source(other.page, passes), 'fast = passes(block, "default,-cse")');
  await typeSource(other.page, passes, 'mine = passes(block, "minimal")');
  assert.ok(!other.page.url().includes("#s="), "an edited notebook is no longer the link's");
  await other.page.waitForTimeout(1500);
  await other.page.goto("about:blank");
  await other.page.goto(link);
  await settled(other.page);
  assert.equal(await source(other.page, passes), 'fast = passes(block, "default,-cse")');
  await other.page.locator('header button:has-text("Open")').click();
  await other.page.locator('dialog button:has-text("was open before")').click();
  await other.page.waitForFunction(() => document.body.innerText.includes("mine = passes"));
  assert.deepEqual(other.problems, []);
  await other.context.close();
});

page_test("a link that is looked at and reloaded replaces nothing", async (page, { browser }) => {
  await typeSource(page, passes, 'fast = passes(block, "default,-cse")');
  await page.locator('header button:has-text("Share link")').click();
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const link = page.url();
  const other = await openPage(browser, new URL("/", link).href);
  await typeSource(other.page, passes, 'first = passes(block, "graph")');
  await other.page.waitForTimeout(1500);
  for (let visit = 0; visit < 3; ++visit) {
    await other.page.goto("about:blank");
    await other.page.goto(link);
    await settled(other.page);
    await other.page.waitForTimeout(1500);
    await other.page.reload();
    await settled(other.page);
    assert.equal(await source(other.page, passes), 'fast = passes(block, "default,-cse")');
  }
  await other.page.locator('header button:has-text("Open")').click();
  await other.page.locator('dialog button:has-text("was open before")').click();
  await other.page.waitForFunction(() => document.body.innerText.includes("first = passes"));
  await other.page.goto("about:blank");
  await other.page.goto(new URL("/", link).href);
  await settled(other.page);
  assert.equal(await source(other.page, passes), 'first = passes(block, "graph")');
  assert.deepEqual(other.problems, []);
  await other.context.close();
});

page_test("everything can be done by keyboard", async (page) => {
  await page.locator(".cell").first().focus();
  await page.keyboard.press("b");
  await page.locator(".cell.editing .cm-content").waitFor();
  await page.keyboard.type("# By keys");
  await page.keyboard.press("Escape");
  await page.locator(".prose h1").waitFor();
  assert.equal(await page.locator(".cell").count(), 4);
  await page.keyboard.press("Alt+ArrowUp");
  assert.match(await page.locator(".cell").first().innerText(), /By keys/);
  await page.keyboard.press("d");
  await page.keyboard.press("d");
  assert.equal(await page.locator(".cell").count(), 3);
  await page.keyboard.press("z");
  assert.equal(await page.locator(".cell").count(), 4);
  await page.keyboard.press("z");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  assert.match(await page.locator("dialog").innerText(), /run the cell/);
  await page.keyboard.press("Escape");
  await page.locator(".cell.passes").focus();
  await page.keyboard.press("Enter");
  await page.locator(".cell.passes .cm-content").waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('keys = passes(block, "min');
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "minimal" }).waitFor();
  await page.waitForTimeout(300); // the editor takes no choice in the list's first moments
  await page.keyboard.press("Enter");
  await page.keyboard.type('")');
  await page.keyboard.press("Control+Enter");
  await settled(page);
  assert.equal(await source(page, passes), 'keys = passes(block, "minimal")');
  await chip(page, "dce").focus();
  await page.keyboard.press("Space");
  await settled(page);
  assert.equal(await source(page, passes), 'keys = passes(block, "minimal,-dce")');
  await page.locator(`${passes} canvas`).focus();
  await page.waitForTimeout(500); // the drawing
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.locator(`${passes} .node-card`).waitFor();
});

page_test("a stopped engine is replaced, and its models are opened again", async (page) => {
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      if (message?.name === "compile" && window.holdBack) return; // an engine that never answers
      postMessage.call(this, message, ...rest);
    };
    window.holdBack = true;
  });
  await page.locator(`${passes} button:has-text("Run")`).click();
  await page.locator(`${passes} button:has-text("Cancel")`).click();
  const failure = page.locator(`${passes} .failure`);
  await failure.waitFor();
  assert.match(await failure.innerText(), /stopped while compile.*everything typed is kept/s);
  await page.evaluate(() => (window.holdBack = false));
  await page.locator(`${passes} button:has-text("Run")`).click();
  await settled(page);
  assert.match(await status(page, passes), /28 passes/);
});

page_test("it works without a network once it was there", async (page, { context, problems }) => {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(async () => {
    const [name] = await caches.keys();
    return name !== undefined && (await (await caches.open(name)).keys()).length > 60;
  });
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await context.setOffline(true);
  await page.reload();
  await settled(page);
  await typeSource(page, ".cell.model", 'block = import("resnet18.aten")');
  assert.match(await status(page, ".cell.model"), /nodes/);
  assert.match(await status(page, passes), /28 passes/);
  problems.length = 0;
});

page_test("a bad file makes one error, and what waits for it says so", async (page) => {
  await dropFile(page, "noise.json", Buffer.from("{]"));
  const model = page.locator(".cell.model").nth(1);
  await model.locator(".failure").waitFor();
  await settled(page);
  const below = page.locator(passes).nth(1);
  assert.equal(await page.locator(".failure").count(), 1);
  assert.match(await below.innerText(), /Not run: the cell above that makes noise failed/);
  await below.locator('.tools button:has-text("Run")').click();
  await settled(page);
  assert.equal(await page.locator(".failure").count(), 1, "asked to, it still waits");
  await typeSource(page, model, 'noise = import("small_ffnn")');
  assert.match(await status(page, below), /28 passes/);
});

page_test("what stands before an illegal pass runs, and its chip is marked", async (page) => {
  await typeSource(page, passes, 'fast = passes(block, "functionalize,plan_memory,cse,dce")');
  assert.match(await page.locator(`${passes} .failure`).innerText(), /'plan_memory' needs/);
  assert.match(await chip(page, "functionalize").innerText(), /change|node|replaced/);
  assert.match(await chip(page, "plan_memory").innerText(), /✗.*stopped here/s);
  assert.match(await chip(page, "cse").innerText(), /not run/);
  assert.equal(await page.locator(".chip.culprit").count(), 1);
  await page.locator(`${passes} canvas`).waitFor();
  await chip(page, "plan_memory").locator(".switch").click();
  await settled(page);
  assert.equal(await page.locator(".chip.culprit").count(), 0);
});

page_test("fusing never makes a graph look larger", async (page) => {
  const nodesAfter = async (pass) => {
    await chip(page, pass).click();
    const head = page.locator(`${passes} .pane h3`).first();
    await page.waitForFunction((word) => document.body.innerText.includes(word), `after ${pass}`);
    const words = await head.innerText();
    const count = Number(/, (\d+) nodes/.exec(words)?.[1]);
    const label = await page.locator(`${passes} canvas`).getAttribute("aria-label");
    return { count, label, words };
  };
  const before = await nodesAfter("choose_layout");
  const after = await nodesAfter("fuse_pointwise");
  assert.ok(after.count < before.count, `${before.words}; ${after.words}`);
  assert.match(after.words, /\d+ more inside fused ones/);
  await page.waitForFunction(
    (word) => document.querySelector(".cell.passes canvas").ariaLabel.includes(word),
    `: ${after.count} nodes`,
  );
  assert.match(await chip(page, "lower_to_loops").innerText(), /\d+ nodes → \d+ launches/);
});

// What of a canvas is painted, as the first and last row that is not of its ground.
const paintedRows = (canvas) =>
  canvas.evaluate((element) => {
    const { width, height } = element;
    const { data } = element.getContext("2d").getImageData(0, 0, width, height);
    const pixels = new Uint32Array(data.buffer);
    const rows = [];
    for (let y = 0; y < height; ++y) {
      const row = pixels.subarray(y * width, (y + 1) * width);
      if (row.some((pixel) => pixel !== pixels[0])) rows.push(y / height);
    }
    return { first: rows[0] ?? 1, last: rows.at(-1) ?? 0 };
  });

page_test("a large graph is searched whole, and fits", async (page) => {
  await typeSource(page, ".cell.model", 'block = import("bert_base.aten")');
  const cell = page.locator(".cell.model");
  const canvas = cell.locator("canvas");
  await page.waitForFunction(
    () => / [1-9]\d\d nodes/.test(document.querySelector(".cell.model canvas")?.ariaLabel ?? ""),
  );
  const search = cell.locator('input[type="search"]');
  await search.fill("gelu");
  assert.match(await cell.locator(".graph .bar").innerText(), /\b12 found/);
  await search.press("Enter");
  await cell.locator(".node-card").waitFor();
  assert.match(await cell.locator(".node-card").innerText(), /gelu/);
  const first = await cell.locator(".node-card").innerText();
  await search.press("Enter");
  await page.waitForFunction(
    (before) => {
      const card = document.querySelector(".cell.model .node-card")?.innerText ?? before;
      return card !== before && card.includes("gelu");
    },
    first,
  );
  for (const word of ["Unfold", "Fold", "Fit"]) {
    await cell.locator(`.graph button:text-is("${word}")`).click();
    await page.waitForTimeout(700); // the drawing
    const { first: top, last: bottom } = await paintedRows(canvas);
    assert.ok(top > 0.005 && bottom < 0.995 && bottom - top > 0.2, `${word}: ${top} to ${bottom}`);
  }
});

page_test("ten megabytes of text are cut, kept and saved", async (page) => {
  const line = `${"many **words** of `text` ".repeat(10)}\n\n`;
  const source = line.repeat(Math.ceil(10e6 / line.length));
  const file = {
    cells: [{ cell_type: "markdown", id: "long", metadata: {}, source }],
    metadata: {},
    nbformat: 4,
    nbformat_minor: 5,
  };
  const bytes = Buffer.from(JSON.stringify(file));
  await page.locator('header button:has-text("Open")').click();
  const start = performance.now();
  await page
    .locator('dialog input[type="file"]')
    .setInputFiles({ name: "long.ipynb", mimeType: "application/x-ipynb+json", buffer: bytes });
  await page.locator(".cut").waitFor();
  assert.match(await page.locator(".cut").innerText(), /The first .* of 10.* MB are shown/);
  const letters = async () => (await page.locator(".prose").innerText()).length;
  const few = await letters();
  assert.ok(few < 150_000, `${few} letters after ${performance.now() - start} ms`);
  await page.locator('.cut button:has-text("Show more")').click();
  await page.waitForFunction(
    (before) => document.querySelector(".prose").innerText.length > 1.5 * before,
    few,
  );
  await page.waitForTimeout(2500); // it saves itself
  await page.reload();
  await page.locator(".cut").waitFor();
  assert.equal(await page.locator(".cell").count(), 1);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator('header button:has-text("Download")').click(),
  ]);
  const kept = JSON.parse(readFileSync(await download.path(), "utf8"));
  assert.equal(kept.cells[0].source.join(""), source);
});

page_test("two tabs do not overwrite each other", async (page, { context }) => {
  await typeSource(page, passes, 'mine = passes(block, "minimal")');
  await page.waitForTimeout(1500);
  const second = await context.newPage();
  await second.goto(page.url());
  await settled(second);
  const notice = (tab) => tab.locator('.message:has-text("another tab")');
  await notice(second).waitFor();
  assert.equal(await notice(page).count(), 0);
  await typeSource(second, passes, 'theirs = passes(block, "graph")');
  await second.waitForTimeout(1500);
  await page.reload();
  await settled(page);
  // The tab that was left keeps nothing while it loads, so the second has become the one that saves.
  const keeps = (tab) => notice(tab).count().then((count) => count === 0);
  assert.notEqual(await keeps(page), await keeps(second), "one of them keeps");
  if (await keeps(second)) {
    await page.locator('.message button:has-text("Save this one instead")').click();
    await notice(second).waitFor();
    await notice(page).waitFor({ state: "detached" });
  }
  assert.ok(await keeps(page));
  await page.locator('header button:has-text("Open")').click();
  await page.locator('dialog button:has-text("was open before")').waitFor();
  await page.keyboard.press("Escape");
  const texts = async () => {
    await page.locator('header button:has-text("Open")').click();
    await page.locator('dialog button:has-text("was open before")').click();
    await page.waitForTimeout(300);
    await settled(page);
    return source(page, passes);
  };
  const seen = new Set([await source(page, passes), await texts()]);
  assert.deepEqual([...seen].sort(), [
    'mine = passes(block, "minimal")',
    'theirs = passes(block, "graph")',
  ]);
});

// Chains of pointwise ops side by side.
function manyNodes(count, chains) {
  const lines = ["func @main(%x: f32[64]) -> f32[64] {"];
  for (let i = 0; i < count; ++i)
    lines.push(`  %n${i} = ${i % 3 ? "relu" : "exp"}(${i < chains ? "%x" : `%n${i - chains}`})`);
  return [...lines, `  return %n${count - 1}`, "}"].join("\n");
}

page_test("bytes that the engine has no room for are refused, and it lives on", async (page) => {
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      const bytes = { length: 2 ** 32 - 8 }; // what a huge archive would bring along
      const swollen = message.name === "compile" ? { ...message, bytes } : message;
      postMessage.call(this, swollen, ...rest);
    };
  });
  const [worker] = page.workers();
  await page.locator(`${passes} button:has-text("Run")`).click();
  const failure = page.locator(`${passes} .failure`);
  await failure.waitFor();
  assert.match(await failure.innerText(), /too-large.*no room for 4294967288 bytes/);
  await page.locator(".cell.model details").first().click();
  await page.locator(".cell.model .table td").first().waitFor();
  assert.equal(page.workers()[0], worker, "it is the same engine");
});

page_test("an engine that dies is replaced, and says while doing what", async (page) => {
  await page.waitForFunction(() =>
    [...document.querySelectorAll("canvas")].every((one) => / [1-9]\d* nodes/.test(one.ariaLabel)),
  );
  await page.locator(`${passes} .diff`).waitFor(); // nothing is asked of it any more
  const [worker] = page.workers();
  await worker.evaluate(() => {
    const { get } = Object.getOwnPropertyDescriptor(WebAssembly.Memory.prototype, "buffer");
    const ruined = function () {
      const buffer = get.call(this);
      new Uint8Array(buffer).fill(0xff); // heap and stack: the next access is out of bounds
      return buffer;
    };
    Object.defineProperty(WebAssembly.Memory.prototype, "buffer", { get: ruined });
  });
  await page.locator(`${passes} button:has-text("Run")`).click();
  const failure = page.locator(`${passes} .failure`);
  await failure.waitFor();
  assert.match(await failure.innerText(), /the engine died while compile/);
  assert.match(await failure.innerText(), /A fresh engine is ready/);
  await typeSource(page, passes, 'fast = passes(block, "minimal")');
  assert.match(await status(page, passes), /9 passes/);
});

page_test("five thousand nodes stay fluid", async (page) => {
  await dropFile(page, "wide.lathe", Buffer.from(manyNodes(5000, 100)));
  const cell = page.locator(".cell.model").nth(1);
  await cell.locator("canvas").waitFor();
  await settled(page);
  await page.waitForTimeout(500);
  await cell.locator('button:has-text("Fit")').click();
  const canvas = cell.locator("canvas");
  await canvas.scrollIntoViewIfNeeded();
  const slowest = await canvas.evaluate(async (element) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const event = (type, x, y) =>
      element.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y }));
    element.setPointerCapture = () => undefined;
    event("pointerdown", 300, 300);
    const times = [];
    for (let i = 0; i < 30; ++i) {
      const start = performance.now();
      event("pointermove", 300 + i, 300 + 5 * i);
      await frame();
      times.push(performance.now() - start);
    }
    event("pointerup", 330, 450);
    return times.sort((a, b) => a - b)[15];
  });
  assert.ok(slowest < 100, `half of the frames took more than ${slowest} ms`);
});

for (const lesson of ["What is in this graph?", "What does fusion buy?"])
  page_test(`the lesson “${lesson}” runs`, async (page) => {
    await page.locator('header button:has-text("Open")').click();
    await page.locator(`dialog button:has-text("${lesson}")`).click();
    await page.waitForFunction(() => document.querySelectorAll(".cell").length > 5);
    await settled(page);
    await page.locator('header button:has-text("Run all")').click();
    await page.waitForTimeout(100);
    await settled(page);
    for (const word of await page.locator(".cell:not(.markdown) .status").allInnerTexts())
      assert.match(word, /nodes|passes|took/);
    assert.equal(await page.locator(".failure").count(), 0);
  });

for (const [width, height] of [
  [1280, 900],
  [390, 844],
])
  for (const colorScheme of ["light", "dark"])
    page_test(
      `nothing is wider than the page at ${width} in ${colorScheme}`,
      async (page) => {
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.ok(excess <= 0, `${excess} pixels`);
        assert.equal(
          await page
            .locator("button:not([aria-label])")
            .evaluateAll((buttons) => buttons.filter((button) => !button.innerText.trim()).length),
          0,
        );
      },
      { viewport: { width, height }, colorScheme },
    );
