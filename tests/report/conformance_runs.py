"""Journals of conformance made for tests: records as the driver writes them."""

import journals

SUITE = "every sample of PyTorch's operator database"


def head(backend="lathe", **changed):
    return {"kind": "conformance", "backend": backend, "options": {}, "modules": [],
            "device": "cpu", "threads": 1, "share": 1.0, "seed": 0, "seconds": 120, **changed}


def case(name, number, verdict="agrees", words="", suite="ops", dtype="f32", given="float32[3]"):
    return {"kind": "case", "suite": suite, "name": name, "dtype": dtype, "case": number,
            "verdict": verdict, "words": words, "given": given}


def timed(name, speedup):
    return {**case(name, 0, suite="models"), "measured": {"speedup": speedup}}


def asked(entries, suite="ops", dtype="f32"):
    return {"kind": "asked", "suite": suite, "dtype": dtype, "entries": entries, "about": SUITE}


def done(*cases):
    """The entries of cases, as finished."""
    keys = dict.fromkeys((c["suite"], c["name"], c["dtype"]) for c in cases)
    return [{"kind": "entry", "suite": s, "name": n, "dtype": d} for s, n, d in keys]


def run(*cases, backend="lathe", **changed):
    """The records of a whole run."""
    entries = {(c["suite"], c["dtype"]): 0 for c in cases}
    ends = done(*cases)
    for end in ends:
        entries[end["suite"], end["dtype"]] += 1
    return [head(backend, **changed), journals.ENVIRONMENT,
            *(asked(n, *key) for key, n in entries.items()), *cases, *ends]


def data(records):
    return b"".join(map(journals.line, records))


VERDICTS = [("refused", "LatheError: no op for aten.linalg_eig"), ("wrong", "result 0: 3 of 24"),
            ("untraced", "eager: IndexError"), ("crashed", "SIGSEGV"),
            ("timeout", "not done after 120 s")]


def many(entries, cases, backend="lathe", every=37):
    """A run of this size, in which one case of `every` does not agree."""
    made = []
    for i in range(entries):
        suite = ("ops", "modules", "models")[i % 3]
        name = 'transformers:M%dConfig{"n": 2}' % i if suite == "models" else f"op.{i}"
        for j in range(cases):
            k = i * cases + j
            verdict, words = VERDICTS[k // every % 5] if k % every == 0 else ("agrees", "")
            made.append(case(name, j, verdict, words, suite, ("f32", "bf16")[i % 2],
                             f"('float32[{i}, {j}]', {{'dim': {j}}})"))
    return run(*made, backend=backend)
