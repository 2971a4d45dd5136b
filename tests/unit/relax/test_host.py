"""Calls that run on NumPy's arrays: operators without kernels, unknown shapes, strings, sequences; loops; results in place."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ArgumentError, DeclarationError, TypeMismatchError
from tensorexpr.relax import BlockBuilder, ObjectStructInfo, TensorStructInfo, TupleStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.ops import row
from tensorexpr.relax.ops.row import Expr, Exprs, Pattern, operator
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol


@pytest.fixture
def rows() -> Any:
    """Operators of these tests, which are gone after them."""
    before = dict(row.ROWS)
    yield
    row.ROWS.clear()
    row.ROWS.update(before)


def machine(mod: Any) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod))


def test_tensors_of_unknown_shape_are_computed() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo(None, "float32", ndim=2))
    with bb.function("main", [x]):
        y = bb.emit(op.exp(op.nn.softmax(x)))
        m, n = Symbol("m", "int64"), Symbol("n", "int64")
        z = bb.match_cast(y, TensorStructInfo((m, n), "float32"))
        bb.emit_func_output(bb.emit(op.add(z, z)))
    vm = machine(bb.get())
    data = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    np.testing.assert_allclose(vm["main"](data).numpy(), Evaluator(bb.get())("main", data), rtol=1e-6)
    assert "on NumPy: 1 exp, 1 nn.softmax" in vm.module.stats()
    assert "exp in main: on NumPy's arrays, as shapes or dtypes aren't known" in vm.module.explain()
    assert "\n    schedule: by rule, nothing is reduced" in vm.module.explain()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "e5m2_float8", "bool", "uint64"])
def test_dtypes_of_numpy_and_beyond(dtype: str) -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo(None, dtype, ndim=1))
    with bb.function("main", [x]):
        two = bb.emit(op.concat([x, x]))
        bb.emit_func_output(bb.emit(op.where(op.greater(two, op.zeros_like(two)), two, op.flip(two, 0))))
    given = tvm.nd.array(np.array([0, 1, 2]), dtype=dtype)
    found = machine(bb.get())["main"](given)
    assert found.dtype == dtype
    twice = np.concatenate([given.numpy()] * 2).astype("float32")
    np.testing.assert_array_equal(found.numpy().astype("float32"), np.where(twice > 0, twice, twice[::-1]))


def test_bfloat16_rounds_once() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo(None, "bfloat16", ndim=1))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.nn.silu(x)))
    data = np.linspace(-3, 3, 50).astype(ml_dtypes.bfloat16)
    wide = data.astype("float32")
    np.testing.assert_array_equal(machine(bb.get())["main"](data).numpy(), (wide / (1 + np.exp(-wide))).astype(ml_dtypes.bfloat16))


def test_strings_sequences_and_nothing(rows: None) -> None:
    @operator("test.upper", Pattern.OPAQUE, numpy=lambda x: np.vectorize(str.upper, otypes=[object])(x))
    def upper(x: Expr) -> relax.StructInfo:
        return ObjectStructInfo()

    @operator("test.sequence", Pattern.OPAQUE, numpy=lambda parts: list(parts))
    def sequence(parts: Exprs) -> relax.StructInfo:
        return ObjectStructInfo()

    @operator("test.nothing", Pattern.OPAQUE, numpy=lambda: None)
    def nothing() -> relax.StructInfo:
        return ObjectStructInfo()

    bb = BlockBuilder()
    s, x = Var("s", ObjectStructInfo()), Var("x", TensorStructInfo((2,), "float32"))
    with bb.function("main", [s, x]):
        sequences = _call("test.sequence", relax.Tuple((x, op.exp(x))))
        bb.emit_func_output([bb.emit(one) for one in (_call("test.upper", s), sequences, _call("test.nothing"))])
    texts, whole, none = machine(bb.get())["main"](np.array([["a", "b"]]), np.zeros(2, "float32"))
    assert texts.tolist() == [["A", "B"]] and none is None
    assert isinstance(whole, list) and whole[1].numpy().tolist() == [1, 1]


def _call(name: str, *args: Any) -> relax.Call:
    return relax.Call(relax.Op.of(f"relax.{name}"), args)


def power_sums(trips: Any, condition: Any) -> Any:
    """The sums 1 + ... + i times x, until one is above 8."""
    bb = BlockBuilder()
    i, total, x = (Var("i", TensorStructInfo((), "int64")), Var("total", TensorStructInfo((2,))), Var("x", TensorStructInfo((2,))))
    with bb.function("body", [i, total, x], private=True):
        new = bb.emit(op.add(total, op.multiply(x, op.astype(i + 1, "float32"))))
        bb.emit_func_output([bb.emit(op.less(op.max(new), relax.const(8.0))), new, bb.emit(op.negative(new))])
    info = TupleStructInfo((TensorStructInfo((2,)), TensorStructInfo(None, "float32", ndim=2)))
    x, n, c = Var("x", TensorStructInfo((2,))), Var("n", TensorStructInfo((), "int64")), Var("c", TensorStructInfo((), "bool"))
    with bb.function("main", [x, n, c]):
        limits = (n if trips else None, c if condition else None)
        bb.emit_func_output(bb.emit(op.loop(relax.GlobalVar("body"), (op.zeros((2,), "float32"),), (x,), *limits, sinfo_args=info)))
    return bb.get()


@pytest.mark.parametrize(
    ("trips", "condition", "n", "c", "turns"),
    [
        (True, True, 9, True, 4),
        (True, False, 6, False, 6),
        (False, True, 0, True, 4),
        (True, True, 2, True, 2),
        (True, True, 5, False, 0),
    ],
)
def test_loops(trips: bool, condition: bool, n: int, c: bool, turns: int) -> None:
    mod = power_sums(trips, condition)
    assert from_source(mod.script()).script() == mod.script()
    given = np.array([1, -1], "float32"), np.array(n), np.array(c)
    sums = np.array([[turn * (turn + 1) / 2 * x for x in (1, -1)] for turn in range(turns + 1)])
    for last, all_of_them in (Evaluator(mod)("main", *given), [one.numpy() for one in machine(mod)["main"](*given)]):
        np.testing.assert_array_equal(last, sums[-1])
        assert all_of_them.shape == (turns, 2) and all_of_them.dtype == "float32"
        np.testing.assert_array_equal(all_of_them, -sums[1:])


def test_many_turns_need_no_deep_stack() -> None:
    mod = power_sums(True, False)
    assert machine(mod)["main"](np.zeros(2, "float32"), np.array(5000), np.array(True))[1].shape == (5000, 2)


def test_loops_without_end_or_body_are_errors() -> None:
    with pytest.raises(ArgumentError, match="never ends"):
        machine(power_sums(False, False))["main"](np.zeros(2, "float32"), np.array(1), np.array(True))
    with pytest.raises(TypeMismatchError, match="a function of the module"):
        op.loop(relax.const(1), (), sinfo_args=TupleStructInfo(()))
    with pytest.raises(TypeMismatchError, match="state what"):
        op.loop(relax.GlobalVar("body"), ())


INPLACE = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def bump(x: T.Buffer((4,), "float32"), twice: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                twice[vi] = x[vi] * T.float32(2)
                x[vi] = x[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        y = R.exp(x)
        z = R.call_tir_inplace(cls.bump, (y,), out_sinfo=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")], inplace_indices=[0, -1])
        return z
"""


