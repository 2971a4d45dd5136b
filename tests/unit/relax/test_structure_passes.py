"""Passes that change how functions are put together, by what TVM 0.19 makes of the same graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.script import from_source
from tensorexpr.script import relax as R
from tensorexpr.tir.expr import Var as Symbol
from tensorexpr.tir.function import IRModule
from tensorexpr.tir.structural import structural_equal

from . import structure_programs

programs: Any = structure_programs

PASSES = {
    "Canonical": ("Nest", transform.CanonicalizeBindings()),
    "Nondataflow": ("Nest", transform.ToNonDataflow()),
    "Common": ("Cse", transform.EliminateCommonSubexpr()),
    "Dataflow": ("Plain", transform.ConvertToDataflow(1)),
    "Inlined": ("Private", transform.InlinePrivateFunctions()),
    "Expanded": ("Private", transform.ExpandTupleArguments()),
    "FewerParameters": ("Private", transform.RemoveUnusedParameters()),
    "FewerOutputs": ("Private", transform.RemoveUnusedOutputs()),
    "Sorted": ("Bundle", transform.TopologicalSort("breadth-first", "from-outputs")),
    "Bundled": ("Bundle", transform.BundleModelParams()),
    "Lifted": ("Closures", transform.LambdaLift()),
}


def given_for(mod: Any) -> list[Any]:
    rng = np.random.default_rng(0)

    def value(info: Any) -> Any:
        if isinstance(info, relax.TupleStructInfo):
            return tuple(map(value, info.fields))
        return rng.uniform(-1, 1, [int(e.value) for e in info.extents]).astype("float32")

    return [value(param.struct_info) for param in mod["main"].params]


@pytest.mark.parametrize("name", PASSES)
def test_graphs_become_what_is_expected(name: str) -> None:
    before, run = getattr(programs, PASSES[name][0]), PASSES[name][1]
    made: Any = run(before)
    assert made.script() == getattr(programs, name).script()
    assert from_source(made.script()).script() == made.script()
    args = given_for(before)
    own = args if name != "Bundled" else [args[0], tuple(args[1:])]
    np.testing.assert_array_equal(Evaluator(made)("main", *own), Evaluator(before)("main", *args))


def test_orders() -> None:
    for order in ("depth-first", "breadth-first"):
        for direction in ("from-inputs", "from-outputs"):
            made: Any = transform.TopologicalSort(order, direction)(programs.Bundle)
            names = "".join(binding.var.name_hint for binding in made["main"].body.bindings())
            assert names == ("qpof" if order == "depth-first" else "qopf")
    with pytest.raises(DeclarationError, match="depth-first or breadth-first"):
        transform.TopologicalSort("deep")


def test_what_is_nested_gets_variables() -> None:
    x = Var("x", TensorStructInfo((4,)))
    body = op.add(op.exp(x), relax.TupleGetItem(op.split(x, 1), 0))
    mod: Any = IRModule({"main": relax.Function((x,), body)})  # type: ignore[dict-item]
    made: Any = transform.Normalize()(mod)
    assert [str(getattr(b.value, "op", "element")) for b in made["main"].body.bindings()] == [
        "relax.exp",
        "relax.split",
        "element",
        "relax.add",
    ]
    assert isinstance(made["main"].body.body, Var)


def test_sequences_inside_of_sequences_are_flattened() -> None:
    """Other names for values stay, blocks of one kind become one, and nothing as a value stands where it is used."""
    x, cond = Var("x", TensorStructInfo((4,))), Var("cond", TensorStructInfo((), "bool"))
    a, b, whole = (Var(name, TensorStructInfo((4,))) for name in ("a", "b", "whole"))
    nothing = Var("nothing", relax.TupleStructInfo(()))

    def nested() -> Any:
        inner = Var("inner", TensorStructInfo((4,)))
        return relax.SeqExpr((relax.DataflowBlock((relax.VarBinding(inner, op.exp(op.negative(x))),)),), inner)

    choice = relax.If(relax.TupleGetItem(relax.Tuple((cond,)), 0), op.add(whole, x), nested())
    blocks = (
        relax.DataflowBlock((relax.VarBinding(a, x),)),
        relax.DataflowBlock((relax.VarBinding(b, a),)),
        relax.BindingBlock((relax.VarBinding(whole, nested()),)),
        relax.BindingBlock((relax.VarBinding(nothing, op.print(whole)),)),
    )
    func = relax.Function((x, cond), relax.SeqExpr(blocks, relax.Tuple((choice, b, nothing))), is_pure=False)
    made: Any = transform.Normalize()(IRModule({"main": func}))["main"]  # type: ignore[dict-item]
    assert [type(block) for block in made.body.blocks] == [relax.DataflowBlock, relax.BindingBlock]
    assert [len(block.bindings) for block in made.body.blocks] == [4, 4]
    assert made.body.body.fields[2].fields == () and relax.analysis.well_formed(made)
    assert structural_equal(transform.Normalize()(IRModule({"main": made}))["main"], made)
    values = np.arange(4, dtype="float32")
    for which in (True, False):
        found = Evaluator(IRModule({"main": made}))("main", values, np.array(which))[0]
        np.testing.assert_allclose(found, np.exp(-values) + values if which else np.exp(-values), rtol=1e-6)


def test_names_of_functions() -> None:
    x = Var("x", TensorStructInfo((4,)))
    bb = BlockBuilder()
    with bb.function("f", [x], private=True):
        bb.emit_func_output(bb.emit(op.exp(x)))
    with bb.function("g", [x], {"global_symbol": "f"}):
        bb.emit_func_output(bb.emit(relax.Call(relax.GlobalVar("f"), [x])))
    made: Any = transform.NormalizeGlobalVar()(bb.get())
    assert sorted(var.name_hint for var in made.get_global_vars()) == ["f", "f_1"]
    assert "cls.f_1(x)" in made.script()
    seen: Any = transform.AttachGlobalSymbol()(made)
    assert seen["f_1"].attrs["global_symbol"] == "f_1"


def test_functions_that_call_themselves_stay() -> None:
    n = Symbol("n", "int64")
    x = Var("x", TensorStructInfo((n,)))
    bb = BlockBuilder()
    with bb.function("twice", [x], private=True):
        bb.emit_func_output(bb.emit(op.add(x, x)))
    y = Var("y", TensorStructInfo((3,)))
    with bb.function("main", [y]):
        with bb.dataflow():
            a = bb.emit(relax.Call(relax.GlobalVar("twice"), [y]))
            b = bb.emit_output(relax.Call(relax.GlobalVar("twice"), [a]))
        bb.emit_func_output(b)
    made: Any = transform.InlinePrivateFunctions()(bb.get())
    assert [var.name_hint for var in made.get_global_vars()] == ["main"]
    assert all(b.var.struct_info == TensorStructInfo((3,)) for b in made["main"].body.bindings())
    np.testing.assert_array_equal(Evaluator(made)("main", np.ones(3, "float32")), np.full(3, 4.0))
    recursive = transform.InlinePrivateFunctions()(structure_with_recursion())
    assert len(recursive.get_global_vars()) == 2


def structure_with_recursion() -> Any:
    return from_source("""
