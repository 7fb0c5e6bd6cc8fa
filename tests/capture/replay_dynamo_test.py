"""lathe.capture.replay predicts what Dynamo then does."""

import pathlib
import random
import sys
import tempfile
import unittest

sys.path[:0] = ["frontend/python", "tests/capture"]

import torch  # noqa: E402

import captured_models as models  # noqa: E402
import lathe  # noqa: E402
from lathe.capture import describe, replay  # noqa: E402


def random_call(rng):
    bias = torch.randn(8) if rng.random() < 0.2 else None
    return (
        (torch.randn(rng.choice([1, 2, 4, 6, 8, 8]), 8), torch.randn(rng.choice([1, 3, 4, 4]), 8)),
        {"n": rng.choice([3, 3, 3, 4, 5]), "flag": rng.random() < 0.8, "bias": bias},
    )


def told(reasons):
    """PyTorch's reasons by compilation: the guard that it names."""
    pairs = (text.partition(": ") for text in reasons)
    return {entry: reason.partition("\n")[0].partition("  ")[0] for entry, _, reason in pairs}


class ReplayDynamoTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)

    def capture(self, model, calls, name="b", **options):
        with torch.no_grad():
            return lathe.capture(model.eval(), [args for args, _ in calls],
                                 [kwargs for _, kwargs in calls], path=self.folder / name,
                                 **options)

    def check(self, captured):
        """Every visit of every call, from an empty cache: compiled when Dynamo compiled."""
        real = {(row["call"], row["frame"]): row for row in captured.recompiles}
        first = {(row["call"], row["frame"]) for row in captured.manifest["compiles"]
                 if row["compile"] == 0}
        predictions = replay(captured.path, cold=True)
        self.assertFalse(any(p.is_derived for p in predictions))
        self.assertEqual({(p.call, p.frame) for p in predictions if p.is_recompile}, set(real))
        compiled = {(p.call, p.frame) for p in predictions if p.is_compiled}
        self.assertEqual(compiled - set(real), first)
        for p in predictions:
            if p.is_recompile:
                for entry, reason in told(real[p.call, p.frame]["reasons"]).items():
                    self.assertIn(reason, p.reasons[entry])

    def test_predicts_each_recompile_and_names_the_guard_that_pytorch_names(self):
        recompiles = 0
        for seed in range(3):
            rng = random.Random(seed)
            captured = self.capture(models.Choosing(), [random_call(rng) for _ in range(8)])
            self.check(captured)
            recompiles += len(captured.recompiles)
        self.assertGreater(recompiles, 6)

    def test_predicts_resumed_frames(self):
        sizes = [4, 5, 6, 1, 1, 5]
        captured = self.capture(models.ThreeBreaks(), [((torch.randn(n, 8),), {}) for n in sizes])
        self.check(captured)
        self.assertEqual({row["frame"] for row in captured.recompiles}, {0, 1, 2, 3})

    def test_predicts_calls_that_were_never_captured(self):
        x, y = torch.randn(8, 8), torch.randn(4, 8)
        seen = [((x, y), {}), ((torch.randn(6, 8), torch.randn(3, 8)), {})]
        new = [((torch.randn(10, 8), torch.randn(5, 8)), {}),  # a size of the symbol
               ((torch.randn(10, 8), torch.randn(4, 8)), {}),  # another branch
               ((torch.randn(12, 8), torch.randn(5, 8)), {}),  # of which this is too
               ((x, y), {"flag": False}),
               ((x, y), {"flag": False}),
               ((x.double(), y), {"flag": False})]
        guards = self.capture(models.Choosing(), seen, "seen").path
        rows = [{"x": describe(x), "y": describe(y), "n": 3, "flag": kwargs.get("flag", True),
                 "bias": None} for (x, y), kwargs in new]
        predicted = [p.is_compiled for p in replay(guards, rows)]
        self.assertEqual(predicted, [False, True, False, True, False, True])
        # The last one fails in the model; Dynamo compiles it all the same.
        real = self.capture(models.Choosing(), [*seen, *new[:-1]], "real")
        compiled = {row["call"] for row in real.manifest["compiles"]}
        self.assertEqual([i + len(seen) in compiled for i in range(5)], predicted[:-1])


if __name__ == "__main__":
    unittest.main()
