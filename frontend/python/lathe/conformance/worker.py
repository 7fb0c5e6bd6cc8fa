"""A process that runs cases of entries: a line of JSON in for each, lines of JSON out.

What the backend prints goes to standard error. A case that ends the process, or does not end, is
known to the driver by the last line that began one.
"""

import importlib
import json
import os
import sys
import warnings
import zlib


def main():
    settings = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # prints of the backend are not answers
    import torch

    from lathe.conformance import engine as engines
    from lathe.conformance.suites import SUITES

    warnings.simplefilter("ignore")
    torch.set_num_threads(settings["threads"])
    # f32 means f32 to eager and to the backend.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch._dynamo.config.recompile_limit = 64
    for module in settings["modules"]:
        importlib.import_module(module)
    engine = engines.make(settings["backend"], settings["options"])

    def say(**record):
        out.write(json.dumps(record) + "\n")

    say(ready=True)
    for line in sys.stdin:
        task = json.loads(line)
        entry, done = task["entry"], set(task["done"])
        try:
            cases = enumerate(SUITES[entry["suite"]].cases(entry, settings["device"]))
            for number, case in cases:
                if number in done or not is_chosen(entry, number, settings):
                    continue
                say(begin=number, given=case.describe())
                say(case=number, **judged(case, engine))
        except Exception as error:  # of the samples' own code
            say(broken=f"{type(error).__name__}: {error}"[:400])
        say(done=True)


def judged(case, engine):
    from lathe.conformance.case import judge

    verdict, words = judge(case, engine)
    measured = {} if case.measured is None else {"measured": case.measured}
    return {"verdict": verdict, "words": words, **measured}


def is_chosen(entry, number, settings):
    """Of a share, the cases that the seed draws; the same in every run."""
    if settings["share"] >= 1:
        return True
    key = f"{settings['seed']} {entry['suite']} {entry['name']} {entry['dtype']} {number}"
    return zlib.crc32(key.encode()) < settings["share"] * 2**32


if __name__ == "__main__":
    main()
