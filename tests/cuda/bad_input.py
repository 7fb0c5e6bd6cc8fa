"""What goes wrong on a GPU is one clear error, frees its memory, and the next run works.

    python tests/cuda/bad_input.py
"""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "frontend/python"))

import torch  # noqa: E402

import lathe  # noqa: E402

TEXT = """func @main(%x: f32[{n}, {n}]) -> f32[{n}, {n}] {{
  %0 = exp(%x)
  %1 = matmul(%0, %0)
  return %1
}}
"""
ALLOWED_MB = 16  # what the driver keeps for itself


def message_of(call):
    try:
        call()
    except lathe.LatheError as error:
        return str(error)
    return "no error"


def free_mb():
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0] >> 20


def main():
    failures = []

    def expect(holds, what):
        print("ok  " if holds else "FAIL", what)
        if not holds:
            failures.append(what)

    with tempfile.TemporaryDirectory() as folder:
        small, huge = pathlib.Path(folder) / "small.lathe", pathlib.Path(folder) / "huge.lathe"
        small.write_text(TEXT.format(n=64))
        huge.write_text(TEXT.format(n=200000))
        tensor = torch.randn(64, 64, device="cuda")
        expected = tensor.exp() @ tensor.exp()
        model = lathe.load(small, target="cuda")
        model(tensor)

        before = free_mb()
        text = message_of(lambda: lathe.load(huge, target="cuda"))
        expect("the GPU has no 160000000000 bytes left for the arena" in text, f"too large: {text}")
        expect(before - free_mb() <= ALLOWED_MB, "what was allocated until then is free again")
        expect(torch.allclose(model(tensor), expected), "the next run works")
        close = torch.allclose(model(tensor.cpu()), expected.cpu())
        expect(close, "host memory is copied there and back")

        text = message_of(lambda: model(tensor.double()))
        expect("is float32[64, 64], got float64[64, 64]" in text, f"dtype: {text}")
        text = message_of(lambda: lathe.load(small, target="cuda", isa="sm_80"))
        expect("has the instruction set sm_90, got 'sm_80'" in text, f"isa: {text}")
        text = message_of(lambda: lathe.load(small, target="cuda", mode="fastest"))
        expect("max-autotune" in text and "'fastest'" in text, f"mode: {text}")

        before = free_mb()
        for _ in range(50):
            model(tensor)
        expect(before - free_mb() <= 0, "runs allocate nothing once the first is done")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
