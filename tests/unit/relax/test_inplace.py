"""Calls in place: what may be overwritten, what is, and that nobody reads it later."""

# mypy: disable-error-code="valid-type, no-untyped-def, untyped-decorator, misc, operator, arg-type, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax import transform
from tensorexpr.relax.analysis.aliases import Aliases
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.testing.transform import dataflow_inplace_analysis, dataflow_liveness_analysis, dataflow_single_inplace_call
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T

X = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")


def machine(mod: Any) -> Any:
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


@I.ir_module
class Elementwise:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), row: R.Tensor((8,), "float32")):
        with R.dataflow():
            a = R.add(x, row)
            b = R.multiply(a, row)  # a is dead behind it
            pair = (b, a)
            c = R.exp(b)  # b lives in the tuple
            d = R.subtract(pair[0], c)  # c is dead, and b, under its other name
            e = R.reshape(d, (8, 4))
            f = R.tanh(d)  # e is a view of d
            g = R.permute_dims(e)
            h = R.add(f, g)
            k = R.multiply(h, h)
            R.output(k)
        return k


def in_place(mod: Any) -> dict[str, tuple[int, ...]]:
    bindings = mod["main"].body.bindings()
    return {b.var.name_hint: b.value.attrs["inplace_indices"] for b in bindings if getattr(b.value, "op", "") == "relax.call_tir_inplace"}


