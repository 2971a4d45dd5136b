"""Loop extents and strides of a sketch as arrays over a population.

The same walk as bound inference, on numbers: consumers first, a stage at a loop computes the box that its readers
touch inside that loop. Fused loops are taken apart again, since fusing does not change what is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...arith.linear import linear_form
from ...dataclass import dataclass, field, replace
from ...errors import InternalError
from ...schedule.legality import real_readers
from ...schedule.thread_legality import shares
from ...schedule.tree import At, FuseRelation, Inline, LoopKind, ScheduleTree, SplitRelation, StageNode
from ...te.dependent_axes import dependent_axes
from ...tir.expr import Add, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, ProducerLoad, Sub, Var
from ...tir.rewriting import walk
from ...tir.thread import HARDWARE_TAGS, VIRTUAL_TAGS

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Bodies = Mapping[int, tuple[PrimExpr, ...]]


class Sampled(Protocol):
    """What features ask of a sketch: its tree with variables where decisions are open, and their values for a population."""

    @property
    def tree(self) -> ScheduleTree:
        """Stages and loops."""

    def sample_values(self, rows: IntArray) -> dict[int, IntArray]:
        """Sample number -> its values [n, parts] for a population [n, d]."""


class Form(dict[int, float]):
    """An affine index: the coefficient of each root axis.

    Args:
        coefficients: by axis.
        period: s for an index `x % s`, else 0. A loop that moves x by a multiple of s doesn't move it.
    """

    __slots__ = ("period",)

    def __init__(self, coefficients: Mapping[int, float], period: int = 0) -> None:
        super().__init__(coefficients)
        self.period = period

    def step(self, axis: int, stride: Array) -> Array:
        """How far the index moves while an axis of it moves by `stride`."""
        moved = np.asarray(abs(self[axis]) * stride, float)
        return np.where(moved % self.period == 0, 0.0, moved) if self.period else moved


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop around a stage: its extent, and how far one iteration moves each root axis of that stage."""

    extent: Array
    strides: Mapping[int, Array]
    reduction: bool
    kind: LoopKind
    own: bool
    thread: str = ""  # what it is bound to, such as "threadIdx.x"


@dataclass(frozen=True, eq=False)
class StageNest:
    """All loops around the statement of a stage, outermost first, and what the statement reads."""

    stage: StageNode
    loops: tuple[Loop, ...]
    region: Mapping[int, Array]
    loads: tuple[ProducerLoad, ...]
    body: tuple[PrimExpr, ...]
    unroll_step: Array
    ends: tuple[int, ...] = ()  # where each loop as it is written ends among `loops`, which has the parts of fused ones
    extents: Mapping[int, Array] = field(default_factory=dict)  # of all axes
    group: float = 1.0  # iterations of the reduction that one instruction sums, see `instructions`

    @cached_property
    def in_tile(self) -> npt.NDArray[np.bool_]:
        """[n, m]: which loops make the register tile: the stage's own inside of the reduction, and around them what is written out with
        them. Loops of one iteration are none, so that it differs from program to program where the tile ends."""
        count = len(self.unroll_step)
        inside = np.zeros((count, len(self.loops)), bool)
        still, unrolled = np.ones(count, bool), np.zeros(count, bool)
        for place in range(len(self.loops) - 1, -1, -1):
            loop = self.loops[place]
            is_loop = loop.extent > 1
            # a loop of a consumer runs the whole statement again: its iterations share no accumulators
            if not loop.own:
                still = still & ~is_loop
            # `for k: for i: for j` ends at k; of `for i: for k (unroll): for j` i is no part either, unless it is written out with k
            elif loop.kind is not LoopKind.UNROLL:
                still = still & ~(is_loop & (unrolled | loop.reduction))
            if not still.any():
                break
            unrolled = unrolled | (is_loop & loop.reduction)
            inside[:, place] = still
        return inside


_USUAL_EXTENT = 16  # of a reduction whose length only the data or the element says


@dataclass(frozen=True, eq=False)
class _Evaluator:
    """Numbers of the extents and factors in a tree, whose variables are sampled values."""

    count: int
    values: Mapping[Var, Array]

    def __call__(self, expr: Any) -> Array:
        """The value of an expression over constants and sampled variables."""
        if isinstance(expr, (int, IntImm)):
            return np.full(self.count, float(int(expr)))
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        if isinstance(expr, Cast):  # of a factor to the dtype of an extent
            return self(expr.value)
        found = _OPERATIONS.get(type(expr))
        if found is None:
            raise InternalError(f"{expr} is no number that follows from sampled values")
        return np.asarray(found(self(expr.a), self(expr.b)), float)


