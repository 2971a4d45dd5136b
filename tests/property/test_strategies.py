"""The strategies draw what they promise, and all of it: a generator that stops making convolutions hides bugs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.schedule.te_schedule import create_schedule
from tensorexpr.te import ComputeOp, PlaceholderOp
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.testing.strategies import DagCase, Scope, compute_dags, conditions, int_expressions, scopes, shapes, value_at
from tensorexpr.testing.strategies.dags import LAYERS, MAX_ELEMENTS, extents_of
from tensorexpr.testing.strategies.schedules import applied
from tensorexpr.tir.expr import FloorDiv, FloorMod, IntImm, Max, Mod, Select
from tensorexpr.tir.rewriting import walk
from tests.effort import share_of


def collect(strategy: st.SearchStrategy[Any], examples: int) -> list[Any]:
    """What a strategy draws with a fixed seed."""
    drawn: list[Any] = []

    @settings(max_examples=examples, deadline=None, derandomize=True)
    @given(strategy)
    def draw(value: Any) -> None:
        drawn.append(value)

    draw()
    return drawn


STEMS = {
    "unary_float": {"relu", "tanh", "sigmoid", "absolute", "exp_small", "square", "shifted", "negated"},
    "unary_int": {"floordiv", "floormod", "plus", "clipped", "to_float", "chosen"},
    "binary": {"added", "subtracted", "multiplied", "larger"},
    "reduction": {"reduced"},
    "argmax": {"argmax"},
    "matmul": {"matmul"},
    "convolution": {"conv"},
    "transpose": {"transposed"},
    "reshape": {"flattened"},
    "slice": {"sliced"},
    "cast": {"cast"},
    "scan": {"scan"},
    "extern": {"extern"},
    "slices": {"windows", "blocks"},
}


def test_every_layer_is_drawn_with_all_kinds_of_shapes() -> None:
    cases: list[DagCase] = collect(compute_dags(layers=tuple(LAYERS)), 300)
    ops = [op for case in cases for op in post_dfs_order(case.outputs)]
    stems = {op.name.rstrip("0123456789").rstrip("_") for op in ops}
    assert set(STEMS) == set(LAYERS)
    assert [layer for layer, names in STEMS.items() if not names & stems] == []
    extents = {extent for op in ops for extent in extents_of(op.output(0))}
    assert {1, 2, 3, 5, 7, 13} <= extents and {0, 1, 2, 3} <= {op.output(0).ndim for op in ops}
    assert {"float32", "float64", "int32", "int8"} <= {op.output(0).dtype for op in ops}
    assert any(len(case.results) == 2 for case in cases)


def test_drawn_computations_are_small_and_uniquely_named() -> None:
    for case in collect(compute_dags(), 100):
        ops = post_dfs_order(case.outputs)
        assert len({op.name for op in ops}) == len(ops)
        assert any(isinstance(op, ComputeOp) for op in ops)
        assert all(_size(extents_of(t)) <= MAX_ELEMENTS for t in case.results)
        assert set(case.inputs) == {op.output(0) for op in ops if isinstance(op, PlaceholderOp)}
        assert case.tensors == (*case.inputs, *case.results) and "te.serialize.loads(" in repr(case)


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def test_shapes_respect_their_limits() -> None:
    drawn = collect(shapes(1, 3, 100, allow_empty=True), 200)
    assert all(1 <= len(shape) <= 3 and _size(shape) <= 100 for shape in drawn)
    assert any(0 in shape for shape in drawn) and any(len(shape) == 3 for shape in drawn)


@st.composite
def expressions_at_points(draw: st.DrawFn) -> tuple[Scope, Any, Any, dict[Any, int]]:
    scope = draw(scopes())
    return scope, draw(int_expressions(scope)), draw(conditions(scope)), draw(scope.points())


@settings(max_examples=share_of(100), deadline=None, derandomize=True)
@given(expressions_at_points())
def test_expressions_have_values_everywhere(drawn: tuple[Scope, Any, Any, dict[Any, int]]) -> None:
    scope, expr, condition, point = drawn
    for var, low, high in scope.ranges:
        domain = scope.domains()[var]
        assert isinstance(domain.min, IntImm) and isinstance(domain.extent, IntImm)
        assert low <= point[var] <= high and domain.min.value + domain.extent.value - 1 == high
    assert int(value_at(expr, point)) == value_at(expr, point)
    assert value_at(condition, point) in (True, False) and condition.dtype == "bool" and expr.dtype == "int32"


def test_all_integer_operators_are_drawn() -> None:
    kinds = {type(node) for _, expr, _, _ in collect(expressions_at_points(), 150) for node in walk(expr)}
    assert {FloorDiv, FloorMod, Mod, Max, Select} <= kinds


def test_an_output_whose_parts_leave_holes_is_no_legal_step() -> None:
    """Of `B`, which the function returns, `C` reads every other element: inside of C's loop half of it would never be computed."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[i * 2], name="C")
    plain, attached = (create_schedule([b.op, c.op]) for _ in range(2))
    attached[b].compute_at(attached[c], c.op.axis[0])
    assert applied(plain, attached.trace.steps[-1]) is None
    assert applied(create_schedule([c.op]), attached.trace.steps[-1]) is not None
