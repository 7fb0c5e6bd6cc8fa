"""The results file of a sweep: lines that are checked one by one, so that a kill costs at most one.

A line is eight hex digits of the CRC-32 of its JSON, a space, the JSON. One writer at a time, under
flock, appends each line by one write and waits until it is on the disk. Readers skip what does not
check, wherever it stands, and say how many lines that were.
"""

import fcntl
import json
import os
import pathlib
import re
import zlib

VERSION = 1


class JournalError(Exception):
    """Why a results file cannot be used, as a sentence for the user."""


def encode(record):
    """A record as its line, newline included."""
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def decode(line):
    """The record of a line without its newline, or None when it does not check."""
    digits, space, text = line[:8], line[8:9], line[9:]
    try:
        if space != b" " or digits != b"%08x" % zlib.crc32(text):
            return None
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def read(path):
    """(records, number of bad lines) of a results file; of none, nothing."""
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None
    decoded = [decode(line) for line in data.split(b"\n") if line]
    records = [record for record in decoded if record is not None]
    return records, len(decoded) - len(records)


class Journal:
    """A results file that this process alone appends to."""

    def __init__(self, path):
        """Opens and locks it, and reads what is there; a JournalError says why that failed."""
        self.path = pathlib.Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise JournalError(f"{path} cannot be written: {error.strerror}") from None
        try:
            self._begin()
        except BaseException:
            os.close(self.file)
            raise

    def _begin(self):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{self.path} is being written by another sweep") from None
        self.records, self.bad_lines = read(self.path)
        versions = {r.get("version") for r in self.records if r.get("kind") == "sweep"}
        if versions - {VERSION}:
            found = ", ".join(sorted(str(v) for v in versions))
            raise JournalError(f"{self.path} has version {found}, expected {VERSION}")
        if self.bad_lines and not self.records and not self._may_be_torn_once():
            raise JournalError(f"{self.path} holds no results of a sweep; give --results another")
        sync_folder(self.path.parent)

    def _may_be_torn_once(self):
        """Whether the file is no more than the beginning of a first line."""
        return re.fullmatch(rb"[0-9a-f]{1,8}( (\{[^\n]*)?)?", self.path.read_bytes()) is not None

    def append(self, record):
        """Adds a record; when this returns it is on the disk. An OSError when it is not."""
        line = encode(record)
        if not self._ends_with_newline():
            line = b"\n" + line  # a line that a kill cut short stays alone
        written = os.write(self.file, line)
        if written != len(line):
            raise OSError(f"{self.path}: {written} of {len(line)} bytes were written")
        os.fdatasync(self.file)
        self.records.append(record)

    def _ends_with_newline(self):
        size = os.fstat(self.file).st_size
        return size == 0 or os.pread(self.file, 1, size - 1) == b"\n"

    def close(self):
        """Ends the lock, too."""
        os.close(self.file)

    def rows(self):
        """The last row of each job, by job."""
        return {r["job"]: r for r in self.records if r.get("kind") == "row" and "job" in r}

    def environments(self):
        """Environments by id."""
        return {r.get("id"): r for r in self.records if r.get("kind") == "environment"}


def sync_folder(folder):
    """Waits until the names in a folder are on the disk."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_whole(path, data):
    """Writes a file that is there as a whole or not at all, even after a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
