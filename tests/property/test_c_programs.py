"""Random programs and expressions as C: without a warning, and what the interpreter gives. Several share a run of the compiler."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tensorexpr.lower.pipeline import lower_for_cpu
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import expectation_of, problem_of
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret

from ..c_compiler import C, in_c, needs_compiler, strictly
from ..effort import share_of
from .test_codegen_expressions import functions_of_expressions, same_bits
from .test_codegen_programs import programs

__all__ = ["strictly"]
pytestmark = [needs_compiler, pytest.mark.usefixtures("strictly")]
# Not shrunk: each step would run the compiler. The assertion names the function of several that differs.
_FEW = settings(
    deadline=None,
    derandomize=True,
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@_FEW
@given(st.lists(programs(), min_size=5, max_size=5))
def test_programs_in_c_equal_interpreted_ones(drawn: list[tuple[PrimFunc, list[Any], int]]) -> None:
    module = in_c({f"f{number}": func for number, (func, _, _) in enumerate(drawn)})
    for number, (func, arrays, count) in enumerate(drawn):
        expected, got = ([x.copy() for x in arrays] for _ in range(2))
        interpret(func, [*expected, count])
        module[f"f{number}"](*got, count)
        assert all((have == want).all() for have, want in zip(got, expected, strict=True)), func


@_FEW
@given(st.lists(functions_of_expressions(), min_size=5, max_size=5))
def test_expressions_in_c_equal_interpreted_ones(drawn: list[tuple[PrimFunc, list[Any]]]) -> None:
    module = in_c({f"f{number}": func for number, (func, _) in enumerate(drawn)})
    for number, (func, arrays) in enumerate(drawn):
        expected, got = ([x.copy() for x in arrays] for _ in range(2))
        interpret(func, expected)
        module[f"f{number}"](*got)
        assert same_bits(got, expected), func


def test_schedules_in_c_compute_what_is_declared() -> None:
    functions: dict[str, PrimFunc] = {}
    cases: list[tuple[Any, tuple[Tensor, ...]]] = []

    @settings(_FEW, max_examples=share_of(20))
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        dag = data.draw(compute_dags())
        schedule = data.draw(schedules(dag.outputs))
        name = f"f{len(cases)}"
        with C:
            ((_, functions[name]),) = lower_for_cpu(schedule, schedule.arguments(dag.tensors), name).functions_items()
        cases.append((schedule, tuple(dag.tensors)))

    draw()
    module = in_c(functions)
    for name, (schedule, tensors) in zip(functions, cases, strict=True):
        function = module[name]

        def run(arrays: list[Any], function: Any = function) -> None:
            function(*arrays)

        problem = problem_of(tensors, *expectation_of(tensors, 0, {}), run)
        assert problem is None, (name, problem, schedule.as_python())
