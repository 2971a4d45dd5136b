"""The assembler takes what is generated, without spills."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tensorexpr as tvm

from .running import CASES


def _ptxas() -> str | None:
    """The assembler: of the package `nvidia-cuda-nvcc-cu12`, or of the path."""
    found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvcc")
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (Path(folder) / "bin" / "ptxas").exists():
            return str(Path(folder) / "bin" / "ptxas")
    return shutil.which("ptxas")


needs_ptxas = pytest.mark.skipif(_ptxas() is None, reason="no ptxas here; the extra cuda-dev brings it")
# Registers that each kernel may take: more say that a fragment or a tile has left them.
_REGISTERS = {"elementwise": 24, "reverse": 16, "reduction": 24, "softmax": 32, "gemm": 128, "tensor_cores": 40}


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_the_assembler_takes_it(name: str, arch: str, tmp_path: Path) -> None:
    program = CASES[name].program
    inputs, args = program() if not hasattr(program, "body") else (program, None)
    source = tmp_path / "kernel.ptx"
    source.write_text(tvm.build(inputs, args, target=f"cuda -arch={arch}").get_source("ptx"))
    words = [_ptxas() or "", "-v", f"-arch={arch}", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in done.stderr and "0 bytes stack frame" in done.stderr
    assert int(re.findall(r"Used (\d+) registers", done.stderr)[0]) <= _REGISTERS[name]
