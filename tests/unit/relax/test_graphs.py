"""Graphs: read, printed, built by calls, rewritten, run."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, topi
from tensorexpr.errors import ArgumentError, DeclarationError, MissingFunctionError, ParseError
from tensorexpr.ir import structural_equal
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.struct_info import ShapeStructInfo
from tensorexpr.script import from_source
from tensorexpr.script import relax as R
from tensorexpr.tir.expr import Var as Symbol

from . import programs
from .programs import expected, inputs

Network: Any = programs.Network

N = Symbol("n", "int64")


@pytest.fixture(scope="module")
def vm() -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(Network, "llvm"), tvm.cpu())


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize("rows", [1, 5])
def test_network_runs_as_it_means(vm: relax.VirtualMachine, rows: int, choice: bool) -> None:
    given = inputs(rows, choice)
    np.testing.assert_allclose(Evaluator(Network)("main", *given), expected(*given), rtol=1e-5)
    np.testing.assert_allclose(vm["main"](*map(tvm.nd.array, given)).numpy(), expected(*given), rtol=1e-5)


def test_scripts_read_back() -> None:
    text = Network.script()
    again: Any = from_source(text)
    assert again.script() == text
    assert structural_equal(again["relu"], Network["relu"])
    given = inputs()
    np.testing.assert_allclose(Evaluator(again)("main", *given), expected(*given), rtol=1e-5)


def test_every_tensor_function_of_the_network_gets_a_schedule(vm: relax.VirtualMachine) -> None:
    assert set(vm.module.origins.values()) == {"rule"}
    assert "call_tir" in vm.module.stats() and "R.call_tir" in vm.module.as_text()


def mlp() -> tuple[Any, list[np.ndarray], np.ndarray]:
    """relu(x @ w.T + b), of calls, and its inputs and result."""
    x, w, b = (Var(name, TensorStructInfo(shape)) for name, shape in (("x", (N, 4)), ("w", (3, 4)), ("b", (3,))))
    bb = BlockBuilder()
    with bb.function("main", [x, w, b], {"num_input": 1}):
        with bb.dataflow():
            lv = bb.emit(op.linear(x, w, b))
            gv = bb.emit_output(bb.call_te(topi.nn.relu, lv))
        bb.emit_func_output(gv)
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(shape).astype("float32") for shape in ((2, 4), (3, 4), (3,))]
    return bb.get(), given, np.maximum(given[0] @ given[1].T + given[2], 0)


def test_builder() -> None:
    mod, given, result = mlp()
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    assert [str(b.value.op) for b in bindings] == ["relax.permute_dims", "relax.matmul", "relax.add", "relax.call_tir"]
    assert mod["main"].attrs["num_input"] == 1
    assert bindings[-1].var.struct_info == TensorStructInfo((N, 3))
    np.testing.assert_allclose(relax.VirtualMachine(relax.build(mod))["main"](*given).numpy(), result, rtol=1e-5)


def nested(outer_dataflow: bool, inner_dataflow: bool) -> Any:
    """A function that emits the body of another one, of which a variable is bound to a value of its own."""
    inner = BlockBuilder()
    x = Var("x", TensorStructInfo((2,)))
    with inner.function("inner", [x]):
        with inner.dataflow() if inner_dataflow else nullcontext():
            y = inner.emit(op.exp(x), "y")
            z = inner.emit_output(op.negative(y), "z") if inner_dataflow else inner.emit(op.negative(y), "z")
        inner.emit_func_output(z)
    bb = BlockBuilder()
    a = Var("a", TensorStructInfo((2,)))
    with bb.function("main", [a]):
        with bb.dataflow() if outer_dataflow else nullcontext():
            bb.emit(op.add(a, a), "b")
            body = inner.get()["inner"].bind_params({x: a}).body  # type: ignore[attr-defined]
            c = bb.emit(op.sqrt(op.negative(body)), "c")
            d = bb.emit_output(c, "d") if outer_dataflow else c
        bb.emit_func_output(d)
    return bb.finalize()


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_sequences_are_taken_apart_where_they_are_emitted(outer: bool, inner: bool) -> None:
    mod = nested(outer, inner)
    func = mod["main"]
    assert relax.analysis.well_formed(mod)
    assert not any(isinstance(one.value, relax.SeqExpr) for one in func.body.bindings())
    assert [one.var.name_hint for one in func.body.bindings()][:3] == ["b", "y", "z"]
    kinds = [isinstance(block, relax.DataflowBlock) for block in func.body.blocks]
    assert kinds == ([outer] if outer is inner else [outer, inner, outer])
    x = np.array([0.5, -1], "float32")
    np.testing.assert_allclose(Evaluator(mod)("main", x), np.sqrt(np.exp(x)), rtol=1e-6)


def test_blocks_by_themselves() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((2,)))
    bb._begin_binding_block()
    a = bb.emit(op.exp(x))
    bb._begin_dataflow_block()
    bb.emit_output(op.exp(bb.emit(op.negative(a))))
    inside, outside = bb._end_block(), bb._end_block()
    assert isinstance(inside, relax.DataflowBlock) and [one.var for one in outside.bindings] == [a]


def test_parameters_are_stated_once() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((2,)))
    with pytest.raises(DeclarationError, match="function 'main' has its parameters already"), bb.function("main", [x]):
        bb.emit_func_output(x, [x])


def test_types_say_less_than_struct_infos() -> None:
    x = Var("x", TensorStructInfo((N, 2), "float16"))
    assert x.checked_type == relax.DynTensorType(2, "float16") == x._checked_type_
    both = relax.Tuple((x, relax.ShapeExpr((N,))))
    assert both.checked_type == relax.TupleType((relax.DynTensorType(2, "float16"), relax.ShapeType(1)))


def test_a_function_without_what_it_does_not_use_returns_the_same() -> None:
    text = """
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor:
    with R.dataflow():
        y = R.exp(x)
        z = R.negative(x)
        R.output(z)
    return z
