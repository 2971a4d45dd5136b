"""Contractions seen in a computation: reductions over two or more tensors, told by which axes move along which of them.

    C[b, i, j] = sum over k of A[b, i, k] * B[b, k, j]
        column j   is in the lanes: B moves along it
        rows i     move A alone, so that a vector of B serves several
        batch b    moves B too: each of its values has a matrix of its own
        summed k

Names, tags and the order of the indices don't matter, nor whether it is a sum of products or the largest of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TypeVar

from ..dataclass import dataclass, replace
from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, Root, ScheduleTree, StageNode
from ..target import Target
from ..te.affine_access import Access, access_of
from ..te.contraction import recognise
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.expr import IterVar, ProducerLoad, Reduce, Var
from ..tir.rewriting import variables
from .access import bordered, element_bytes, is_move, stage_reads
from .stages import are_rectangular, extent_of, is_plain_sum, is_untouched, untouched

T = TypeVar("T")
# Rows that a product of any number of them is planned for: enough for panels of its weights, which whoever builds a network packs.
OPEN_ROWS = 64


@dataclass(frozen=True, eq=False)
class Operand(Access[int]):
    """One load of a stage, by the numbers of the stage's axes, the reduction's after the others.

    Args:
        tensor: what the definition reads; it may be an inlined stage.
        memory: the access in memory that is read in the end, behind inlined stages; None if that doesn't lie at sums of multiples of axes.
        casts: the types that an element is converted to, one after the other, before it is multiplied; None if it is used otherwise.
        is_computed: what is read is inlined arithmetic, done again for each read.
        along: the axis along which a tensor of open strides is contiguous, where `memory` can't tell.
    """

    tensor: Tensor
    memory: Access[int] | None
    casts: tuple[str, ...] | None
    is_computed: bool = False
    along: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of an element there."""
        return element_bytes((self if self.memory is None else self.memory).load.dtype)

    def step(self, axis: int) -> int:
        """Bytes from one step of the axis to the next."""
        return 0 if self.memory is None else abs(self.memory.stride(axis)) * self.bytes

    def lies_along(self, axis: int) -> bool:
        """True if neighbours along the axis are neighbours in memory."""
        return self.along == axis if self.memory is None else self.memory.stride(axis) == 1


@dataclass(frozen=True, eq=False)
class Contraction:
    """A reduction with one axis in the lanes. Axes are numbers, the reduction's after the others.

    Args:
        op: the definition.
        sizes: the extents of all axes.
        left: the operands of which one element serves a whole vector.
        right: the operand that is read along the lanes.
        column: the axis in the lanes.
        batch: axes that move `right`, but for `column`, and those of extent 1 that move nothing.
        rows: axes that move the others alone; register tiles have several rows of the last one.
        summed: the axes of the reduction, outermost first.
        plane: axes before `column` that are one axis with it, as a row begins where the one before ends.
        opened: axes whose extents aren't known; `sizes` has what they are taken to be, which programs may not depend on.
    """

    op: ComputeOp
    sizes: tuple[int, ...]
    left: tuple[Operand, ...]
    right: Operand
    column: int
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    summed: tuple[int, ...]
    plane: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The axes in the lanes."""
        return (*self.plane, self.column)

    @property
    def row(self) -> int:
        """The axis of which a register tile has several rows."""
        return self.rows[-1]

    @property
    def bytes(self) -> int:
        """Bytes of an element of the result."""
        return element_bytes(self.op.output_dtype(0))

    @property
    def is_column_last(self) -> bool:
        """True if neighbours in the lanes are neighbours in the result."""
        return self.column == len(self.op.axis) - 1

    @property
    def can_be_packed(self) -> bool:
        """True if a copy of the right operand may have panels of columns."""
        return bool(self.places)

    @property
    def reads_twice(self) -> bool:
        """True if the right operand's tensor is another operand's, too: C[i, j] += A[i, k] * A[j, k]."""
        return any(other.tensor is self.right.tensor for other in self.left)

    @property
    def places(self) -> tuple[int, ...]:
        """The indices of the right operand that are columns, each of one axis and taps of one pixel; none if an axis has no such index."""
        few, places = {axis for axis, size in enumerate(self.sizes) if size == 1}, list[int]()
        for axis in self.columns:
            moved = [place for place, axes in enumerate(self.right.moved) if axis in axes]
            form = self.right.forms[moved[0]] if len(moved) == 1 else None
            if form is None or form.get(axis) != 1 or form.keys() - few - {axis}:
                return ()
            places.append(moved[0])
        return tuple(places)

    def over_rows(self) -> Contraction:
        """The contraction with vectors that run on over the ends of rows, of `right` and of the result, where nothing lies between.

        Example:
            C[f, y, x] += W[f, k] * X[k, y, x]: y and x are one axis.
        """
        found = self
        while found.batch and (axis := found.batch[-1]) == found.columns[0] - 1:
            goes_on = found.right.step(axis) == found.size(*found.columns) * found.right.step(found.column)
            if not goes_on or any(operand.moves_with(axis) for operand in found.left):
                break
            found = replace(found, plane=(axis, *found.plane), batch=found.batch[:-1])
        return found

    def merged_rows(self) -> tuple[int, ...]:
        """The last axes of rows that are one axis in memory, of the operand and of the result."""
        return ()

    def size(self, *axes: int) -> int:
        """The product of the extents of some axes."""
        return prod(self.sizes[axis] for axis in axes)

    def names(self, *axes: int) -> str:
        """Axes in words."""
        return ", ".join(self.axis(axis).name for axis in axes)

    def axis(self, number: int) -> IterVar:
        """An axis of the definition."""
        return (*self.op.axis, *self.op.reduce_axis)[number]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a rule leaves a stage to the others, in words, for `explain`."""

    reason: str


