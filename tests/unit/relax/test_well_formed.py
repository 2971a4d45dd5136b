"""What makes a graph not well-formed, and how that is said."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError, PassError
from tensorexpr.relax import DataflowVar, Function, SeqExpr, TensorStructInfo, Var, VarBinding, op
from tensorexpr.relax.analysis import check_well_formed, well_formed
from tensorexpr.relax.ir.instrument import WellFormedInstrument
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T
from tensorexpr.tir.expr import Var as Symbol
from tensorexpr.tir.function import GlobalVar, IRModule

from . import programs

N = Symbol("n", "int64")
X = Var("x", TensorStructInfo((N, 4)))
Y = Var("y", TensorStructInfo((N, 4)))
LV = DataflowVar("lv", TensorStructInfo((N, 4)))


def body(*bindings: Any, result: Any = X, dataflow: bool = False) -> SeqExpr:
    return SeqExpr(((relax.DataflowBlock if dataflow else relax.BindingBlock)(bindings),), result)


def func(*bindings: Any, result: Any = X, dataflow: bool = False, **options: Any) -> Function:
    return Function((X,), body(*bindings, result=result, dataflow=dataflow), **options)


def test_programs_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network: Any = programs.Network
        assert well_formed(network) and well_formed(network["main"])
        assert well_formed(func(VarBinding(Y, op.exp(X)), result=Y))


M = Symbol("m", "int64")
BRANCH = relax.If(relax.const(True, "bool"), body(VarBinding(Y, op.exp(X)), result=Y), body(result=X))
WRONG: dict[str, tuple[Function, str]] = {
    "use before definition": (func(VarBinding(LV, op.exp(Y)), VarBinding(Y, op.exp(X))), "binding of lv: .* outside of one"),
    "undefined": (func(result=Y), "the function: variable y is used, and nothing defines it"),
    "twice": (func(VarBinding(Y, op.exp(X)), VarBinding(Y, op.tanh(X))), "binding of y: variable y is defined twice"),
    "parameter again": (func(VarBinding(X, op.exp(X))), "binding of x: variable x is defined twice"),
    "dataflow ends": (func(VarBinding(LV, op.exp(X)), result=LV, dataflow=True), "variable lv is used outside of its scope"),
    "dataflow outside": (func(VarBinding(LV, op.exp(X)), result=X), "binding of lv: a variable of a dataflow block is defined outside"),
    "branch": (func(VarBinding(Var("z", Y.struct_info), BRANCH), result=Y), "variable y is used outside of its scope"),
    "symbol": (func(VarBinding(Var("z", TensorStructInfo((M, 4))), op.exp(X))), "binding of z: its type, .*, has the symbol m"),
    "symbol of a shape": (func(result=relax.ShapeExpr((M,))), "the symbol m is used, which no parameter"),
    "type": (func(VarBinding(Var("z", TensorStructInfo((2, 3))), op.exp(X))), r"binding of z: its value is R.Tensor\(\(n, 4\)"),
    "returns": (func(ret_struct_info=TensorStructInfo((N, 4), "float16")), "what it returns is R.Tensor"),
    "operator": (func(VarBinding(Y, relax.Call(relax.Op.of("relax.nonsense"), [X]))), "there is no operator 'relax.nonsense'"),
    "dataflow parameter": (Function((LV,), LV), "parameter lv is a variable of a dataflow block"),
}
UNUSUAL = {
    "effect in a dataflow block": (
        func(VarBinding(LV, op.print(X)), dataflow=True),
        "no effects, and R.print.x, .* has",
    ),
    "choice in a dataflow block": (
        func(VarBinding(LV, relax.If(relax.const(True), X, X)), dataflow=True),
        "block has no choices",
    ),
    "operands": (func(VarBinding(Y, op.exp(op.exp(X)))), "the operand R.exp.x. has no variable of its own"),
    "purity": (func(VarBinding(Var("_"), op.print(X))), "it is pure by its signature, and R.print.x, .* has effects; state pure=False"),
    "branch that is no sequence": (func(VarBinding(Y, relax.If(relax.const(True), X, X))), "a branch, x, is no sequence of bindings"),
    "result": (func(result=op.exp(X)), "the result R.exp.x. has no variable of its own"),
    "forced purity": (func(is_pure=False, attrs={"relax.force_pure": True}), "its signature says pure=False"),
}


@pytest.mark.parametrize("kind", [*WRONG, *UNUSUAL])
def test_what_is_wrong_is_said(kind: str) -> None:
    made, text = {**WRONG, **UNUSUAL}[kind]
    with pytest.raises(DeclarationError, match=f"the graph is not well-formed: .*{text}"):
        check_well_formed(made, is_normal=True)
    with pytest.warns(UserWarning, match=text):
        assert not well_formed(made)


@pytest.mark.parametrize("kind", WRONG)
def test_what_means_nothing_is_not_built(kind: str) -> None:
    made, text = WRONG[kind]
    with pytest.raises(DeclarationError, match=f"the graph is not well-formed: .*{text}".replace("the function", "main")):
        relax.build(IRModule({"main": made}))  # type: ignore[dict-item]


def test_functions_of_the_module() -> None:
    call = func(VarBinding(Y, relax.Call(GlobalVar("f"), [X], struct_info=Y.struct_info)), result=Y)
    with pytest.raises(DeclarationError, match="main, binding of y: the module has no function 'f'"):
        check_well_formed(IRModule({"main": call}))  # type: ignore[dict-item]
    check_well_formed(IRModule({"main": call, "f": Function((X,), X)}))  # type: ignore[dict-item]
    effect = Function((X,), body(VarBinding(Var("_"), op.print(X))), is_pure=False)
    check_well_formed(IRModule({"main": call, "f": effect}))  # type: ignore[dict-item]
    with pytest.raises(DeclarationError, match="main: it is pure by its signature"):
        check_well_formed(IRModule({"main": call, "f": effect}), is_normal=True)  # type: ignore[dict-item]


def test_a_module_shares_no_parameters_and_no_symbols() -> None:
    z = Var("z", TensorStructInfo((N,)))
    mod = IRModule({"f": func(), "g": Function((z,), z)})  # type: ignore[dict-item]
    with pytest.warns(UserWarning, match="g: its symbol n is one of f, too"):
        assert not well_formed(mod)
    mod = IRModule({"f": Function((z,), z), "g": Function((z,), z)})  # type: ignore[dict-item]
    with pytest.warns(UserWarning, match="g: its parameter z is one of f, too"):
        assert not well_formed(mod)
    named = IRModule({"main": func(attrs={"global_symbol": "other"})})  # type: ignore[dict-item]
    with pytest.warns(UserWarning, match="its \"global_symbol\" is 'other'"):
        assert not well_formed(named)
    assert well_formed(relax.transform.NormalizeGlobalVar()(named))


def test_functions_within_have_symbols_of_their_own() -> None:
    @R.function
    def outer():  # type: ignore[no-untyped-def]
        @R.function  # type: ignore[untyped-decorator]
        def inner(x: R.Tensor(("k", 3), "float32")):  # type: ignore[valid-type, no-untyped-def]
            return x

        return inner

    assert well_formed(outer)


def test_tensor_functions_that_only_compute_have_no_effects() -> None:
    @I.ir_module
    class Numbers:
        @T.prim_func(private=True)
        def next(n: T.int64) -> T.int64:
            return n + 1

        @R.function  # type: ignore[untyped-decorator]
        def main(n: R.Prim("int64")) -> R.Prim("int64"):  # type: ignore[valid-type]
            return Numbers.next(n)  # type: ignore[operator]

    assert well_formed(Numbers)


def test_types_are_only_checked_if_asked() -> None:
    made = func(VarBinding(Var("z", TensorStructInfo((2, 3))), op.exp(X)))
    assert well_formed(made, check_struct_info=False)


def test_an_instrument_names_the_pass_that_breaks_a_graph() -> None:
    broken = IRModule({"main": func(VarBinding(Y, op.exp(LV)), result=Y)})  # type: ignore[dict-item]

    @tvm.transform.module_pass(opt_level=0, name="Breaks")
    def breaks(mod: IRModule, ctx: Any) -> IRModule:
        return broken

    whole = IRModule({"main": func(VarBinding(Y, op.exp(X)), result=Y)})  # type: ignore[dict-item]
    with tvm.transform.PassContext(instruments=[WellFormedInstrument()]):
        assert "main" in relax.transform.CanonicalizeBindings()(whole)
        with pytest.raises(PassError, match=r"pass Breaks made a graph that isn't well-formed: .*lv"):
            breaks(whole)
        with pytest.raises(PassError, match="is given a graph that isn't well-formed"):
            relax.transform.CanonicalizeBindings()(broken)
    with tvm.transform.PassContext(instruments=[WellFormedInstrument(validate_before_transform=False)]):
        relax.transform.Normalize()(broken)
