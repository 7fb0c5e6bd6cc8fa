// How long the page takes to show what a person asked for, in Chromium, and what a visit loads:
//
//     node tests/bench/web/page.mjs [--rounds 5]
//
// after `./lathe web` has built the page.
//
// - a .pt2 archive of 102 MB (resnet50 with random weights, made here) from the drop until its
//   graph is painted; every round in a browser process of its own
// - a pass of resnet50 switched off and on again, from the click until nothing in its cell changes
//   any more: chips, diff, graph
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crc32, gunzipSync } from "node:zlib";
import * as browsing from "../../../web/notebook/test/browser.mjs";

const { passes, repository } = browsing;
const { values: options } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(options.rounds);
const model = "resnet50.aten";
const switched = ["fuse_epilogue", "cse"];

// ---- the archive: stored entries, as torch.export.save writes them ------------------------------

class StoredZip {
  #file;
  #at = 0;
  #directory = [];

  constructor(path) {
    this.#file = fs.openSync(path, "w");
  }

  add(name, bytes) {
    const entry = Buffer.alloc(26);
    entry.writeUInt16LE(20, 0); // the version that reads it
    entry.writeUInt32LE(crc32(bytes), 10);
    entry.writeUInt32LE(bytes.length, 14);
    entry.writeUInt32LE(bytes.length, 18);
    entry.writeUInt16LE(name.length, 22);
    this.#directory.push({ name, entry, at: this.#at });
    this.#write(Buffer.from("PK\x03\x04"), entry, Buffer.from(name), bytes);
  }

