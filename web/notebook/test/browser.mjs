// A Chromium, a server of the built page, and the words that tests of it are written in.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const web = fileURLToPath(new URL("../..", import.meta.url));
const executablePath = "/usr/bin/chromium";

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
export const fixtures = join(repository, "tests/fixtures");
export const missing = existsSync(executablePath)
  ? existsSync(`${web}/notebook/dist/index.html`)
    ? false
    : "the page is not built; ./lathe web builds it"
  : "no Chromium; apt-get install chromium";

export async function serve() {
  const server = spawn("python3", [`${web}/serve.py`, `${web}/notebook/dist`, "--port", "0"]);
  const [line] = await once(server.stdout, "data");
  return { url: String(line).trim(), stop: () => server.kill() };
}

export async function launch() {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}

// A page of its own storage. `problems` collects what must not happen: errors that nobody caught,
// and anything that the policy refused.
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    permissions: ["clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(url);
  await settled(page);
  return { context, page, problems };
}

// Until no cell runs or waits.
export async function settled(page) {
  await page.waitForSelector("main .cell, main .add");
  await page.waitForFunction(
    () => document.querySelectorAll('.cell[aria-busy="true"]').length === 0,
    null,
    { timeout: 300_000 },
  );
}

// Gives a file of tests a server and a browser, and returns `test` for a fresh page:
// page_test(name, async (page, {browser, context, problems}) => {...}, options), where options are
// those of the browser's context, `skip` with a reason, and `timeout`.
// What the page must not do fails the test.
export function pageTests() {
  let server;
  let browser;
  before(async () => {
    if (missing) return;
    [server, browser] = await Promise.all([serve(), launch()]);
  });
  after(async () => {
    await browser?.close();
    server?.stop();
  });
  return (name, act, { skip = missing, timeout = 180_000, ...options } = {}) =>
    test(name, { skip: missing || skip, timeout }, async () => {
      const opened = await openPage(browser, server.url, options);
      try {
        await act(opened.page, { ...opened, browser });
        assert.deepEqual(opened.problems, []);
      } finally {
        await opened.context.close();
      }
    });
}

export const passes = ".cell.passes";
export const at = (page, cell) => (typeof cell === "string" ? page.locator(cell) : cell);
export const status = (page, cell) => at(page, cell).locator(".head .status").innerText();
export const source = (page, cell) => at(page, cell).locator(".head .source").innerText();
export const chip = (page, name) => page.locator(`.chip[aria-label^="${name},"]`).first();

export async function typeSource(page, cell, text) {
  await at(page, cell).locator(".head .source").click();
  const editor = at(page, cell).locator(".cm-content");
  await editor.waitFor();
  await editor.fill(text);
  await page.keyboard.press("Control+Enter");
  await settled(page);
}

export async function addBench(page, source) {
  await page.locator('.add button:has-text("Bench")').click();
  await page.keyboard.press("Escape");
  const cell = page.locator(".cell.bench").last();
  await typeSource(page, cell, source);
  return cell;
}

export async function dropFile(page, name, bytes) {
  const data = await page.evaluateHandle(
    ([file, text]) => {
      const transfer = new DataTransfer();
      const content = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      transfer.items.add(new File([content], file));
      return transfer;
    },
    [name, Buffer.from(bytes).toString("base64")],
  );
  for (const kind of ["dragover", "drop"])
    await page.dispatchEvent(".page", kind, { dataTransfer: data });
}
