"""What may become of a case, in words; it needs no PyTorch."""

# The first that fits.
VERDICTS = {
    "agrees": "eager's answer",
    "wrong": "another answer, or an error when it runs that eager does not raise",
    "refused": "the backend says that it cannot",
    "crashed": "the process ended",
    "timeout": "not done in time",
    "untraced": "PyTorch has no graph for it, or eager itself fails: not counted",
}
COUNTED = ("agrees", "wrong", "refused", "crashed", "timeout")
