"""Patterns of Relay's expressions: what they match, rewrites, and functions of what they match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax import dpl
from tensorexpr.relay import dataflow_pattern as dp
from tensorexpr.relay.dataflow_pattern import is_constant, is_op, is_tuple, is_tuple_get_item, is_var, wildcard
from tensorexpr.relay.dataflow_pattern.rewriting import _MOST_ROUNDS

X = relay.var("x", shape=(1, 3, 8, 8))
W = relay.const(np.ones((4, 3, 3, 3), "float32"))
B = relay.const(np.ones(4, "float32"))
CONV = relay.nn.conv2d(X, W, padding=1)
BIASED = relay.nn.bias_add(CONV, B)


def conv_relu() -> Any:
    """A convolution, a bias perhaps, and a ReLU."""
    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    return is_op("nn.relu")(conv.optional(lambda y: is_op("nn.bias_add")(y, is_constant())))


def test_patterns_of_graphs_match_them() -> None:
    """One matcher for both: Relay's patterns are those of graphs."""
    kinds = [one for one in vars(dp).values() if isinstance(one, type) and issubclass(one, dp.DFPattern)]
    assert len(kinds) > 10 and all(issubclass(one, dpl.DFPattern) for one in kinds)
    assert dpl.is_op("nn.relu")(dpl.wildcard()).match(relay.nn.relu(X))


@pytest.mark.parametrize("inner", [CONV, BIASED])
def test_options(inner: Any) -> None:
    assert conv_relu().match(relay.nn.relu(inner)) and not conv_relu().match(relay.nn.relu(relay.tanh(inner)))


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (wildcard() + is_constant(), True),
        (is_constant() + wildcard(), True),  # sums in either order
        (is_op("add")(is_var("a"), wildcard()), True),
        (is_op("add")(is_var("b"), wildcard()), False),
        (wildcard() - is_constant(), False),
        (wildcard() * wildcard(), False),
        (wildcard().has_shape((3,)), True),
        (wildcard().has_shape((4,)), False),
        (wildcard().has_dtype("float32"), True),
        (dp.has_dtype("int8"), False),
        (dp.has_type(relay.TensorType((3,), "float32")), True),
        (wildcard().has_type(relay.TensorType((3,), "float16")), False),
        (is_op("add").has_attr({"TOpPattern": relay.op.OpPattern.BROADCAST})(wildcard(), wildcard()), True),
        (wildcard().has_attr({"TOpPattern": relay.op.OpPattern.BROADCAST}), True),
        (wildcard().has_attr({"TOpPattern": relay.op.OpPattern.OPAQUE}), False),
        (is_op("add")(), True),  # of any operands
        (is_op("tanh")(wildcard()) | is_op("add")(wildcard(), wildcard()), True),
    ],
    ids=str,
)
def test_what_matches_a_sum(pattern: Any, matches: bool) -> None:
    one = relay.add(relay.var("a", shape=(3,)), relay.const(np.ones(3, "float32")))
    assert pattern.match(one) == dp.match(pattern, one) == matches


def test_attributes_of_calls_and_functions() -> None:
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    assert conv.has_attr({"padding": (1, 1, 1, 1)}).match(CONV) or conv.has_attr({"padding": 1}).match(CONV)
    assert conv.has_attr({"groups": 1, "data_layout": "NCHW"}).match(CONV) and not conv.has_attr({"groups": 2}).match(CONV)
    func = relay.Function((X,), relay.nn.relu(X)).with_attr("Composite", "mine.relu")
    of_relu = dp.FunctionPattern([wildcard()], is_op("nn.relu")(wildcard()))
    assert of_relu.has_attr({"Composite": "mine.relu"}).match(func) and not of_relu.has_attr({"Composite": "other"}).match(func)
    assert dp.FunctionPattern(None, wildcard())(wildcard()).match(func(CONV)) and not dp.FunctionPattern([], wildcard()).match(func)


