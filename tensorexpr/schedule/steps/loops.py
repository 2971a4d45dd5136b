"""Steps on the loops of one stage: split, fuse, reorder, loop kinds, pragmas."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...log import once
from ...tir.arithmetic import as_int, cast
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, StringImm, Var
from ...tir.insist import insisted
from ...tir.printer.expressions import quoted
from ..factors import Factor, is_symbolic, sampled_value, size_of
from ..lane_reduction import why_not_in_lanes
from ..naming import PythonNames
from ..tree import At, FuseRelation, LoopKind, LoopMark, ScheduleTree, SplitRelation, StageNode
from .base import StageStep, loops_of

_logger = logging.getLogger(__name__)

PragmaValue = int | bool | str | tuple[int, ...]


# A stage is attached to an axis by number: once that is no loop any more, there is no place to compute it at.
def _check_nothing_attached(tree: ScheduleTree, stage: StageNode, axis: int, primitive: str) -> None:
    for other in tree.attached_to(stage.id):
        if isinstance(other.attach, At) and other.attach.axis == axis:
            raise stage.refused(
                f"{other.name} is computed at {stage.axes[axis].name!r}, which {primitive} would remove; "
                f"{primitive} first and compute_at one of the new axes"
            )


def _derived(name: str, like: IterVar) -> IterVar:
    return IterVar(None, Var(name, like.dtype), like.iter_type)


# Names are for people: the parts of three-way splits are called what two splits by hand would call them, so that printed nests agree.
def split_names(name: str, parts: int) -> list[str]:
    """Names of the parts of a split, outermost first, as a chain of two-way splits gives them: x.outer.outer, x.outer.inner, x.inner."""
    return [f"{name}{'.outer' * (parts - 1)}"] + [f"{name}{'.outer' * (parts - 1 - level)}.inner" for level in range(1, parts)]


@dataclass(frozen=True)
class Split(StageStep):
    """One axis becomes a nest of several.

    factors[i] is the extent of part i, outermost first; exactly one is None and follows from the axis' extent,
    rounded up. Where the extents do not divide, lowering guards what lies past the end.

        for i in n:            ->     for i.outer in ceil(n / 4):
            body(i)                       for i.inner in 4:
                                              if i.outer*4 + i.inner < n: body(...)
    """

    code: ClassVar[str] = "split"
    axis: int
    factors: tuple[Factor, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """for i in n   ->   for i.o in ceil(n/f): for i.i in f, where pragmas of i go to the outermost part.

        Raises:
            ScheduleError: for a loop that is marked or holds other stages, or factors of which not exactly one is open.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "split")
        _check_nothing_attached(tree, stage, self.axis, "split")
        mark = stage.mark(self.axis)
        # Which of the parts would be the parallel or vector loop? Nothing says.
        if mark.kind is not LoopKind.SERIAL:
            raise stage.refused(
                f"axis {stage.axes[self.axis].name!r} is marked {mark.kind.value} already; split it first, then mark the part"
            )
        if len(self.factors) < 2 or self.factors.count(None) != 1:
            raise stage.refused(f"split needs all extents but one, got {self.factors}")
        parent = stage.axes[self.axis]
        factors = tuple(_factor_value(tree, stage, parent, factor) for factor in self.factors)
        # Axes are only ever added, so the numbers that earlier steps recorded stay valid.
        first = len(stage.axes)
        parts = tuple(range(first, first + len(factors)))
        new_axes = tuple(_derived(name, parent) for name in split_names(parent.name, len(factors)))
        place = stage.leaf.index(self.axis)
        return tree.with_stage(
            replace(
                stage,
                axes=stage.axes + new_axes,
                leaf=stage.leaf[:place] + parts + stage.leaf[place + 1 :],
                relations=(*stage.relations, SplitRelation(self.axis, parts, factors)),
                marks=_moved_marks(stage, (self.axis,), parts[0]),
            )
        )

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage = after[self.stage]
        parts = tuple(range(len(before[self.stage].axes), len(stage.axes)))
        return names.split_lines(stage, self.axis, parts, self.factors)


def _factor_value(tree: ScheduleTree, stage: StageNode, parent: IterVar, factor: Factor) -> PrimExpr | None:
    if factor is None:
        return None
    if is_symbolic(factor):
        return cast(size_of(tree, stage, factor), parent.dtype)
    if isinstance(factor, tuple):
        return sampled_value(tree, stage, factor)
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        raise stage.refused(f"split of {parent.name!r} by {factor!r}; a factor is an integer of at least 1")
    return IntImm(parent.dtype, factor)