from tensorexpr.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function(private=True)
    def again(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((2,), "float32"):
        cls = Module
        if c:
            y = cls.again(x, c)
        else:
            y = x
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((2,), "float32"):
        cls = Module
        y = cls.again(x, c)
        return y
""")


def test_parameters_of_other_dtypes() -> None:
    run = transform.UpdateParamStructInfo(lambda param: TensorStructInfo((4,), "float64"))
    made: Any = run(programs.Bundle)
    assert made["main"].ret_struct_info == TensorStructInfo((4,), "float64")
    with pytest.raises(TypeMismatchError, match="a struct info or None for x"):
        transform.UpdateParamStructInfo(lambda param: "float64")(programs.Bundle)  # type: ignore[arg-type, return-value]


def test_purity_is_taken_for_granted() -> None:
    x = Var("x", TensorStructInfo((4,)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.call_pure_packed("tests.f", x, sinfo_args=TensorStructInfo((4,)))))
    made: Any = transform.RemovePurityChecking()(bb.get())
    assert made["main"].attrs["relax.force_pure"] and "R.call_packed(" in made.script()


CLOSURES = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32"), z: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        @R.function
        def f(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.add(y, x)
        @R.function
        def g(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            a = f(y)
            return R.multiply(a, z)
        b = g(x)
        return b
"""


def test_a_closure_that_calls_another_takes_what_that_one_uses() -> None:
    before: Any = from_source(CLOSURES)
    made: Any = transform.LambdaLift()(before)
    assert relax.analysis.well_formed(made)
    x, z = np.array([1, 2, 3], "float32"), np.array([4, 5, 6], "float32")
    np.testing.assert_array_equal(Evaluator(made)("main", x, z), 2 * x * z)
    np.testing.assert_array_equal(Evaluator(before)("main", x, z), 2 * x * z)


@pytest.mark.parametrize("name", ["ComputePrimValue", "VMShapeLower"])
def test_what_is_left_to_the_build(name: str) -> None:
    mod: Any = from_source(CLOSURES)
    assert getattr(transform, name)()(mod).script() == mod.script()


def test_pipelines_are_functions_too() -> None:
    x = relax.Var("x", relax.TensorStructInfo((4,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.exp(x)))
    assert "R.call_tir" in relax.pipeline.zero_pipeline()(bb.get()).script()
    for pipeline in (relax.pipeline.default_build_pipeline(), relax.pipeline.get_default_pipeline(tvm.target.Target("llvm"))):
        assert "R.call_tir" in pipeline(bb.get()).script()


@pytest.mark.parametrize("name", ["DeadCodeElimination", "AttachGlobalSymbol", "LegalizeOps", "FuseOps", "FuseTIR", "CanonicalizeBindings"])
def test_modules_that_name_registered_functions(name: str) -> None:
    @R.function  # type: ignore[untyped-decorator]
    def main(x: R.Tensor((4,))):  # type: ignore[no-untyped-def, valid-type]
        y = R.exp(x)
        return y

    mod = tvm.IRModule({"main": main, "outside": relax.ExternFunc("a.registered.function")})  # type: ignore[dict-item]
    assert {var.name_hint for var in getattr(relax.transform, name)()(mod).get_global_vars()} == {"main", "outside"}
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(machine["main"](np.zeros(4, "float32")).numpy(), np.ones(4), rtol=1e-6)
