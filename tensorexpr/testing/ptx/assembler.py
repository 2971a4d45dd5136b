"""NVIDIA's assembler, where there is one: what a kernel takes of a chip's registers, and what doesn't fit them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ...dataclass import dataclass
from ...errors import ArgumentError, TargetError


@dataclass(frozen=True)
class Usage:
    """What the assembler says of kernels: the most registers of a thread, bytes that are kept in memory for want of them, and its words."""

    registers: int
    spilled: int
    words: str = ""


def ptxas() -> str | None:
    """Where the assembler is: in the package `nvidia-cuda-nvcc-cu12` (the extra `cuda-dev`), or on the path; None if nowhere."""
    found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvcc")
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (Path(folder) / "bin" / "ptxas").exists():
            return str(Path(folder) / "bin" / "ptxas")
    return shutil.which("ptxas")


def assembled(text: str, arch: str) -> Usage:
    """Assemble PTX, as drivers do before they run it.

    Args:
        text: a PTX module, such as `get_source("ptx")` gives.
        arch: the chip, such as "sm_80".

    Returns:
        Its kernels' registers and spills. Nothing is kept of the code.

    Raises:
        TargetError: if no assembler is installed.
        ArgumentError: if it refuses the text, with its words.
    """
    program = ptxas()
    if program is None:
        raise TargetError("no ptxas here; pip install 'tensorexpr[cuda-dev]' brings it, or put CUDA's folder of programs on the path")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        words = [program, "-v", f"-arch={arch}", str(source), "-o", str(Path(folder) / "kernel.cubin")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArgumentError(f"ptxas refuses the text for {arch}: {done.stderr.strip()}")
    kept = re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", done.stderr)
    return Usage(max(map(int, re.findall(r"Used (\d+) registers", done.stderr)), default=0), sum(map(int, kept)), done.stderr)
