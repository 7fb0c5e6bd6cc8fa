// Compiles what the unit tests look at, and runs them: node tools/unit_tests.mjs
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tests = ["source", "storage", "view"].map((name) => `test/${name}_test.mjs`);

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

run("node_modules/typescript/bin/tsc", "-p", "tsconfig.unit.json");
run("--test", ...tests);
