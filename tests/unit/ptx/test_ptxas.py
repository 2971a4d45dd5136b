"""The assembler takes what is generated, without spills."""

from __future__ import annotations

import pytest

import tensorexpr as tvm
from tensorexpr.testing.ptx import assembled

from .running import CASES, needs_ptxas

# Registers that each kernel may take: more say that a fragment or a tile has left them.
_REGISTERS = {"elementwise": 24, "reverse": 16, "reduction": 24, "softmax": 32, "gemm": 128, "tensor_cores": 40}


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_the_assembler_takes_it(name: str, arch: str) -> None:
    program = CASES[name].program
    inputs, args = program() if not hasattr(program, "body") else (program, None)
    used = assembled(tvm.build(inputs, args, target=f"cuda -arch={arch}").get_source("ptx"), arch)
    assert used.spilled == 0
    assert used.registers <= _REGISTERS[name]
