"""Whether a graph's weights are still those that were packed.

A Parameter may be replaced, or changed in place, without PyTorch compiling anew. Seen are: another
tensor, another memory (`.data = t`), and what PyTorch counts as a change (optimisers,
load_state_dict, in-place ops under no_grad). Changes that PyTorch does not count (`.data.add_()`,
writes through NumPy, tensors of inference mode) are seen by a few sampled words of each weight on
the CPU: an update of a whole tensor is, and one of single elements may not be. Option
weights="live" packs nothing, and sees all.
"""

import array
import ctypes

from lathe import _extension

SAMPLES = 4  # words of a weight
WORD = 8  # bytes
MAX_REPACKS = 3  # then weights are inputs like any other


class Watch:
    """Of the weights of a graph, by their position among a call's arguments."""

    def __init__(self, weights):
        self.weights = [
            (i, t, t.data_ptr(), None if t.is_inference() else t._version)
            for i, t in weights.items()
        ]
        words = (word for t in weights.values() if t.is_cpu for word in sampled(t))
        self.words = array.array("Q", (number for word in words for number in word))
        self.digest = digest(self.words)

    def change(self, args):
        """Why they are no longer those of the start, in words; None when they are."""
        for i, tensor, address, version in self.weights:
            given = args[i]
            if given is not tensor:
                return "a parameter is another tensor"
            if given.data_ptr() != address:
                return "a parameter has other memory"
            if version is not None and given._version != version:
                return "a parameter was changed in place"
        if digest(self.words) != self.digest:
            return "a parameter was changed behind PyTorch's back"
        return None


def sampled(tensor):
    """(address, bytes) of words that lie apart in its memory."""
    if tensor.numel() == 0:
        return []
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    num_bytes = (reach + 1) * tensor.element_size()
    width = min(WORD, num_bytes)
    last = num_bytes - width
    offsets = sorted({last * k // (SAMPLES - 1) for k in range(SAMPLES)})
    return [(tensor.data_ptr() + offset, width) for offset in offsets]


def digest_by_ctypes(words):
    return hash(b"".join(map(ctypes.string_at, words[::2], words[1::2])))


digest = digest_by_ctypes if _extension.module is None else _extension.module.digest