_OPERATIONS: Mapping[type[Any], Callable[[Array, Array], Array]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Min: np.minimum,
    Max: np.maximum,
    FloorDiv: lambda a, b: np.floor(a / b),
    FloorMod: np.mod,
}


def sampled_values(sketch: Sampled, rows: IntArray) -> dict[Var, Array]:
    """[n, 1] per variable of an open decision: its values in a population."""
    values: dict[Var, Array] = {}
    for sample, numbers in sketch.sample_values(rows).items():
        for part, var in enumerate(sketch.tree.samples[sample]):
            if isinstance(var, Var):
                values[var] = numbers[:, part : part + 1].astype(float)
    return values


def nests(sketch: Sampled, bodies: Bodies, rows: IntArray, trimmed: bool = False) -> list[StageNest]:
    """The nests of all stages that are computed, producers first.

    Args:
        bodies: the stages' bodies without reads of inlined stages.
        rows: the population [n, d].
        trimmed: count the iterations that do something only, where a part of a split is longer than what is split: the guards
            of the others hold for none of theirs.
    """
    tree = sketch.tree
    values = {var: numbers[:, 0] for var, numbers in sampled_values(sketch, rows).items()}
    builder = _NestBuilder(tree, bodies, real_readers(tree), _Evaluator(len(rows), values), trimmed, {}, {})
    # Consumers first: where a stage is computed, its consumer's loops and what these read say how much of it each visit takes.
    for stage in reversed(tuple(tree.in_order())):
        if stage.has_loops and not isinstance(stage.attach, Inline):  # an extern costs the same in every candidate
            builder.visit(stage)
    return [builder.finished[number] for number in tree.order if number in builder.finished]


@lru_cache(maxsize=256)
def _loads(body: tuple[PrimExpr, ...]) -> tuple[ProducerLoad, ...]:
    """What a statement reads, each place once."""
    return tuple(dict.fromkeys(n for value in body for n in walk(value) if isinstance(n, ProducerLoad)))


