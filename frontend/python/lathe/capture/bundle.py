"""Bundles on the disk: a folder, or a zip when the path ends so. Needs no PyTorch.

    manifest.json       what was captured, the frames, the compilations, their graphs
    graphs/F_C.json     the graph of frame F's compilation C as torch.export writes it
    graphs/F_C.py       the same graph as Dynamo has it, as Python
    guards/F_C.txt      its guards, as PyTorch prints them
    guards/F_C.json     the same guards as rows
    breaks.jsonl        graph breaks, one a line
    recompiles.jsonl    recompilations, each with its reasons and its cause
    calls.jsonl         what each frame was called with
    sources.json        lines of Python around all that, by file and number
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

from lathe import _archive
from lathe._handle import LatheError

FORMAT = "lathe-bundle"
VERSION = 1
MANIFEST = "manifest.json"
_MAX_BYTES = 256 << 20  # of one file that is read
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # so that equal captures are equal files


def check_target(path):
    """Refuses a path that a bundle cannot take, before anything is run for it."""
    path = Path(path)
    if path.name in ("", ".", ".."):
        raise LatheError(f"the path of a bundle is a new folder or a .zip file, got '{path}'")
    if is_zip(path):
        if path.is_dir():
            raise LatheError(f"'{path}' is a folder, and a bundle that ends in .zip is a file")
    elif path.exists() and not (path / MANIFEST).is_file() and not _is_empty(path):
        raise LatheError(f"'{path}' is there and is no bundle; name a new folder or a .zip file")


def is_zip(path):
    return Path(path).suffix == ".zip"


def _is_empty(path):
    return path.is_dir() and not any(path.iterdir())


def write(path, files):
    """Writes texts by name; `path` becomes the bundle when all of it is on the disk."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_zip(path):
        with _archive.whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, text in files.items():
                entry = zipfile.ZipInfo(name, _ZIP_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, text)
    else:
        _write_folder(path, files)


def _write_folder(path, files):
    new = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    old = path.with_name(f"{path.name}.{os.getpid()}.old")
    try:
        for name, text in files.items():
            target = new / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        for folder in _folders(new, files):
            _sync(folder)
        # A folder that holds files cannot be renamed over.
        if path.exists():
            os.rename(path, old)
        try:
            os.rename(new, path)
        except OSError:
            if old.exists():
                os.rename(old, path)
            raise
        _sync(path.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _folders(root, files):
    return sorted({root, *((root / name).parent for name in files)})


def _sync(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Bundle:
    """A bundle that is read: `manifest`, and the rows of the other files when asked."""

    def __init__(self, path):
        self.path = Path(path)
        self.manifest = self.json(MANIFEST)
        found = self.manifest.get("format") if isinstance(self.manifest, dict) else None
        if found != FORMAT:
            raise LatheError(f"'{path}' is no bundle: 'format' is {found!r}, expected '{FORMAT}'")
        if self.manifest.get("version") != VERSION:
            version = self.manifest.get("version")
            raise LatheError(f"'{path}' has version {version!r}, this Lathe reads {VERSION}")

    def text(self, name):
        try:
            if self.path.is_dir():
                return self._bounded(name, (self.path / name).stat().st_size,
                                     lambda: (self.path / name).read_bytes())
            with zipfile.ZipFile(self.path) as archive:
                return self._bounded(name, archive.getinfo(name).file_size,
                                     lambda: archive.read(name))
        except (OSError, KeyError):
            raise LatheError(f"'{self.path}' has no '{name}', so it is no bundle") from None
        except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError) as error:
            raise LatheError(f"'{name}' of '{self.path}' cannot be read: {error}") from None

    def _bounded(self, name, size, read):
        if size > _MAX_BYTES:
            raise LatheError(f"'{name}' of '{self.path}' has {size} bytes, at most {_MAX_BYTES}")
        return read().decode("utf-8")

    def json(self, name):
        return self._parse(name, self.text(name))

    def rows(self, name):
        """The rows of a file with one on each line."""
        lines = self.text(name).splitlines()
        rows = [self._parse(f"{name}:{i + 1}", line) for i, line in enumerate(lines) if line]
        for i, row in enumerate(rows):
            if not isinstance(row, dict):
                raise LatheError(f"'{name}:{i + 1}' of '{self.path}' is no JSON object")
        return rows

    def _parse(self, name, text):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LatheError(f"'{name}' of '{self.path}' is no JSON: {error}") from None
