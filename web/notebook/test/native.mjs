// The command line, whose results those of the page are compared with.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository } from "./browser.mjs";
import { readNpz } from "./npz.mjs";

const built = join(repository, "bazel-bin/frontend/cli/lathe");
const program = process.env.LATHE_PROGRAM ?? built;
// For tests that need it.
export const options = existsSync(program) ? {} : { skip: "the command line is not built" };

export function lathe(args) {
  const env = { ...process.env, LATHE_ROOT: repository };
  return execFileSync(program, args, { cwd: repository, env, encoding: "utf8" });
}

// The arrays that a native run of the same weights and inputs gives.
export function runNatively(model, target, seed) {
  const folder = mkdtempSync(join(tmpdir(), "lathe-"));
  const file = join(folder, "outputs.npz");
  const values = ["--weights", `random:${seed}`, "--inputs", `random:${seed}`];
  const measure = ["--targets", target, "--measure", "warmup=0,repeats=1,min_ms=0"];
  const files = ["--save-outputs", file, "--json", join(folder, "results.json")];
  lathe(["run", "--model", model, ...values, ...measure, ...files]);
  const arrays = readNpz(readFileSync(file));
  rmSync(folder, { recursive: true });
  return arrays;
}
