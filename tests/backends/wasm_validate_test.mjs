// Emitted modules are valid WebAssembly by two judges that share no code with the emitter: wabt's
// validator and this machine's V8. (In Chromium, web/notebook/test/bench_test.mjs.)
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import v8 from "node:v8";

v8.setFlagsFromString("--experimental-wasm-relaxed-simd"); // V8 hides it in Node 20

const models = ["resnet18", "bert_base", "gpt2", "unet", "mobilenet_v3_large"];

// (func (param v128 v128 v128) (result v128) (f32x4.relaxed_madd ...))
const fusedMultiplyAdd = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x08, 0x01, 0x60, 0x03, 0x7b, 0x7b, 0x7b, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x0d, 0x01, 0x0b, 0x00, 0x20, 0x00, 0x20, 0x01, 0x20, 0x02, 0xfd, 0x85, 0x02, 0x0b],
);

let folder = "";

function modules(level, [program, zoo]) {
  if (!folder) {
    folder = fs.mkdtempSync(path.join(process.env.TEST_TMPDIR ?? os.tmpdir(), "modules-"));
    execFileSync(program, [folder, ...models.map((name) => `${zoo}/${name}.aten.json.gz`)]);
  }
  const names = fs.readdirSync(folder).filter((name) => name.endsWith(`.${level}.wasm`));
  assert.ok(names.length > 400, `${names.length} modules`);
  for (const name of models) assert.ok(names.includes(`${name}.aten.json.gz.${level}.wasm`), name);
  return names.map((name) => path.join(folder, name));
}

// wabt's verdict: nothing, or what it found.
function wabt(file, options) {
  const { status, stderr, error } = spawnSync("wasm-validate", [...options, file]);
  return status === 0 ? "" : String(error ?? stderr);
}

// The same without its last byte.
function cut(file) {
  fs.writeFileSync(`${file}.cut`, fs.readFileSync(file).subarray(0, -1));
  return `${file}.cut`;
}

export default {
  "wabt validates what is for every browser": async (args) => {
    const files = modules("simd128", args);
    for (const file of files) assert.equal(wabt(file, []), "", path.basename(file));
    assert.match(wabt(cut(files[0]), []), /error/);
  },

  "wabt validates what needs relaxed SIMD, and only with it": async (args) => {
    const files = modules("relaxed", args);
    for (const file of files)
      assert.equal(wabt(file, ["--enable-relaxed-simd"]), "", path.basename(file));
    const [fused] = files.filter((file) => file.includes("resnet18"));
    assert.match(wabt(fused, []), /error/);
  },

  "V8 validates what is for every browser": async (args) => {
    const files = modules("simd128", args);
    for (const file of files) assert.ok(WebAssembly.validate(fs.readFileSync(file)), file);
    assert.ok(!WebAssembly.validate(fs.readFileSync(cut(files[0]))));
  },

  "V8 validates what needs relaxed SIMD": async (args) => {
    if (!WebAssembly.validate(fusedMultiplyAdd))
      return { skipped: `node ${process.versions.node} has no relaxed SIMD` };
    for (const file of modules("relaxed", args))
      assert.ok(WebAssembly.validate(fs.readFileSync(file)), file);
  },
};
