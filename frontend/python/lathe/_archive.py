"""Writes what an export leaves, whole or not at all: an archive with other traces, and arrays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np

_ALIGNMENT = 64  # of stored entries, so that weights can be used where they lie in a mapped file
_PADDING_ID = 0x4246  # "FB", the extra field that PyTorch pads with
_LARGE = zipfile.ZIP64_LIMIT - 1


def rewrite(source, target, change_trace):
    """Writes `target` from `source`; `change_trace` maps every stack_trace to its new text."""
    target = Path(target)
    with whole_file(target) as file, zipfile.ZipFile(source) as old:
        with zipfile.ZipFile(file, "w") as new:
            for entry in old.infolist():
                if "models/" in entry.filename and entry.filename.endswith(".json"):
                    document = json.loads(old.read(entry))
                    change_traces(document, change_trace)
                    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
                    with _create(new, entry.filename, len(text.encode())) as sink:
                        sink.write(text.encode())
                else:
                    with old.open(entry) as data, _create(new, entry.filename,
                                                          entry.file_size) as sink:
                        shutil.copyfileobj(data, sink, 1 << 20)


def save_arrays(path, arrays):
    """An .npz of arrays by name."""
    with whole_file(Path(path)) as file:
        np.savez(file, **arrays)


@contextlib.contextmanager
def whole_file(target):
    """A file for writing that becomes `target` when all of it is on the disk, and never before."""
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _create(archive, name, size):
    """Opens a stored entry whose data begin at a multiple of the alignment."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    header = 30 + len(name.encode()) + (20 if size >= _LARGE else 0) + 4
    padding = -(archive.fp.tell() + header) % _ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING_ID, padding) + b"Z" * padding
    return archive.open(info, "w", force_zip64=size >= _LARGE)


def change_traces(value, change_trace):
    if isinstance(value, list):
        for element in value:
            change_traces(element, change_trace)
    elif isinstance(value, dict):
        for key, element in value.items():
            if key == "stack_trace" and isinstance(element, str):
                value[key] = change_trace(element)
            else:
                change_traces(element, change_trace)
