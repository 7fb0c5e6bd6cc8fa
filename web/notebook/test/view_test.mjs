// What the page shows: Markdown that stays safe, numbers with units, graphs that can be walked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, readRange } from "../.build/engine/unpack.js";
import { fitted, isInView, opening, seen, showing, zoomed } from "../.build/graph/camera.js";
import { foldedAtFirst } from "../.build/graph/folding.js";
import { clusterAt, neighbour, nodeAt, sceneOf } from "../.build/graph/scene.js";
import { svgOf } from "../.build/graph/svg.js";
import { sizesToMeasure } from "../.build/run/choose_sizes.js";
import { isFar, spreadOf } from "../.build/run/bench_result.js";
import { details, mostTelling, sizeWords, summary } from "../.build/view/changes.js";
import { beginning } from "../.build/view/beginning.js";
import * as bundleRows from "../.build/view/bundle_rows.js";
import { decadesOf, logScale, ticksOf } from "../.build/view/log_scale.js";
import { makeRenderer } from "../.build/view/markdown.js";
import * as quantities from "../.build/view/quantities.js";

const render = makeRenderer();

test("Markdown becomes HTML, and HTML stays text", () => {
  assert.match(render("**a** `b`"), /<strong>a<\/strong> <code>b<\/code>/);
  for (const bad of [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,hi)",
    "![x](https://elsewhere.example/pixel.png)",
    "<a href='javascript:1'>x</a>",
  ]) {
    const html = render(bad);
    assert.ok(!/<(script|img)|href="(javascript|data):/i.test(html), html);
  }
  assert.match(render("[x](https://example.org)"), /rel="noopener noreferrer"/);
});

test("numbers have units", () => {
  assert.equal(quantities.milliseconds(0.0042), "4.2 µs");
  assert.equal(quantities.milliseconds(0.31), "0.31 ms");
  assert.equal(quantities.milliseconds(1500), "1.50 s");
  assert.equal(quantities.bytes(12_582_912), "12.6 MB");
  assert.equal(quantities.count(1234567), "1,234,567");
  assert.equal(quantities.plural(1, "node"), "1 node");
});

test("a size that doubles moves as far anywhere on a logarithmic axis", () => {
  const place = logScale([1, 512], [0, 90]);
  assert.equal(place(1), 0);
  assert.ok(Math.abs(place(512) - 90) < 1e-9);
  assert.ok(Math.abs(place(64) - place(32) - 10) < 1e-9);
  assert.equal(logScale([8, 8], [0, 90])(8), 45, "of one size");
  assert.deepEqual(ticksOf(1, 512), [1, 4, 16, 64, 256]);
  assert.deepEqual(ticksOf(3, 5), [4]);
  assert.deepEqual(ticksOf(5, 7), []);
  assert.deepEqual(decadesOf(0.3, 120), [0.3, 1, 10, 120]);
  assert.deepEqual(decadesOf(3, 3), [3]);
  assert.deepEqual(decadesOf(9, 11), [9, 11]);
  assert.ok(ticksOf(1, 2 ** 62).length <= 5);
});

test("few sizes are measured, the one that is looked at first, and none that takes long", () => {
  const curve = Array.from({ length: 24 }, (_, i) => ({ size: i, predicted: i / 40 }));
  const sizes = sizesToMeasure(curve, 10);
  assert.equal(sizes[0], 10);
  assert.ok(sizes.length >= 6 && sizes.length <= 8, sizes.join());
  assert.equal(new Set(sizes).size, sizes.length);
  assert.deepEqual([Math.min(...sizes), Math.max(...sizes)], [1, 19]);
  assert.deepEqual(sizesToMeasure([], 3), [3]);
  assert.deepEqual(sizesToMeasure([{ size: 4, arena_bytes: 0 }], 3), [3], "nothing predicted");
});

test("a browser is named as people name it", () => {
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36";
  assert.equal(quantities.browserName(chrome), "Chrome 156");
  assert.equal(quantities.browserName(`${chrome} Edg/157.0`), "Edge 157");
  assert.equal(quantities.browserName("Gecko/20100101 Firefox/140.0"), "Firefox 140");
  assert.equal(quantities.browserName("Version/19.1 Safari/605.1"), "Safari 19");
  assert.equal(quantities.browserName("<b>Chrome</b>"), "an unknown browser");
});

const size = (nodes, inside = 0, launches = 0) => ({ nodes, inside, launches });
const step = (changes) => ({
  pass: "cse",
  skipped: false,
  changed: true,
  size_before: size(10),
  size_after: size(10),
  ops: {},
  counters: {},
  ...changes,
});

