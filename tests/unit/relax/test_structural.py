"""Graphs compared and hashed: up to the names of variables and symbols, with extents that are proved equal."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.ir.base import assert_structural_equal, get_first_structural_mismatch, structural_equal, structural_hash
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol
from tensorexpr.tir.function import IRModule

from . import programs

Network: Any = programs.Network
TEXT = Network.script()


def same(a: Any, b: Any, **options: Any) -> bool:
    """Whether two programs are equal; equal ones have one hash."""
    equal = structural_equal(a, b, **options)
    assert equal == structural_equal(b, a, **options)
    assert not equal or structural_hash(a, **options) == structural_hash(b, **options)
    return bool(equal)


def test_equal_up_to_names() -> None:
    again: Any = from_source(TEXT)
    assert same(Network, again)
    renamed = TEXT.replace("lv0", "other").replace(" e:", " f:").replace("(e)", "(f)").replace('"n"', '"k"').replace("n = T", "k = T")
    renamed = renamed.replace("(n,", "(k,").replace("range(n)", "range(k)").replace("grid(n", "grid(k")
    assert same(Network, from_source(renamed))
    assert same(Network["main"], again["main"]) and same(Network["main"].body.blocks[0], Network["main"].body.blocks[0])


CHANGES = {
    "R.exp(": "R.tanh(",
    "R.negative(e)": "R.negative(out)",
    "(b, a)": "(a, b)",
    "R.const(2.0": "R.const(3.0",
    "axis=1)": "axis=-1)",
    "tests.relax.twice": "tests.relax.thrice",
    "cls.helper(out)": "cls.helper(cls.helper(out))",
}


@pytest.mark.parametrize("old", CHANGES)
def test_differences_are_found(old: str) -> None:
    assert old in TEXT
    other = from_source(TEXT.replace(old, CHANGES[old]))
    assert not same(Network, other) and structural_hash(Network) != structural_hash(other)
    with pytest.raises(ValueError, match=r"the programs differ at <root>.functions\[I.GlobalVar\(\"(main|helper)\"\)\].body.blocks"):
        assert_structural_equal(Network, other)


def test_place_of_the_first_difference() -> None:
    other: Any = from_source(TEXT.replace("R.exp(", "R.tanh("))
    paths: Any = get_first_structural_mismatch(Network["main"], other["main"])
    here, there = paths
    assert str(here) == str(there) == "<root>.body.blocks[1].bindings[0].value.false_branch.blocks[0].bindings[0].value.op"
    with pytest.raises(ValueError) as caught:
        assert_structural_equal(Network["main"], other["main"])
    lines = str(caught.value).splitlines()
    marked = [lines[number - 1].strip() for number, line in enumerate(lines) if "^" in line]
    assert marked == [f'e: R.Tensor((n, 8), dtype="float32") = R.{name}(out)' for name in ("exp", "tanh")]
    x, y = (Var("x", TensorStructInfo((size,))) for size in (2, 3))
    paths = get_first_structural_mismatch(relax.Function((x,), x), relax.Function((y,), y))
    assert str(paths[0]) == "<root>.params[0].struct_info.shape.values[0]"
    paths = get_first_structural_mismatch(relax.Function((x,), x), relax.Function((x, y), x))
    assert str(paths[0]) == "<root>.params[<missing element #1>]"


def graph(size: Any, *names: str) -> Any:
    """exp(x) + y, of symbols by these names."""
    n, m = (Symbol(name, "int64") for name in names)
    x, y = Var("x", TensorStructInfo((n, m))), Var("y", TensorStructInfo((size(n, m),)))
    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(op.add(op.exp(op.reshape(x, (size(n, m),))), y)))
    return bb.get()


def test_extents_are_equal_where_that_is_proved() -> None:
    assert same(graph(lambda n, m: n * m + m, "n", "m"), graph(lambda n, m: m + m * n, "k", "a"))
    assert same(graph(lambda n, m: n + m + n, "a", "b"), graph(lambda n, m: 2 * n + m, "b", "a"))
    assert not same(graph(lambda n, m: n + m + n, "a", "b"), graph(lambda n, m: n + 2 * m, "a", "b"))


def test_free_variables_are_themselves_unless_mapped() -> None:
    n, m = Symbol("n", "int64"), Symbol("m", "int64")
    x, y, z = Var("x", TensorStructInfo((n,))), Var("y", TensorStructInfo((m,))), Var("z", TensorStructInfo((3,)))
    assert not same(op.exp(x), op.exp(y)) and same(op.exp(x), op.exp(x))
    assert same(op.exp(x), op.exp(y), map_free_vars=True)
    assert not same(op.exp(x), op.exp(z), map_free_vars=True)
    assert not same(op.add(x, x), op.add(y, Var("v", TensorStructInfo((m,)))), map_free_vars=True)
    dataflow = relax.DataflowVar("x", TensorStructInfo((n,)))
    assert not same(op.exp(x), op.exp(dataflow), map_free_vars=True)


def test_functions_that_share_variables() -> None:
    x = Var("x", TensorStructInfo((2,)))
    first = relax.Function((x,), relax.SeqExpr((), x))
    mod = IRModule({"f": first, "g": first.with_attr("k", 1)})  # type: ignore[dict-item]
    assert same(mod, from_source(mod.script()))


def test_closures_that_call_themselves() -> None:
    text = """
@R.function
def main(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
    @R.function
    def down(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        c = R.less(i, R.const(1, "int32"))
        if c:
            r = i
        else:
            s = R.subtract(i, R.const(1, "int32"))
            r = down(s)
        return r
    y = down(x)
    return y
"""
    assert same(from_source(text), from_source(text))
    assert not same(from_source(text), from_source(text.replace("r = i", "r = R.negative(i)")))