def test_results_in_place_of_arguments() -> None:
    mod: Any = from_source(INPLACE)
    x = np.arange(4, dtype="float32")
    for bumped, twice in (Evaluator(mod)("main", x), [one.numpy() for one in machine(mod)["main"](x)]):
        np.testing.assert_allclose(bumped, np.exp(x) + 1, rtol=1e-5)
        np.testing.assert_allclose(twice, np.exp(x) * 2, rtol=1e-5)


def test_registered_functions_write_into_their_arguments() -> None:
    @tvm.register_func("tests.relax.increment", override=True)
    def increment(x: tvm.nd.NDArray) -> tvm.nd.NDArray:
        np.from_dlpack(x)[...] = np.from_dlpack(x) + 1
        return x

    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((3,)))
    with bb.function("main", [x]):
        y = bb.emit(op.multiply(x, x))
        called = op.call_inplace_packed("tests.relax.increment", y, inplace_indices=0, sinfo_args=TensorStructInfo((3,)))
        bb.emit_func_output(bb.emit(called))
    mod = bb.get()
    again: Any = from_source(mod.script())
    assert again.script() == mod.script()
    given = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(machine(again)["main"](given).numpy(), given * given + 1)
    np.testing.assert_array_equal(Evaluator(mod)("main", given), given * given + 1)
    with pytest.raises(DeclarationError, match=r"into arguments .1. of 1"):
        op.call_inplace_packed("tests.relax.increment", x, inplace_indices=1)


def test_layouts_are_read_back() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((Symbol("n", "int64"), 6)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.layout_transform(x, lambda i, j: (j // 4, i, j % 4), 2.0)))
    again: Any = from_source(bb.get().script())
    assert again.script() == bb.get().script()
    given = np.arange(12, dtype="float32").reshape(2, 6)
    padded = np.pad(given, ((0, 0), (0, 2)), constant_values=2).reshape(2, 2, 4).transpose(1, 0, 2)
    np.testing.assert_array_equal(Evaluator(again)("main", given), padded)
    np.testing.assert_array_equal(machine(again)["main"](given).numpy(), padded)


def test_what_graphs_print(capfd: pytest.CaptureFixture[str]) -> None:
    """Values, not the names of their classes; in the machine as in the evaluator."""
    x = relax.Var("x", relax.TensorStructInfo((), "int32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x], pure=False):
        bb.emit(op.print(x, relax.Tuple([x, x])))  # type: ignore[arg-type]
        bb.emit(op.print(x, format="number {:03d}"))
        bb.emit(op.assert_op(op.less(x, relax.const(6, "int32")), [x, x]))
        bb.emit(op.assert_op(op.less(x, relax.const(6, "int32")), [x], format="{} is too large"))
        bb.emit_func_output(x)
    for run in (relax.VirtualMachine(relax.build(bb.get()))["main"], partial(Evaluator(bb.get()), "main")):
        run(np.array(5, "int32"))
        assert capfd.readouterr().out == "5 (5, 5)\nnumber 005\n"
        with pytest.raises(AssertionError, match="assert_op: 7, 7"):
            run(np.array(7, "int32"))
        capfd.readouterr()


def test_builtins_by_name() -> None:
    create, append, view = (tvm.get_global_func(f"vm.builtin.attention_kv_cache_{name}") for name in ("create", "append", "view"))
    cache = create(tvm.nd.array(np.zeros((1, 2), "int32")), (1, 2), 0)
    for n in range(3):
        cache = append(cache, tvm.nd.array(np.full((1, 2), n, "int32")))
    assert view(cache, (3, 2)).numpy().tolist() == [[0, 0], [1, 1], [2, 2]]