def test_tuples_branches_and_bindings() -> None:
    a, b = relay.var("a", shape=(4,)), relay.var("b", shape=())
    halves = relay.split(a, 2)
    assert is_tuple_get_item(is_op("split")(wildcard()), 1).match(halves[1]) and not is_tuple_get_item(wildcard(), 0).match(halves[1])
    assert is_op("concatenate")(is_tuple([is_var("a"), wildcard()])).match(relay.concatenate((a, a), 0))
    assert not is_tuple([wildcard()]).match(relay.Tuple((a, b)))
    condition = relay.greater(b, relay.const(0.0))
    one = relay.If(condition, relay.tanh(b), b)
    assert dp.is_if(is_op("greater")(wildcard(), wildcard()), is_op("tanh")(wildcard()), is_var()).match(one)
    assert not dp.is_if(wildcard(), wildcard(), is_constant()).match(one)
    bound = relay.Let(relay.var("v", shape=(4,)), relay.tanh(a), a)
    assert dp.is_let(is_var("v"), is_op("tanh")(wildcard()), wildcard()).match(bound) and not dp.is_let(is_var(), is_var(), is_var()).match(
        b
    )
    assert dp.is_expr(a).match(a) and not dp.is_expr(a).match(b)


def test_all_ways_back_end_at_one_value() -> None:
    conv, sum_ = is_op("nn.conv2d")(wildcard(), wildcard()), is_op("add")(wildcard(), wildcard())
    found = relay.nn.relu(CONV)
    diamond = relay.add(relay.tanh(found), relay.sigmoid(found))
    path = wildcard().has_attr({"TOpPattern": relay.op.OpPattern.ELEMWISE})
    assert sum_.dominates(conv, path).match(diamond) and dp.dominates(conv, wildcard(), sum_).match(diamond)
    # Another convolution, an operand from elsewhere, and something else on the way.
    other = relay.nn.conv2d(X, relay.const(np.zeros((4, 3, 3, 3), "float32")), padding=1)
    assert not sum_.dominates(conv, path).match(relay.add(relay.tanh(found), relay.sigmoid(other)))
    assert not sum_.dominates(conv, path).match(relay.add(relay.tanh(found), relay.var("y", shape=(1, 4, 8, 8))))
    assert not sum_.dominates(conv, path).match(relay.add(relay.tanh(found), relay.nn.softmax(found)))
    partitioned = dp.partition(sum_.dominates(conv, path), relay.exp(diamond))
    assert (
        isinstance(partitioned.args[0].op, relay.Function)
        and "nn.conv2d_nn.relu_" in partitioned.args[0].op.attrs["PartitionedFromPattern"]
    )


class _Capped(dp.DFPatternCallback):
    """relu(x) -> clip(x, 0, 6)"""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return relay.clip(node_map[self.x][0], 0.0, 6.0)


def test_rewrites_go_on_until_nothing_changes() -> None:
    twice = relay.nn.relu(relay.nn.relu(X))
    capped = dp.rewrite(_Capped(), twice)
    assert str(capped) == str(relay.clip(relay.clip(X, 0.0, 6.0), 0.0, 6.0))
    assert _Capped().rewrite(X) is X and is_op("nn.relu")(wildcard()).rewrite(_Capped(), twice).op == "clip"
    func = dp.rewrite([_Capped()], relay.Function((X,), relay.tanh(relay.nn.relu(X))))
    assert isinstance(func, relay.Function) and "relu" not in str(func)


def test_a_rewrite_that_makes_what_it_matches() -> None:
    class Wraps(_Capped):
        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return relay.nn.relu(relay.tanh(node_map[self.x][0]))

    with pytest.raises(DeclarationError, match=f"after {_MOST_ROUNDS} rounds there are still matches"):
        dp.rewrite(Wraps(), relay.nn.relu(X))
    assert str(dp.rewrite(Wraps(rewrite_once=True), relay.nn.relu(X))) == str(relay.nn.relu(relay.tanh(X)))
    with pytest.raises(NotImplementedError, match="give the method callback"):
        dp.DFPatternCallback().callback(X, X, {})
    with pytest.raises(TypeMismatchError, match="takes objects of DFPatternCallback"):
        dp.rewrite(object(), X)


