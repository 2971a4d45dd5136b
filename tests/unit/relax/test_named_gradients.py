"""Derivatives of tensor functions by their names, values that are computed again for derivatives, and derivatives by tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import ir, relax, te, tir
from tensorexpr.errors import ArgumentError, DeclarationError, TypeMismatchError
from tensorexpr.relax import const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.training.utils import register_te_gradient
from tensorexpr.relax.transform.gradient import TE_GRADIENT
from tensorexpr.runtime.registry import remove_global_func
from tensorexpr.script import from_source
from tensorexpr.tir.structural import structural_equal

N = tir.Var("n", "int64")


def _product(a: Any, b: Any) -> Any:
    return te.compute(a.shape, lambda *i: a[i] * b[i], name="product")


def _by_product(change: Any, a: Any, b: Any) -> list[Any]:
    return [te.compute(a.shape, lambda *i, other=other: change[i] * other[i], name="by") for other in (b, a)]


def _scaled(a: Any) -> Any:
    return te.compute(a.shape, lambda *i: a[i] * te.const(3.0, a.dtype), name="scaled")


def _by_scaled(change: Any, a: Any, k: float) -> Any:
    return te.compute(a.shape, lambda *i: change[i] * te.const(k, a.dtype), name="by")


def _parts(a: Any) -> list[Any]:
    return [te.compute(a.shape, lambda *i, k=k: a[i] * te.const(k, a.dtype), name="part") for k in (2.0, 5.0)]


def _by_parts(changes: Any, a: Any) -> Any:
    return te.compute(a.shape, lambda *i: changes[0][i] * te.const(2.0, a.dtype) + changes[1][i] * te.const(5.0, a.dtype), name="by")


@pytest.fixture
def registered() -> Iterator[None]:
    functions: dict[str, Any] = {"test.product": _by_product, "test.scaled": _by_scaled, "test.parts": _by_parts}
    for name, function in functions.items():
        assert register_te_gradient(name, function) is function
    yield
    for name in functions:
        remove_global_func(TE_GRADIENT + name)


def _network(shape: Any = (3, 4)) -> Any:
    bb = relax.BlockBuilder()
    a, b = (relax.Var(name, relax.TensorStructInfo(shape, "float32")) for name in "ab")
    with bb.function("main", [a, b]):
        with bb.dataflow():
            made = bb.emit(bb.call_te_with_grad(_product, a, b, te_grad_name="test.product", primfunc_name_hint="product"))
            made = bb.emit(bb.call_te_with_grad(_scaled, made, te_grad_name="test.scaled", te_grad_kwargs={"k": 3.0}))
            out = bb.emit_output(op.sum(op.multiply(made, made)))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("shape", [(3, 4), (N, 4)])
def test_derivatives_by_name(registered: None, shape: Any) -> None:
    mod = _network(shape)
    made: Any = transform.Gradient("main")(mod)
    assert "call_tir_with_grad" in str(made["main"]) and "call_tir_with_grad" not in str(made["main_adjoint"])
    assert relax.analysis.well_formed(made)
    a, b = np.random.default_rng(0).random((2, 3, 4), "float32")
    expected = 9 * np.sum((a * b) ** 2), 18 * a * b * b, 18 * a * a * b
    run: Any = Evaluator(made) if shape == (3, 4) else lambda name, *args: relax.VirtualMachine(relax.build(made, "llvm"))[name](*args)
    value, found = run("main_adjoint", a, b)
    for one, other in zip((value, *found), expected, strict=True):
        np.testing.assert_allclose(one.numpy() if hasattr(one, "numpy") else one, other, rtol=1e-5)


def test_several_results_and_an_operand_twice(registered: None) -> None:
    bb = relax.BlockBuilder()
    a = relax.Var("a", relax.TensorStructInfo((3,), "float32"))
    with bb.function("main", [a]):
        with bb.dataflow():
            both = bb.emit(bb.call_te_with_grad(_parts, a, te_grad_name="test.parts"))
            last = bb.emit(both[1])
            call = bb.call_te(_product, a, last)
            again = bb.emit(op.call_tir_with_grad(call.args[0], (last, last), call.sinfo_args[0], "test.product"))
            out = bb.emit_output(op.sum(again))
        bb.emit_func_output(out)
    x = np.array([1, 2, 3], "float32")
    value, (found,) = Evaluator(transform.Gradient("main")(bb.get()))("main_adjoint", x)
    assert value == 25 * 14
    np.testing.assert_allclose(found, 50 * x)


def test_calls_are_those_of_call_tir_elsewhere() -> None:
    mod = _network()
    text = mod.script()
    assert 'te_grad_name="test.scaled", te_grad_kwargs={"k": 3.0}' in text and "te_grad_kwargs={}" not in text
    assert structural_equal(from_source(text), mod) and structural_equal(ir.load_json(ir.save_json(mod)), mod)
    a, b = np.random.default_rng(0).random((2, 3, 4), "float32")
    expected = Evaluator(mod)("main", a, b)
    legal = transform.LegalizeOps()(mod)
    assert "call_tir_with_grad" not in legal.script()
    kept: Any = transform.LegalizeOps({"relax.call_tir_with_grad": lambda bb, call: call})(mod)
    assert "call_tir_with_grad" in kept.script()
    fused: Any = transform.FuseTIR()(transform.FuseOps(2)(transform.AnnotateTIROpPattern()(kept)))
    names = {var.name_hint for var in transform.DeadCodeElimination()(fused).get_global_vars()}
    assert len(names - {"main"}) == 1
    rewritten: Any = transform.CallTIRRewrite()(kept)
    assert "call_tir" not in str(rewritten["main"])
    for one in (fused, rewritten):
        np.testing.assert_allclose(Evaluator(one)("main", a, b), expected, rtol=1e-5)
    ex = relax.build(kept, "llvm", pipeline=lambda mod: mod)
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](a, b).numpy(), expected, rtol=1e-5)


def test_what_is_wrong_about_names(registered: None) -> None:
    with pytest.raises(ArgumentError, match="is registered already"):
        register_te_gradient("test.product")(_by_product)
    mod: Any = _network()
    var: Any = next(one for one in mod.get_global_vars() if one.name_hint == "product")
    a = mod["main"].params[0]
    with pytest.raises(TypeMismatchError, match="by its GlobalVar, not 'product'"):
        op.call_tir_with_grad("product", (a, a), a.struct_info, "test.product")  # type: ignore[arg-type]
    for name, message in (("test.none", "register_te_gradient\\('test.none', function\\)"), ("test.parts", "gives 1 tensors, and product")):
        bb = relax.BlockBuilder(mod)
        with bb.function("other", [a]):
            with bb.dataflow():
                found = bb.emit(op.call_tir_with_grad(var, (a, a), a.struct_info, name))
                out = bb.emit_output(op.sum(found))
            bb.emit_func_output(out)
        remove_global_func(TE_GRADIENT + "test.parts")
        register_te_gradient("test.parts", lambda change, a, b: _by_scaled(change, a, 1.0))
        with pytest.raises(DeclarationError, match=message):
            transform.Gradient("other")(bb.get())


_STEPS = (op.sin, lambda x: x * x, op.tanh, lambda x: op.exp(x) * const(0.1, "float64"))


def _chain(steps: list[int], begin: int, end: int) -> Any:
    """Steps one after the other; those from `begin` to `end` lie between marks."""
    bb = relax.BlockBuilder()
    a, b = (relax.Var(name, relax.TensorStructInfo((3,), "float64")) for name in "ab")
    with bb.function("main", [a, b]):
        with bb.dataflow():
            value, other = bb.emit(a * b), bb.emit(op.exp(b))
            for n, step in enumerate(steps):
                value = bb.emit(op.grad.start_checkpoint(value)) if n == begin < end else value
                value = bb.emit(bb.emit(_STEPS[step](value)) * other)
                value = bb.emit(op.grad.end_checkpoint(value)) if n == end - 1 >= begin else value
            out = bb.emit_output(op.sum(value))
        bb.emit_func_output(out)
    return bb.get()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 5))
@example([3, 3], 0, 2)
def test_derivatives_by_values_computed_again(steps: list[int], begin: int, end: int) -> None:
    marked, plain = (transform.Gradient("main")(_chain(steps, begin, last)) for last in (min(end, len(steps)), 0))
    a, b = np.random.default_rng(0).uniform(0.2, 1.0, (2, 3))
    found, expected = (Evaluator(one)("main_adjoint", a, b) for one in (marked, plain))
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other)


def test_what_is_computed_again() -> None:
    made: Any = transform.Gradient("main")(_chain([3, 0], 0, 2))
    text = str(made["main_adjoint"])
    # The exponential between the marks twice, that of `other`, on which no mark depends, once.
    assert text.count("R.exp(") == 3 and "checkpoint" not in text
    assert str(made["main"]).count("R.exp(") == 2 and "start_checkpoint" in str(made["main"])
    assert "checkpoint" not in transform.LegalizeOps()(made).script() and "checkpoint" not in transform.Simplify()(made).script()


def _layers(marked: bool) -> Any:
    """Eight products whose results derivatives need; with marks only every fourth one is kept."""
    bb = relax.BlockBuilder()
    weights = [relax.Var(f"w{n}", relax.TensorStructInfo((16, 16), "float32")) for n in range(8)]
    value: Any = relax.Var("x", relax.TensorStructInfo((64, 16), "float32"))
    with bb.function("main", [value, *weights]):
        with bb.dataflow():
            for n, weight in enumerate(weights):
                value = bb.emit(op.grad.start_checkpoint(value)) if marked and n % 4 == 0 else value
                value = bb.emit(op.tanh(op.matmul(value, weight)))
                value = bb.emit(op.grad.end_checkpoint(value)) if marked and n % 4 == 3 else value
            out = bb.emit_output(op.sum(value))
        bb.emit_func_output(out)
    return transform.Gradient("main", weights)(bb.get())


@pytest.mark.parametrize("legalize", [False, True])
def test_values_that_are_computed_again_take_less_memory(legalize: bool) -> None:
    """Their second calls equal the first ones, with which they were merged."""
    inputs = np.random.default_rng(0).standard_normal((64, 16)).astype("float32"), *[np.eye(16, dtype="float32")] * 8
    results, sizes = [], []
    for marked in (False, True):
        mod = transform.LegalizeOps()(_layers(marked)) if legalize else _layers(marked)
        executable = relax.build(mod, "llvm")
        assert "optimization_barrier" not in executable.explain()
        sizes.append(max(one.arena.size for made in executable.stretches.values() for one in made.values()))
        results.append(relax.VirtualMachine(executable)["main_adjoint"](*inputs)[1])
    # Eight values of 4 KiB live at once without marks; one that is kept and four that are computed again with them.
    assert sizes[1] < 0.75 * sizes[0]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_barriers_are_values_as_they_were() -> None:
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            first, again = bb.emit(op.exp(x)), bb.emit(op.exp(bb.emit(op.grad.optimization_barrier(x))))
            out = bb.emit_output(op.sum(first * again))
        bb.emit_func_output(out)
    mod = transform.Gradient("main")(bb.get())
    assert str(transform.EliminateCommonSubexpr()(mod)["main"]).count("R.exp(") == 2
    value = np.array([0, 0.5, -1], "float32")
    (total, (change,)) = Evaluator(mod)("main_adjoint", value)
    np.testing.assert_allclose(total, np.exp(2 * value).sum(), rtol=1e-6)
    np.testing.assert_allclose(change, 2 * np.exp(2 * value), rtol=1e-6)
    built = relax.VirtualMachine(relax.build(mod))["main_adjoint"](value)
    np.testing.assert_allclose(built[1][0].numpy(), change, rtol=1e-6)


def test_what_nothing_is_derived_by() -> None:
    bb = relax.BlockBuilder()
    a = relax.Var("a", relax.TensorStructInfo((3,), "float64"))
    with bb.function("main", [a]):
        with bb.dataflow():
            out = bb.emit_output(op.sum(a * op.grad.no_grad(op.cumsum(a))))
        bb.emit_func_output(out)
    x = np.array([1.0, 2.0, 4.0])
    _, (found,) = Evaluator(transform.Gradient("main")(bb.get()))("main_adjoint", x)
    np.testing.assert_allclose(found, np.cumsum(x))


def test_tuples_and_values_inside() -> None:
    info = relax.TensorStructInfo((3,), "float64")
    pair = relax.Var("pair", relax.TupleStructInfo((relax.TupleStructInfo((info, info)), info)))
    bb = relax.BlockBuilder()
    with bb.function("main", [pair]):
        with bb.dataflow():
            inner = bb.emit(pair[0])
            x = bb.emit(inner[1])
            both = bb.emit(relax.Tuple((x, relax.Tuple((pair[1], x)))))
            square = bb.emit(both[0] * both[1][1])
            out = bb.emit_output(op.sum(op.concat(bb.emit(relax.Tuple((square, both[1][0]))), 0)))
        bb.emit_func_output(out)
    mod = bb.get()
    a, b, c = np.random.default_rng(0).random((3, 3))
    _, (found,) = Evaluator(transform.Gradient("main")(mod))("main_adjoint", ((a, b), c))
    for one, expected in ((found[0][0], 0 * a), (found[0][1], 2 * b), (found[1], np.ones(3))):
        np.testing.assert_allclose(one, expected)
    _, (inside, whole) = Evaluator(transform.Gradient("main", require_grads=[square, pair])(mod))("main_adjoint", ((a, b), c))
    np.testing.assert_allclose(inside, np.ones(3))
    np.testing.assert_allclose(whole[0][1], 2 * b)


def test_derivatives_of_operators_by_attribute() -> None:
    derive = ir.Op.get("relax.take").get_attr("FPrimalGradient")
    x, i = relax.Var("x", relax.TensorStructInfo((3,), "float64")), relax.Var("i", relax.TensorStructInfo((2,), "int64"))
    call = op.take(x, i, 0)
    own, none = derive(relax.Var("y", call.struct_info), call, relax.Var("g", call.struct_info), relax.BlockBuilder())
    assert own.struct_info == x.struct_info and none.op == "relax.grad.no_grad"
