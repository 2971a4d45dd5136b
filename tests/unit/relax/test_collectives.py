"""Operators of groups of processes: what is known of their results, and what is said where there is no group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, LoweringError, TypeMismatchError
from tensorexpr.ir import assert_structural_equal
from tensorexpr.relax import TensorStructInfo
from tensorexpr.relax.transform import LegalizeOps
from tensorexpr.script import from_source
from tensorexpr.tir import Var as Symbol

N = Symbol("n", "int64")
CCL = relax.op.ccl
TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        a: R.Tensor((4, 3), "float32") = R.ccl.allreduce(x, op_type="sum", in_group=True)
        b: R.Tensor((2, 3), "float32") = R.ccl.scatter_from_worker0(a, num_workers=2, axis=0)
        return b
"""


def var(shape: Any, dtype: str = "float16") -> relax.Var:
    return relax.Var("x", TensorStructInfo(shape, dtype))


@pytest.mark.parametrize("shape", [(4, 3), (N, 3), None])
def test_results_are_as_large_as_what_all_workers_have(shape: Any) -> None:
    x = var(shape)
    assert CCL.allreduce(x, "max", in_group=False).struct_info == x.struct_info
    assert CCL.broadcast_from_worker0(x).struct_info == x.struct_info
    assert CCL.allgather(x, 2).struct_info == (TensorStructInfo((shape[0] * 2, 3), "float16") if shape else x.struct_info)


def test_parts_are_equal() -> None:
    assert CCL.scatter_from_worker0(var((4, 6)), 3, -1).struct_info == TensorStructInfo((4, 2), "float16")
    assert CCL.scatter_from_worker0(var((N, 6)), 2).struct_info == TensorStructInfo((N // 2, 6), "float16")


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: CCL.allreduce(var((2,)), "mean"), DeclarationError, "no reduction 'mean'; there are sum, prod"),
        (lambda: CCL.allreduce(relax.ShapeExpr((N,))), TypeMismatchError, "x is a tensor"),
        (lambda: CCL.allgather(var((2,)), 0), DeclarationError, "at least one worker"),
        (lambda: CCL.allgather(var(()), 2), DeclarationError, "has no first axis"),
        (lambda: CCL.scatter_from_worker0(var((5,)), 2), DeclarationError, "axis of 5 elements has no 2 equal parts"),
        (lambda: CCL.scatter_from_worker0(var((4,)), 2, 1), DeclarationError, "axis 1 of a tensor of 1 dimensions"),
        (lambda: CCL.scatter_from_worker0(var(None), 2), DeclarationError, "has to be known"),
    ],
)
def test_what_no_group_computes_is_refused(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_graphs_are_read_and_built_with_functions_of_a_group() -> None:
    mod: Any = from_source(TEXT)
    assert_structural_equal(from_source(mod.script()), mod)
    with pytest.raises(LoweringError, match=r"ccl\.allreduce has become no tensor function.*give LegalizeOps a function"):
        relax.VirtualMachine(relax.build(mod))
    # A group of one worker, whose sum is its own tensor and whose part of two is the first.
    own = {
        "relax.ccl.allreduce": lambda bb, call: call.args[0],
        "relax.ccl.scatter_from_worker0": lambda bb, call: relax.op.strided_slice(call.args[0], [0], [0], [2]),
    }
    x = np.arange(12, dtype="float32").reshape(4, 3)
    found = relax.VirtualMachine(relax.build(LegalizeOps(own)(mod)))["main"](x)
    np.testing.assert_array_equal(found.numpy(), x[:2])