test("a step says what it did in words", () => {
  assert.equal(summary(step({ changed: false })), "no change");
  assert.equal(summary(step({ size_after: size(8) })), "10 → 8 nodes");
  assert.equal(summary(step({ size_after: size(8, 5) })), "10 → 8 nodes");
  assert.equal(summary(step({ counters: { merged: 2 } })), "merged 2");
  const lowered = { counters: { kernels: 6, launches: 7 }, size_after: size(0, 0, 7) };
  assert.equal(summary(step(lowered)), "10 nodes → 7 launches");
  assert.equal(sizeWords(size(8)), "8 nodes");
  assert.equal(sizeWords(size(8, 5)), "8 nodes, 5 more inside fused ones");
  assert.equal(sizeWords(size(0, 0, 7)), "7 launches");
  const bytes = { temporaries: 3, planned_bytes: 2_000_000 };
  assert.equal(summary(step({ counters: bytes })), "planned 2 MB");
  assert.deepEqual(details(step({ ops: { add: -2, fused: 1 } })), ["−2 add", "+1 fused"]);
  const steps = [
    step({ hash: "a" }),
    step({ hash: "b" }),
    step({ changed: false, hash: "b" }),
    step({}),
  ];
  assert.equal(mostTelling(steps), 1);
});

const node = (name, op = "add", more = {}) => ({
  name,
  op,
  class: "elementwise",
  types: ["f32[2]"],
  ...more,
});
const info = {
  nodes: [node("x", "param", { class: "source" }), node("a"), node("b"), node("c")],
  edges: [
    [0, 0, 1, 0],
    [1, 0, 2, 0],
    [1, 0, 3, 0],
  ],
  table: [],
};
const drawing = {
  width: 200,
  height: 300,
  boxes: [[50, 0, 60, 40], [50, 100, 60, 40], [0, 200, 60, 40], 0],
  clusters: [
    { key: "m", module: "m", parent: -1, folded: true, nodes: 1, box: [100, 200, 80, 40] },
  ],
  routes: [{ from: 0, to: 1, points: [80, 40, 80, 100] }],
};

test("a scene finds, walks and marks", () => {
  const scene = sceneOf(
    info,
    drawing,
    new Map([
      ["a", "added"],
      ["c", "changed"],
    ]),
  );
  assert.equal(scene.nodes.length, 3);
  assert.equal(scene.nodes[1].mark, "added");
  assert.equal(scene.clusters[0].hasMarks, true);
  assert.equal(nodeAt(scene, 60, 110), 1);
  assert.equal(nodeAt(scene, 500, 500), null);
  assert.equal(clusterAt(scene, 110, 210).key, "m");
  assert.equal(neighbour(scene, 0, 0, 1), 1);
  assert.equal(neighbour(scene, 1, 0, -1), 0);
  assert.equal(neighbour(scene, 0, 0, -1), 0);
});

test("a picture is well-formed and holds no markup of the model's", () => {
  const evil = { ...info, nodes: info.nodes.map((one) => ({ ...one, op: '<b a="1">&' })) };
  const svg = svgOf(sceneOf(evil, drawing, new Map()), "<t>");
  assert.ok(svg.startsWith("<svg") && svg.endsWith("</svg>\n"));
  assert.ok(!svg.includes("<b ") && svg.includes("&lt;b"));
});

test("large graphs open folded, small ones open", () => {
  const clusters = [
    { key: "e", parent: -1, nodes: 900 },
    ...Array.from({ length: 30 }, (_, i) => ({ key: `e.${i}`, parent: 0, nodes: 30 })),
  ];
  assert.deepEqual(foldedAtFirst(clusters, 120), []);
  assert.equal(foldedAtFirst(clusters, 910).length, 30);
});

test("what is fitted is seen whole, however large, and zooming out comes back to it", () => {
  for (const [width, height] of [
    [300, 60_000],
    [90_000, 200],
    [10, 10],
  ]) {
    const all = fitted(width, height, 600, 480);
    const [x, y, w, h] = seen(all, 600, 480);
    assert.ok(x <= 0 && y <= 0 && x + w >= width && y + h >= height, `${width} x ${height}`);
    assert.ok(Math.abs(x + w / 2 - width / 2) < 1e-6, "in the middle");
    const near = zoomed(all, 100, 300, 240, all.scale);
    assert.ok(zoomed(near, 1e-6, 300, 240, all.scale).scale <= all.scale + 1e-12);
  }
  const camera = opening(300, 60_000, 600, 480);
  assert.ok(isInView(camera, 300, 60_000, 600, 480));
  assert.ok(!isInView({ x: 0, y: 70_000, scale: 1 }, 300, 60_000, 600, 480));
});

