"""Patterns of values: what matches, what is used by what."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax import TensorStructInfo
from tensorexpr.relax.dpl import (
    PatternContext,
    PatternSeq,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    reject,
    wildcard,
)
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.nn.relu(a)
            c = R.multiply(b, R.const(2.0, "float32"))
            s = R.split(c, 2, axis=1)
            d = s[1]
            e = R.concat((d, d), axis=1)
            f = R.reshape(e, R.shape([4, 4]))
            g = R.matmul(f, a)
            R.output(g)
        return g
"""
MOD: Any = from_source(TEXT)
FUNC = MOD["main"]
BOUND = {str(binding.var): binding.value for binding in FUNC.body.bindings()}
VALUES = {binding.var: binding.value for binding in FUNC.body.bindings()}
X, Y = FUNC.params


def test_what_matches() -> None:
    w = wildcard()
    matching = [
        (w, BOUND["a"]),
        (is_op("relax.add")(wildcard(), wildcard()), BOUND["a"]),
        (is_op("relax.add")(is_var("x"), is_var()), BOUND["a"]),
        (is_op("relax.add")(is_expr(X), ~is_expr(X)), BOUND["a"]),
        (is_op("relax.multiply")(is_dfv(), is_const()), BOUND["c"]),
        (is_op("relax.multiply")(is_dfv("b"), is_expr(relax.const(2.0))), BOUND["c"]),
        (is_op("relax.nn.relu")(is_op("relax.add")(w, wildcard())), BOUND["b"]),
        (is_op("relax.nn.relu")(is_op("relax.add")(w, wildcard()) | is_op("relax.exp")(w)), BOUND["b"]),
        (is_op("relax.split")(wildcard()).has_attr({"axis": 1}), BOUND["s"]),
        (is_op("relax.split").has_attr({"TOpPattern": 2})(wildcard()), BOUND["s"]),
        (has_attr({"indices_or_sections": 2}), BOUND["s"]),
        (is_tuple_get_item(is_op("relax.split")(wildcard()), 1), BOUND["d"]),
        (is_tuple_get_item(wildcard()), BOUND["d"]),
        (is_op("relax.concat")(is_tuple([w, w])), BOUND["e"]),
        (is_op("relax.concat")(is_tuple([w, w], unordered=True)), BOUND["e"]),
        (is_op("relax.reshape")(wildcard(), is_shape([4, 4])), BOUND["f"]),
        (is_op("relax.matmul")(wildcard(), wildcard()).has_shape((4, 4)) & has_dtype("float32"), BOUND["g"]),
        (wildcard().has_struct_info(TensorStructInfo((Symbol("n", "int64"), Symbol("n", "int64")))), BOUND["g"]),
        (reject(is_op("relax.add")(wildcard(), wildcard())), BOUND["b"]),
        (is_op("relax.matmul")(varg_default_wildcard=True), BOUND["g"]),
        (is_const().where(lambda one: float(one.data.numpy()) == 2.0), BOUND["c"].args[1]),
    ]
    for pattern, expr in matching:
        assert pattern.match(expr, VALUES), (pattern, expr)


def test_what_does_not_match() -> None:
    w = wildcard()
    differing = [
        (is_op("relax.add")(wildcard()), BOUND["a"]),
        (is_op("relax.add")(w, w), BOUND["a"]),
        (is_op("relax.subtract")(wildcard(), wildcard()), BOUND["a"]),
        (is_op("relax.add")(is_dfv(), wildcard()), BOUND["a"]),
        (is_op("relax.add")(is_const(), wildcard()), BOUND["a"]),
        (is_op("relax.multiply")(wildcard(), is_expr(relax.const(3.0))), BOUND["c"]),
        (is_op("relax.split")(wildcard()).has_attr({"axis": 0}), BOUND["s"]),
        (is_op("relax.split").has_attr({"TOpPattern": 0})(wildcard()), BOUND["s"]),
        (is_tuple_get_item(wildcard(), 0), BOUND["d"]),
        (is_op("relax.concat")(is_tuple([w, wildcard(), wildcard()])), BOUND["e"]),
        (is_op("relax.reshape")(wildcard(), is_shape([4, 2])), BOUND["f"]),
        (wildcard().has_shape((4, 5)), BOUND["g"]),
        (wildcard().has_dtype("float16"), BOUND["g"]),
        (wildcard().has_struct_info(TensorStructInfo((Symbol("n", "int64"),))), BOUND["g"]),
        (is_const().where(lambda one: False), BOUND["c"].args[1]),
        (is_gv() | is_var("q"), BOUND["a"]),
    ]
    for pattern, expr in differing:
        assert not pattern.match(expr, VALUES), (pattern, expr)
    assert not is_op("relax.nn.relu")(is_op("relax.add")(w, wildcard())).match(BOUND["b"])  # `a` is just a variable
    with pytest.raises(TypeMismatchError, match="arguments of a pattern are patterns"):
        is_op("relax.add")(1, wildcard())  # type: ignore[arg-type]


