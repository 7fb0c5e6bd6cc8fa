// Runs a module of cases and reports each to Bazel as JUnit XML: node_cases.mjs FILE ARGUMENTS...
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
  try {
    await run(args);
  } catch (error) {
    failure = error.stack ?? String(error);
    failures += 1;
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(3);
  console.log(`${failure ? "FAILED" : "ok    "} ${name} (${seconds} s)${failure && `\n${failure}`}`);
  const body = failure && `<failure message="${escape(failure)}"/>`;
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
