"""References: the order of what is read and written, types, text, and passes that keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.analysis import detect_feature
from tensorexpr.relay.backend.interpreter import RefValue
from tensorexpr.relay.feature import Feature
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.relay.tokens import RelayTextError
from tests.effort import share_of

# (write or read, which cell, and in the value of a write: which read before it, and a number)
Steps = list[tuple[bool, int, int, int]]
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 1), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=6)


def program(steps: Steps) -> Any:
    """Two cells that are written and read in turn, by a function that stands between as often as directly."""
    cells = [relay.var(f"cell{n}") for n in range(2)]
    lets: list[tuple[Any, Any]] = [(cell, relay.RefCreate(relay.const(n))) for n, cell in enumerate(cells)]
    values: list[Any] = [relay.const(1)]
    for number, (is_write, cell, place, offset) in enumerate(steps):
        if not is_write:
            var = relay.var(f"v{number}")
            lets.append((var, relay.RefRead(cells[cell])))
            values.append(var)
            continue
        write = relay.RefWrite(cells[cell], relay.add(values[place % len(values)], relay.const(offset)))
        if offset % 2:
            lets.append((relay.var("_"), write))
        else:
            func = relay.var(f"f{number}")
            lets += [(func, relay.Function((), write)), (relay.var("_"), relay.Call(func, []))]
    body: Any = relay.Tuple([*values, *map(relay.RefRead, cells)])
    for name, value in reversed(lets):
        body = relay.Let(name, value, body)
    return relay.Function((), body)


def expected(steps: Steps) -> list[int]:
    cells, values = [0, 1], [1]
    for is_write, cell, place, offset in steps:
        if is_write:
            cells[cell] = values[place % len(values)] + offset
        else:
            values.append(cells[cell])
    return values + cells


PASSES: dict[str, Callable[[], Any]] = {
    "none": lambda: relay.transform.InferType(),
    "names": lambda: relay.transform.ToANormalForm(),
    "used": lambda: relay.transform.DeadCodeElimination(inline_once=True),
    "shared": lambda: relay.transform.EliminateCommonSubexpr(),
    "graph form": lambda: relay.transform.ToGraphNormalForm(),
}


@settings(max_examples=share_of(12), deadline=None)
@given(steps=STEPS, name=st.sampled_from(list(PASSES)))
def test_the_order_of_the_program_counts(steps: Steps, name: str) -> None:
    mod = PASSES[name]()(tvm.IRModule.from_expr(program(steps)))
    for one in mod, relay.fromtext(mod.astext()):
        assert [int(value) for value in Evaluator(to_graph(one))("main")] == expected(steps)


def test_the_machine_runs_them() -> None:
    steps: Steps = [(True, 0, 0, 3), (False, 0, 0, 1), (True, 1, 1, 4)]
    found = relay.create_executor("vm", tvm.IRModule.from_expr(program(steps))).evaluate()()
    assert [int(one.numpy()) for one in found] == expected(steps)


def test_what_a_reference_holds_outlives_what_computes_meanwhile() -> None:
    x, cell = relay.var("x", shape=(64,)), relay.var("cell")
    kept = relay.RefWrite(cell, relay.exp(x))
    busy = relay.sum(relay.tanh(relay.sqrt(relay.abs(x))))
    body = relay.Let(relay.var("_"), kept, relay.Let(relay.var("busy"), busy, relay.RefRead(cell)))
    func = relay.Function((x,), relay.Let(cell, relay.RefCreate(x), body))
    data = np.linspace(-1, 1, 64, dtype="float32")
    found = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()(data)
    np.testing.assert_allclose(found.numpy(), np.exp(data), rtol=1e-5)


def test_types_and_arguments() -> None:
    kind = relay.RefType(relay.TensorType((3,)))
    cell = relay.var("cell", kind)
    assert cell.checked_type == kind and relay.RefRead(cell).checked_type == relay.TensorType((3,))
    assert relay.RefCreate(relay.const(1)).checked_type == relay.RefType(relay.scalar_type("int32"))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function((cell,), relay.RefRead(cell))))
    assert "%cell: ref(Tensor[(3), float32])" in mod.astext() and relay.fromtext(mod.astext())["main"].params[0].checked_type == kind
    held = tvm.nd.array(np.ones(3, "float32"))
    np.testing.assert_equal(relay.create_executor("vm", mod).evaluate()(RefValue(held)).numpy(), held.numpy())
    assert {Feature.fRefCreate, Feature.fRefRead, Feature.fRefWrite} < detect_feature(program([(True, 0, 0, 1)]))


def test_refused() -> None:
    x = relay.var("x", shape=(3,))
    with pytest.raises(TypeMismatchError, match="only references are read and written"):
        to_graph(relay.Function((x,), relay.RefRead(x)))
    with pytest.raises(DeclarationError, match="can't hold int32"):
        to_graph(relay.Function((x,), relay.RefWrite(relay.RefCreate(x), relay.const(1))))
    with pytest.raises(RelayTextError, match="ref_write doesn't take 1 values"):
        relay.fromtext("fn (%x: float32) { ref_write(ref(%x)) }")


def test_a_function_of_a_branch_reads_a_reference_that_nothing_else_reads_later() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
    def @main(%c: bool) -> int32 {
      let %r = ref(0);
      let %f = if (%c) { fn () -> int32 { ref_read(%r) } } else { fn () -> int32 { ref_read(%r) + 10 } };
      let %w = ref_write(%r, 1);
      let %g = if (%c) { %f() } else { %f() };
      %g
    }
    """)
    for condition, expected in (True, 1), (False, 11):
        assert int(relay.create_executor("vm", mod=mod).evaluate()(np.array(condition)).numpy()) == expected
