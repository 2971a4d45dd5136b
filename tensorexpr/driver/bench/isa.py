"""Instruction sets that a benchmark is held to: ours by the target, peers by variables that they read when they are loaded."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ... import processor
from ...errors import TensorExprError
from ...target import Target

ISAS = ("native", "avx2")
# A CPU whose widest instructions are AVX2, for machines that have wider ones.
_AVX2_CPU = "znver3"
# Peers that can't be held, and why.
_UNHELD = {
    "onnxruntime": "it asks the CPU itself which instructions it has, and has no switch",
    "openblas-avx512": "it is OpenBLAS with AVX-512",
}


def left_out(isa: str) -> Mapping[str, str]:
    """The peers that a benchmark held to an instruction set can't have, and why."""
    return {} if isa == "native" else {name: f"can't be held to {isa}: {reason}" for name, reason in _UNHELD.items()}


def held_target(text: str, isa: str) -> Target:
    """The target of a text, held to an instruction set.

    Raises:
        TensorExprError: if the text asks for more.
    """
    target = Target(text)
    if isa == "native" or "avx512f" not in target.features:
        return target
    if "mcpu" in target.attrs or target.mattr:
        raise TensorExprError(f"--isa {isa} contradicts --target {text!r}, which has AVX-512; leave one of them out")
    return Target({**target.export(), "mcpu": _AVX2_CPU})


def variables(isa: str) -> dict[str, str]:
    """What peers read when they are loaded. MKL follows its variable on Intel's CPUs only, and has no other."""
    if isa == "native":
        return {}
    held = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    loops = " ".join(_numpy_beyond_avx2())
    return {**held, "NPY_DISABLE_CPU_FEATURES": loops} if loops else held


def _numpy_beyond_avx2() -> list[str]:
    """The names under which this NumPy has loops with AVX-512: "X86_V4" and others since 2.4, "AVX512F" and others before.

    One that this CPU lacks isn't named: NumPy warns of those.
    """
    built = importlib.import_module("numpy._core._multiarray_umath")  # the list has no public name
    return [name for name in built.__cpu_dispatch__ if name.startswith(("X86_V4", "AVX512")) and built.__cpu_features__.get(name)]


def is_held(isa: str) -> bool:
    """Whether this process was started with the variables that hold peers; NumPy then has none of those loops left to name."""
    return all(os.environ.get(name) == value for name, value in variables(isa).items())


def run_held(isa: str, arguments: Sequence[str]) -> int:
    """The same command in a process whose libraries are loaded with the variables; its exit code.

    Raises:
        TensorExprError: on a CPU that lacks the instruction set, where libraries would end with an illegal instruction.
    """
    if lacking := sorted({"avx2", "fma"} - processor.host_features()):
        raise TensorExprError(f"--isa {isa}: this CPU lacks {', '.join(lacking)}")
    return subprocess.call([sys.executable, "-m", "tensorexpr", *arguments], env={**os.environ, **variables(isa)})
