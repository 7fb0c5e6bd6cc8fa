"""Serves a folder of static files on loopback, with the headers that the notebook wants.

Cross-origin isolation gives the page a finer clock; the policy is the page's own, read from its
index.html, and forbids everything that it does not need.
"""

import argparse
import functools
import html
import http.server
import pathlib
import re
import sys
import urllib.parse

TYPES = {
    ".gz": "application/gzip",  # models: unpacked by the page, not on the way
    ".ipynb": "application/json",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
}

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def policy_of(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', text)
    return html.unescape(found.group(1)) if found else "default-src 'self'"


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **TYPES}

    def __init__(self, *args, policy, quiet, **kwargs):
        self.status, self.path = None, ""  # a request that cannot be read sets neither
        self.policy = policy
        self.quiet = quiet
        super().__init__(*args, **kwargs)

    def end_headers(self):
        self.send_header("Content-Security-Policy", f"{self.policy}; frame-ancestors 'none'")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("X-Content-Type-Options", "nosniff")
        # A name with a hash never changes what it means; that a file is not there may change.
        is_hashed = urllib.parse.urlsplit(self.path).path.startswith("/assets/")
        is_found = self.status == http.HTTPStatus.OK
        age = "public, max-age=31536000, immutable" if is_hashed and is_found else "no-cache"
        self.send_header("Cache-Control", age)
        super().end_headers()

    def send_response(self, code, message=None):
        self.status = code
        super().send_response(code, message)

    # A page of another site can make its own name mean this machine; the browser sends that name.
    def parse_request(self):
        if not super().parse_request():
            return False
        try:
            host = urllib.parse.urlsplit("//" + self.headers.get("Host", "")).hostname
        except ValueError:  # brackets that do not match
            host = None
        if host not in LOOPBACK:
            self.send_error(http.HTTPStatus.MISDIRECTED_REQUEST, "only loopback names are served")
            return False
        return True

    def list_directory(self, path):
        self.send_error(404)

    def log_message(self, format, *args):
        if not self.quiet:
            super().log_message(format, *args)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--port", type=int, default=8017, help="0 takes any that is free")
    parser.add_argument("--verbose", action="store_true", help="say what is asked for")
    options = parser.parse_args()
    if not (options.folder / "index.html").is_file():
        sys.exit(f"{options.folder} holds no index.html; build the page first")
    make = functools.partial(
        Handler,
        directory=str(options.folder),
        policy=policy_of(options.folder),
        quiet=not options.verbose,
    )
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), make)
    except (OSError, OverflowError) as error:
        sys.exit(f"port {options.port} cannot be used ({error}); --port 0 takes any that is free")
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
