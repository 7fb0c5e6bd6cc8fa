"""What a backend of torch.compile gets right: PyTorch's own operator and module databases, their
error inputs, sizes that change, mutation and aliasing, and whole models, each compared with eager.

    python -m lathe.conformance --backend inductor
    ./lathe report results/conformance-inductor.jsonl

The suites know a backend by its name alone; "export" is Lathe on archives of torch.export. Cases
run in workers that may crash; results are lines of a journal, and a run that was ended goes on.
"""
