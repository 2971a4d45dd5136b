"""A template's configurations as a space of the search loop: a row has the number of each knob's candidate.

A row's program is the trace that the template's function makes with these decisions, behind the decisions themselves (`Knob` steps). It is
made when it is asked for. For models that look at loops, programs of a population that differ in sizes only become one sketch whose sizes
are open, so that their features are computed as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..dataclass import dataclass, replace
from ..errors import ScheduleError, TensorExprError
from ..schedule.given_layouts import declared_arguments
from ..schedule.legality import check_tree
from ..schedule.steps import Knob, SampleCategorical, Split, Step
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..target import Target
from ..te.identity import dag_key
from ..te.operation import Operation, PlaceholderOp
from ..te.serialize import dag_to_json
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tune.features import Extracted, per_store, per_store_names
from ..tune.features.nest import Array
from ..tune.population import Decision, every_row, mutate, neighbours, sample, unique_rows
from ..tune.space import Computed, IntArray, Rng, Sketch
from .errors import InstantiationError
from .task.knobs import SplitSpace, TransformSpace, entity_features
from .task.space import ConfigEntity, ConfigSpace
from .task.task import Task

FEATURE_TYPES = ("itervar", "knob", "curve")
# Rows drawn for each that is wanted: filters leave some out, and some are drawn twice.
_DRAWN = 8
# Programs that are kept; a search asks again for those of its population.
_KEPT = 1 << 13
# Exchanges of factors between the parts of a split are listed up to so many candidates; else the nearest in the list are neighbours.
_LISTED_MOVES = 4096
# Features of a row, its analytic cost, and whether it makes a program.
_Seen = tuple[Array, float, bool]
_NOTHING: _Seen = (np.zeros(0), 1.0, False)
# Stores of a program whose curves of arithmetic intensity a model sees.
_CURVES = 3


@dataclass(frozen=True, eq=False)
class Instance:
    """What a configuration makes: a schedule and its arguments."""

    schedule: Schedule
    args: tuple[Tensor, ...]

    @staticmethod
    def of(schedule: Schedule, args: Sequence[Tensor]) -> Instance:
        """What a template gives. Arguments that its schedule takes in other layouts stand here as they were declared: those differ from
        configuration to configuration, and what is computed doesn't.

        s[kernel].transform_layout(lambda o, i: [o // 16, i, o % 16]) ; return s, s.arguments([kernel, ...])
        """
        return Instance(schedule, tuple(declared_arguments(schedule.tree, args)))

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations whose results are arguments."""
        return tuple(arg.op for arg in self.args if not isinstance(arg.op, PlaceholderOp))


class TemplateSpace:
    """The space of a task (see `tune.space.Space`).

    Args:
        task: with its configurations.
        feature_type: what models see: "itervar", the loops of programs; "knob", the knobs; "curve", how arithmetic intensity grows along
            the loops; None where no model looks.
    """

    preferred_row: tuple[int, ...] | None = None

    def __init__(self, task: Task, feature_type: str | None = None) -> None:
        self.task = task
        self.feature_type = feature_type
        self.config: ConfigSpace = task.config_space
        self._programs: dict[tuple[int, ...], Instance | str] = {}
        self._known: dict[str, dict[tuple[int, ...], _Seen]] = {}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The knobs."""
        return tuple(Decision(n, n, *_candidates(space)) for n, space in enumerate(self.config.space_map.values()))

    @cached_property
    def example(self) -> Instance:
        """A program that stands for the computation: its arguments are what programs are measured on.

        Raises:
            InstantiationError: if no configuration makes one.
        """
        schedule, args = self.task.example or self.task.instantiate(self.config.get(self.config.get_rand_index()))
        made = Instance.of(schedule, args)
        _check_arguments(made)
        return made

    @cached_property
    def _key(self) -> str:
        return dag_key(self.example.args)

    @property
    def size(self) -> float:
        """The number of configurations, those that filters leave out included."""
        return float(self.config.range_length)

    def row(self, index: int) -> tuple[int, ...]:
        """The row of a point."""
        return tuple(self.config.point2knob(index))

    def index(self, row: Sequence[int]) -> int:
        """The point of a row."""
        return self.config.knob2point([int(place) for place in row])

    def entity(self, row: Sequence[int]) -> ConfigEntity:
        """The configuration of a row."""
        return self.config.get(self.index(row))

    def sample(self, count: int, rng: Rng) -> IntArray:
        """Rows at random that pass the filters; all of them if there are no more than `count`."""
        if self.size <= count:
            return self._passing(every_row(self))
        return self._passing(sample(self, count, rng))

    def drawn(self, count: int, rng: Rng, target: Target) -> IntArray:
        """Up to `count` different rows at random that make programs."""
        found: list[IntArray] = []
        for row in unique_rows(self.sample(_DRAWN * count, rng)):
            if len(found) < count and isinstance(self._instance(tuple(map(int, row))), Instance):
                found.append(row)
        return np.array(found, np.int64).reshape(len(found), len(self.decisions))

    def mutate(self, rows: IntArray, rng: Rng) -> IntArray:
        """Each row with one knob moved; as it was where the filters don't pass that."""
        made = mutate(self, rows, rng)
        return np.where(self._passes(made)[:, None], made, rows)

    def neighbours(self, row: Sequence[int]) -> tuple[IntArray, IntArray]:
        """The rows with one knob moved, and which."""
        rows, axes = neighbours(self, row)
        passing = self._passes(rows)
        return rows[passing], axes[passing]

    def _passes(self, rows: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if not self.config.has_filters:
            return np.ones(len(rows), np.bool_)
        return np.array([self.config.is_index_valid(self.index(row)) for row in rows], np.bool_)

    def _passing(self, rows: IntArray) -> IntArray:
        return np.asarray(rows[self._passes(rows)], np.int64)

    def instance(self, row: Sequence[int]) -> Instance:
        """What a row makes.

        Raises:
            InstantiationError: if it makes no program.
        """
        made = self._instance(tuple(int(place) for place in row))
        if isinstance(made, str):
            raise InstantiationError(made)
        return made

    def _instance(self, row: tuple[int, ...]) -> Instance | str:
        found = self._programs.get(row)
        if found is None:
            try:
                schedule, args = self.task.instantiate(self.entity(row))
                found = Instance.of(schedule, args)
                _check_arguments(found)
                check_tree(schedule.tree)
            except TensorExprError as error:
                # failures are kept too: to find one out again takes as long as a program
                found = str(error)
            if len(self._programs) >= _KEPT:
                self._programs.clear()
            self._programs[row] = found
        return found

    def program(self, row: Sequence[int]) -> Trace | Computed:
        """The trace of a row: its decisions, then what they make; with its computation if that depends on them.

        Raises:
            InstantiationError: if it makes none.
        """
        made = self.instance(row)
        knobs = zip(self.config.space_map.items(), row, strict=True)
        decided = tuple(Knob(name, len(space), int(place)) for (name, space), place in knobs)
        trace = Trace((*decided, *made.schedule.trace.steps))
        return trace if dag_key(made.args) == self._key else Computed(trace, dag_to_json(made.args))

    def features(self, rows: IntArray, target: Target) -> Extracted:
        """What a model sees of a population, its analytic cost, and which rows make programs."""
        if self.feature_type == "knob":
            columns = [table[rows[:, knob]] for knob, table in enumerate(self._knob_numbers)]
            seen = np.concatenate(columns, axis=1) if columns else np.zeros((len(rows), 0))
            return Extracted(seen, np.ones(len(rows)), self._passes(rows))
        if self.feature_type is None:
            return Extracted(np.zeros((len(rows), 0)), np.ones(len(rows)), self._passes(rows))
        return self._features_of_programs(rows, target)

    @cached_property
    def _knob_numbers(self) -> list[Any]:
        """For each knob the numbers of its candidates [n, width]."""
        tables = []
        for space in self.config.space_map.values():
            numbers = [entity_features(entity) for entity in space.entities]
            width = max(map(len, numbers))
            tables.append(np.array([row + [0.0] * (width - len(row)) for row in numbers]))
        return tables

    def _features_of_programs(self, rows: IntArray, target: Target) -> Extracted:
        listed = [tuple(row) for row in rows.tolist()]
        known = self._known.setdefault(str(target), {})
        if len(known) > _KEPT:
            known.clear()
        self._extract([row for row in dict.fromkeys(listed) if row not in known], target, known)
        width = max((len(known[row][0]) for row in listed), default=0)
        features, cycles, valid = np.zeros((len(rows), width)), np.ones(len(rows)), np.zeros(len(rows), np.bool_)
        for number, row in enumerate(listed):
            found, cycles[number], valid[number] = known[row]
            features[number, : len(found)] = found
        return Extracted(features, cycles, valid)

    def _extract(self, rows: Sequence[tuple[int, ...]], target: Target, known: dict[tuple[int, ...], _Seen]) -> None:
        """Find out what a model sees of rows, those that differ in sizes only all at once. A search asks for most rows many times."""
        groups: dict[Any, list[tuple[tuple[int, ...], Instance]]] = {}
        for row in rows:
            known[row] = _NOTHING
            made = self._instance(row)
            if isinstance(made, Instance):
                # computations must agree too: a knob may change a size that no step of the schedule tells
                groups.setdefault((_shapes(made), _skeleton(made.schedule.trace)), []).append((row, made))
        for listed in groups.values():
            part = self._seen([made for _, made in listed], target)
            found = zip(part.features, part.cycles.tolist(), part.valid.tolist(), strict=True)
            known.update(zip((row for row, _ in listed), found, strict=True))

    def _seen(self, made: Sequence[Instance], target: Target) -> Extracted:
        """What a model sees of programs that differ in sizes only. Where that can't be told with open sizes, of one after the other."""
        try:
            sketch, rows = as_sketch(made)
            found = sketch.features(rows, target)
            if self.feature_type == "curve":
                found = replace(found, features=_curves(sketch, rows))
            return found
        except ScheduleError:
            if len(made) == 1:
                raise
        each = [self._seen([one], target) for one in made]
        return Extracted(*(np.concatenate([getattr(one, name) for one in each]) for name in ("features", "cycles", "valid")))


def _candidates(space: TransformSpace) -> tuple[IntArray, bool]:
    """What a knob's candidates stand for, and whether neighbours in their list are much alike."""
    values = space.values()
    if isinstance(space, SplitSpace):
        near = space.num_output == 2 or space.policy != "factors" or len(space) > _LISTED_MOVES
        return values, near
    options = [getattr(entity, "val", None) for entity in space.entities]
    numbers = [value for value in options if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return values, len(numbers) == len(options) > 2 and numbers == sorted(numbers)


def _check_arguments(made: Instance) -> None:
    if made.schedule.outputs != made.outputs:
        wanted, given = ([op.name for op in ops] for ops in (made.schedule.outputs, made.outputs))
        raise InstantiationError(
            f"a template gives its schedule with the inputs and the results as arguments; the schedule computes {wanted}, and the computed "
            f"tensors among the arguments are {given}"
        )


def _shapes(made: Instance) -> tuple[Any, ...]:
    """Names and shapes of the computation: programs of which they differ are no rows of one sketch."""
    stages = made.schedule.initial_tree.in_order()
    return tuple((stage.name, *(as_int(size) for size in stage.origin.output_shape(0))) for stage in stages)


def _skeleton(trace: Trace) -> tuple[Any, ...]:
    """A trace without the sizes of its splits."""
    return tuple(_without_sizes(step) for step in trace)


def _without_sizes(step: Step) -> Any:
    if isinstance(step, Split):
        return replace(step, factors=tuple(0 if isinstance(factor, int) else factor for factor in step.factors))
    return step


def as_sketch(made: Sequence[Instance]) -> tuple[Sketch, IntArray]:
    """Programs that differ in sizes of splits only, as one sketch in which these are open, and its rows.

    split(i, [None, 8]) ; split(j, [None, 16])      v0 = sample(4, 8) ; split(i, [None, v0]) ; split(j, [None, 16])
    split(i, [None, 4]) ; split(j, [None, 16])  ->  rows [1], [0]
    """
    first = made[0].schedule
    steps: list[Step] = list(first.trace.steps)
    samples: list[Step] = []
    columns: list[Any] = []
    for place, step in enumerate(steps):
        if not isinstance(step, Split):
            continue
        factors: list[Any] = list(step.factors)
        for part, factor in enumerate(factors):
            sizes = [_factors(other, place)[part] for other in made] if isinstance(factor, int) else []
            if len(set(sizes)) > 1:
                # a size that all programs share stays a number: a sample of one candidate would only add a column
                values, column = np.unique(np.array(sizes, np.int64), return_inverse=True)
                factors[part] = (len(samples), 0)
                samples.append(SampleCategorical(tuple(map(int, values))))
                columns.append(column.reshape(-1))
        steps[place] = replace(step, factors=tuple(factors))
    if not columns:
        # nothing is open, so that the tree which the template made is the sketch's: to replay its trace costs as much as to make it
        return Sketch("template", made[0].outputs, first.tree, Trace()), np.zeros((len(made), 0), np.int64)
    sketch = Sketch("template", made[0].outputs, first.initial_tree, Trace((*samples, *steps)))
    return sketch, np.asarray(np.stack(columns, axis=1), np.int64)


def _factors(made: Instance, place: int) -> tuple[Any, ...]:
    step = made.schedule.trace.steps[place]
    assert isinstance(step, Split), "programs of one skeleton"
    return step.factors


def _curves(sketch: Sketch, rows: IntArray) -> Any:
    """The curves of arithmetic intensity of the last stores of programs [n, f]."""
    names = per_store_names()
    wanted = [n for n, name in enumerate(names) if name.startswith("arith_intensity_curve")]
    made = per_store(sketch, sketch.bodies, rows).features[:, -_CURVES:, wanted]
    blank = np.zeros((len(rows), _CURVES - made.shape[1], len(wanted)))
    return np.concatenate([blank, made], axis=1).reshape(len(rows), -1)


def point_of(trace: Trace) -> int:
    """The number of the configuration that a trace begins with."""
    knobs = [step for step in trace if isinstance(step, Knob)]
    # as `ConfigSpace.knob2point`, the first knob fastest
    return sum(step.decision * prod(other.candidates for other in knobs[:place]) for place, step in enumerate(knobs))
