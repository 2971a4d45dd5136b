"""Cases of topi's operators: a call on arrays, and what NumPy says of it; the property that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.spaces import default_schedule
from tensorexpr.te.reference import evaluate
from tensorexpr.tir.dtype import to_numpy

from .operator_draws import Values

Array = NDArray[Any]
TARGET = tvm.target.Target("llvm -num-cores=1")


class Case(NamedTuple):
    """`make` takes a placeholder for each array and gives a tensor or several; `wanted` are their values."""

    make: Callable[..., Any]
    arrays: tuple[Array, ...]
    wanted: Any
    tolerance: float = 1e-4


def index(*parts: Any) -> Any:
    """What stands between brackets, of any length."""
    return parts


Maker = Callable[[Values], Case]
Table = dict[str, Maker]


def into(table: Table) -> Callable[[str], Callable[[Maker], Maker]]:
    """A decorator that enters what makes cases under a name."""

    def case(name: str) -> Callable[[Maker], Maker]:
        def register(function: Maker) -> Maker:
            table[name] = function
            return function

        return register

    return case


def same(found: Array, wanted: Any, tolerance: float) -> None:
    expected = np.asarray(wanted)
    assert found.shape == expected.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
    else:
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


def check(case: Case, is_compiled: bool = True) -> None:
    """The reference evaluator agrees with NumPy, and so does a program of the default schedule."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(case.arrays)]
    made = case.make(*inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    wanted = list(case.wanted) if isinstance(made, (list, tuple)) else [case.wanted]
    with np.errstate(all="ignore"):
        for found, one in zip(evaluate(outputs, dict(zip(inputs, case.arrays, strict=True))), wanted, strict=True):
            same(found, one, case.tolerance)
    if not is_compiled:
        return
    with TARGET:
        func = tvm.build(default_schedule([*inputs, *outputs], TARGET), [*inputs, *outputs], TARGET)
    results = [np.full([int(extent) for extent in out.shape], 77, to_numpy(out.dtype)) for out in outputs]
    func(*case.arrays, *results)
    for found, one in zip(results, wanted, strict=True):
        same(found, one, case.tolerance)


def check_table(table: Mapping[str, Maker], name: str, examples: int = 6) -> None:
    """The property of one row: every example by the reference evaluator, one in five compiled."""

    @st.composite
    def cases(draw: st.DrawFn) -> tuple[Case, bool]:
        values = Values(draw)
        with np.errstate(all="ignore"):
            return table[name](values), values.number(0, 4) == 0

    @settings(deadline=None, derandomize=True, max_examples=examples, phases=[Phase.generate])
    @given(cases())
    def agrees(case: tuple[Case, bool]) -> None:
        check(*case)

    agrees()
