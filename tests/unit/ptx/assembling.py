"""The assembler of PTX, where there is one."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest


def _ptxas() -> str | None:
    """The assembler: of the package `nvidia-cuda-nvcc-cu12`, or of the path."""
    found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvcc")
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (Path(folder) / "bin" / "ptxas").exists():
            return str(Path(folder) / "bin" / "ptxas")
    return shutil.which("ptxas")


needs_ptxas = pytest.mark.skipif(_ptxas() is None, reason="no ptxas here; the extra cuda-dev brings it")


@dataclass(frozen=True)
class Usage:
    """What the assembler says of a kernel: registers of a thread, bytes that it keeps in memory for want of them, and in words."""

    registers: int
    spilled: int
    words: str = ""


def assembled(text: str, arch: str) -> Usage:
    """Assemble the PTX of one kernel."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        words = [_ptxas() or "", "-v", f"-arch={arch}", str(source), "-o", str(Path(folder) / "kernel.cubin")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", done.stderr)
    return Usage(int(re.findall(r"Used (\d+) registers", done.stderr)[0]), sum(map(int, kept)), done.stderr)
