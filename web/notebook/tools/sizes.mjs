// What a first visit loads, gzipped; more script than the limit is an error: node tools/sizes.mjs
// dist
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const limit = 300_000; // bytes of script
const [folder = "dist"] = process.argv.slice(2);

const packed = (name) => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length;
const kilobytes = (size) => `${(size / 1000).toFixed(1)} kB`;

// Scripts that the page names, and those that they import at once.
function withImports(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  const text = readFileSync(join(folder, name), "utf8");
  for (const [, other] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g))
    withImports(`assets/${other}`, found);
  return found;
}

const page = readFileSync(join(folder, "index.html"), "utf8");
const scripts = new Set();
for (const [, name] of page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g))
  for (const one of withImports(name)) scripts.add(one);
const styles = [...page.matchAll(/href="\.\/(assets\/[^"]+\.css)"/g)].map(([, name]) => name);
const engine = readFileSync(join(folder, "service_worker.js"), "utf8").match(
  /assets\/engine-[^"]+\.wasm/,
);

const script = [...scripts].reduce((sum, name) => sum + packed(name), 0);
const style = styles.reduce((sum, name) => sum + packed(name), 0);
console.log(
  `first load: script ${kilobytes(script)}, styles ${kilobytes(style)}; then the engine ` +
    `${engine ? kilobytes(packed(engine[0])) : "is missing"} (all gzipped)`,
);
if (script > limit) throw new Error(`more than ${kilobytes(limit)} of script at the first load`);
if (!engine) throw new Error("the build holds no engine");
