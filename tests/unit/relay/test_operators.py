"""Each operator of Relay: its type, and what it computes, by the reference evaluator of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.ops.row import ROWS
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.relay.visitor import walk

from . import dynamic_cases, network_cases  # their cases join those of operator_cases
from .operator_cases import CASES, operands

assert network_cases is not None and dynamic_cases is not None
# Of random numbers only types are checked, in test_random.
RANDOM = {name for name in ROWS if name.startswith("random.")}


@pytest.mark.parametrize(("name", "spec", "call", "meaning"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_operator(name: str, spec: str, call: Callable[..., Any], meaning: Callable[..., Any] | None) -> None:
    data = operands(spec)
    variables = [relay.var(f"x{n}", shape=one.shape, dtype=str(one.dtype)) for n, one in enumerate(data)]
    found = call(relay, *variables)
    value = found.astuple() if isinstance(found, relay.TupleWrapper) else found
    result = np.asarray(Evaluator(to_graph(tvm.IRModule.from_expr(relay.Function(tuple(variables), value))))("main", *data))
    stated = value.checked_type
    assert str(result.dtype) == stated.dtype
    assert len(stated.shape) == result.ndim
    if meaning is not None:
        np.testing.assert_allclose(result, meaning(*data), 1e-4, 1e-5)
    used = {str(node.op) for node in walk(value) if isinstance(node, relay.Call)}
    assert used & {name, *(n for n, row in ROWS.items() if row is ROWS.get(name))} or name not in ROWS


def test_each_operator_has_a_case() -> None:
    assert {row.name for row in ROWS.values()} - RANDOM - {name for name, *_ in CASES} == set()
