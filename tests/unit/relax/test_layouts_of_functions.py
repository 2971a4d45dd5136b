"""Passes on layouts of tensor functions' arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, transform
from tensorexpr.relax.evaluator import Evaluator

from .test_simplify import weights


def added(shape: tuple[int, ...], name: str | None = None) -> Any:
    """A module that adds two tensors by a tensor function."""
    x, y = (Var(name, TensorStructInfo(shape)) for name in "xy")
    bb = BlockBuilder()
    with bb.function("main", [x, y], {"num_input": 1}):
        attrs = None if name is None else {"operator_name": name}
        with bb.dataflow():
            out = bb.emit_output(bb.call_te(topi.add, x, y, primfunc_name_hint="add", primfunc_attrs=attrs))
        bb.emit_func_output(out)
    return bb.get()


def test_weights_may_have_any_layout() -> None:
    mod = added((4, 6))
    made: Any = transform.AttachAttrLayoutFreeBuffers()(mod)
    assert list(made["add"].attrs["layout_free_buffers"]) == [1]
    x, w = Var("x", TensorStructInfo((4, 6))), weights(4, 6)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(bb.call_te(topi.add, x, w, primfunc_name_hint="add"))
            out = bb.emit_output(bb.call_te(topi.add, w, a, primfunc_name_hint="add"))
        bb.emit_func_output(out)
    # Of calls with other weights each kind has a function of its own.
    several: Any = transform.AttachAttrLayoutFreeBuffers()(bb.get())
    found = {var.name_hint: list(func.attrs["layout_free_buffers"]) for var, func in several.functions_items() if var.name_hint != "main"}
    assert found == {"add1": [1], "add2": [0]}
    given, matrix = np.random.default_rng(0).standard_normal((4, 6)).astype("float32"), w.data.numpy()
    np.testing.assert_allclose(Evaluator(several)("main", given), matrix + (given + matrix), rtol=1e-6)


def test_functions_of_other_layouts() -> None:
    other: Any = added((8, 3))["add"]
    mod = added((4, 6), "mine.add")
    maps = [lambda i, j: (i * 2 + j // 3, j % 3)] * 3
    made: Any = transform.AlterOpImpl({"mine.add": other}, {"mine.add": maps})(mod)
    x, y = (np.random.default_rng(n).standard_normal((4, 6)).astype("float32") for n in range(2))
    np.testing.assert_array_equal(Evaluator(made)("main", x, y), x + y)
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(made))["main"](x, y).numpy(), x + y)
    calls = [str(binding.value.args[0].name_hint) for binding in made["main"].body.bindings()]
    assert calls.count("mine_add_replacement") == 1 and len(calls) == 4
    same: Any = transform.AlterOpImpl({"mine.add": added((4, 6))["add"]}, {"mine.add": [None] * 3})(mod)
    assert len(list(same["main"].body.bindings())) == 1
    with pytest.raises(DeclarationError, match="3 arguments and results, and 2 layouts"):
        transform.AlterOpImpl({"mine.add": other}, {"mine.add": maps[:2]})(mod)
