"""The results file: what a kill at any byte leaves, who may write, what is refused."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

from lathe.sweep import journal  # noqa: E402

RECORDS = [{"kind": "row", "job": f"{i:016x}", "text": "\u00e9\n" * i} for i in range(4)]


class JournalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "deep", "a.sweep.jsonl")

    def write(self, records):
        book = journal.Journal(self.path)
        for record in records:
            book.append(record)
        book.close()

    def test_what_is_appended_is_read_back(self):
        self.write(RECORDS)
        self.assertEqual(journal.read(self.path), (RECORDS, 0))

    def test_a_line_is_the_checksum_and_compact_json(self):
        self.write([{"a": 1, "b": [2]}])
        self.assertEqual(self.path.read_bytes(), b'31e2a56d {"a":1,"b":[2]}\n')

    def test_a_record_cut_at_any_byte_costs_only_itself(self):
        self.write(RECORDS)
        whole = self.path.read_bytes()
        start = whole.rindex(b"\n", 0, -1) + 1
        for end in range(start, len(whole)):
            self.path.write_bytes(whole[:end])
            self.write(RECORDS[-1:])
            records, bad = journal.read(self.path)
            is_complete = end == len(whole) - 1  # only the newline is missing
            self.assertEqual(records, RECORDS + RECORDS[-1:] * is_complete)
            self.assertEqual(bad, 0 if is_complete or end == start else 1, end)

    def test_a_first_record_cut_at_any_byte_does_not_lock_the_file_up(self):
        self.write(RECORDS[:1])
        whole = self.path.read_bytes()
        for end in range(len(whole)):
            self.path.write_bytes(whole[:end])
            self.write(RECORDS[1:2])
            is_complete = end == len(whole) - 1
            self.assertEqual(journal.read(self.path)[0], RECORDS[not is_complete : 2])

    def test_a_bad_line_in_the_middle_is_skipped_and_counted(self):
        self.write(RECORDS)
        data = bytearray(self.path.read_bytes())
        data[len(data) // 2] ^= 1
        self.path.write_bytes(data)
        records, bad = journal.read(self.path)
        self.assertEqual((len(records), bad), (3, 1))

    def test_any_flipped_bit_is_seen(self):
        line = journal.encode({"kind": "row", "n": 12})
        for i in range((len(line) - 1) * 8):
            flipped = bytearray(line[:-1])
            flipped[i // 8] ^= 1 << i % 8
            self.assertIsNone(journal.decode(bytes(flipped)), i)

    def test_nan_is_never_written(self):
        with self.assertRaises(ValueError):
            self.write([{"ms": float("nan")}])

    def test_a_second_writer_is_refused_until_the_first_has_ended(self):
        book = journal.Journal(self.path)
        with self.assertRaisesRegex(journal.JournalError, "being written by another sweep"):
            journal.Journal(self.path)
        book.close()
        journal.Journal(self.path).close()

    def test_a_process_that_is_started_does_not_hold_the_lock(self):
        book = journal.Journal(self.path)
        child = subprocess.Popen(["sleep", "60"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        book.close()
        journal.Journal(self.path).close()

    def test_another_version_is_refused(self):
        self.write([{"kind": "sweep", "version": 2}])
        with self.assertRaisesRegex(journal.JournalError, "has version 2, expected 1"):
            journal.Journal(self.path)

    def test_a_file_of_something_else_is_refused_and_left_alone(self):
        self.path.parent.mkdir()
        for text in (json.dumps({"name": "quickstart"}), "a,b\n1,2\n", "\0" * 100):
            self.path.write_text(text)
            with self.assertRaisesRegex(journal.JournalError, "holds no results of a sweep"):
                journal.Journal(self.path)
            self.assertEqual(self.path.read_text(), text)

    def test_a_folder_is_refused(self):
        self.path.mkdir(parents=True)
        with self.assertRaisesRegex(journal.JournalError, "cannot be written: Is a directory"):
            journal.Journal(self.path)

    def test_a_full_disk_is_an_error_and_not_a_record(self):
        self.write(RECORDS[:1])
        book = journal.Journal(self.path)
        self.addCleanup(book.close)
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, book.file)
        os.close(full)
        with self.assertRaises(OSError):
            book.append(RECORDS[1])
        self.assertEqual(book.records, RECORDS[:1])

    def test_a_file_written_whole_replaces_the_old_one_or_nothing(self):
        self.path.parent.mkdir()
        journal.write_whole(self.path, b"one")
        with self.assertRaises(TypeError):
            journal.write_whole(self.path, "text")
        self.assertEqual(self.path.read_bytes(), b"one")
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])


if __name__ == "__main__":
    unittest.main()
