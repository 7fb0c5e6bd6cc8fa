"""Lines of a journal, each checked: what sweeps and `python -m lathe.conformance` write.

Each line is the CRC-32 of a JSON object in eight hex digits, a space and the object. A reader
trusts no line: a bad one anywhere is skipped and counted; of a field only what has the right type
is taken. A file that begins as JSON is read as what `./lathe run` leaves (study_file).
"""

from __future__ import annotations

import json
import math
import re
import zlib

from lathe.report import study_file
from lathe.report.quantities import plural

_MAX_LINE_BYTES = 64 << 20
_MAX_LINES = 400_000
# Beyond these a number of milliseconds or bytes is a mistake.
LEAST, MOST = 1e-9, 1e15
_MAX_TEXT = 20_000  # characters of one string; a traceback's tail is far shorter
# Control characters, halves of surrogate pairs, and marks that turn the direction of text round.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class ResultsError(Exception):
    """A file that no report can be made of; the message names what was found and expected."""


def records(path):
    """The objects of all good lines, and sentences about the bad ones."""
    try:
        size = path.stat().st_size
        file = open(path, "rb")
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    if size == 0:
        file.close()
        raise ResultsError(f"{path}: is empty; expected the lines that ./lathe sweep writes")
    found, bad, last = [], [], 0
    with file:
        try:
            if file.peek(1)[:1] == b"{":
                if study := study_file.records(file):
                    return study, []
                file.seek(0)
            while line := file.readline(_MAX_LINE_BYTES):
                last += 1
                record = _record(line)
                if record is not None:
                    found.append(record)
                elif line.strip():
                    bad.append(last)
                if last > _MAX_LINES:
                    raise ResultsError(f"{path}: has more than {_MAX_LINES:,} lines")
        except OSError as error:  # a folder, or a disk that fails
            raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not found:
        raise ResultsError(f"{path}: none of its {plural(last, 'line')} is a line of a results "
                           "file: 8 hex digits of a checksum, a space and JSON, as ./lathe sweep "
                           "writes to results/NAME.sweep.jsonl. Nor is it what ./lathe run writes")
    if not bad:
        return found, []
    where = ", ".join(map(str, bad[:5])) + (" ..." if len(bad) > 5 else "")
    why = "the last one, as after a kill" if bad == [last] else f"line {where}"
    return found, [f"{plural(len(bad), 'line')} torn or changed ({why}); what stood there is "
                     "missing here."]


def _record(line):
    head, _, body = line.partition(b" ")
    body = body.rstrip(b"\r\n")
    if not re.fullmatch(rb"[0-9a-fA-F]{8}", head) or int(head, 16) != zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def amount(value):
    value = number(value)
    return value if value == 0 or value is not None and LEAST < value < MOST else None


def count(value):
    value = amount(value)
    return None if value is None else int(value)


def mapping(value):
    return value if isinstance(value, dict) else {}


def mappings(value):
    return [safe(v) for v in value if isinstance(v, dict)] if isinstance(value, list) else None


def text(value):
    """Safe to write into any file; numbers and the like as JSON has them, null as nothing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value, sort_keys=True)
    return _UNSAFE.sub("\ufffd", value[:_MAX_TEXT])


def safe(value):
    """Any JSON with every string in it made safe, and no number that JSON lacks."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [safe(v) for v in value]
    if isinstance(value, dict):
        return {text(k): safe(v) for k, v in value.items()}
    if value is None or isinstance(value, bool):
        return value
    return value if isinstance(value, int) and abs(value) < 1 << 63 else number(value)