def _moved_marks(stage: StageNode, old: Sequence[int], new: int) -> dict[int, LoopMark]:
    """Pragmas of axes that are replaced go to the outermost of their successors."""
    marks = {axis: mark for axis, mark in stage.marks.items() if axis not in old}
    # from within, so that of two values for a key the outer axis' is left: it held for the inner loop, too
    pragmas = {key: value for axis in reversed(old) for key, value in stage.mark(axis).pragmas}
    if pragmas:
        marks[new] = LoopMark(pragmas=tuple(pragmas.items()))
    return marks


@dataclass(frozen=True)
class Fuse(StageStep):
    """Adjacent loops become one. Of no loops it makes a new one, outermost, with a single iteration.

    for i in n:              ->     for i.j.fused in n * m:
        for j in m: body(i, j)          body(i.j.fused // m, i.j.fused % m)
    """

    code: ClassVar[str] = "fuse"
    axes: tuple[int, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """for i in n: for j in m   ->   for i.j.fused in n*m, with the pragmas of both; where they differ, with the outer one's.

        Raises:
            ScheduleError: for loops that aren't adjacent, are marked, or hold other stages.
        """
        stage = loops_of(tree, self.stage, self.axes, "fuse")
        if not self.axes:
            return tree.with_stage(_with_singleton(stage))
        for axis in self.axes:
            _check_nothing_attached(tree, stage, axis, "fuse")
        self._check(stage)
        # Of the widest one's dtype, and of the kind of the first, which all have.
        # The product of an int32 and an int64 extent needs the wider one.
        widest = max((stage.axes[axis] for axis in self.axes), key=lambda axis: parse_dtype(axis.dtype).bits)
        fused = len(stage.axes)
        place = stage.leaf.index(self.axes[0])
        name = ".".join(stage.axes[axis].name for axis in self.axes) + ".fused"
        return tree.with_stage(
            replace(
                stage,
                axes=(*stage.axes, _derived(name, widest)),
                leaf=(*stage.leaf[:place], fused, *stage.leaf[place + len(self.axes) :]),
                relations=(*stage.relations, FuseRelation(self.axes, fused)),
                marks=_moved_marks(stage, self.axes, fused),
            )
        )

    def _check(self, stage: StageNode) -> None:
        listed = ", ".join(stage.axes[axis].name for axis in self.axes)
        if len(self.axes) < 2:
            raise stage.refused(f"fuse takes none or at least two axes, got {listed}")
        place = stage.leaf.index(self.axes[0])
        if stage.leaf[place : place + len(self.axes)] != self.axes:
            raise stage.refused(
                f"fuse takes adjacent axes from the outside in, got {listed}; reorder them first; axes: {stage.axis_names()}"
            )
        # A fused loop has one kind of axis: as a spatial one it may run in parallel, and a reduction may not.
        if len({stage.is_reduction(axis) for axis in self.axes}) > 1:
            raise stage.refused(f"fuse can't mix spatial and reduction axes: {listed}")
        marked = [stage.axes[axis].name for axis in self.axes if stage.mark(axis).kind is not LoopKind.SERIAL]
        if marked:
            raise stage.refused(f"{', '.join(marked)} is marked already; fuse first, then mark the fused axis")

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        """The call, its result named after the axes it is made of."""
        stage = after[self.stage]
        if not self.axes:
            made = names.name_axis(stage, len(stage.axes) - 1, f"{names.stage(stage)}_singleton")
            return [f"{made} = s[{names.stage(stage)}].fuse()"]
        listed = [names.axis(stage, axis) for axis in self.axes]
        fused = names.name_axis(stage, len(stage.axes) - 1, "_".join([listed[0], *(names.short(stage, a) for a in self.axes[1:]), "fused"]))
        return [f"{fused} = s[{names.stage(stage)}].fuse({', '.join(listed)})"]


def _with_singleton(stage: StageNode) -> StageNode:
    axis = IterVar(Range.from_min_extent(0, 1), Var("singleton", "int32"), IterVar.DATA_PAR)
    number = len(stage.axes)
    return replace(stage, axes=(*stage.axes, axis), leaf=(number, *stage.leaf), relations=(*stage.relations, FuseRelation((), number)))


@dataclass(frozen=True)
class Reorder(StageStep):
    """The listed loops take the places they hold now in the given order; the others stay.

    for i: for j: for k: body   -- reorder(k, i) ->   for k: for j: for i: body
    """

    code: ClassVar[str] = "reorder"
    axes: tuple[int, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the loops' places exchanged.

        Raises:
            ScheduleError: for an axis that is named twice or is no loop of the stage.
        """
        stage = loops_of(tree, self.stage, self.axes, "reorder")
        if len(set(self.axes)) != len(self.axes):
            listed = ", ".join(stage.axes[axis].name for axis in self.axes)
            raise stage.refused(f"reorder names an axis twice: {listed}")
        wanted = iter(self.axes)
        # Example: of loops i j k l reorder(k, i) gives k j i l: places 0 and 2 are exchanged, j and l stay.
        moved = set(self.axes)
        return tree.with_stage(replace(stage, leaf=tuple(next(wanted) if axis in moved else axis for axis in stage.leaf)))

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        return ", ".join(names.axis(stage, axis) for axis in self.axes)


_ANNOTATIONS = ("serial", "parallel", "vectorize", "unroll")  # other kinds come with more to say


@dataclass(frozen=True)
class Annotate(StageStep):
    """A loop becomes parallel, vectorised or unrolled (`kind`: "parallel", "vectorize", "unroll"), or serial again.

    A reduction axis may be unrolled, or vectorised if its combiner is a plain sum, product, maximum or minimum: the lanes
    are combined by halves, so the order of the terms changes. Its iterations on several threads would race on the accumulator.
    """

    code: ClassVar[str] = "annotate"
    axis: int
    kind: str

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the loop's mark; whether it is sound, `legality` says once the schedule is whole.

        Raises:
            ScheduleError: for an unknown kind, or one that the loop can't have: a reduction, bound to threads, inside a vector.
        """
        stage = loops_of(tree, self.stage, (self.axis,), self.kind)
        # Bound and tensorized loops come from `bind` and `tensorize`, which say what they are bound to.
        kinds = {kind.value: kind for kind in LoopKind if kind is not LoopKind.BIND}
        name = stage.axes[self.axis].name
        if self.kind not in _ANNOTATIONS:
            raise stage.refused(f"a loop can't be {self.kind!r}; kinds: {', '.join(_ANNOTATIONS)}")
        kind = kinds[self.kind]
        if stage.is_reduction(self.axis):
            _check_reduction_kind(stage, name, kind)
        if kind is not LoopKind.SERIAL:
            _check_unbound(stage, self.axis, self.kind)
        marks = {**stage.marks, self.axis: replace(stage.mark(self.axis), kind=kind, thread=None)}
        if kind is LoopKind.PARALLEL:
            _check_only_parallel(stage, self.axis)
        elif kind is LoopKind.VECTORIZE:
            marks.update(_outer_vectors_as_loops(stage, self.axis))
        return tree.with_stage(replace(stage, marks=marks))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage = after[self.stage]
        return [f"s[{names.stage(stage)}].{self.kind}({names.axis(stage, self.axis)})"]


def _check_reduction_kind(stage: StageNode, name: str, kind: LoopKind) -> None:
    """The iterations of a reduction may be lanes that are combined in the end, but not threads that race on one accumulator."""
    if kind is LoopKind.PARALLEL:
        reason: str | None = "its iterations would race on one accumulator"
    else:
        reason = why_not_in_lanes(stage) if kind is LoopKind.VECTORIZE else None
    if reason is not None and not insisted():
        spatial = ", ".join(stage.axes[a].name for a in stage.leaf if not stage.is_reduction(a))
        raise stage.refused(
            f"can't {kind.value} {name!r}: it is a reduction axis, and {reason}; "
            f"{kind.value} one of {spatial or '(no spatial axis is there)'}, or make it spatial with rfactor"
        )


def _check_unbound(stage: StageNode, axis: int, wish: str) -> None:
    """A loop that stands for threads runs as they do."""
    thread = stage.mark(axis).thread
    if thread is not None:
        raise stage.refused(
            f"can't {wish} {stage.axes[axis].name!r}: it is bound to {thread.tag} already; {wish} another axis, or bind another one"
        )


def _check_only_parallel(stage: StageNode, axis: int) -> None:
    """One parallel loop per stage: a second would nest in the first."""
    for other in stage.leaf:
        if other != axis and stage.mark(other).kind is LoopKind.PARALLEL:
            raise stage.refused(
                f"{stage.axes[other].name!r} is the parallel loop already; fuse {stage.axes[axis].name!r} with it to widen it"
            )


def _outer_vectors_as_loops(stage: StageNode, axis: int) -> dict[int, LoopMark]:
    """The marks that leave the innermost of several vectorised loops: lanes within lanes would be one loop, which `fuse` makes."""
    vectors = [one for one in stage.leaf if one == axis or stage.mark(one).kind is LoopKind.VECTORIZE]
    if len(vectors) > 1:
        outer, inner = (stage.axes[one].name for one in (vectors[-2], vectors[-1]))
        once(_logger, f"{stage.name}: {outer!r} stays a loop, as {inner!r} inside of it is vectorised; fuse them for longer vectors")
    return {one: replace(stage.mark(one), kind=LoopKind.SERIAL, thread=None) for one in vectors[:-1]}


@dataclass(frozen=True)
class Pragma(StageStep):
    """A hint on a loop: `auto_unroll_max_step` (an int: inner loops of up to so many steps are unrolled), `unroll_explicit`,
    `loop_partition_hint` (this loop and those inside are also cut where conditions of padding start and stop to hold),
    `no_load_merge` (if the loop is written out, each step loads for itself what others load too: shared loads stay alive from
    step to step, and a register tile then spills; see `Module.spills`), `parallel_from` (an int: a parallel loop of fewer iterations
    than this starts no threads, which a loop of a symbolic extent decides at each call), `min_blocks` (an int: so many blocks of a GPU's
    kernel share a multiprocessor at least, which leaves each thread that part of the registers), `bulk_copy` (on sm_90 the loop, a copy
    into shared memory that `multi_buffer` fills ahead, is made by the copy engine; an int is the bytes of rows that are swizzled there).

    Others are kept, printed and for users' own passes to read. The value may be a sample, as (sample, part).
    """

    code: ClassVar[str] = "pragma"
    axis: int
    key: str
    value: PragmaValue

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the hint in place of an earlier one of that name.

        Raises:
            ScheduleError: for no name, or a value out of the range of a pragma that is known here.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "pragma")
        if not self.key:
            raise stage.refused(f"a pragma has a name, such as {', '.join(PRAGMAS)}")
        value = self.resolved(tree, stage)
        if self.key in PRAGMAS and isinstance(value, str):
            raise stage.refused(f"the pragma {self.key} takes an int or a bool, not {value!r}")
        if self.key == "auto_unroll_max_step" and (isinstance(value, bool) or (isinstance(value, int) and not 0 <= value <= 1 << 20)):
            raise stage.refused(f"auto_unroll_max_step takes 0 to {1 << 20} steps, not {value!r}")
        mark = stage.mark(self.axis)
        # The last one of a name holds, as if the earlier had never been said; a trace keeps both steps.
        others = tuple(item for item in mark.pragmas if item[0] != self.key)
        return tree.with_stage(replace(stage, marks={**stage.marks, self.axis: replace(mark, pragmas=(*others, (self.key, value)))}))

    def resolved(self, tree: ScheduleTree, stage: StageNode) -> int | bool | str | PrimExpr:
        """The value as a number, or as a variable while its sample is open."""
        if not isinstance(self.value, tuple):
            return self.value
        value = sampled_value(tree, stage, self.value)
        return value.value if isinstance(value, IntImm) else value

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, value = after[self.stage], self.resolved(after, after[self.stage])
        shown = quoted(value) if isinstance(value, str) else str(value)
        return [f"s[{names.stage(stage)}].pragma({names.axis(stage, self.axis)}, {quoted(self.key)}, {shown})"]


PRAGMAS: tuple[str, ...] = (
    *("auto_unroll_max_step", "unroll_explicit", "loop_partition_hint", "no_load_merge", "parallel_from"),
    *("min_blocks", "bulk_copy"),
)


def checked_pragma(value: Any) -> int | bool | str:
    """A pragma's value as the step stores it; None means True.

    Raises:
        ScheduleError: for anything but an int, a bool or a text.
    """
    if isinstance(value, (str, StringImm)):
        return value if isinstance(value, str) else value.value
    # before numbers, as True is one
    if value is None or isinstance(value, bool):
        return value is not False
    number = as_int(value)
    if number is None:
        raise ScheduleError(f"a pragma takes an int, a bool or a text, not {value!r}")
    return number
