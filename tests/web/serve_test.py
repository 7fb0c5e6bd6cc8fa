"""The page's server: what it lets a browser keep, and for whom it answers."""

import http.client
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

PAGE = '<meta http-equiv="Content-Security-Policy" content="default-src x">'


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        (root / "assets").mkdir()
        (root / "index.html").write_text(PAGE)
        (root / "assets" / "a-1b2c.js").write_text("1")
        cls.server = subprocess.Popen(
            [sys.executable, "web/serve.py", root, "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cls.port = int(re.search(r":(\d+)/", cls.server.stdout.readline()).group(1))

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.complaints = cls.server.communicate()[1]
        cls.folder.cleanup()
        assert not cls.complaints, cls.complaints

    def get(self, path, host=None):
        """Status, and for how long it may be kept."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path, headers={"Host": host} if host is not None else {})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status, response.getheader("Cache-Control")

    def test_a_file_whose_name_has_a_hash_is_kept(self):
        self.assertEqual(self.get("/assets/a-1b2c.js"),
                         (200, "public, max-age=31536000, immutable"))

    def test_that_a_file_is_missing_is_not_kept(self):
        self.assertEqual(self.get("/assets/b.js"), (404, "no-cache"))

    def test_a_query_makes_no_name_with_a_hash(self):
        self.assertEqual(self.get("/?/assets/"), (200, "no-cache"))

    def test_folders_are_not_listed(self):
        self.assertEqual(self.get("/assets/"), (404, "no-cache"))

    def test_loopback_names_are_served(self):
        for host in (f"localhost:{self.port}", "localhost", "127.0.0.1:1", "[::1]:80"):
            with self.subTest(host):
                self.assertEqual(self.get("/", host)[0], 200)

    def test_other_names_are_refused(self):
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[x"):
            with self.subTest(host):
                self.assertEqual(self.get("/", host)[0], 421)

    def test_a_request_that_cannot_be_read_is_answered(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            self.assertIn(b"400", connection.recv(4096))


if __name__ == "__main__":
    sys.exit(unittest.main())
