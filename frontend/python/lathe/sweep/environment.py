"""What a measurement was taken on: the machine, the packages, the build of Lathe."""

import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess

from lathe import _library

PACKAGES = (
    "torch", "numpy", "triton", "torchvision", "timm", "transformers",
    "onnxruntime", "onnx", "onnxscript", "openvino", "zentorch",
)
MACHINE = ("cpu", "cores", "gpu", "python")  # what must be the same for a row to stand
ALWAYS = ("torch", "numpy", "triton")  # packages that every row depends on


def digest(value, digits):
    """Hexadecimal digits of a JSON value's SHA-256, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def describe(node="local"):
    """The environment record of this process's machine and Python."""
    record = {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": gpu_name(),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": versions(),
        "lathe": build_id(),
        "node": node,
    }
    return {"kind": "environment", "id": digest(record, 12), **record}


def is_same(before, now, packages):
    """Whether a row taken in one environment stands in another, given the packages it needs.

    The node's name does not count, nor do packages that the row never imports. The build of Lathe
    is part of the jobs that run it.
    """
    if before is None:
        return False
    names = [*ALWAYS, *packages]
    old, new = before.get("packages", {}), now["packages"]
    return all(before.get(key) == now[key] for key in MACHINE) and all(
        old.get(name) == new.get(name) for name in names
    )


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.lru_cache
def gpu_name():
    """The first GPU's name by nvidia-smi, or None."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(found.stdout.splitlines()), None)


def python_path():
    """PYTHONPATH for a process that finds this package too, wherever the driver found it."""
    package = str(pathlib.Path(__file__).absolute().parents[2])
    return os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])


def versions():
    """The packages that are installed, with their versions."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.lru_cache
def build_id():
    """Twelve digits of the library's and the package's SHA-256; None without a library."""
    library = next((path for path in _library.candidates() if path.is_file()), None)
    if library is None:
        return None
    package = pathlib.Path(__file__).resolve().parents[1]
    whole = hashlib.sha256(library.read_bytes())
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in ("sweep", "report"):
            whole.update(path.read_bytes())
    return whole.hexdigest()[:12]
