// A Chromium, a server of the built page, and the words that tests of it are written in.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const web = fileURLToPath(new URL("../..", import.meta.url));
const executablePath = "/usr/bin/chromium";

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
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
    { timeout: 120_000 },
  );
}
