"""Patterns of values: rewrites of what they match."""

# mypy: disable-error-code="valid-type, no-untyped-def, untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError, PassError, TypeMismatchError
from tensorexpr.ir import structural_equal
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.dpl import (
    PatternContext,
    PatternMatchingRewriter,
    is_const,
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    make_fused_bias_activation_pattern,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.script import from_source
from tensorexpr.script import relax as R

from .test_dpl import FUNC, MOD


def agree(new: Any, old: Any = MOD) -> None:
    """Whether a rewritten function means what it has meant."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((4, 4)).astype("float32") for _ in range(2)]
    made = old.clone()
    made.update_func("main", new)
    np.testing.assert_allclose(Evaluator(made)("main", *given), Evaluator(old)("main", *given), rtol=1e-5, atol=1e-5)
    assert structural_equal(from_source(made.script()), made)


def test_calls_rewritten() -> None:
    x = wildcard()
    doubled = is_op("relax.multiply")(x, is_expr(relax.const(2.0)))
    seen: list[Any] = []

    def rule(call: Any, found: Any) -> Any:
        seen.append(call)
        return op.add(op.negative(op.negative(found[x])), found[x])

    made = rewrite_call(doubled, rule, FUNC)
    assert [str(b.value.op) for b in made.body.bindings() if isinstance(b.value, relax.Call)][2:5] == ["relax.negative"] * 2 + ["relax.add"]
    assert len(seen) == 1
    agree(made)
    assert rewrite_call(doubled, lambda call, found: call, FUNC) is FUNC
    with pytest.raises(PassError, match="after 100 rounds a rule still changes something"):
        rewrite_call(is_op("relax.add")(x, wildcard()), lambda call, found: op.add(*reversed(call.args)), FUNC)


def test_matches_over_several_bindings_leave_nothing_behind() -> None:
    a, b = wildcard(), wildcard()
    shape = is_op("relax.reshape")(is_op("relax.concat")(is_tuple([a, b])), wildcard())
    made = rewrite_call(shape, lambda call, found: op.concat([found[b], found[a]], 1), FUNC)
    assert "reshape" not in made.script() and made.script().count("concat") == 1
    agree(made)


def test_alternatives() -> None:
    x, y = wildcard(), wildcard()
    half = is_tuple_get_item(is_op("relax.split")(y), 1)
    first = PatternMatchingRewriter.from_pattern(is_op("relax.nn.relu")(x), lambda call, found: op.maximum(found[x], 0.0))
    second = PatternMatchingRewriter.from_pattern(half, lambda call, found: op.strided_slice(found[y], [1], [2], [4]))
    made = (first | second)(MOD)["main"]
    text = made.script()
    agree(made)
    assert "maximum" in text and "strided_slice" in text and "split" not in text and "relu" not in text


def test_bindings_rewritten() -> None:
    with PatternContext() as ctx:
        x = wildcard()
        relu = is_op("relax.nn.relu")(x)
        product = is_op("relax.multiply")(relu, is_const())
        seen: list[dict[Any, Any]] = []

        def rule(found: Any, bound: Any) -> Any:
            seen.append(bound)
            return {found[product]: op.nn.relu(op.multiply(found[x], bound[found[product]].args[1]))}

        made = rewrite_bindings(ctx, rule, FUNC)
    assert [str(b.value.op) for b in made.body.bindings() if isinstance(b.value, relax.Call)][1:3] == ["relax.multiply", "relax.nn.relu"]
    assert len(seen) == 1
    agree(made)


def test_rewriters_by_modules() -> None:
    text = """
@I.ir_module
class Rewrite:
    @R.function
    def pattern(x: R.Tensor(("n", "m"), "float32"), c: R.Tensor((), "float32")):
        with R.dataflow():
            r = R.nn.relu(x)
            y = R.multiply(r, c)
            R.output(y)
        return y

    @R.function
    def replacement(x: R.Tensor(("n", "m"), "float32"), c: R.Tensor((), "float32")):
        with R.dataflow():
            y = R.multiply(x, c)
            z = R.nn.relu(y)
            R.output(z)
        return z
"""
    mod: Any = from_source(text)
    made = PatternMatchingRewriter.from_module(mod)(FUNC)
    names = [str(b.value.op) for b in made.body.bindings() if isinstance(b.value, relax.Call)]
    assert names[1:3] == ["relax.multiply", "relax.nn.relu"]
    agree(made)
    with pytest.raises(DeclarationError, match="replacement is missing"):
        PatternMatchingRewriter.from_module(from_source(text.replace("replacement", "other")))  # type: ignore[arg-type]


def test_fused_patterns() -> None:
    x, w, b = Var("x", TensorStructInfo((2, 3))), Var("w", TensorStructInfo((3, 4))), Var("b", TensorStructInfo((4,)))
    bb = BlockBuilder()
    with bb.function("main", [x, w, b]):
        bb.emit_func_output(bb.emit(op.nn.relu(op.add(op.matmul(x, w), b))))
    func: Any = bb.get()["main"]
    values = {binding.var: binding.value for binding in func.body.bindings()}
    last = list(values.values())[-1]
    assert make_fused_bias_activation_pattern("relax.matmul", True, "relax.nn.relu").match(last, values)
    assert not make_fused_bias_activation_pattern("relax.matmul", False, "relax.nn.relu").match(last, values)


JOINT = """
@I.ir_module
class Rewrite:
    @R.function
    def pattern(x: R.Tensor(("n", 4), "float32"), a: R.Tensor((4, "m"), "float32"), b: R.Tensor((4, "m"), "float32")):
        with R.dataflow():
            y = R.matmul(x, a)
            z = R.matmul(x, b)
            both = (y, z)
            R.output(both)
        return both

    @R.function
    def replacement(x: R.Tensor(("n", 4), "float32"), a: R.Tensor((4, "m"), "float32"), b: R.Tensor((4, "m"), "float32")):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.matmul(x, R.concat([a, b], axis=1))
            z = (R.strided_slice(y, (1,), (0,), (m,)), R.strided_slice(y, (1,), (m,), (m * 2,)))
            R.output(z)
        return z
"""


def _products(order: str = "abs", effect: bool = False) -> Any:
    """`relu(x a) + x b` and what lies between, in this order."""
    bb = BlockBuilder()
    x, a, b = (Var(name, TensorStructInfo(shape)) for name, shape in (("x", (3, 4)), ("a", (4, 5)), ("b", (4, 5))))
    made: Any = {}
    steps = {
        "a": lambda: op.matmul(x, a),
        "b": lambda: op.matmul(x, made.get("w", b)),
        "s": lambda: op.nn.relu(made["a"]),
        # What the second product multiplies with, made of the first one's reader if that is there already.
        "w": lambda: op.add(b, op.sum(made["s"])) if "s" in made else op.add(b, b),
        "p": lambda: op.print(x),
    }
    with bb.function("main", [x, a, b], pure=not effect):
        for step in order:
            made[step] = bb.emit(steps[step]())
        bb.emit_func_output(bb.emit(op.add(made["s"], made["b"])))
    return bb.get()


@pytest.mark.parametrize(("order", "count"), [("abs", 1), ("asb", 1), ("bas", 1), ("awbs", 1), ("aswb", 2), ("apbs", 2)])
def test_values_that_match_a_tuple_together(order: str, count: int) -> None:
    """Where there is no tuple of them, too; not where one would be read before the other one can be computed, or around an effect."""
    rewriter = PatternMatchingRewriter.from_module(from_source(JOINT))  # type: ignore[arg-type]
    mod = _products(order, "p" in order)
    made: Any = rewriter(mod)
    assert relax.analysis.well_formed(made)
    assert str(made["main"]).count("R.matmul(") == count
    x, a, b = (np.random.default_rng(n).uniform(size=shape).astype("float32") for n, shape in enumerate(((3, 4), (4, 5), (4, 5))))
    np.testing.assert_allclose(Evaluator(made)("main", x, a, b), Evaluator(mod)("main", x, a, b), rtol=1e-5)


def test_rewriters_are_passes_and_bring_functions() -> None:
    text = """
@I.ir_module
class Rewrite:
    @R.function
    def pattern(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    @R.function
    def replacement(x: R.Tensor(("n",), "float32")):
        return Rewrite.doubled(x)

    @R.function(private=True)
    def doubled(x: R.Tensor(("n",), "float32")):
        return R.multiply(x, R.const(2.0, "float32"))
"""
    source: Any = from_source(text)
    rewriter = PatternMatchingRewriter.from_module(source)
    x = Var("x", TensorStructInfo((3,)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.add(x, x)))
    with bb.function("other", [Var("x", TensorStructInfo((3,)))]):
        bb.emit_func_output(relax.const(np.ones(2, "float32")))
    mod = bb.get()
    made: Any = tvm.transform.Sequential([rewriter])(mod)
    assert sorted(var.name_hint for var in made.get_global_vars()) == ["doubled", "main", "other"]
    assert sorted(var.name_hint for var in mod.get_global_vars()) == ["main", "other"]
    assert Evaluator(made)("main", np.ones(3, "float32")).tolist() == [2, 2, 2]
    with pytest.raises(DeclarationError, match="the replacement calls doubled; rewrite a module, which gets that function"):
        rewriter(mod["main"])
    with pytest.raises(DeclarationError, match="functions that a replacement calls are private; doubled is publicly exposed"):
        PatternMatchingRewriter.from_module(from_source(text.replace("(private=True)", "")))  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match=r"takes .*float32.* and replacement .*float16.*: both must have the same signature"):
        wrong = text.replace('replacement(x: R.Tensor(("n",), "float32"))', 'replacement(x: R.Tensor(("n",), "float16"))')
        PatternMatchingRewriter.from_module(from_source(wrong.replace("Rewrite.doubled(x)", "x")))  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="pattern of a rewriter is a function of a graph, not a PrimFunc"):
        tensors = tvm.te.create_prim_func([tvm.te.placeholder((2,), name="a")])
        PatternMatchingRewriter.from_module(tvm.IRModule({"pattern": tensors, "replacement": source["replacement"]}))


def test_patterns_of_a_context_have_values_of_their_own() -> None:
    @R.function
    def forked(x: R.Tensor((4,))):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.add(a, a)
            R.output(b)
        return b

    @R.function
    def apart(x: R.Tensor((4,))):
        with R.dataflow():
            a = R.nn.relu(x)
            c = R.nn.relu(x)
            b = R.add(a, c)
            R.output(b)
        return b

    def matched(func: Any, both: bool) -> bool:
        with PatternContext() as ctx:
            add = is_op("relax.add")(wildcard(), wildcard())
            relu = is_op("relax.nn.relu")(wildcard())
            relu.only_used_by(add, 0)
            (is_op("relax.nn.relu")(wildcard()) if both else relu).only_used_by(add, 1)
            return ctx.match_dfb(func.body.blocks[0]) is not None

    assert matched(apart, True) and matched(forked, False)
    assert not matched(forked, True) and not matched(apart, False)


def test_only_used_by_two_is_used_by_neither_alone() -> None:
    block = FUNC.body.blocks[0]
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), wildcard())
        add >> is_op("relax.nn.relu")(wildcard())
        add >> is_op("relax.matmul")(wildcard(), wildcard())
        assert ctx.match_dfb(block) is None


def test_any_field_of_a_tuple() -> None:
    pattern = is_tuple([wildcard(), is_const()])
    value = relax.Tuple([relax.const(1), relax.const(2)])  # type: ignore[arg-type]
    assert all(pattern[None].match(relax.TupleGetItem(value, index)) for index in (0, 1))
    assert not pattern[0].match(relax.TupleGetItem(value, 1))


def test_what_a_rule_leaves_is_tried_by_the_next_alternative() -> None:
    any_sum, kept = is_op("relax.add")(wildcard(), wildcard()), wildcard()
    either = any_sum | is_op("relax.add")(kept, is_op("relax.zeros")(wildcard()))

    def rule(expr: Any, matched: Any) -> Any:
        assert matched[either] is expr
        return expr if any_sum in matched else matched[kept]

    @R.function
    def before(x: R.Tensor((4,))):
        with R.dataflow():
            a = R.exp(x)
            b = R.zeros((4,), "float32")
            c = R.add(a, b)
            R.output(c)
        return c

    after: Any = rewrite_call(either, rule, before)
    assert "R.add" not in after.script() and "R.exp" in after.script()


PRODUCTS = """@R.function
def apart(x: R.Tensor((2, 4)), y: R.Tensor((2, 4)), a: R.Tensor((4, 3)), b: R.Tensor((4, 3)), c: R.Tensor((4, 3)), d: R.Tensor((4, 3))):
    with R.dataflow():
        p = R.matmul(x, a)
        twice = R.add(b, b)
        q = R.matmul(x, twice)
        r = R.matmul(y, c)
        s = R.matmul(y, d)
        out = (p, q, r, s)
        R.output(out)
    return out
"""


def test_products_that_share_an_operand_become_one() -> None:
    apart: Any = from_source(PRODUCTS)
    with PatternContext() as ctx:
        data, weights = wildcard(), (wildcard(), wildcard())
        products = [is_op("relax.matmul")(data, weight) for weight in weights]

    def joined(matched: Any, values: Any) -> Any:
        both = op.matmul(matched[data], op.concat([matched[one] for one in weights], 1))
        return {matched[one]: op.strided_slice(both, axes=[1], begin=[3 * n], end=[3 * n + 3]) for n, one in enumerate(products)}

    made = rewrite_bindings(ctx, joined, apart)
    text = made.script()
    assert text.count("R.matmul(") == 2 and text.count("R.concat(") == 2 and text.count("R.strided_slice(") == 4
    rng = np.random.default_rng(0)
    given = [rng.standard_normal([int(one) for one in param.struct_info.shape]).astype("float32") for param in made.params]  # type: ignore[attr-defined]
    found, expected = (Evaluator(tvm.IRModule({"main": func}))("main", *given) for func in (made, apart))  # type: ignore[dict-item]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_new_value_that_is_computed_of_itself_is_refused() -> None:
    with PatternContext() as ctx:
        relu = is_op("relax.nn.relu")(wildcard())
        product = is_op("relax.multiply")(relu, is_const())
    with pytest.raises(PassError, match="computed of b itself"):
        rewrite_bindings(ctx, lambda matched, values: {matched[relu]: op.exp(matched[product])}, FUNC)


@pytest.mark.parametrize(("name", "matches"), [("add", True), ("multiply", True), ("subtract", False)])
def test_operands_of_sums_and_products_in_either_order(name: str, matches: bool) -> None:
    value, number = wildcard().has_shape((4,)), is_const()
    pattern = is_op(f"relax.{name}")(value, number)
    x = Var("x", TensorStructInfo((4,), "float32"))
    operator = getattr(op, name)
    assert pattern.match(operator(x, relax.const(1.0)))
    assert bool(pattern.match(operator(relax.const(1.0), x))) is matches


def test_types_say_dimensions_and_dtypes() -> None:
    x = Var("x", TensorStructInfo((4, 3), "float32"))
    assert wildcard().has_type(relax.DynTensorType(2, "float32")).match(x)
    assert not wildcard().has_type(relax.DynTensorType(3, "float32")).match(x)
    assert not wildcard().has_type(relax.DynTensorType(2, "float16")).match(x)
    assert wildcard().has_type(relax.TupleType((relax.DynTensorType(2, "float32"),))).match(relax.Tuple([x]))  # type: ignore[arg-type]
    assert wildcard().has_type(TensorStructInfo((4, 3), "float32")).match(x)


def test_symbols_are_the_same_in_all_parts_of_a_pattern() -> None:
    """A sum of tensors of one shape, and none that is broadcast."""
    m, n = (tvm.tir.Var(name, "int64") for name in "mn")
    left, right = (wildcard().has_struct_info(R.Tensor([m, n])) for _ in range(2))

    @R.function
    def before(a: R.Tensor((4, 8), "float32"), b: R.Tensor((4, 8), "float32"), row: R.Tensor((1, 8), "float32")):
        with R.dataflow():
            x = R.add(a, b)
            y = R.add(x, row)
            R.output(y)
        return y

    after = rewrite_call(is_op("relax.add")(left, right), lambda expr, found: relax.op.multiply(found[left], found[right]), before)
    assert [str(binding.value.op) for binding in after.body.bindings()] == ["relax.multiply", "relax.add"]