@dataclass(frozen=True, eq=False)
class _NestBuilder:
    tree: ScheduleTree
    bodies: Bodies
    readers: Mapping[int, tuple[StageNode, ...]]
    evaluate: _Evaluator
    trimmed: bool
    finished: dict[int, StageNest]
    axis_loops: dict[tuple[int, int], int]  # (stage, leaf axis) -> how many loops of the nest lie up to and including it

    def visit(self, stage: StageNode) -> None:
        """Find extents, strides and the path of one stage."""
        region, outer = self._placement(stage)
        extents, strides = self._axes(stage, region)
        loops = list(outer)
        # of the consumer's loops those that lie around this stage
        ends = [end for end in self.finished[stage.attach.stage].ends if end <= len(outer)] if isinstance(stage.attach, At) else []
        for axis in stage.leaf:
            loops.extend(self._expanded(stage, axis, extents, strides))
            self.axis_loops[stage.id, axis] = len(loops)
            ends.append(len(loops))
        body = self.bodies[stage.id]
        made = StageNest(stage, tuple(loops), region, _loads(body), body, self._unroll_step(stage), tuple(ends), extents)
        self.finished[stage.id] = made

    def _unroll_step(self, stage: StageNode) -> Array:
        for axis in stage.leaf:
            for key, value in stage.mark(axis).pragmas:
                if key == "auto_unroll_max_step":
                    return self.evaluate(value)
        return np.zeros(self.evaluate.count)

    def _placement(self, stage: StageNode) -> tuple[dict[int, Array], list[Loop]]:
        """The extents of the root axes and the loops around the stage."""
        # of no iterations as of one: there is nothing to weigh, and shares of it are numbers
        region = {axis: np.maximum(self.evaluate(extent), 1.0) for axis, extent in _extents(stage).items()}
        if not isinstance(stage.attach, At):
            return region, []
        depth = self.axis_loops[stage.attach.stage, stage.attach.axis]
        around = self.finished[stage.attach.stage].loops[:depth]
        scope = scope_of(stage, around)
        own_tags = [mark.thread.tag for mark in stage.marks.values() if mark.thread is not None]
        outer: list[Loop] = []
        links: dict[int, Form] | None = None
        # One element at least; of several readers the widest counts, as one visit serves them all.
        touched = {axis: np.ones(self.evaluate.count) for axis in stage.spatial}
        for reader in self.readers[stage.id]:
            nest = self.finished[reader.id]
            relaxed = tuple(loop for loop in nest.loops[:depth] if shares(scope, loop.thread))
            for load in self._reads(nest, stage):
                forms = access_forms(load, nest.stage)
                if links is None:  # the reader is under these loops too, so that they move it and what it reads
                    around = nest.loops[:depth]
                    links = {axis: form or Form({}) for axis, form in zip(stage.spatial, forms, strict=True)}
                for axis, form in zip(stage.spatial, forms, strict=True):
                    # an index that isn't affine may be anywhere
                    span = region[axis] if form is None else _span((*relaxed, *nest.loops[depth:]), form)
                    touched[axis] = np.maximum(touched[axis], np.minimum(span, region[axis]))
        for loop in around:
            if shares(scope, loop.thread):  # it is one for all threads, who compute it together or each for itself
                together = loop.thread in VIRTUAL_TAGS or any(tag == loop.thread for tag in own_tags)
                extent = np.ones_like(loop.extent) if together else loop.extent
                outer.append(Loop(extent, {}, loop.reduction, loop.kind, own=False, thread=loop.thread))
                continue
            moved = {axis: _moved(loop, form) for axis, form in (links or {}).items() if any(root in loop.strides for root in form)}
            outer.append(Loop(loop.extent, moved, loop.reduction, loop.kind, own=False, thread=loop.thread))
        return {**region, **touched}, outer

    def _reads(self, nest: StageNest, stage: StageNode) -> Iterator[ProducerLoad]:
        return (load for load in nest.loads if self.tree.producer(load).id == stage.id)

    def _axes(self, stage: StageNode, region: Mapping[int, Array]) -> tuple[dict[int, Array], dict[int, dict[int, Array]]]:
        extents = dict(region)
        one = np.ones(self.evaluate.count)
        strides: dict[int, dict[int, Array]] = {axis: {axis: one} for axis in region}
        for relation in stage.relations:
            if isinstance(relation, FuseRelation):
                extents[relation.fused] = np.prod([extents[part] for part in relation.parts], axis=0)
                # one step of a fused loop moves its innermost part
                strides[relation.fused] = dict(strides[relation.parts[-1]])
                continue
            factors = [None if factor is None else self.evaluate(factor) for factor in relation.factors]
            if relation.balanced:
                factors = _balanced(extents[relation.parent], factors)
            known = np.prod([factor for factor in factors if factor is not None], axis=0)
            step = one
            # from within: of 24 = 2 * 3 * 4 the parts move their parent by 1, 4 and 12 from right to left
            for part, factor in reversed(list(zip(relation.parts, factors, strict=True))):
                extents[part] = np.ceil(extents[relation.parent] / known) if factor is None else factor
                if self.trimmed and stage.mark(part).kind is not LoopKind.VECTORIZE:  # lanes are masked, not left out
                    extents[part] = np.minimum(extents[part], np.maximum(np.ceil(extents[relation.parent] / step), 1.0))
                strides[part] = {root: stride * step for root, stride in strides[relation.parent].items()}
                step = step * extents[part]
        return extents, strides

    def _expanded(
        self, stage: StageNode, axis: int, extents: Mapping[int, Array], strides: Mapping[int, dict[int, Array]]
    ) -> Iterator[Loop]:
        mark = stage.mark(axis)
        thread = "" if mark.thread is None else mark.thread.tag
        for relation in stage.relations:
            if isinstance(relation, FuseRelation) and relation.fused == axis:
                for part in relation.parts:
                    for loop in self._expanded(stage, part, extents, strides):
                        yield Loop(loop.extent, loop.strides, loop.reduction, mark.kind, own=True, thread=thread)
                return
        loop = Loop(extents[axis], strides[axis], stage.is_reduction(axis), mark.kind, own=True, thread=thread)
        whole = _fused_whole(stage, axis) if any(one.thread for one in stage.marks.values()) else None
        yield from (loop,) if whole is None else _taken_apart(loop, whole, self._step_in(stage, axis, whole, extents), extents, strides)

    def _step_in(self, stage: StageNode, axis: int, whole: FuseRelation, extents: Mapping[int, Array]) -> Array:
        """By how much an iteration of a part moves the fused loop that it was cut from."""
        step = np.ones(self.evaluate.count)
        while axis != whole.fused:
            split = next(r for r in stage.relations if isinstance(r, SplitRelation) and axis in r.parts)
            for inner in split.parts[split.parts.index(axis) + 1 :]:
                step = step * extents[inner]
            axis = split.parent
        return step


def _fused_whole(stage: StageNode, axis: int) -> FuseRelation | None:
    """The fused loop that a loop is a part of, after one split or several; None if there is none."""
    split = next((r for r in stage.relations if isinstance(r, SplitRelation) and axis in r.parts), None)
    while split is not None:
        axis = split.parent
        fused = next((r for r in stage.relations if isinstance(r, FuseRelation) and r.fused == axis), None)
        if fused is not None:
            return fused if fused.parts else None
        split = next((r for r in stage.relations if isinstance(r, SplitRelation) and axis in r.parts), None)
    return None


