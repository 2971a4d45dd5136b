"""Views of memory: other shapes, dtypes and parts of a tensor, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol

X = Var("x", TensorStructInfo((8, 6)))


def test_bytes_of_a_tensor_seen_otherwise() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        with bb.dataflow():
            made = bb.emit(X + 1.0)
            flat = bb.emit(op.memory.view(made, (48,)))
            part = bb.emit(op.memory.view(flat, (3, 4), "int32", 16))
            out = bb.emit_output(op.memory.ensure_zero_copy(part))
        bb.emit_func_output(out)
    mod = bb.get()
    again: Any = from_source(mod.script(show_meta=True))
    assert again.script() == mod.script()
    given = np.random.default_rng(0).standard_normal((8, 6)).astype("float32")
    expected = (given + np.float32(1)).reshape(-1).view("int32")[4:16].reshape(3, 4)
    assert (Evaluator(mod)("main", given) == expected).all()
    found = relax.VirtualMachine(relax.build(mod))["main"](given)
    assert (found.numpy() == expected).all()


def test_views_of_open_sizes_are_checked_when_they_are_made() -> None:
    n, m = Symbol("n", "int64"), Symbol("m", "int64")
    x, s = Var("x", TensorStructInfo((n,))), Var("s", relax.ShapeStructInfo((m,)))
    bb = BlockBuilder()
    with bb.function("main", [x, s]):
        bb.emit_func_output(bb.emit(op.memory.view(x, (m, 2))))
    machine: Any = relax.VirtualMachine(relax.build(bb.get()))
    given = np.arange(7, dtype="float32")
    assert machine["main"](given, (3,)).numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ArgumentError, match="bytes 0 to 32 of a tensor of 28 bytes"):
        machine["main"](given, (4,))


@pytest.mark.parametrize(
    ("shape", "dtype", "offset", "message"),
    [
        ((49,), None, None, "196 bytes of"),
        (None, None, 4, "196 bytes of"),
        ((1,), None, -4, "a view begins in the tensor"),
        (None, "float16", None, "have another shape, which is stated"),
    ],
)
def test_views_that_reach_beyond_are_refused(shape: Any, dtype: Any, offset: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        op.memory.view(X, shape, dtype, offset)