def contraction_of(tree: ScheduleTree, stage: StageNode, column: int | None = None, taken_as: int = 0) -> Contraction | Refused:
    """What a stage computes as a contraction with an axis in the lanes, by default the last one, or why it is none.

    Example:
        C[i, j] += A[i, k] * B[k, j]: rows i, columns j, summed over k. Not Y[i, j] += X[i, k] * V[i + j, k]: no row shares V.

    Args:
        taken_as: what open extents are taken to be; with 0 there may be none.
    """
    op = stage.op
    if not is_plain_sum(op):
        return Refused("it is no reduction to one tensor that starts from the identity")
    found = [extent_of(axis) for axis in (*op.axis, *op.reduce_axis)]
    opened = tuple(place for place, extent in enumerate(found) if extent is None)
    if opened and not (taken_as and are_rectangular((*op.axis, *op.reduce_axis))):
        return Refused("its extents are no constants")
    extents = [taken_as if extent is None else extent for extent in found]
    # Example: a sum over k of X[i, k] reads each element once, so that no register tile has anything to reuse.
    operands = operands_of(tree, stage)
    if len(operands) < 2:
        return Refused("it reads one tensor, whose elements are used once")
    made = _with_roles(op, tuple(extents), operands, len(op.axis) - 1 if column is None else column)
    return replace(made, opened=opened) if isinstance(made, Contraction) and opened else made


def _with_roles(op: ComputeOp, sizes: tuple[int, ...], operands: Sequence[Operand], column: int) -> Contraction | Refused:
    """The contraction: what each axis is for follows from which operands move along it."""
    name = op.axis[column].name
    along = [operand for operand in operands if operand.moves_with(column)]
    # read across memory: a copy in panels mends that, and one operand alone gets one
    # Example: C[i, j] += A[i, k] * B[j, k] with j in the lanes reads B down its columns, a line for each lane.
    apart = [operand for operand in along if not operand.lies_along(column)]
    if not along or len(apart) > 1 or len(along) == len(operands):
        return Refused(f"the axis {name} indexes {'all factors' if along else 'none of them'}, not one")
    # What is read along the lanes: of several operands the one that has to be packed, or that most axes have vectors in common with.
    # Fewest axes: of X[i, k] * Y[k, j] * Z[j] the vector Z serves all rows and steps, and Y is what has to be loaded for each step.
    right = apart[0] if apart else min(along, key=lambda operand: sum(map(operand.moves_with, range(len(op.axis)))))
    left = tuple(operand for operand in operands if operand is not right)
    others = [axis for axis in range(len(op.axis)) if axis != column]
    rows = tuple(axis for axis in others if not right.moves_with(axis) and any(operand.moves_with(axis) for operand in left))
    # An axis of one iteration moves nothing anyhow; as a batch it costs no register, as rows it would be the tile's only row.
    batch = tuple(axis for axis in others if right.moves_with(axis) or (axis not in rows and sizes[axis] == 1))
    found = Contraction(op, sizes, left, right, column, batch, rows, tuple(range(len(op.axis), len(sizes))))
    # A sum that one operand alone has, of (sum_k A[i, k]) * B[j], is done once outside; tiles would do it again for each column.
    for axis in found.summed:
        shared = right.moves_with(axis) and any(operand.moves_with(axis) for operand in left)
        if not shared:
            return Refused(f"the reduction axis {found.names(axis)} doesn't index both factors")
    if apart and not found.can_be_packed:
        return Refused(f"{right.load} has no index that is {name} alone")
    if not rows:
        return Refused(f"no axis indexes {left[0].tensor.op.name} alone, so that nothing uses a vector of {right.tensor.op.name} twice")
    if len(rows) + len(batch) < len(others):
        return Refused("an axis indexes no factor, so that the same sum is wanted several times")
    return found


def contractions_of(tree: ScheduleTree, stage: StageNode) -> list[Contraction]:
    """A stage with each axis in the lanes that may be there: the last one first, of the others, which are tiled with it, the longest."""
    place = len(stage.spatial) - 1
    last, *others = (contraction_of(tree, stage, axis) for axis in (place, *range(place)))
    # With the last axis as rows, a tile is stored by columns, a transpose in registers; any other would be stored element by element.
    fitting = [one for one in others if isinstance(one, Contraction) and one.row == place]
    return [one for one in (last,) if isinstance(one, Contraction)] + sorted(fitting, key=lambda one: -one.size(one.column))


