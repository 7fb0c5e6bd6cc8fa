// Puts what the page ships beside its own code into data/: the engine and the models.
//   node tools/gather.mjs REPOSITORY
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [root] = process.argv.slice(2);
if (!root) throw new Error("usage: node tools/gather.mjs REPOSITORY");
const data = fileURLToPath(new URL("../data", import.meta.url));

rmSync(data, { recursive: true, force: true });
mkdirSync(join(data, "models"), { recursive: true });
copyFileSync(join(root, "bazel-bin/web/engine/engine.wasm"), join(data, "engine.wasm"));
for (const folder of ["experiments/graphs", "tests/zoo"])
  for (const name of readdirSync(join(root, folder)))
    if (name.endsWith(".json.gz"))
      copyFileSync(join(root, folder, name), join(data, "models", name));
