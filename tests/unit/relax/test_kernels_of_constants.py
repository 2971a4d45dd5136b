"""Tensor functions in passes that look at what is known: folded where they read constants, kept where others call them."""

# mypy: disable-error-code="valid-type, no-untyped-def, untyped-decorator, misc, operator, arg-type, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, topi
from tensorexpr.relax import transform
from tensorexpr.relax.transform.legalize_ops.common import register_legalize
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T


@I.ir_module
class Calling:
    """A tensor function that calls another one."""

    @T.prim_func(private=True)
    def plus(x: T.float32, y: T.float32) -> T.float32:
        return x + y

    @T.prim_func(private=True)
    def added(a: T.Buffer((T.int64(4),), "float32"), b: T.Buffer((T.int64(4),), "float32"), c: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.block("added"):
                vi = T.axis.spatial(T.int64(4), i)
                c[vi] = Calling.plus(a[vi], b[vi])

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        cls = Calling
        with R.dataflow():
            y = R.call_tir(cls.added, (x, w), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y

    @R.function(private=True)
    def unused(x: R.Tensor((4,), "float32")):
        return x

    @R.function
    def other(x: R.Tensor((4,), "float32")):
        return x


def test_what_tensor_functions_call_is_used() -> None:
    made: Any = transform.DeadCodeElimination(["main"])(Calling)
    # What is seen from outside is used, whatever else is named.
    assert sorted(var.name_hint for var in made.get_global_vars()) == ["added", "main", "other", "plus"]
    assert "unused" in transform.DeadCodeElimination(["unused"])(Calling)


@pytest.mark.parametrize("size", [8, 64])  # of a kernel that is interpreted, and of one that is compiled
def test_kernels_of_constants_are_folded(size: int) -> None:
    x = relax.Var("x", relax.TensorStructInfo((size, size)))
    weight = np.random.default_rng(size).standard_normal((size, size)).astype("float32")
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            turned = bb.emit_te(topi.transpose, relax.const(weight))
            first, second = (bb.emit(bb.emit_te(topi.split, turned, 2)[n]) for n in (1, 0))
            out = bb.emit_output(relax.op.add(x, relax.op.concat([first, second])))
        bb.emit_func_output(out)
    made: Any = transform.FoldConstant()(bb.get())
    (binding,) = made["main"].body.bindings()
    half = size // 2
    np.testing.assert_array_equal(binding.value.args[1].data.numpy(), np.concatenate([weight.T[half:], weight.T[:half]]))


def test_shapes_in_constants_are_known() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((16,), "float32")):
            with R.dataflow():
                shape = R.tensor_to_shape(R.const([4, 4], "int64"))
                y = R.reshape(x, shape)
                R.output(y)
            return y

    made: Any = transform.FoldConstant()(Mod)
    assert str(made["main"].ret_struct_info) == 'R.Tensor((4, 4), dtype="float32")' or made["main"].body.body.struct_info.ndim == 2
    assert "tensor_to_shape" not in made.script()


def test_programs_say_how_an_operator_becomes_a_kernel() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.nn.relu(x)
            return y

    operator = tvm.ir.Op.get("relax.nn.relu")

    @register_legalize("relax.nn.relu")
    def doubled(bb: Any, call: Any) -> Any:
        return bb.call_te(lambda x: topi.add(x, x), *call.args, primfunc_name_hint="doubled")

    try:
        assert "doubled" in transform.LegalizeOps()(Mod)
        assert "relu" in transform.LegalizeOps({"relax.nn.relu": lambda bb, call: bb.call_te(topi.nn.relu, *call.args)})(Mod)
    finally:
        operator.reset_attr("FLegalize")
    assert "relu" in transform.LegalizeOps()(Mod)