def operands_of(tree: ScheduleTree, stage: StageNode) -> list[Operand]:
    """The loads of a stage, each once."""
    op = stage.compute
    numbers = axis_numbers(op)
    product = recognise(op.body[0]) if isinstance(op.body[0], Reduce) else None
    casts = {} if product is None or product.scale != 1 else {factor.load: factor.casts for factor in product.factors}
    behind = [access_of(access.load, numbers.get) for access in stage_reads(tree, stage).accesses]
    found = []
    for load in dict.fromkeys(tree.reads(stage)):
        if isinstance(load.producer, Tensor):
            access = access_of(load, numbers.get)
            own = {numbers[var] for index in load.indices for var in variables(index) if var in numbers}
            # Reads behind inlined stages aren't tied to the read they came from; that over no other axes, and of most of these, is the one.
            inner = [one for one in behind if one.is_affine and one.strides.keys() <= own]
            memory = max(inner, key=lambda one: len(one.strides), default=None)
            along = None if isinstance(tree.producer(load).attach, Inline) else _innermost(access, (*op.axis, *op.reduce_axis))
            found.append(replace(operand_at(access, memory, casts.get(load)), is_computed=_is_computed(tree, load), along=along))
    return found


def _innermost(access: Access[int], axes: Sequence[IterVar]) -> int | None:
    """The axis that is the last index, but for those of one iteration, and moves no other one.

    Example:
        j of X[i, k, j + r] where r is the only tap of a window.
    """
    moving = [axis for axis in access.moved[-1] if extent_of(axes[axis]) != 1] if access.moved else []
    form = access.forms[-1] if moving else None
    is_one = len(moving) == 1 and form is not None and form.get(moving[0]) == 1
    return moving[0] if is_one and not any(moving[0] in other for other in access.moved[:-1]) else None


def _is_computed(tree: ScheduleTree, load: ProducerLoad) -> bool:
    """True if an element that is read is computed for the read, not only brought from another place."""
    producer = tree.producer(load)
    if not isinstance(producer.attach, Inline) or not isinstance(producer.op, ComputeOp):
        return False
    return not is_move(producer.op) or any(_is_computed(tree, behind) for behind in tree.reads(producer))


def axis_numbers(op: ComputeOp) -> dict[Var, int]:
    """The axes of a definition by number, the reduction's after the others."""
    return {axis.var: number for number, axis in enumerate((*op.axis, *op.reduce_axis))}


def operand_at(access: Access[int], memory: Access[int] | None, casts: tuple[str, ...] | None = None) -> Operand:
    """The operand of a load; see `Operand`."""
    assert isinstance(access.load.producer, Tensor)
    return Operand(access.load, access.forms, access.partial, access.moved, access.load.producer, memory, casts)


Find = Callable[[ScheduleTree, StageNode, Target], T | None]


def taken(s: Schedule, find: Find[T], target: Target, moves: bool = True) -> Iterator[tuple[StageNode, T]]:
    """The untouched stages that a rule finds something for, with what it finds once the moves they read, if wanted, are part of them."""
    for stage in untouched(s):
        found, tree = find(s.tree, stage, target), s.tree
        if found and moves:
            inline_moves(s, stage)
            # Asked again, as inlined moves change where operands lie: a plan made before would pack from a copy that isn't there any more.
            found = found if s.tree is tree else find(s.tree, s.tree[stage.id], target)
        if found:
            yield s.tree[stage.id], found


def inline_moves(s: Schedule, stage: StageNode) -> None:
    """Inline what only puts elements elsewhere for this stage alone: transposes, slices, reshapes.

    Example:
        T[k, j] = B[j, k];  C[i, j] = sum over k of A[i, k] * T[k, j]: the panels of B are packed from where it lies, T is never stored.
    """
    waiting = [stage]
    while waiting:
        for load in s.tree.reads(waiting.pop()):
            producer = s.tree.producer(load)
            readers = {reader.id for reader in s.tree.consumers(producer)}
            # With two readers the elements would be moved twice, where a stored copy is made once.
            if producer.is_placeholder or producer.is_output or not isinstance(producer.op, ComputeOp) or len(readers) > 1:
                continue
            if is_move(producer.op) and isinstance(producer.attach, Root) and not producer.relations and not producer.marks:
                s.apply_step(ComputeInline(producer.id))
                # a chain of moves, the reshape of a transpose, goes as a whole
                waiting.append(producer)


def inline_borders(s: Schedule, stage: StageNode) -> None:
    """Inline what only this stage reads, if it is no more than a border around a tensor."""
    for producer in {s.tree.producer(load).id: s.tree.producer(load) for load in s.tree.reads(stage)}.values():
        is_alone = not producer.is_output and len(s.tree.consumers(producer)) == 1 and is_untouched(producer)
        if is_alone and bordered(producer.op) is not None:
            s.apply_step(ComputeInline(producer.id))
