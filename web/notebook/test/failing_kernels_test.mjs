// Kernels that go wrong in Chromium: what is typed stays, and the cell says what happened.
import assert from "node:assert/strict";
import { dropFile, pageTests, settled, source, typeSource } from "./browser.mjs";

const page_test = pageTests();

// One function, run, without parameters: this code, in place of what the page loads from now on.
async function replaceKernels(page, code) {
  const body = [0, ...code, 0x0b];
  const name = [...new TextEncoder().encode("run")];
  const module = [
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, 4, 1, 0x60, 0, 0],
    ...[3, 2, 1, 0],
    ...[7, 7, 1, name.length, ...name, 0, 0],
    ...[10, body.length + 2, 1, body.length, ...body],
  ];
  await page.evaluate((bytes) => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      const isLoad = message?.do === "load";
      const sent = isLoad ? { ...message, module: new Uint8Array(bytes) } : message;
      postMessage.call(this, sent, ...rest);
    };
  }, module);
}

async function benchOfOneKernel(page) {
  const text = "func @main(%x: f32[64]) -> f32[64] {\n  %0 = exp(%x)\n  return %0\n}";
  await dropFile(page, "one.lathe", Buffer.from(text));
  await page.locator(".cell.model .facts").nth(1).waitFor();
  await settled(page);
  await page.locator('.add button:has-text("Bench")').click();
  await page.keyboard.press("Escape");
  const cell = page.locator(".cell.bench");
  await typeSource(page, cell, "bench(one_fast, repeats=3)");
  assert.match(await cell.innerText(), /✓ agrees/);
  return cell;
}

page_test("a kernel that traps is an error of its cell, and the next run works", async (page) => {
  const cell = await benchOfOneKernel(page);
  const unreachable = [0x00];
  await replaceKernels(page, unreachable);
  await cell.locator('button:has-text("Run")').click();
  await cell.locator(".failure").waitFor();
  assert.match(await cell.locator(".failure").innerText(), /a kernel trapped: unreachable/);
  assert.equal(await source(page, cell), "bench(one_fast, repeats=3)");
  await page.waitForTimeout(1500); // it is saved a second after a change
  await page.reload();
  await settled(page);
  await page.locator('.cell.bench button:has-text("Run")').click();
  await settled(page);
  assert.match(await page.locator(".cell.bench").innerText(), /✓ agrees/);
});

page_test("a kernel that never ends can be cancelled, and the page lives on", async (page) => {
  const cell = await benchOfOneKernel(page);
  const forever = [0x03, 0x40, 0x0c, 0, 0x0b]; // loop br 0 end
  await replaceKernels(page, forever);
  await cell.locator('button:has-text("Run")').click();
  await page.waitForTimeout(500);
  assert.equal(await cell.getAttribute("aria-busy"), "true");
  await cell.locator('button:has-text("Cancel")').click();
  await settled(page);
  assert.match(await cell.innerText(), /stopped while running kernels.*everything typed is kept/s);
  await typeSource(page, page.locator(".cell.model").first(), 'block = import("small_ffnn")');
  assert.equal(await page.locator(".cell.model .failure").count(), 0);
});
