"""Recordings of graphs that are cut: what they may have, and that callers see nothing of them."""

import pathlib
import sys
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

from lathe.backend.recording import Recording, unrecordable  # noqa: E402
from lathe.backend.report import Report  # noqa: E402

aten = torch.ops.aten
GPU = torch.device("cuda", 0)


class Recorder:
    """Stands for a GPU: what is replayed reads and writes the memory that was recorded."""

    def __init__(self):
        self.replays = 0

    def __call__(self, run, args):
        results = run(args)

        def made(values):
            tensors = [value for value in values if isinstance(value, torch.Tensor)]
            return [tensor for tensor in tensors if all(tensor is not a for a in args)]

        def replay():
            self.replays += 1
            for to, value in zip(made(results), made(run(args)), strict=True):
                to.copy_(value)

        return replay, results


def refuse(run, args):
    raise RuntimeError("operation not permitted when stream is capturing\nmore")


class RecordingTest(BackendTest):
    def setUp(self):
        super().setUp()
        self.report, self.recorder, self.reasons = Report(0, ""), Recorder(), []

    def recording(self, run, fixed=(), record=None):
        def give_up(reason):
            self.reasons.append(reason)
            return run

        return Recording(run, fixed, self.report, give_up, record or self.recorder)

    def test_each_call_gives_what_its_own_arguments_say(self):
        weight = torch.randn(3)
        call = self.recording(lambda args: [args[0] * args[1], None, args[0].t() + 1], {1})
        kept = []
        for _ in range(4):
            x = torch.randn(5, 3)
            kept.append((call([x, weight]), [x * weight, None, x.t() + 1]))
        for found, expected in kept:  # later calls have changed none
            self.expect(found, expected)
        self.assertEqual(3, self.recorder.replays)

    def test_arguments_that_are_returned_are_the_callers(self):
        weight = torch.randn(3)
        call = self.recording(lambda args: [args[1], args[0], args[0] + 1], {1})
        for _ in range(3):
            x = torch.randn(3)
            found = call([x, weight])
            self.assertIs(found[0], weight)
            self.assertIs(found[1], x)

    def test_a_result_given_twice_is_one_tensor(self):
        call = self.recording(lambda args: [made := args[0] + 1, made])
        for _ in range(3):
            first, second = call([torch.ones(2)])
            self.assertIs(first, second)

    def test_strides_are_kept(self):
        seen = set()

        def run(args):
            seen.add(args[0].stride())
            return [args[0] * 2]

        call = self.recording(run)
        for _ in range(3):
            self.assertEqual((1, 4), call([torch.ones(3, 4).t()])[0].stride())
        self.assertEqual({(1, 4)}, seen)

    def test_what_a_gpu_refuses_runs_as_it_is(self):
        call = self.recording(lambda args: [args[0] + 1], record=refuse)
        for _ in range(3):
            self.expect(call([torch.ones(2)]), [torch.full((2,), 2.0)])
        self.assertEqual({"operation not permitted when stream is capturing"}, set(self.reasons))

    def test_elements_that_share_memory_are_not_recorded(self):
        call = self.recording(lambda args: [args[0] + 1])
        for _ in range(3):
            self.expect(call([torch.ones(1).expand(4)]), [torch.full((4,), 2.0)])
        self.assertEqual(0, self.recorder.replays)

    def test_nothing_is_replayed_while_launches_are_timed(self):
        call = self.recording(lambda args: [args[0] + 1])
        for is_timed, replays in ((False, 0), (False, 1), (True, 1), (False, 2)):
            self.report.is_timed = is_timed
            self.expect(call([torch.ones(2)]), [torch.full((2,), 2.0)])
            self.assertEqual(replays, self.recorder.replays)


class UnrecordableTest(BackendTest):
    def why(self, op, *args, given="cuda", made="cuda", shape=(5,)):
        """Of a graph with that call of its input, in eager."""
        graph, mode = torch.fx.Graph(), FakeTensorMode()
        x = graph.placeholder("x")
        call = graph.call_function(op, (x, *args))
        with mode:
            x.meta["val"] = torch.empty(shape, device=given)
            call.meta["val"] = torch.empty(shape, device=made)
        graph.output((call,))
        return unrecordable(graph, [call], [x], GPU)

    def test_calls_on_the_gpu_may_be(self):
        self.assertIsNone(self.why(aten.relu.default))

    def test_others_are_named(self):
        self.assertIn("'aten.relu_.default' changes", self.why(aten.relu_.default))
        self.assertIn("'aten.bernoulli.default' draws", self.why(aten.bernoulli.default))
        self.assertIn("'aten._to_copy.default' runs", self.why(aten._to_copy.default, made="cpu"))
        self.assertIn("an argument is not on 'cuda:0'", self.why(aten.relu.default, given="cpu"))


if __name__ == "__main__":
    unittest.main()