def test_dead_operands_are_overwritten() -> None:
    made: Any = transform.DataflowUseInplaceCalls()(Elementwise)
    assert relax.analysis.well_formed(made)
    # The last of several operands; an operand that is passed twice is one argument.
    assert in_place(made) == {"d": (1,), "h": (1,), "k": (0,)}
    assert "multiply_inplace" in made and in_place(Elementwise) == {}
    row = X[0].copy()
    expected = Evaluator(Elementwise)("main", X, row)
    for one in (Elementwise, made):
        given = [tvm.nd.array(X), tvm.nd.array(row)]
        np.testing.assert_allclose(machine(one)["main"](*given).numpy(), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(given[0].numpy(), X)
        np.testing.assert_allclose(Evaluator(one)("main", X, row), expected, rtol=1e-5, atol=1e-5)


def test_calls_in_place_are_fused() -> None:
    """As those that overwrite nothing: writing them out costs no kernel."""
    kernels = [
        len(relax.build(mod, "llvm").kernels.function_names) for mod in (Elementwise, transform.DataflowUseInplaceCalls()(Elementwise))
    ]
    assert kernels[0] == kernels[1]


def test_what_it_goes_by() -> None:
    block = Elementwise["main"].body.blocks[0]
    ranges = {var.name_hint: live for var, live in dataflow_liveness_analysis(block).items()}
    end = len(block.bindings)
    assert ranges["x"] == (-1, end) and ranges["a"] == (0, 2) and ranges["k"] == (end - 1, end)
    params = Elementwise["main"].params
    aliases = Aliases(block, params)
    names = {var.name_hint: aliases.memory(var) for var in aliases.sets}
    assert names["e"] == names["d"] and names["b"] < names["pair"] and not names["x"] & names["a"]
    size, shape = dataflow_inplace_analysis(block, params, Elementwise)
    assert [n for n, _ in shape] == [n for n, _ in size if n in dict(shape)]
    call, mod = dataflow_single_inplace_call(Elementwise, block.bindings[0].value, [0])
    assert call.args[0].name_hint == "add_inplace" and len(mod["add_inplace"].params) == 2 and "add_inplace" not in Elementwise


def test_functions_may_return_what_they_get() -> None:
    @I.ir_module
    class Mod:
        @R.function(private=True)
        def same(x: R.Tensor((4, 8), "float32")):
            return x

        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            cls = Mod
            with R.dataflow():
                a = R.exp(x)
                b = cls.same(a)
                c = R.tanh(a)
                d = R.add(b, c)
                R.output(d)
            return d

    made: Any = transform.DataflowUseInplaceCalls()(Mod)
    assert in_place(made) == {"d": (1,)}
    np.testing.assert_allclose(machine(made)["main"](X).numpy(), np.exp(X) + np.tanh(np.exp(X)), rtol=1e-5)


@I.ir_module
class Overwriting:
    """A kernel that reads what it has written, so that it can't be anything but in place."""

    @T.prim_func(private=True)
    def sums(a: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        for i, j in T.grid(T.int64(4), T.int64(7)):
            with T.block("sums"):
                vi = T.axis.spatial(T.int64(4), i)
                vj = T.axis.opaque(T.int64(7), j)
                a[vi, vj + T.int64(1)] = a[vi, vj] + a[vi, vj + T.int64(1)]

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        cls = Overwriting
        with R.dataflow():
            z = R.exp(x)
            q = R.multiply(z, R.const(2.0, "float32"))  # would be computed with what reads it, behind the call
            s = R.call_tir_inplace(cls.sums, (z,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
            y = R.add(q, s)
            R.output(y)
        return y

    @R.function
    def kept(x: R.Tensor((4, 8), "float32")):
        cls = Overwriting
        with R.dataflow():
            z = R.exp(x)
            v = R.reshape(z, (32,))
            s = R.call_tir_inplace(cls.sums, (z,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(s, v)
        return s, v

    @R.function(pure=False)
    def given(x: R.Tensor((4, 8), "float32")):
        cls = Overwriting
        s = R.call_tir_inplace(cls.sums, (x,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
        return s


def test_nothing_reads_what_is_overwritten() -> None:
    vm, expected = machine(Overwriting), np.cumsum(np.exp(X), axis=1)
    np.testing.assert_allclose(vm["main"](X).numpy(), 2 * np.exp(X) + expected, rtol=1e-4)
    found, kept = vm["kept"](X)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4)
    np.testing.assert_allclose(kept.numpy(), np.exp(X).reshape(32), rtol=1e-5)
    # What the caller gives is overwritten: that is what it was given for.
    array = tvm.nd.array(X)
    np.testing.assert_allclose(vm["given"](array).numpy(), np.cumsum(X, axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array.numpy(), np.cumsum(X, axis=1), rtol=1e-4, atol=1e-5)


@I.ir_module
class Groups:
    @T.prim_func(private=True)
    def add(a: T.Buffer((T.int64(4), T.int64(8)), "float32"), b: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] + T.float32(1)

    @T.prim_func(private=True)
    def twice(a: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.block("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                a[vi, vj] = a[vi, vj] * T.float32(2)

    @R.function(private=True)
    def made(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Groups
        with R.dataflow():
            a = R.call_tir(cls.add, (x,), out_sinfo=R.Tensor((4, 8), "float32"))
            b = R.call_tir_inplace(cls.twice, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(b)
        return b

    @R.function(private=True)
    def over(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Groups
        with R.dataflow():
            a = R.call_tir_inplace(cls.twice, (x,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
            b = R.call_tir_inplace(cls.twice, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        cls = Groups
        with R.dataflow():
            a = cls.made(x)
            b = cls.over(a)
            R.output(b)
        return b


def test_groups_of_calls_in_place() -> None:
    """One function with the loops of all; it is called in place where it overwrites what it is given."""
    fused: Any = transform.FuseTIR()(Groups)
    assert in_place(fused) == {"b": (0,)} and sorted(var.name_hint for var in fused.get_global_vars()) == ["made", "main", "over"]
    assert len(fused["over"].params) == 1 and len(fused["made"].params) == 2
    np.testing.assert_allclose(machine(fused)["main"](X).numpy(), (X + 1) * 8, rtol=1e-6)


@pytest.mark.parametrize("told", ["shape", "number"])
def test_kernels_that_take_numbers_join_groups(told: str) -> None:
    @I.ir_module
    class Shape:
        @T.prim_func(private=True)
        def rows(a: T.Buffer((T.int64(4), T.int64(8)), "float32"), b: T.Buffer((T.int64(2), T.int64(8)), "float32"), first: T.int64):
            for i, j in T.grid(T.int64(2), T.int64(8)):
                with T.block("rows"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    b[vi, vj] = a[vi + first, vj]

        @R.function
        def main(x: R.Tensor((4, 8), "float32"), s: R.Shape(["n"])):
            n = T.int64()
            cls = Shape
            with R.dataflow():
                a = R.exp(x)
                b = R.call_tir(cls.rows, (a,), out_sinfo=R.Tensor((2, 8), "float32"), tir_vars=R.shape([n + 1]))
                c = R.negative(b)
                R.output(c)
            return c

        @R.function
        def number(x: R.Tensor((4, 8), "float32"), s: R.Prim(value="n")):
            n = T.int64()
            cls = Shape
            with R.dataflow():
                a = R.exp(x)
                b = R.call_tir(cls.rows, (a,), out_sinfo=R.Tensor((2, 8), "float32"), tir_vars=R.shape([n + 1]))
                c = R.negative(b)
                R.output(c)
            return c

    name = "main" if told == "shape" else "number"
    grouped = tvm.transform.Sequential(
        [transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FuseOps(), transform.FuseTIR()]
    )(Shape)
    assert [len(grouped[one].body.blocks[0].bindings) for one in ("main", "number")] == [1, 1]
    for mod in (Shape, grouped):
        found = machine(mod)[name](X, (1,) if told == "shape" else 1)
        np.testing.assert_allclose(found.numpy(), -np.exp(X[2:4]), rtol=1e-5)


def test_numbers_among_the_arguments_of_kernels_join_groups() -> None:
    bb = relax.BlockBuilder()
    x, s, k = (relax.Var(name, info) for name, info in (("x", R.Tensor((8,), "float32")), ("s", R.Prim("float32")), ("k", R.Prim("int64"))))
    with bb.function("main", [x, s, k]):
        with bb.dataflow():
            scaled = bb.emit_te(lambda x, s, k: tvm.te.compute(x.shape, lambda i: x[i] * s + k.astype("float32"), name="scaled"), x, s, k)
            out = bb.emit_output(relax.op.exp(scaled))
        bb.emit_func_output(out)
    passes = [transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FuseOps(), transform.FuseTIR()]
    grouped: Any = tvm.transform.Sequential(passes)(bb.get())
    assert len(list(grouped["main"].body.bindings())) == 1
    for mod in (bb.get(), grouped):
        np.testing.assert_allclose(machine(mod)["main"](X[0], 0.5, 2).numpy(), np.exp(X[0] * 0.5 + 2), rtol=1e-5)
    executable = relax.build(bb.get(), "llvm")
    assert len(executable.kernels.function_names) == 1 and "in vectors" in executable.explain()


def test_parts_of_a_split_join_what_reads_them() -> None:
    """Where one of them goes elsewhere the split is a kernel of its own."""

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            with R.dataflow():
                parts = R.split(x, 2, axis=1)
                y = R.multiply(R.sigmoid(parts[0]), parts[1])
                R.output(y)
            return y

        @R.function
        def both(x: R.Tensor((4, 8), "float32")):
            with R.dataflow():
                parts = R.split(x, 2, axis=1)
                a = parts[0]
                y = R.multiply(R.sigmoid(a), parts[1])
                R.output(a, y)
            return a, y

    fused: Any = tvm.transform.Sequential([transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FuseOps()])(Mod)
    assert "fused_split_tir_sigmoid_multiply" in fused
    vm, gate = machine(Mod), X[:, 4:] / (1 + np.exp(-X[:, :4]))
    np.testing.assert_allclose(vm["main"](X).numpy(), gate, rtol=1e-5)
    left, right = vm["both"](X)
    np.testing.assert_array_equal(left.numpy(), X[:, :4])
    np.testing.assert_allclose(right.numpy(), gate, rtol=1e-5)
