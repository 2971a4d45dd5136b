"""What this installation is made of, and what it asks of the C library."""

from __future__ import annotations

import ctypes
import platform
import sys
from importlib import metadata

from . import processor

_PACKAGES = ("numpy", "sympy", "llvmlite", "cmeel-libomp", "ml-dtypes", "xgboost-cpu", "hypothesis")


def libinfo() -> dict[str, str]:
    """Facts about this installation by name: versions of LLVM and of the packages, the CPU, OpenMP."""
    from .runtime import engine, openmp

    found = {"TENSOREXPR_VERSION": _version("tensorexpr"), "USE_LLVM": "ON", "LLVM_VERSION": engine.llvm_version(), "USE_CUDA": "OFF"}
    found["USE_PROFILER"] = "ON"  # programs of TVM ask whether what a network's calls take can be told
    found |= {"CPU": processor.host_cpu(), "TRIPLE": processor.host_triple(), "CORES": str(processor.usable_cores())}
    threads = openmp.runtime()
    return found | {"USE_OPENMP": "OFF" if threads is None else threads.path} | {name: _version(name) for name in _PACKAGES}


def GetLibInfo() -> dict[str, str]:
    """The same as `libinfo`."""
    return libinfo()


def describe() -> None:
    """Print what a report of a problem should say: Python, the system, and `libinfo`."""
    print(f"Python {sys.version.split()[0]}, {platform.platform()}")
    for name, value in libinfo().items():
        print(f"{name}: {value}")


def give_back_memory() -> None:
    """Let the C library return free memory to the system: glibc keeps what arrays of some megabytes leave (man 3 mallopt)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