"""
    func: Any = from_source(text)
    pruned = relax.analysis.remove_all_unused(func)
    assert len(list(pruned.body.bindings())) == 1 and pruned.ret_struct_info == func.ret_struct_info == pruned.body.struct_info
    assert structural_equal(relax.analysis.remove_all_unused(func.body), pruned.body, map_free_vars=True)


def test_parts_of_constants_are_constants() -> None:
    """Begins and ends of slices are numbers and no tensors: gates of recurrent layers that importers sort were sorted in each run."""
    text = """
@R.function
def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
    with R.dataflow():
        a: R.Tensor((1, 4), "float32") = R.strided_slice(R.const([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], "float32"), (0,), (1,), (2,))
        b: R.Tensor((1, 4), "float32") = R.strided_slice(R.const([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], "float32"), (0,), (0,), (1,))
        z: R.Tensor((2, 4), "float32") = R.add(x, R.concat((a, b), axis=0))
        R.output(z)
    return z
"""
    func: Any = from_source(text)
    folded: Any = relax.transform.FoldConstant()(tvm.IRModule({"main": func}))["main"]
    (binding,) = folded.body.bindings()
    assert binding.value.args[1].data.numpy().tolist() == [[5, 6, 7, 8], [1, 2, 3, 4]]


def test_bound_parameters_leave_the_signature() -> None:
    mod, given, result = mlp()
    bound = relax.transform.BindParams("main", {"w": given[1], "b": tvm.nd.array(given[2])})(mod)
    assert [param.name_hint for param in bound["main"].params] == ["x"]
    folded = relax.transform.FoldConstant()(bound)
    assert "permute_dims" not in folded.script() and "metadata" in folded.script()
    for one in (bound, folded, relax.transform.BindSymbolicVars({"n": 2})(folded)):
        np.testing.assert_allclose(relax.VirtualMachine(relax.build(one))["main"](given[0]).numpy(), result, rtol=1e-5)
    with pytest.raises(DeclarationError, match="no parameters 'v'; it has x, w, b"):
        relax.transform.BindParams("main", {"v": given[1]})(mod)
    with pytest.raises(DeclarationError, match="no function 'mian'; it has"):
        relax.transform.BindParams("mian", {"w": given[1]})(mod)
    with pytest.raises(DeclarationError, match="parameter 'w' of main is"):
        relax.transform.BindParams("main", {"w": given[2]})(mod)
    with pytest.raises(DeclarationError, match="no symbol 'm'; it has n"):
        relax.transform.BindSymbolicVars({"m": 2}, "main")(mod)


def test_what_nothing_uses_goes() -> None:
    x = Var("x", TensorStructInfo((2,)))
    bb = BlockBuilder()
    with bb.function("unused", [x], private=True):
        bb.emit_func_output(bb.emit(op.exp(x)))
    with bb.function("main", [x]):
        bb.emit(op.exp(x))
        bb.emit(op.print(x, format="{}"))
        bb.emit_func_output(bb.emit(op.negative(x)))
    made: Any = relax.transform.DeadCodeElimination()(bb.get())
    assert [var.name_hint for var in made.get_global_vars()] == ["main"]
    assert [str(b.value.op) for b in made["main"].body.bindings()] == ["relax.print", "relax.negative"]


def test_own_legalisation() -> None:
    x = Var("x", TensorStructInfo((4,)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.exp(x)))
    rule = {"relax.exp": lambda builder, call: builder.call_te(topi.negative, call.args[0])}
    made = relax.transform.LegalizeOps(rule)(bb.get())
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(made))["main"](np.ones(4, "float32")).numpy(), -np.ones(4))


def test_closures_recursion_and_match_cast() -> None:
    mod: Any = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(dtype="float32", ndim=1):
        n = T.int64()
        m = T.int64()
        @R.function
        def plus(y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            z = y + x
            return z
        a = plus(x)
        y: R.Tensor = R.call_packed("tests.relax.head", a, sinfo_args=R.Tensor(dtype="float32", ndim=1))
        b = R.match_cast(y, R.Tensor((m,), "float32"))
        c = b * b
        r = R.print(c, format="{}")
        return c
""")
    tvm.register_func("tests.relax.head", lambda x: tvm.nd.array(x.numpy()[:2]), override=True)
    x = np.arange(5, dtype="float32")
    for run in (Evaluator(mod), lambda name, value: relax.VirtualMachine(relax.build(mod))[name](value).numpy()):
        np.testing.assert_array_equal(run("main", x), (x[:2] * 2) ** 2)