def test_a_match_as_a_function() -> None:
    made = conv_relu().partition(relay.tanh(relay.nn.relu(BIASED)), {"Composite": "mine.conv"})
    func = made.args[0].op
    assert dict(func.attrs) == {"PartitionedFromPattern": "nn.conv2d_nn.bias_add_nn.relu_", "Composite": "mine.conv"}
    assert [param.name_hint for param in func.params] == ["FunctionVar_0_0"] and made.args[0].args == (X,)
    # Constants that the pattern doesn't name are parameters.
    loose = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    assert len(loose.partition(relay.nn.relu(BIASED)).op.params) == 3
    refused = conv_relu().partition(relay.nn.relu(BIASED), check=lambda one: one.op != "nn.relu")
    assert refused.op == "nn.relu"


def test_what_is_used_outside_stays_outside() -> None:
    used_twice = relay.add(relay.nn.relu(BIASED), relay.tanh(BIASED))
    assert conv_relu().partition(used_twice) is used_twice and _Fused().rewrite(used_twice) is used_twice
    nested = relay.nn.relu(relay.nn.conv2d(relay.nn.relu(CONV), relay.const(np.ones((4, 4, 3, 3), "float32"))))
    made = conv_relu().partition(nested)
    assert isinstance(made.op, relay.Function) and isinstance(made.args[0].op, relay.Function)


class _Fused(dp.DFPatternCallback):
    def __init__(self) -> None:
        super().__init__()
        self.pattern = conv_relu()

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return relay.zeros_like(post)


def test_a_pattern_that_contains_itself() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    again = wildcard()
    casts = is_op("cast")(again)
    again.redirect_to(casts | is_op("nn.dense")(wildcard(), wildcard()))
    dense = relay.nn.dense(x, w)
    once, thrice = relay.cast(dense, "float64"), relay.cast(relay.cast(relay.cast(dense, "float16"), "int32"), "float32")
    assert casts.match(once) and casts.match(thrice) and again.match(dense)
    assert not casts.match(dense) and not casts.match(relay.cast(relay.cast(x, "int32"), "float32"))
    made = casts.partition(relay.nn.relu(thrice))
    func = made.args[0].op
    assert func.attrs["PartitionedFromPattern"] == "nn.dense_cast_cast_cast_" and len(func.params) == 2
    # Where the repetition ends at anything, what is there isn't a part of it.
    tail = wildcard()
    chain = is_op("nn.relu")(tail)
    tail.redirect_to(chain | wildcard())
    found = chain.partition(relay.nn.relu(relay.nn.relu(relay.exp(x))))
    assert found.op.attrs["PartitionedFromPattern"] == "nn.relu_nn.relu_" and found.args[0].op == "exp"


def test_kinds_of_operators_that_graphs_call_otherwise() -> None:
    x = relay.var("x", shape=(1, 2, 4, 4))
    out = relay.nn.relu(relay.nn.relu(x)) + relay.nn.leaky_relu(x)
    elementwise = wildcard().has_attr({"TOpPattern": relay.op.OpPattern.ELEMWISE})(wildcard())
    assert dp.dominates(is_var("x"), elementwise, is_op("add")(wildcard(), wildcard())).match(out)
    assert (
        wildcard()
        .has_attr({"TOpPattern": relay.op.OpPattern.BROADCAST})(wildcard(), wildcard())
        .match(relay.nn.bias_add(x, relay.var("b", shape=(2,))))
    )


def test_wrong_patterns() -> None:
    with pytest.raises(TypeMismatchError, match="has_type takes a type"):
        wildcard().has_type(None)
    with pytest.raises(TypeMismatchError, match="have no `&`"):
        wildcard() & is_var()

    class Asks(_Capped):
        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            assert self.x in node_map and self.pattern in list(node_map)
            return node_map[is_var()]

    with pytest.raises(KeyError, match="is no part of the pattern"):
        dp.rewrite(Asks(), relay.nn.relu(X))