def _taken_apart(
    loop: Loop, whole: FuseRelation, step: Array, extents: Mapping[int, Array], strides: Mapping[int, dict[int, Array]]
) -> Iterator[Loop]:
    """A part of a fused loop as loops over what was fused, the digits of a mixed radix: of 8 x 64, 128 threads are 2 rows of 64."""
    found: list[Loop] = []
    lower = np.ones_like(step)
    for part in reversed(whole.parts):
        upper = lower * extents[part]
        first, end = np.maximum(step, lower), np.minimum(step * loop.extent, upper)
        moved = {root: stride * first / lower for root, stride in strides[part].items()}
        found.insert(0, replace(loop, extent=np.maximum(1.0, np.ceil(end / first - 1e-6)), strides=moved))
        lower = upper
    # Iterations are as many as before, where digits had to be rounded, or some lie beyond the last one.
    yield replace(loop, extent=loop.extent / np.prod([one.extent for one in found], axis=0), strides={})
    yield from found


def scope_of(stage: StageNode, around: Iterable[Loop]) -> str:
    """Where a stage's storage lives, by what its schedule says or the loops around it; see `thread_legality.storage_scope`."""
    tags = [loop.thread for loop in around if loop.thread in HARDWARE_TAGS]
    if stage.scope or not tags:
        return stage.scope or "global"
    return "local" if any(tag.startswith("threadIdx.") for tag in tags) else "shared"


def _balanced(whole: Array, factors: list[Array | None]) -> list[Array | None]:
    """How many tiles, and the larger size, of a balanced split by a size or by a number of tiles."""
    count, size = factors
    if count is None:
        assert size is not None
        count = np.maximum(np.ceil(whole / size), 1)
    return [count, np.ceil(whole / count)]


def _extents(stage: StageNode) -> dict[int, Any]:
    """The extents of the root axes: constants, or what follows from a sample, and a guess where elements differ in it."""
    found: dict[int, Any] = {}
    for axis in (*stage.spatial, *stage.reduction):
        dom = stage.axes[axis].dom
        if dom is None:
            raise InternalError(f"axis {stage.axes[axis].name} of {stage.name} has no extent")
        found[axis] = dom.extent
    if not all(isinstance(found[axis], IntImm) for axis in stage.reduction):
        varying = dependent_axes(stage.compute)
        pairs = zip(stage.reduction, stage.compute.reduce_axis, strict=True)
        found |= {axis: _USUAL_EXTENT for axis, inner in pairs if inner in varying}
    return found


def access_forms(load: ProducerLoad, reader: StageNode) -> list[Form | None]:
    """Per index the coefficients of the reader's root axes; None where the index is not affine in them.

    The number of a panel, `j // 32`, moves by 1/32 with j; the place in it, `j % 32`, as j does.
    """
    roots = roots_of(reader)
    return [form_of(index, roots) for index in load.indices]


def roots_of(stage: StageNode) -> dict[Var, int]:
    """The root axes of a stage by their variables."""
    return {stage.axes[axis].var: axis for axis in (*stage.spatial, *stage.reduction)}


def form_of(index: PrimExpr, roots: Mapping[Var, int]) -> Form | None:
    """An index as a form; None if it isn't affine."""
    form: dict[int, float] = {}
    period = 0
    terms = linear_form(index).terms
    for atom, factor in terms.items():
        if isinstance(atom, Var) and atom in roots:
            form[roots[atom]] = form.get(roots[atom], 0) + factor
            continue
        inner = form_of(atom.a, roots) if isinstance(atom, (FloorDiv, FloorMod)) and isinstance(atom.b, IntImm) else None
        if inner is None:
            return None
        size = atom.b.value if isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) else 1
        if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and len(terms) == 1 and factor == 1:
            period = atom.b.value
        if abs(factor) >= size > 1:  # the channels of a group: all results inside of one read the same
            factor = 1
        for root, inside in inner.items():
            form[root] = form.get(root, 0) + factor * inside / size
    return Form(form, period)


def _span(loops: tuple[Loop, ...], form: Form) -> Array:
    """How many consecutive elements an affine index covers while some loops run; of panels, whole ones."""
    span: Any = 1.0
    for loop in loops:
        for root, stride in loop.strides.items():
            if root in form:
                span = span + form.step(root, stride) * (loop.extent - 1)
    # 1e-6 as `ROUNDING` of `access`: 32 steps of 1/32 must make a whole panel
    return np.floor(np.asarray(span, float) + 1e-6) * np.ones_like(loops[0].extent) if loops else np.ones(1)


def _moved(loop: Loop, form: Form) -> Array:
    return np.asarray(np.sum([form.step(root, loop.strides[root]) for root in form if root in loop.strides], axis=0), float)