test("a long text is cut at the end of a line", () => {
  assert.equal(beginning("short", 100), "short");
  assert.equal(beginning(`${"a".repeat(80)}\n${"b".repeat(80)}`, 100), "a".repeat(80));
  assert.equal(beginning("a".repeat(200), 100).length, 100);
});

test("the camera keeps what it should", () => {
  const all = fitted(1000, 1000, 500, 500);
  assert.ok(all.scale < 0.5);
  const near = zoomed(all, 2, 250, 250);
  const middle = (camera) => camera.x + 250 / camera.scale;
  assert.ok(Math.abs(middle(all) - middle(near)) < 1e-9);
  const moved = showing({ x: 0, y: 0, scale: 1 }, [900, 900, 50, 50], 500, 500);
  assert.ok(moved.x > 400 && moved.y > 400);
});

test("ranges of a file come plain or inflated, and never larger than promised", async () => {
  const plain = new Blob([new Uint8Array([1, 2, 3, 4])]);
  assert.deepEqual([...(await readRange(plain, { begin: 1, size: 2 }))], [2, 3]);
  const packed = new Blob(["a".repeat(5000)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const blob = await new Response(packed).blob();
  const range = { begin: 0, size: blob.size, inflated: 5000 };
  assert.equal((await readRange(blob, range)).length, 5000);
  await assert.rejects(readRange(blob, { ...range, inflated: 100 }), /more than 100/);
  assert.deepEqual([...joined([new Uint8Array([1]), new Uint8Array([2, 3])])], [1, 2, 3]);
});

test("a launch is far from its limit beyond four times", () => {
  const launch = (mean, limit) => isFar({ label: "", kernel: 0, flops: 0, bytes: 0, mean, limit });
  assert.deepEqual([launch(4.1, 1), launch(3.9, 1), launch(1, undefined)], [true, false, false]);
});

test("a bundle's rows are the graphs of a frame that end alike, in the order of calls", () => {
  const frame = { frame: 0, function: "forward", is_resumed: false, file: "m.py", line: 3 };
  const compile = (id, more) => ({ id, frame: Number(id[0]), ...more });
  const graph = { ops: 1, ends: "break", inputs: [] };
  const info = {
    frames: [frame],
    breaks: [{ reason: "a" }, { reason: "b" }],
    compiles: [
      compile("0_0", { graph, break: 0 }),
      compile("0_1", { graph, break: 1 }),
      compile("0_2", { graph, break: 0 }),
      compile("7_0", { failure: "too many" }),
      compile("7_1", { break: 9 }),
    ],
    num_recompiles: 3,
    recompiles: [{}],
  };
  const { bundleSummary, frameText, placeOf } = bundleRows;
  const rows = bundleRows.rowsOf(info);
  assert.deepEqual(
    rows.map(({ compiles, end }) => [compiles.map(({ id }) => id).join(), end?.number]),
    [
      ["0_0,0_2", 1],
      ["0_1", 2],
      ["7_0", undefined],
      ["7_1", undefined],
    ],
  );
  assert.equal(rows[0].frame, frame);
  assert.equal(frameText(rows[2].frame), "an unknown frame");
  assert.equal(frameText({ ...frame, is_resumed: true }), "forward, resumed");
  assert.equal(bundleSummary(info), "3 graphs, 2 graph breaks, 3 recompiles of 1 cause");
  assert.equal(placeOf({ file: "", line: 0 }), "an unknown line");
});

test("long lists and indentation of a bundle are cut", () => {
  const { dedented, inputsText, listed } = bundleRows;
  assert.equal(listed(["a", "b", "c"], 2), "a, b, and 1 more");
  const weight = { source: "L['self'].w", is_state: true };
  assert.equal(inputsText([weight, { source: "L['x']", is_state: false }]), "L['x'] and 1 weight");
  assert.equal(inputsText([weight, weight]), "2 weights");
  const codes = (...list) => dedented(list.map((code) => ({ code }))).map(({ code }) => code);
  assert.deepEqual(codes("    a", "      b", "", "    c"), ["a", "  b", "", "c"]);
  assert.deepEqual(codes("a", "  b"), ["a", "  b"]);
  assert.deepEqual(codes(), []);
});

test("a spread is made of samples", () => {
  const { median, low, high } = spreadOf([5, 1, 2, 3, 4]);
  assert.deepEqual([median, low <= 2, high >= 4], [3, true, true]);
});
