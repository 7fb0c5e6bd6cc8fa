// Runs a module of cases and reports each to Bazel as JUnit XML: node_cases.mjs FILE ARGUMENTS...
// A case that returns { skipped: REASON } did not run.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [file, ...args] = process.argv.slice(2);
const suite = path.basename(file, ".mjs");
const { default: cases } = await import(pathToFileURL(path.resolve(file)));

const escape = (text) =>
  text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[^\x20-\ufffd\n]/g, "?");

const rows = [];
let failures = 0;
for (const [name, run] of Object.entries(cases)) {
  const start = performance.now();
  let failure = "";
  let skipped = "";
  try {
    skipped = (await run(args))?.skipped ?? "";
  } catch (error) {
    failure = error.stack ?? String(error);
    failures += 1;
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(3);
  const verdict = failure ? "FAILED" : skipped ? "skipped" : "ok    ";
  const why = failure || skipped;
  console.log(`${verdict} ${name} (${seconds} s)${why && `\n${why}`}`);
  const tag = failure ? "failure" : "skipped";
  const body = why && `<${tag} message="${escape(why)}"/>`;
  rows.push(
    `<testcase classname="${suite}" name="${escape(name)}" time="${seconds}">${body}</testcase>`,
  );
}
if (process.env.XML_OUTPUT_FILE)
  fs.writeFileSync(
    process.env.XML_OUTPUT_FILE,
    `<testsuite name="${suite}">${rows.join("\n")}</testsuite>`,
  );
if (rows.length === 0) throw new Error("the file holds no case");
process.exitCode = failures > 0 ? 1 : 0;
