// One static folder that works from anywhere: relative addresses, content hashes, no inlining (the
// policy allows no data: addresses), and a service worker that knows every file.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { policy } from "./policy.ts";

// Names of the page's own files, to be kept for a visit without a network; `version` changes with
// any.
function serviceWorker(): Plugin {
  return {
    name: "service-worker",
    apply: "build",
    generateBundle(_options, bundle) {
      const names = Object.keys(bundle).filter((name) => !name.endsWith(".map"));
      const files = [
        "./",
        "icon.svg",
        "manifest.webmanifest",
        ...names.filter((name) => name !== "index.html"),
      ];
      const hash = createHash("sha256");
      for (const name of names.sort()) {
        const file = bundle[name];
        hash.update(name);
        if (file) hash.update(file.type === "chunk" ? file.code : file.source);
      }
      const version = hash.digest("hex").slice(0, 12);
      const source = readFileSync("src/service_worker.js", "utf8")
        .replace('"VERSION"', JSON.stringify(version))
        .replace('["FILES"]', JSON.stringify(files));
      this.emitFile({ type: "asset", fileName: "service_worker.js", source });
    },
  };
}

// In the page as well as in the headers, for hosts that send none.
function policyInPage(): Plugin {
  return {
    name: "policy",
    apply: "build",
    transformIndexHtml: () => [
      {
        tag: "meta",
        attrs: { "http-equiv": "Content-Security-Policy", content: policy },
        injectTo: "head-prepend",
      },
    ],
  };
}

const headers = {
  "Content-Security-Policy": `${policy}; frame-ancestors 'none'`,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig({
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: "es" },
  preview: { headers },
  plugins: [serviceWorker(), policyInPage()],
});
