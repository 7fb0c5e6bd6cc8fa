"""A package for WebAssembly on a page that has nothing else."""

import base64
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
for folder in ("frontend/python", "tests/package", "tests/tools"):
    sys.path.insert(0, folder)

import chromium
from graphs import bytes_of, graph, model_inputs

import lathe

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
PAGE = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'">
<title>bare</title>
<script type="module">
import { load } from "./LOADER";
const model = load();
window.answer = async (sizes, inputs) => {
  const loaded = await model;
  loaded.bind(sizes);
  const kinds = { f32: Float32Array, i64: BigInt64Array };
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const arrays = loaded.inputs.map(
    ({ dtype }, i) => new kinds[dtype](bytes(inputs[i]).buffer));
  const [output] = loaded.run(arrays);
  return btoa(String.fromCharCode(...new Uint8Array(output.buffer)));
};
</script>
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html",
                      "": "application/octet-stream"}

    def log_message(self, *_):
        pass


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        handler = functools.partial(Quiet, directory=self.folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def test_a_bare_page_runs_a_package_at_every_size(self):
        subprocess.run(
            [LATHE, "compile", graph("small_encoder"), "--target=wasm", "--isa=simd128",
             "--dynamic=true", "--weights=random:1", "--numerics=strict", "--emit=package", "-o",
             self.folder],
            check=True, capture_output=True,
        )
        loader = next(self.folder.glob("*.mjs")).name
        (self.folder / "index.html").write_text(PAGE.replace("LOADER", loader))
        with chromium.Chromium() as browser:
            address = f"http://127.0.0.1:{self.server.server_address[1]}/index.html"
            evaluate = browser.open(address)
            for size in (1, 5, 64, 3):
                model = lathe.load(
                    graph("small_encoder"), weights="random:1", numerics="strict",
                    threads=1, dynamic=True, dims={"s27": size},
                )
                inputs = model_inputs(model)
                texts = [base64.b64encode(a.tobytes()).decode() for a in inputs]
                answer = evaluate(f"answer({json.dumps({'s27': size})}, {json.dumps(texts)})")
                self.assertEqual(base64.b64decode(answer), bytes_of(model(*inputs)), size)


if __name__ == "__main__":
    unittest.main()