def test_symbols_get_values_that_something_tells() -> None:
    n, m, more = (Symbol(name, "int64") for name in ("n", "m", "more"))
    x = Var("x", TensorStructInfo((n, m)))
    func: Any = relax.Function((x,), x)
    assert func.bind_symbolic_vars({"n": more * 2, "m": more}).params[0].struct_info.extents[1] is more
    same = Var("y", TensorStructInfo((n, Symbol("n", "int64"))))
    for made, values, text in (
        (func, {"k": 1}, "has no symbol 'k'; it has n, m"),
        (func, {n: 1, "n": 1}, "n is given twice"),
        (relax.Function((same,), same), {"n": 1}, "n is the name of 2 symbols: give these themselves"),
        (func, {"n": more * 2}, r"more \* .*2.* has the symbol more, which no parameter is told by alone"),
    ):
        with pytest.raises(DeclarationError, match=text):
            cast(Any, made).bind_symbolic_vars(values)


def test_scripts_read_names_that_modules_load_when_they_are_asked_for() -> None:
    tvm.__dict__.pop("nd", None)

    @R.function  # type: ignore[untyped-decorator]
    def main(x: R.Tensor((2,), "float32")):  # type: ignore[valid-type, no-untyped-def]
        return R.add(x, R.const(tvm.nd.array(np.ones(2, "float32"))))

    (binding,) = main.body.bindings()
    np.testing.assert_array_equal(binding.value.args[1].data.numpy(), np.ones(2))


def test_recursion_takes_no_depth_where_the_call_is_the_value() -> None:
    mod: Any = from_source("""
@I.ir_module
class Module:
    @R.function
    def count(i: R.Tensor((), "int64"), n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(i, n):
            r: R.Tensor((), "int64") = Module.count(i + R.const(1, "int64"), n)
        else:
            r: R.Tensor((), "int64") = i
        return r
    @R.function
    def local(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        @R.function
        def down(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
            if R.less(i, n):
                r: R.Tensor((), "int64") = down(i + R.const(2, "int64"))
            else:
                r: R.Tensor((), "int64") = i
            return r
        return down(R.const(0, "int64"))
    @R.function
    def deep(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(R.const(0, "int64"), i):
            more: R.Tensor((), "int64") = Module.deep(i - R.const(1, "int64"))
            r: R.Tensor((), "int64") = more + R.const(1, "int64")
        else:
            r: R.Tensor((), "int64") = i
        return r
""")
    vm = relax.VirtualMachine(relax.build(mod))
    steps = np.array(sys.getrecursionlimit() + 1, "int64")
    assert vm["count"](np.array(0, "int64"), steps).numpy() == steps
    assert vm["local"](np.array(steps * 2)).numpy() == steps * 2
    assert vm["deep"](np.array(9, "int64")).numpy() == 9
    with pytest.raises(ArgumentError, match=r"deep: functions of the graph call each other too deep .* takes no depth"):
        vm["deep"](steps)