  close() {
    const begin = this.#at;
    for (const { name, entry, at } of this.#directory) {
      const place = Buffer.alloc(14);
      place.writeUInt32LE(at, 10);
      this.#write(Buffer.from("PK\x01\x02\x14\0"), entry, place, Buffer.from(name));
    }
    const end = Buffer.alloc(18);
    end.writeUInt16LE(this.#directory.length, 4);
    end.writeUInt16LE(this.#directory.length, 6);
    end.writeUInt32LE(this.#at - begin, 8);
    end.writeUInt32LE(begin, 12);
    this.#write(Buffer.from("PK\x05\x06"), end);
    fs.closeSync(this.#file);
  }

  #write(...parts) {
    for (const part of parts) this.#at += fs.writeSync(this.#file, part);
  }
}

function randomWeight(meta) {
  const count = meta.sizes.reduce((product, size) => product * size.as_int, 1);
  if (meta.dtype !== 7) return Buffer.alloc(8 * count); // counts of batches
  return Buffer.from(Float32Array.from({ length: count }, () => Math.random() - 0.5).buffer);
}

function writeArchive(path) {
  const json = gunzipSync(fs.readFileSync(join(repository, "tests/zoo", `${model}.json.gz`)));
  const { graph, signature } = JSON.parse(json).graph_module;
  const zip = new StoredZip(path);
  zip.add("resnet50/archive_format", Buffer.from("pt2"));
  zip.add("resnet50/archive_version", Buffer.from("0"));
  zip.add("resnet50/byteorder", Buffer.from("little"));
  const config = {};
  for (const { parameter, buffer } of signature.input_specs) {
    const given = parameter ?? buffer;
    if (!given) continue;
    const meta = graph.tensor_values[given.arg.name];
    const path_name = `weight_${Object.keys(config).length}`;
    const name = given.parameter_name ?? given.buffer_name;
    const is_param = Boolean(parameter);
    config[name] = { path_name, is_param, use_pickle: false, tensor_meta: meta };
    zip.add(`resnet50/data/weights/${path_name}`, randomWeight(meta));
  }
  const weights = Buffer.from(JSON.stringify({ config }));
  zip.add("resnet50/data/weights/model_weights_config.json", weights);
  zip.add("resnet50/data/constants/model_constants_config.json", Buffer.from('{"config": {}}'));
  zip.add("resnet50/models/model.json", json);
  zip.close();
}

// ---- what is timed ------------------------------------------------------------------------------

// The file lies on the disk, as a dropped one does: the page reads what it wants of it.
async function dropTime(page, path) {
  await page.evaluate(() => {
    const input = document.createElement("input");
    input.type = "file";
    input.id = "from-disk";
    document.body.append(input);
  });
  await page.locator("#from-disk").setInputFiles(path);
  return page.evaluate(async () => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(document.querySelector("#from-disk").files[0]);
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const isDrawn = () => {
      const canvas = document.querySelectorAll(".cell.model")[1]?.querySelector("canvas");
      return / [1-9]\d* nodes/.test(canvas?.ariaLabel ?? "");
    };
    const start = performance.now();
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    document.querySelector(".page").dispatchEvent(drop);
    while (!isDrawn()) await frame();
    await frame(); // which paints it
    return performance.now() - start;
  });
}

async function toggleTime(page, pass) {
  const time = await page.evaluate(async (name) => {
    const cell = document.querySelector(".cell.passes");
    let last = 0;
    const changed = () => (last = performance.now());
    const observer = new MutationObserver(changed);
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    observer.observe(cell, all);
    const { setTransform } = CanvasRenderingContext2D.prototype; // how every painting begins
    CanvasRenderingContext2D.prototype.setTransform = function (...args) {
      if (cell.contains(this.canvas)) changed();
      return setTransform.apply(this, args);
    };
    const start = performance.now();
    cell.querySelector(`.chip[aria-label^="${name},"] .switch`).click();
    changed();
    while (cell.ariaBusy === "true" || performance.now() - last < 1000)
      await new Promise((done) => setTimeout(done, 10));
    observer.disconnect();
    CanvasRenderingContext2D.prototype.setTransform = setTransform;
    return last - start;
  }, pass);
  await browsing.settled(page);
  return time;
}

function print(what, times, limit) {
  const sorted = [...times].sort((a, b) => a - b);
  const milliseconds = (value) => `${value.toFixed(0)} ms`;
  const [low, high] = [sorted[0], sorted.at(-1)];
  const median = sorted[Math.floor(sorted.length / 2)];
  console.log(
    `${what}: median ${milliseconds(median)}, ${milliseconds(low)} to ${milliseconds(high)}, ` +
      `${sorted.length} samples; the aim is under ${milliseconds(limit)}`,
  );
}

// ---- the run ------------------------------------------------------------------------------------

const folder = fs.mkdtempSync(join(tmpdir(), "lathe-page-"));
const archive = join(folder, "resnet50.pt2");
writeArchive(archive);
const server = await browsing.serve();
const drops = [];
const toggles = [];
let version = "";
try {
  for (let i = 0; i < rounds; ++i) {
    const browser = await browsing.launch();
    version = browser.version();
    const { page } = await browsing.openPage(browser, server.url);
    drops.push(await dropTime(page, archive));
    await browser.close();
  }
  const browser = await browsing.launch();
  const { page } = await browsing.openPage(browser, server.url);
  await browsing.typeSource(page, ".cell.model", `block = import("${model}")`);
  await page.locator(`${passes} canvas`).waitFor();
  for (let i = 0; i < rounds; ++i)
    for (const pass of switched)
      for (const _ of ["off", "on"]) toggles.push(await toggleTime(page, pass));
  await browser.close();
} finally {
  server.stop();
}
const load = loadavg()[0].toFixed(1);
console.log(`Chromium ${version}, ${cpus().length} x ${cpus()[0].model}, load ${load} at the end`);
print(`a dropped archive of ${(fs.statSync(archive).size / 1e6).toFixed(0)} MB`, drops, 2000);
print(`a pass of resnet50 switched (${switched.join(", ")})`, toggles, 500);
const sizes = ["web/notebook/tools/sizes.mjs", "web/notebook/dist"];
process.stdout.write(execFileSync(process.execPath, sizes, { cwd: repository, encoding: "utf8" }));
fs.rmSync(folder, { recursive: true });
