// What the page reads from the memory of its kernels, and what it asks of them: taken from the
// messages of their workers, so that a test sees the very bytes that the page judges.

// From now on. In the page: window.kernels.
export async function watchKernels(page) {
  await page.evaluate(() => {
    const Plain = Worker;
    const { postMessage } = Worker.prototype;
    window.kernels = { orders: [], modules: [], results: [] };
    Worker.prototype.postMessage = function (message, ...rest) {
      window.kernels.orders.push(message.do ?? message.name);
      if (message.do === "load") window.kernels.modules.push(message.module);
      postMessage.call(this, message, ...rest);
    };
    window.Worker = class extends Plain {
      asked = new Map();
      constructor(...args) {
        super(...args);
        this.addEventListener("message", ({ data }) => {
          const isRead = data.ok && this.asked.get(data.id) === "read";
          if (isRead) window.kernels.results.push(data.result);
        });
      }
      postMessage(message, ...rest) {
        this.asked.set(message.id, message.do);
        super.postMessage(message, ...rest);
      }
    };
  });
}

// Everything that was asked of engine and kernels by name, in order.
export const orders = (page) => page.evaluate(() => window.kernels.orders);

// What was read, in order, since `window.kernels.results` was empty.
export async function resultsOf(page) {
  const read = await page.evaluate(async () => {
    const texts = [];
    for (const bytes of window.kernels.results) {
      const reader = new FileReader();
      const done = new Promise((resolve) => (reader.onload = resolve));
      reader.readAsDataURL(new Blob([bytes]));
      await done;
      texts.push(reader.result.slice(reader.result.indexOf(",") + 1));
    }
    return texts;
  });
  return read.map((text) => Buffer.from(text, "base64"));
}

export function floatsOf(bytes) {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}