def test_state_instruments_and_profile(vm: relax.VirtualMachine) -> None:
    x, w, c = inputs()
    vm.set_input("main", x, c=c, w=w)
    vm.invoke_stateful("main")
    np.testing.assert_allclose(vm.get_outputs("main").numpy(), expected(x, w, c), rtol=1e-5)
    vm.save_function("main", "saved", x, w, c)
    np.testing.assert_allclose(vm["saved"]().numpy(), expected(x, w, c), rtol=1e-5)
    with pytest.warns(UserWarning, match="main has no parameter z"):
        vm.set_input("main", x, w, c, z=1)
    assert vm.time_evaluator("main", tvm.cpu(), number=2, repeat=2)(x, w, c).mean > 0
    other = relax.VirtualMachine(vm.module, tvm.cpu(), profile=True)
    text = str(other.profile("main", x, w, c))
    assert "matmul" in text and "tests.relax.twice" in text and "Total" in text
    seen: list[str] = []
    other.set_instrument(lambda func, name, before, value, *args: seen.append(name) if before else None)
    other["main"](x, w, c)
    assert "fused_matmul_multiply_relu" in seen


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda vm: vm["main"](*inputs()[:2]), ArgumentError, r"main takes 3 arguments \(x, w, c\), not 2"),
        (lambda vm: vm["main"](inputs()[0].astype("float64"), *inputs()[1:]), ArgumentError, r"argument 0 \(x\) of main has dtype float64"),
        (lambda vm: vm["main"](inputs()[1], *inputs()[1:]), ArgumentError, r"argument 0 \(x\) of main has shape \(6, 8\)"),
        (lambda vm: vm["mian"], MissingFunctionError, "no function 'mian'; it has main, helper"),
        (lambda vm: vm.invoke_stateful("helper"), ArgumentError, "set_input"),
        (lambda vm: vm.profile("main"), ArgumentError, "profile=True"),
        (lambda vm: vm.module.export_library("x.a"), ArgumentError, "becomes a shared library"),
        (lambda vm: relax.VirtualMachine(Network), ArgumentError, "relax.build returns"),
        (lambda vm: relax.get_pipeline("none"), DeclarationError, "no pipeline 'none'; there are"),
    ],
)
def test_errors_of_the_machine(vm: relax.VirtualMachine, call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(vm)


def test_a_registered_function_that_raises_comes_out() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((2,)))
    with bb.function("main", [x], pure=False):
        bb.emit_func_output(bb.emit(op.call_packed("tests.relax.raises", x, sinfo_args=TensorStructInfo((2,)))))
    vm = relax.VirtualMachine(relax.build(bb.get()))
    with pytest.raises(MissingFunctionError, match=r"register_func\('tests.relax.raises', f\)"):
        vm["main"](np.ones(2, "float32"))
    tvm.register_func("tests.relax.raises", lambda x: 1 // 0, override=True)
    with pytest.raises(ZeroDivisionError):
        vm["main"](np.ones(2, "float32"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = R.add(a, b)\n    return x", "don't broadcast"),
        ("with R.dataflow():\n        x = a\n        R.output(y)\n    return x", "R.output names y"),
        ("x = a", "returns nothing"),
        ("return R.nn.softmx(a)", "did you mean"),
        ("x: R.Tensor((3,), 'float32') = a\n    return x", "x is stated as"),
        ("for i in a:\n        x = i\n    return a", "`For` has no place"),
    ],
)
def test_errors_of_scripts_point_at_the_place(body: str, message: str) -> None:
    text = f'@R.function\ndef main(a: R.Tensor((2,), "float32"), b: R.Tensor((3,), "float32")):\n    {body}\n'
    with pytest.raises(ParseError, match=message) as error:
        from_source(text)
    assert "|" in str(error.value)


def test_struct_infos_are_values() -> None:
    assert TensorStructInfo((N, 2)) == TensorStructInfo([N, 2]) != TensorStructInfo((2, N))
    assert len({TensorStructInfo((N, 2)), TensorStructInfo((N, 2)), ShapeStructInfo((N, 2))}) == 2
    assert str(TensorStructInfo((N, 2))) == 'R.Tensor((n, 2), dtype="float32")'
    with pytest.raises(DeclarationError, match="ndim=3 doesn't fit 2 extents"):
        TensorStructInfo((1, 2), ndim=3)
    with pytest.raises(TypeError, match="no condition of Python's"):
        bool(Var("x", TensorStructInfo((), "bool")))
    assert Var("bias", TensorStructInfo((4,)))  # `if bias:`, as programs ask whether there is one


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_without_literals_read_back(value: float) -> None:
    bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.maximum(x, relax.const(value, "float32"))))
    text = bb.get().script()
    again: Any = from_source(text)
    assert again.script() == text
    given = np.array([1, 2, 3], "float32")
    np.testing.assert_array_equal(Evaluator(again)("main", given), Evaluator(bb.get())("main", given))


def test_a_tensor_function_is_not_replaced_by_the_function_it_is_made_in() -> None:
    bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with bb.function("add", [x]):
        bb.emit_func_output(bb.emit_te(topi.add, x, x))
    assert len(bb.get().functions_items()) == 2
    given = np.array([1, 2, 3], "float32")
    np.testing.assert_array_equal(Evaluator(bb.get())("add", given), given * 2)
