"""Analyses of graphs."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relax, te
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import DataflowVar, TensorStructInfo, Var, analysis, op
from tensorexpr.relax.struct_info import FuncStructInfo, PrimStructInfo, ShapeStructInfo, TupleStructInfo
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol

TEXT = """
@I.ir_module
class Module:
    @R.function
    def g(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x

    @R.function
    def f(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor((4,), "float32"), v: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        n = T.int64()
        m = T.int64()
        k = T.int64()
        cls = Module
        with R.dataflow():
            a = R.add(w, v)
            b = R.add(x, x)
            r = R.reshape(b, (n * m,))
            c = R.match_cast(r, R.Tensor((k,), "float32"))
            d = cls.g(c)
            e = R.multiply(a, a)
            R.output(d, e)
        return (d, e)
"""
MOD: Any = from_source(TEXT)
F = MOD["f"]
N, M = Symbol("n", "int64"), Symbol("m", "int64")


def names(found: Any) -> list[str]:
    return [getattr(one, "name_hint", getattr(one, "name", None)) or str(one) for one in found]


def test_variables() -> None:
    assert names(analysis.bound_vars(F)) == ["x", "w", "v", *"abrcde"]
    assert set(names(analysis.all_vars(F))) == {"x", "w", "v", *"abrcde"}
    assert names(analysis.free_vars(F)) == [] and set(names(analysis.free_vars(F.body))) == {"x", "w", "v"}
    assert names(analysis.all_global_vars(F)) == ["g"]
    assert sorted(names(analysis.defined_symbolic_vars(F))) == ["k", "m", "n"] and analysis.free_symbolic_vars(F) == []
    free = relax.Function((x := Var("x", TensorStructInfo((N * 2,))),), x)
    assert names(analysis.defined_symbolic_vars(free)) == [] and names(analysis.free_symbolic_vars(free)) == ["n"]
    assert {name: names(b.var for b in found) for name, found in analysis.name_to_binding(F).items()} == {one: [one] for one in "abrcde"}
    assert sorted(names(analysis.get_var2val(F))) == ["a", "b", "d", "e", "r"]
    users = {var.name_hint: names(found) for var, found in analysis.udchain(F.body.blocks[0]).items()}
    assert users == {"w": ["a"], "v": ["a"], "a": ["e"], "x": ["b"], "b": ["r"], "r": ["c"], "c": ["d"], "d": [], "e": []}
    assert names(analysis.computable_at_compile_time(F)) == ["w", "v", "a", "e"]
    assert analysis.computable_at_compile_time(MOD["g"]) == []


def test_visits() -> None:
    seen: list[Any] = []
    analysis.post_order_visit(F, seen.append)
    calls = [str(node.op) for node in seen if isinstance(node, relax.Call)]
    assert calls[:3] == ["relax.add", "relax.add", "relax.reshape"] and seen[-1] is F


def test_effects() -> None:
    x = Var("x", TensorStructInfo((2,)))
    effect = relax.Function((x,), relax.SeqExpr([relax.BindingBlock([relax.VarBinding(Var("_"), op.print(x))])], x), is_pure=False)  # type: ignore[arg-type]
    assert analysis.contains_impure_call(effect) and not analysis.contains_impure_call(F)
    assert analysis.is_pure(F.body.blocks[0].bindings[0].value)
    inner = Var("inner", effect.struct_info)
    around = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(inner, effect)])], x)  # type: ignore[arg-type]
    assert not analysis.contains_impure_call(around)
    assert analysis.contains_impure_call(relax.Call(inner, [x])) and not analysis.contains_impure_call(relax.Call(inner, [x]), inner)


def test_recursion() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def even(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        cls = Module
        return cls.odd(x)

    @R.function
    def odd(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        cls = Module
        return cls.even(x)

    @R.function
    def main(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        cls = Module
        return cls.even(x)
"""
    mod: Any = from_source(text)
    assert [names(group) for group in analysis.detect_recursion(mod)] == [["even", "odd"]]
    assert analysis.detect_recursion(MOD) == []
    assert {var.name_hint: names(called) for var, called in analysis.collect_call_map(mod).items()} == {
        "even": ["odd"], "odd": ["even"], "main": ["even"],
    }  # fmt: skip


def test_functions_inlined() -> None:
    bodies = {"g": MOD["g"]}
    made = F.inline_functions(bodies)
    assert analysis.all_global_vars(made) == [] and names(analysis.all_global_vars(F)) == ["g"]
    with pytest.raises(DeclarationError, match="g is no function of a graph"):
        F.inline_functions({"g": 3})


def test_what_is_known() -> None:
    assert TensorStructInfo(None, "", None, 2).is_base_of(TensorStructInfo((N, 3)))  # type: ignore[attr-defined]
    assert not TensorStructInfo((2, 3)).is_base_of(TensorStructInfo((N, 3)))  # type: ignore[attr-defined]
    sizes = TensorStructInfo((N * 2, M))
    assert names(analysis.tir_vars_in_struct_info(sizes)) == ["n", "m"]
    assert names(analysis.definable_tir_vars_in_struct_info(sizes)) == ["m"]
    assert [str(one) for one in analysis.collect_non_negative_expressions(TensorStructInfo((N * 2, M, 3)))] == ["n * T.int64(2)", "m"]
    assert str(analysis.get_static_type(TensorStructInfo((N, 3)))) == str(relax.DynTensorType(2, "float32"))
    assert isinstance(analysis.get_static_type(FuncStructInfo((sizes,), sizes)), type(analysis.get_static_type(F.struct_info)))
    assert analysis.get_static_type(ShapeStructInfo(ndim=3)) == relax.ShapeType(3)
    assert str(analysis.get_static_type(PrimStructInfo("int64"))) == "T.int64"
    info = TensorStructInfo((N, N * 2))
    assert analysis.erase_to_well_defined(info) == TensorStructInfo(None, "float32", None, 2)
    assert analysis.erase_to_well_defined(info, {N: 4}) == TensorStructInfo((4, 8))  # type: ignore[dict-item]
    assert analysis.erase_to_well_defined(TupleStructInfo((info, TensorStructInfo((3,)))), {M: N}).fields[1] == TensorStructInfo((3,))  # type: ignore[attr-defined]
    x = Var("x", TensorStructInfo((5, 3)))
    took = FuncStructInfo((TensorStructInfo((N, M)),), TensorStructInfo((N * M,)))
    assert analysis.derive_call_ret_struct_info(took, relax.Call(DataflowVar("f", took), [x])) == TensorStructInfo((15,))


@pytest.mark.parametrize(
    ("source", "target", "index", "expected"),
    [
        ((4, 6), (24,), lambda a, i: a[i // 6, i % 6], True),
        ((24,), (4, 6), lambda a, i, j: a[i * 6 + j], True),
        ((4, 6), (3, 8), lambda a, i, j: a[(i * 8 + j) // 6, (i * 8 + j) % 6], True),
        ((4, 6), (6, 4), lambda a, i, j: a[j, i], False),
        ((4, 6), (4, 6), lambda a, i, j: a[i, j] + 1.0, False),
        ((4, 6), (2, 6), lambda a, i, j: a[i + 1, j], False),
        ((4, 6), (2, 6), lambda a, i, j: a[i, j], False),
    ],
)
def test_functions_that_move_nothing(source: Any, target: Any, index: Any, expected: bool) -> None:
    a = te.placeholder(source, name="a")
    b = te.compute(target, lambda *at: index(a, *at), name="b")
    assert analysis.has_reshape_pattern(te.create_prim_func([a, b])) is expected
