"""Property 28: NaN, infinities and signed zeros go through arithmetic, max, min and rewrites as the reference has them, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.build import build
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.data import Array
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.intrin import select
from tests.effort import share_of

NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0e38, -3.0e38, 65504.0)
DTYPES = ("float32", "float64", "float16")
Binary = Callable[[Any, Any], Any]

# Results that IEEE 754 defines to the last bit, and what an algebra of real numbers would rewrite. Sums of products aren't
# among them: machine code may round once for both.
OPERATIONS: dict[str, Binary] = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "zero plus": lambda x, y: x + 0.0,
    "minus zero": lambda x, y: x - 0.0,
    "zero minus": lambda x, y: 0.0 - x,
    "plus negative zero": lambda x, y: x + (-0.0),
    "times zero": lambda x, y: x * 0.0,
    "times one": lambda x, y: x * 1.0,
    "times minus one": lambda x, y: x * -1.0,
    "over one": lambda x, y: x / 1.0,
    "over itself": lambda x, y: x / x,
    "zero over": lambda x, y: 0.0 / x,
    "minus itself": lambda x, y: x - x,
    "there and back": lambda x, y: (x + y) - y,
    "product and quotient": lambda x, y: x * y / y,
    "negated twice": lambda x, y: (-x) * -1.0,
    "maximum": te.max,
    "minimum": te.min,
    "maximum with zero": lambda x, y: te.max(x, 0.0 * y),
    "maximum with itself": lambda x, y: te.max(x, x),
    "clipped": lambda x, y: te.max(te.min(x, 1.0), -1.0),
    "maximum of minimum": lambda x, y: te.max(te.min(x, y), y),
    "less": lambda x, y: select(x < y, x, y),
    "not less": lambda x, y: select(te.any(x >= y), x, y),
    "not": lambda x, y: te.if_then_else(te.all(x < y), 1.0, 2.0),
    "equal to itself": lambda x, y: select(x.equal(x) if hasattr(x, "equal") else x <= x, 1.0, y),
    "absolute": lambda x, y: te.abs(x),
    "floor": lambda x, y: te.floor(x),
    "root": lambda x, y: te.sqrt(x),
}


def bits(array: Array) -> Array:
    """The bits of an array, every NaN the same one: which NaN a machine gives is not defined."""
    unsigned = array.view(f"uint{array.dtype.itemsize * 8}").copy()
    unsigned[np.isnan(array)] = np.iinfo(unsigned.dtype).max
    return unsigned


def assert_same_bits(found: Array, wanted: Array, what: str, *inputs: Array) -> None:
    differs = np.flatnonzero(bits(found) != bits(wanted))
    if differs.size:
        at = int(differs[0])
        raise AssertionError(f"{what}: {found.flat[at]!r}, not {wanted.flat[at]!r}, of {[x.flat[at] for x in inputs]}")


def run_all_ways(s: Schedule, args: list[Tensor], arrays: list[Array], wanted: Array, what: str) -> None:
    with np.errstate(all="ignore"):
        for phase in (0, 3):
            found = np.full_like(wanted, 5)
            interpret(lower(s, args, upto=phase)["main"], [*arrays, found])
            assert_same_bits(found, wanted, f"{what}, phase {phase}", *arrays)
    found = np.full_like(wanted, 5)
    build(s, args)(*arrays, found)
    assert_same_bits(found, wanted, f"{what}, machine code", *arrays)


def pairs(dtype: str) -> tuple[Array, Array]:
    with np.errstate(over="ignore"):
        both = np.array(list(product(NUMBERS, NUMBERS))).astype(dtype)
    return both[:, 0].copy(), both[:, 1].copy()


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_28_every_pair_of_special_values(name: str, dtype: str, lanes: int) -> None:
    x, y = pairs(dtype)
    a, b = te.placeholder(x.shape, dtype, name="A"), te.placeholder(y.shape, dtype, name="B")
    c = te.compute(x.shape, lambda i: OPERATIONS[name](a[i], b[i]), name="C")
    s = create_schedule(c.op)
    if lanes > 1:
        s[c].vectorize(s[c].split(c.op.axis[0], factor=lanes)[1])
    with np.errstate(all="ignore"):
        wanted = evaluate([c], {a: x, b: y})[0]
    args = [t for t in (a, b) if t in c.op.input_tensors]
    run_all_ways(s, [*args, c], [{a: x, b: y}[t] for t in args], wanted, name)


@pytest.mark.parametrize("reducer", [te.max, te.min])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["serial", "split", "lanes", "rfactor"])
def test_28_extrema_over_special_values(reducer: Any, dtype: str, how: str) -> None:
    """Exact in any order, and with NaN wherever the order is that of the definition: max(x, y) is y if either is NaN."""
    with np.errstate(over="ignore"):
        rows = np.array([NUMBERS, NUMBERS[::-1], [v if not np.isnan(v) else 2.0 for v in NUMBERS]]).astype(dtype)
    a = te.placeholder(rows.shape, dtype, name="A")
    k = te.reduce_axis((0, rows.shape[1]), name="k")
    if how in ("lanes", "rfactor"):
        rows[np.isnan(rows)] = 2.0
    b = te.compute((3,), lambda i: reducer(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    if how != "serial":
        parts = s[b].split(k, factor=4)
        if how == "lanes":
            s[b].vectorize(parts[1])
        elif how == "rfactor":
            s.rfactor(b, parts[1])
    wanted = evaluate([b], {a: rows})[0]
    for run in range(2):
        found = np.full(3, 5, dtype)
        if run:
            build(s, [a, b])(rows, found)
        else:
            interpret(lower(s, [a, b], upto=3)["main"], [rows, found])
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(found, wanted)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.data())
def test_28_moving_values_changes_no_bit(data: st.DataObject) -> None:
    """Programs that only move values: every schedule gives the bits of the plain one."""
    dag = data.draw(compute_dags(layers=("transpose", "reshape", "slice"), dtypes=("float32", "float64")))
    arrays = [np.resize(np.array(NUMBERS), tuple(int(str(e)) for e in t.shape)).astype(t.dtype) for t in dag.inputs]
    found = []
    for schedule in (create_schedule(list(dag.outputs)), data.draw(schedules(dag.outputs))):
        outputs = [np.full(tuple(int(str(e)) for e in t.shape), 5, t.dtype) for t in dag.results]
        build(schedule, list(dag.tensors))(*arrays, *outputs)
        found.append(outputs)
    for plain, scheduled in zip(*found, strict=True):
        if plain.dtype.kind == "f":
            assert_same_bits(scheduled, plain, "scheduled")
        else:
            np.testing.assert_array_equal(scheduled, plain)
