"""three_breaks.zip is what lathe.capture makes of its model today."""

import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = ["frontend/python", "tests/bundle"]

import make_bundle  # noqa: E402
from lathe.capture.bundle import Bundle  # noqa: E402


def told(path):
    """What a reader is told, without what differs from run to run."""
    bundle = Bundle(path)
    breaks = [(row["frame"], row["compile"], row["file"], row["line"], row["code"])
              for row in bundle.rows("breaks.jsonl")]
    recompiles = [(row["frame"], row["compile"], row["reason"], row["file"], row["line"],
                   row["cause"]) for row in bundle.rows("recompiles.jsonl")]
    graphs = [(row["graph"]["id"], row["graph"]["ops"]) for row in bundle.manifest["compiles"]]
    return breaks, recompiles, graphs


class MakeBundleTest(unittest.TestCase):
    def test_the_bundle_in_the_tree_is_of_its_model(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "made.zip")
            make_bundle.make(made)
            self.assertEqual(told("tests/bundle/three_breaks.zip"), told(made))


if __name__ == "__main__":
    unittest.main()
