"""Builders and runners of users, as the search loop measures with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...schedule.trace import Trace
from ...tune.measure import FAILED_COST, MeasureErrorNo, Measurer, Program
from ...tune.measure import MeasureResult as TimedResult
from ..template_space import TemplateSpace, point_of
from .measure import MeasureInput, create_measure_batch
from .measure_methods import measure_task


class UserMeasurer(Measurer):
    """Measures with a user's builder and runner, which see configurations; nothing is verified or timed again.

    Args:
        space: of the task.
        builder, runner: see `measure.Builder` and `measure.Runner`.
    """

    def __init__(self, space: TemplateSpace, builder: Any, runner: Any) -> None:
        super().__init__(measure_task(space))
        self._space = space
        self._measure = create_measure_batch(space.task, {"builder": builder, "runner": runner})

    def measure(self, programs: Sequence[Program]) -> Iterator[TimedResult]:
        """Results of programs, in their order."""
        sound = [program for program in programs if not program.refused]
        # a trace begins with the template's decisions, which name the point
        inputs = [self._input(program.trace) for program in sound]
        found = dict(zip((program.number for program in sound), self._measure(inputs) if inputs else [], strict=True))
        for program in programs:
            if program.refused:
                yield TimedResult((FAILED_COST,), MeasureErrorNo.INSTANTIATION_ERROR, program.refused, 0.0, 0.0, number=program.number)
                continue
            result = found[program.number]
            error_no = MeasureErrorNo(int(result.error_no))
            costs = tuple(map(float, result.costs)) if not error_no else (FAILED_COST,)
            # AutoTVM puts the error in place of the costs
            message = "" if not error_no else str(result.costs[0])
            made = TimedResult(costs, error_no, message, float(result.all_cost), float(result.timestamp), number=program.number)
            self.best_cost = min(self.best_cost, made.median)
            yield made

    def remeasure(self, *args: Any, **kwargs: Any) -> list[TimedResult]:
        """Nothing: only our workers time programs in turn."""
        return []

    def _input(self, trace: Trace) -> MeasureInput:
        return MeasureInput(self._space.task.target, self._space.task, self._space.config.get(point_of(trace)))
