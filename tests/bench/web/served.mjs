// A server of folders on loopback, with the headers that give a page a fine clock.
import { createServer } from "node:http";
import { createReadStream, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";

const types = { ".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm" };

// `folders` by the first part of their address; every address else is an empty page.
export async function served(folders) {
  const server = createServer((request, response) => {
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    const [, first, ...rest] = normalize(decodeURIComponent(request.url.split("?")[0])).split("/");
    const file = folders[first] && join(folders[first], ...rest);
    if (!file || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.setHeader("Content-Type", "text/html");
      response.end("<!doctype html><title>bench</title>");
      return;
    }
    response.setHeader("Content-Type", types[extname(file)] ?? "application/octet-stream");
    createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
};
