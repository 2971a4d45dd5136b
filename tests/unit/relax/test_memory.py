"""Passes that write memory out: what they make is read back, means the same, runs, and takes little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.transform.memory import estimate_memory_usage
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol

from . import programs

NETWORK = programs.Network  # with it comes a registered function

PASSES = (
    relax.transform.RewriteDataflowReshape(),
    relax.transform.ToNonDataflow(),
    relax.transform.RemovePurityChecking(),
    relax.transform.CallTIRRewrite(),
    relax.transform.StaticPlanBlockMemory(),
    relax.transform.LowerAllocTensor(),
    relax.transform.KillAfterLastUse(),
    relax.transform.LowerRuntimeBuiltin(),
)


def network(n: Any = 2, bound: int | None = None) -> Any:
    """Views, a tuple of results, a branch and a registered function between kernels."""
    bb = BlockBuilder()
    x, y = Var("x", TensorStructInfo((n, 4))), Var("y", TensorStructInfo((n, 4)))
    with bb.function("main", [x, y], {"tir_var_upper_bound": {"n": bound}} if bound else None):
        with bb.dataflow():
            a = bb.emit(op.add(bb.emit(op.exp(x)), y))
            b = bb.emit(op.reshape(bb.emit(op.tanh(bb.emit(op.reshape(a, (-1,))))), (n, 4)))
            p = bb.emit(op.split(b, 2, 1))
            f = bb.emit_output(op.concat([p[1], p[0]], 1))
        g = bb.emit(op.call_dps_packed("tests.relax.twice", (bb.emit(op.negative(f)),), TensorStructInfo((n, 4))))
        bb.emit_func_output([bb.emit(op.exp(g)), f])
    return relax.transform.LegalizeOps()(bb.get())


def runs(mod: Any, x: np.ndarray) -> Iterator[Any]:
    """What the built module gives, unwatched and watched."""
    built = relax.build(mod, relax_pipeline=None)
    for watched in (False, True):
        vm = relax.VirtualMachine(built)
        if watched:
            vm.set_instrument(lambda *args: 0)
        yield [one.numpy() for one in vm["main"](x, x)]


@pytest.mark.parametrize("symbolic", [False, True])
def test_each_pass_keeps_the_meaning(symbolic: bool) -> None:
    mod = network(Symbol("n", "int64"), 8) if symbolic else network()
    x = np.random.default_rng(0).uniform(0, 1, (2, 4)).astype("float32")
    expected = Evaluator(mod)("main", x, x)
    for one in PASSES:
        mod = one(mod)
        again: Any = from_source(mod.script())
        assert again.script() == mod.script()
        for found in (Evaluator(mod)("main", x, x), *runs(mod, x)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
    text = mod["main"].script()
    assert text.count("R.vm.alloc_storage") == 3 and "R.builtin" not in text  # one for the block, two for what is returned
    assert "R.vm.kill_object" in text and "R.memory" not in text


def test_a_tensor_needs_a_storage_before_it_is_lowered() -> None:
    with pytest.raises(DeclarationError, match=r"LowerRuntimeBuiltin: .*has no storage; LowerAllocTensor"):
        relax.transform.LowerRuntimeBuiltin()(relax.transform.CallTIRRewrite()(network()))


def test_calls_with_a_shape_at_the_end() -> None:
    mod: Any = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(a: T.handle, b: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("fill"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] * T.Cast("float32", k)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        storage = R.vm.alloc_storage(R.shape([n]), R.prim_value(0), "float32")
        y = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([n]), "float32")
        R.vm.call_tir_dyn(cls.fill, (x, y, R.shape([n])))
        z = R.call_packed("vm.builtin.copy", y, sinfo_args=R.Tensor((n,), "float32"))
        R.vm.kill_object(y)
        R.vm.kill_object(storage)
        return z
""")
    assert relax.analysis.contains_impure_call(mod["main"])
    assert relax.analysis.remove_all_unused(mod["main"]) is mod["main"]
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(mod))["main"](x).numpy(), 5 * x)


def chain(n: Any, bound: int | None = None) -> Any:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((n, 16)))
    with bb.function("main", [x], {"tir_var_upper_bound": {"n": bound}} if bound else None):
        value: Any = x
        for _ in range(8):
            value = bb.emit(op.exp(value))
        bb.emit_func_output(value)
    return relax.transform.LegalizeOps()(bb.get())


def test_values_share_memory_over_time() -> None:
    planned = relax.transform.StaticPlanBlockMemory()(relax.transform.CallTIRRewrite()(chain(4)))
    assert "alloc_storage(R.shape([512])" in planned["main"].script()  # two values of 256 bytes live at one time
    with_bound = relax.transform.StaticPlanBlockMemory()(relax.transform.CallTIRRewrite()(chain(Symbol("n", "int64"), 8)))
    assert "alloc_storage(R.shape([1024])" in with_bound["main"].script()
    without = relax.transform.StaticPlanBlockMemory()(relax.transform.CallTIRRewrite()(chain(Symbol("n", "int64"))))
    assert "alloc_storage" not in without["main"].script()


def test_estimates() -> None:
    found = estimate_memory_usage(chain(1 << 20))
    assert "Without memory planning, there are 8 constant-size memory allocation(s) with total size 0.5 GB." in found
    assert "With memory planning, there are 2 constant-size memory allocation(s) with total size 0.1875 GB." in found


def test_unknown_results_are_errors() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((2,)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.call_dps_packed("tests.relax.twice", (x,), TensorStructInfo(None, "float32", ndim=1))))
    with pytest.raises(DeclarationError, match="have to be stated"):
        relax.transform.CallTIRRewrite()(bb.get())


@pytest.mark.parametrize(
    ("make", "is_view"),
    [
        (lambda x: op.reshape(x, (3, 8)), True),
        (lambda x: op.expand_dims(x, 1), True),
        (lambda x: op.flatten(x), True),
        (lambda x: op.permute_dims(x), False),
        (lambda x: op.flip(x, 0), False),
        (lambda x: op.exp(x), False),
        (lambda x: op.reshape(op.reshape(x, (24,)), (2, 12)), True),
    ],
)
def test_only_reshapes_become_views(make: Any, is_view: bool) -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((4, 6)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make(x)))
    made = relax.transform.RewriteDataflowReshape()(relax.transform.LegalizeOps()(bb.get()))
    assert ("call_tir" not in made["main"].script()) == is_view