def test_what_is_matched() -> None:
    left, right = wildcard(), wildcard()
    add = is_op("relax.add")(left, right)
    whole = is_op("relax.nn.relu")(is_op("relax.exp")(add) | add)
    found = whole.extract_matched_expr(BOUND["b"], VALUES)
    assert found is not None and found[left] is X and found[right] is Y and found[add] is BOUND["a"] and found[whole] is BOUND["b"]
    assert whole.extract_matched_expr(BOUND["c"], VALUES) is None
    assert (left | right).match(X)


def test_calls_of_functions() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def relu(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = T.max(a[vi], T.float32(0))

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = R.call_tir(cls.relu, (x,), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_dps_packed("f", (a,), out_sinfo=R.Tensor((4,), "float32"))
        c = R.call_packed("g", b, sinfo_args=R.Tensor((4,), "float32"))
        return c
"""
    mod: Any = from_source(text)
    a, b, c = (binding.value for binding in mod["main"].body.bindings())
    values = {binding.var: binding.value for binding in mod["main"].body.bindings()}
    assert is_call_tir("relu").match(a) and is_call_tir("relu", [is_var("x")]).match(a) and not is_call_tir("relu", []).match(a)
    assert not is_call_tir("exp").match(a)
    assert is_call_dps_packed("f", [is_call_tir("relu")]).match(b, values) and not is_call_dps_packed("g").match(b)
    assert is_call_packed("g").match(c) and is_call_packed("g", [is_call_dps_packed("f")]).match(c, values)
    assert not is_call_packed("g", []).match(c)


def test_values_that_are_used_by_others() -> None:
    block = FUNC.body.blocks[0]
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), wildcard())
        product = is_op("relax.matmul")(wildcard(), add)
        found = ctx.match_dfb(block)
    assert found is not None and str(found[add]) == "a" and str(found[product]) == "g"
    with PatternContext() as ctx:
        relu = is_op("relax.nn.relu")(wildcard())
        sequence = relu >> is_op("relax.multiply")(wildcard(), is_const())
        assert isinstance(sequence, PatternSeq) and sequence[0] is relu
        found = ctx.match_dfb(block)
    assert found is not None and str(found[relu]) == "b" and str(found[sequence[1]]) == "c"
    with PatternContext() as ctx:  # `a` is used by the product too
        is_op("relax.add")(wildcard(), wildcard()) >> is_op("relax.nn.relu")(wildcard())
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), wildcard())
        add.fork_to(is_op("relax.nn.relu")(wildcard()), is_op("relax.matmul")(wildcard(), wildcard()))
        assert ctx.match_dfb(block) is not None
        with PatternContext(incremental=True) as more:
            add ^ is_op("relax.exp")(wildcard())
            assert more.match_dfb(block) is None
        assert ctx.match_dfb(block) is not None
    with PatternContext() as ctx:
        wildcard().used_by(is_op("relax.matmul")(wildcard(), wildcard()), 2)
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        add, split = is_op("relax.add")(wildcard(), wildcard()), is_op("relax.split")(wildcard())
        add.same_shape_as(split)
        assert ctx.match_dfb(block) is None
    with pytest.raises(DeclarationError, match="inside of `with PatternContext"):
        wildcard() >> wildcard()


def test_copies_stand_for_other_values() -> None:
    with PatternContext() as ctx:
        relu = is_op("relax.nn.relu")(wildcard())
        assert ctx.match_dfb(FUNC.body.blocks[0]) is not None
        other = relu.dup()
        assert ctx.match_dfb(FUNC.body.blocks[0]) is None  # there is one only
        other.used_by(relu)
        assert ctx.match_dfb(FUNC.body.blocks[0]) is None
    assert other is not relu and other.args[0] is not relu.args[0]