def test_none_stands_for_any_arguments_and_fields() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    joined = relay.concatenate((x, y), 0)
    assert is_op("concatenate")(None).match(joined) and is_op("concatenate")(is_tuple(None)).match(joined)
    assert not is_op("nn.relu")(is_tuple(None)).match(relay.nn.relu(x)) and not is_tuple(()).match(relay.Tuple([x]))


def test_partition_of_values_without_types() -> None:
    data, weight, bias = (relay.var(name) for name in ("data", "weight", "bias"))
    layers = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, weight), bias))
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(wildcard(), wildcard()))
    assert not pattern.has_dtype("float32").match(layers)
    call = pattern.partition(relay.nn.bias_add(layers, bias)).args[0]
    assert [param.type_annotation for param in call.op.params] == [None, None] and call.args[0].op == "nn.conv2d"


def test_names_of_what_was_partitioned() -> None:
    inner = is_tuple_get_item(is_tuple([is_op("abs")(wildcard()), wildcard()]), 1)
    made = relay.exp(relay.TupleGetItem(relay.Tuple([relay.abs(X), X]), 1))
    assert is_op("exp")(inner).partition(made).op.attrs.PartitionedFromPattern == "abs_Tuple_TupleGetItem1_exp_"


def test_sums_in_either_order_are_calls() -> None:
    pattern = is_op("add")(is_constant(), is_op("nn.relu")(wildcard()))
    assert isinstance(pattern, dp.CallPattern) and len(pattern.args) == 2
    summed = relay.add(relay.nn.relu(X), relay.const(1.0))
    assert pattern.match(summed) and pattern.match(relay.add(*summed.args[::-1])) and not pattern.match(relay.add(X, relay.const(1.0)))


def test_shapes_are_those_of_types() -> None:
    """Numbers count in int32 there, as in Relay's types."""
    found = dp.has_shape((10, tvm.tir.IntImm("int32", 4)))
    assert [one.dtype for one in found.shape] == ["int32", "int32"]
    assert found.match(relay.var("x", shape=(10, 4)))
    assert not found.match(relay.var("x", shape=(10, 5)))
    n = tvm.tir.Var("n", "int32")
    assert dp.has_shape((n, 4)).match(relay.var("x", shape=(n, 4)))


def test_what_a_match_alone_uses_may_use_its_inside() -> None:
    """The sigmoid of a sum is computed outside of its product with the sum, of a sum of its own."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    total = x + y
    body = relay.nn.relu(total * relay.sigmoid(total))
    pattern = is_op("multiply")(is_op("add")(wildcard(), wildcard()), wildcard())
    made = pattern.partition(body)
    func = made.args[0].op
    assert func.attrs["PartitionedFromPattern"] == "add_multiply_" and len(func.params) == 3
    values = [np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")]
    wanted, found = (
        relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.Function((x, y), one))).evaluate()(*values).numpy()
        for one in (body, made)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    # Something else reads the sum, too.
    assert pattern.partition(relay.Tuple([body, total])).fields[0].args[0].op == "multiply"


def test_partitions_of_partitions_stay_as_they_are() -> None:
    x, w, b = relay.var("x", shape=(1, 4, 5, 5)), relay.var("w", shape=(4, 4, 1, 1)), relay.var("b", shape=(4,))
    conv = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard())
    first = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b))
    made = relay.nn.bias_add(relay.nn.conv2d(first, w), b)
    for pattern, name in ((is_op("nn.relu")(conv), "with_relu"), (conv, "alone")):
        made = pattern.partition(made, {"Composite": name})
    assert made.op.attrs["Composite"] == "alone"
    inner = made.args[0].op
    assert inner.attrs["Composite"] == "with_relu" and inner.body.args[0].op == "nn.bias_add"
