"""Calls of tensor functions that don't fit them are found before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import op
from tensorexpr.relax.analysis.tensor_calls import misfits
from tensorexpr.relax.struct_info import ObjectStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo
from tensorexpr.script import from_source
from tensorexpr.tir import GlobalVar
from tensorexpr.tir import Var as Symbol

MOD: Any = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def pairs(a: T.handle, b: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n * 2,), "float32")
        for i in range(n * 2):
            with T.block("B"):
                v = T.axis.spatial(n * 2, i)
                B[v] = A[v // 2, k]
""")
PAIRS = MOD["pairs"]


def _call(argument: StructInfo, result: StructInfo, numbers: Any = (1,)) -> Any:
    return op.call_tir(GlobalVar("pairs"), relax.Tuple((relax.Var("x", argument),)), result, numbers)


@pytest.mark.parametrize(
    ("argument", "result", "message"),
    [
        (TensorStructInfo((3, 4)), TensorStructInfo((6,)), None),
        (TensorStructInfo((Symbol("m", "int64"), 4)), TensorStructInfo((Symbol("k", "int64"),)), None),
        (TensorStructInfo(None, "", ndim=2), TensorStructInfo((6,)), None),
        (ObjectStructInfo(), TensorStructInfo((6,)), None),
        (TensorStructInfo((3, 5)), TensorStructInfo((6,)), r"argument 0 has shape \(3, 5\), and A \(n, 4\): 5 is not 4"),
        (TensorStructInfo((3, 4)), TensorStructInfo((7,)), r"result 0 has shape .* 7 is not 6"),
        (TensorStructInfo((3, 4), "int32"), TensorStructInfo((6,)), "argument 0 has dtype int32, and A float32"),
        (TensorStructInfo((3, 4)), TensorStructInfo((6,), "float16"), "result 0 has dtype float16"),
        (TensorStructInfo((3, 4)), TensorStructInfo((6, 1)), "result 0 has 2 axes, and B 1"),
        (ShapeStructInfo((3, 4)), TensorStructInfo((6,)), r"argument 0 is R.Shape\(\[3, 4\]\), where A is a tensor"),
    ],
)
def test_calls_fit_their_functions(argument: StructInfo, result: StructInfo, message: str | None) -> None:
    call = _call(argument, result)
    found = list(misfits(call, PAIRS))
    mod = MOD.clone()
    x = call.args[1].fields[0]
    y = relax.Var("y", call.struct_info)
    symbols = relax.Var("s", ShapeStructInfo([one for one in getattr(result, "extents", ()) if isinstance(one, Symbol)]))
    block = relax.BindingBlock((relax.VarBinding(y, call),))
    mod.update_func("main", relax.Function((x, symbols), relax.SeqExpr((block,), y), call.struct_info))
    if message is None:
        assert found == [] and relax.analysis.well_formed(mod)
        return
    with pytest.raises(DeclarationError, match=f"binding of y: {message}"):
        relax.build(mod, "llvm")


def test_calls_pass_as_much_as_their_functions_take() -> None:
    assert next(misfits(_call(TensorStructInfo((3, 4)), TensorStructInfo((6,)), None), PAIRS)).startswith("pairs takes 3 arguments")


@pytest.mark.parametrize(
    ("places", "result", "message"),
    [
        ([0, 0], [TensorStructInfo((3,))] * 2, r"are written into arguments \[0, 0\] of 2"),
        (-1, TensorStructInfo((3,)), r"into arguments \[-1\] of 2"),
        ([2], TensorStructInfo((3,)), r"into arguments \[2\] of 2"),
        ([0], TensorStructInfo((4,)), "is written into argument 0, which is"),
        ([0], TensorStructInfo((3,), "int32"), "is written into argument 0, which is"),
        ([1], TensorStructInfo((3,)), r"is written into argument 1, which is R.Object"),
    ],
)
def test_results_in_place_are_arguments(places: Any, result: Any, message: str) -> None:
    x, y = relax.Var("x", TensorStructInfo((3,))), relax.Var("y", ObjectStructInfo())
    with pytest.raises(DeclarationError, match=message):
        op.call_tir_inplace(GlobalVar("f"), (x, y), places, result)
    assert op.call_tir_inplace(GlobalVar("f"), (x, y), [0, -1], [TensorStructInfo((3,)), TensorStructInfo((4,))]).sinfo_args
