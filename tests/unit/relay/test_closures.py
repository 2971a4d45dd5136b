"""Functions as values, blocks of values, and the passes that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import transform
from tensorexpr.relay.analysis import check_basic_block_normal_form
from tensorexpr.relay.prelude import Prelude
from tensorexpr.relay.to_graph import reachable, to_graph
from tests.effort import share_of

SCALAR = relay.scalar_type("float32")


def loop(stated: bool) -> Any:
    """x, added to itself ten times by a function that calls itself."""
    x, i, s, itself = relay.var("x", SCALAR), relay.var("i", "int32"), relay.var("s", SCALAR), relay.var("loop")
    again = relay.Call(itself, [i + relay.const(1), s + x])
    func = relay.Function((i, s), relay.If(i < relay.const(10), again, s), SCALAR if stated else None)
    start = relay.Call(itself, [relay.const(0), relay.const(0.0)])
    return tvm.IRModule.from_expr(relay.Function((x,), relay.Let(itself, func, start)))


def adder() -> Any:
    """A function that returns a function of its variable."""
    x, y = relay.var("x", SCALAR), relay.var("y", SCALAR)
    made = relay.Function((y,), relay.Function((x,), x + y))
    z = relay.var("z", SCALAR)
    return tvm.IRModule.from_expr(relay.Function((z,), relay.Call(relay.Call(made, [z]), [relay.const(2.0)])))


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("lifted", [True, False])
def test_functions_that_call_themselves(stated: bool, typed: bool, lifted: bool) -> None:
    mod = loop(stated)
    mod = transform.InferType()(mod) if typed or (lifted and not stated) else mod
    mod = transform.LambdaLift()(mod) if lifted else mod
    relax_mod = to_graph(mod)
    assert tvm.relax.analysis.well_formed(relax_mod)
    np.testing.assert_allclose(Evaluator(relax_mod)("main", np.float32(1.5)), 15.0)
    assert len(mod.functions) == (2 if lifted else 1)


def test_a_result_that_no_branch_tells() -> None:
    x, itself = relay.var("x", SCALAR), relay.var("loop")
    func = relay.Function((x,), relay.Call(itself, [x]))
    with pytest.raises(DeclarationError, match="%loop calls itself: state its ret_type"):
        to_graph(relay.Function((x,), relay.Let(itself, func, relay.Call(itself, [x]))))


def test_closures_are_lifted() -> None:
    lifted: Any = transform.LambdaLift()(adder())
    assert sorted(var.name_hint for var in lifted.functions) == ["main", "main_lifted", "main_lifted1"]
    assert lifted["main_lifted1"].attrs.Closure == 1
    for mod in lifted, relay.fromtext(lifted.astext()):
        np.testing.assert_allclose(Evaluator(to_graph(mod))("main", np.float32(3)), 5.0)


def test_what_is_passed_on_is_a_function_that_calls_it() -> None:
    mod: Any = tvm.IRModule()
    prelude = Prelude(mod)
    _, cons, nil = prelude.mod.get_type("List")
    x, f, xs = relay.var("x", "int32"), relay.var("f", relay.FuncType((relay.scalar_type("int32"),), relay.scalar_type("int32"))), nil()
    mod["next"] = relay.Function((x,), x + relay.const(1), relay.scalar_type("int32"))
    mod["apply"] = relay.Function((f,), relay.Call(f, [relay.const(4)]), relay.scalar_type("int32"))
    mod["main"] = relay.Function((), relay.Call(mod.get_global_var("apply"), [mod.get_global_var("next")]))
    made: Any = transform.EtaExpand(expand_global_var=True)(mod)
    assert isinstance(made["main"].body.args[0], relay.Function) and isinstance(mod["main"].body.args[0], relay.GlobalVar)
    assert int(Evaluator(to_graph(reachable(made, ["main"])))("main")) == 5
    mod["main"] = relay.Function((), relay.Tuple([cons, relay.Call(cons, [relay.const(1), xs])]))
    made = transform.EtaExpand(expand_constructor=True)(mod)
    first, second = made["main"].body.fields
    assert isinstance(first, relay.Function) and first.body.op == cons and second.op == cons


# How a value is made of those before it: of two by a sum, or of three by a choice.
NODES = st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=7)


def dag(nodes: list[tuple[bool, int, int, int]]) -> Any:
    x, y = relay.var("x", SCALAR), relay.var("y", SCALAR)
    made: list[Any] = [x, y, relay.const(1.0)]
    for is_choice, a, b, c in nodes:
        first, second, third = (made[one % len(made)] for one in (a, b, c))
        made.append(relay.If(relay.less(first, relay.const(3.0)), second, third) if is_choice else relay.add(first, second))
    return relay.Function((x, y), relay.Tuple([made[-1], *made[3:5]]))


@settings(max_examples=share_of(25), deadline=None)
@given(NODES)
def test_blocks(nodes: list[tuple[bool, int, int, int]]) -> None:
    func = dag(nodes)
    made = transform.ToBasicBlockNormalForm()(tvm.IRModule.from_expr(func))["main"]
    check_basic_block_normal_form(made)
    again = transform.ToBasicBlockNormalForm()(tvm.IRModule.from_expr(made))["main"]
    assert tvm.ir.structural_equal(made, again)
    values = np.float32(0.5), np.float32(2.5)
    np.testing.assert_array_equal(Evaluator(to_graph(made))("main", *values), Evaluator(to_graph(func))("main", *values))


def test_what_branches_share_has_no_name() -> None:
    x, c = relay.var("x", SCALAR), relay.var("c", "bool")
    shared = relay.exp(x)
    func = relay.Function((x, c), relay.If(c, shared, relay.add(shared, shared)))
    with pytest.raises(DeclarationError, match="a value without a name"):
        check_basic_block_normal_form(func)
    body = transform.ToBasicBlockNormalForm()(tvm.IRModule.from_expr(func))["main"].body
    assert isinstance(body, relay.Let) and body.value is shared and body.body.true_branch is body.var
