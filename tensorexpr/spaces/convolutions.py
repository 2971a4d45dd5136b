"""Convolutions seen in a computation: sums of products of windows of one tensor with another one, the weights.

sum over k.., t.. of data[.., p*stride + t*dilation, .., k..] * weights[.., o, k.., t..]: names, tags and the order of the
indices don't matter, nor how many dimensions a window has. In a transposed convolution the data is
data[.., (p + t) // phases, ..] and terms with a remainder are zero: results p and p + 1 have different taps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..arith import linear_form
from ..te.affine_access import Access, access_of
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Add, Call, Cast, FloatImm, FloorDiv, IntImm, IterVar, Mul, PrimExpr, ProducerLoad, Reduce, Select, Var
from ..tir.reduction_laws import operator_of
from ..tir.rewriting import variables
from .access import bordered, element_bytes
from .reduction import constant_extents, extents_of


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution; axes are numbers of the operation's axes, summed axes those of its reduction.

    read      the data by the numbers of all axes, the reduction's after the others;  fixed: the weights
    channel   the last of the axes of the weights: the results of one window
    outer     axes of the weights before it, and those of the data without a window: batches, blocks of channels
    pixels    where windows lie, in order
    phases    for each of them, how far apart results with the same taps are: 1 unless the convolution is transposed
    taps      summed axes inside a window, in order
    summed    the other summed axes: channels of the data
    per_group channels that see the same data; all of them without groups
    """

    op: ComputeOp
    data: ProducerLoad
    weights: ProducerLoad
    read: Access[int]
    fixed: Access[int]
    channel: int
    outer: tuple[int, ...]
    pixels: tuple[int, ...]
    phases: tuple[int, ...]
    taps: tuple[IterVar, ...]
    summed: tuple[IterVar, ...]
    per_group: int

    @property
    def extents(self) -> list[int]:
        """The extents of the operation's axes."""
        return extents_of(self.op.axis)

    def size(self, *axes: int) -> int:
        """The product of the extents of some of them."""
        return prod(self.extents[axis] for axis in axes)

    @property
    def dtype(self) -> str:
        """The type of a result."""
        return self.op.output_dtype(0)

    @property
    def depth(self) -> int:
        """How many products a result is the sum of."""
        return prod(extents_of(self.op.reduce_axis)) // prod(list(self.phases))

    @property
    def bytes(self) -> int:
        """Bytes of an element of the result."""
        return element_bytes(self.dtype)

    @property
    def step_count(self) -> int:
        """How many channels of the data a tap sums."""
        return prod(extents_of(self.summed))

    @property
    def is_transposed(self) -> bool:
        """True if terms are left out."""
        return any(phase > 1 for phase in self.phases)

    def taps_of(self, pixel: int) -> tuple[IterVar, ...]:
        """The axes of the window along a pixel axis."""
        first = len(self.op.axis)
        return tuple(self.op.reduce_axis[axis - first] for axis in sorted(self.read.moved[self.index_of(pixel)]) if axis >= first)

    def stride_of(self, pixel: int) -> int:
        """Elements of the data between the windows of neighbouring pixels; 1 if they are no constant number."""
        return self.read.partial[self.index_of(pixel)].get(pixel, 1)

    def live_pixels(self, pixel: int, bordered: bool) -> list[range]:
        """For each tap along a pixel axis, the pixels (of one phase) whose terms it has.

        Args:
            bordered: the terms of a border of zeros are there too.

        Example:
            A window of 3 over 7 pixels with a border of 1: range(1, 7), range(0, 7), range(0, 6).
        """
        extent = self.extents[pixel]
        taps = self.taps_of(pixel)
        phase = self.phases[self.pixels.index(pixel)]
        count = prod(extents_of(taps))
        border = self._border(self.index_of(pixel))
        form = linear_form(self.data.indices[self.index_of(pixel)])
        stride = self.stride_of(pixel)
        if bordered or border is None or phase > 1 or len(taps) != 1 or stride < 1:
            return [range(extent // phase)] * (count // phase)
        firsts = [border[0] - form.constant - tap * form.terms[taps[0].var] for tap in range(count)]
        return [range(max(0, -(-first // stride)), min(extent, -(-(first + border[1]) // stride))) for first in firsts]

    def index_of(self, pixel: int) -> int:
        """Which index of the data a pixel axis moves."""
        return next(place for place, moved in enumerate(self.read.moved) if pixel in moved)

    def _border(self, place: int) -> tuple[int, int] | None:
        """Elements before the data in this dimension of the padded data, and of the data itself; None if it isn't padded data."""
        load = bordered(self.data.producer.op) if isinstance(self.data.producer, Tensor) else None
        inner = None if load is None else as_int(load.producer.shape[place])
        return None if load is None or inner is None else (-linear_form(load.indices[place]).constant, inner)

    def merged_pixels(self) -> tuple[int, ...]:
        """The last pixel axes that are one axis in memory, of data and result: all of a plane for windows of one pixel."""
        merged = tuple[int, ...]()
        for pixel in reversed(self.pixels):
            is_next = not merged or (pixel + 1 == merged[0] and self.index_of(pixel) + 1 == self.index_of(merged[0]))
            if not is_next or not self._is_whole(pixel):
                break
            merged = (pixel, *merged)
        return merged

    def _is_whole(self, pixel: int) -> bool:
        """True if an index of the data is this axis and nothing else, over all of its dimension."""
        place = self.index_of(pixel)
        window, form = prod(extents_of(self.taps_of(pixel))), linear_form(self.data.indices[place])
        alone = window == 1 and self.read.forms[place] is not None and form.constant == 0 and self.stride_of(pixel) == 1
        return alone and as_int(self.data.producer.shape[place]) == self.extents[pixel]


def convolution_of(op: object) -> Convolution | None:
    """The operation as a convolution, or None if it is anything else."""
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or constant_extents((*op.axis, *op.reduce_axis)) is None:
        return None
    factors = _factors(op.body[0])
    if factors is None:
        return None
    left, right, partial = factors
    for data, weights in ((left, right), (right, left)):
        found = _roles(op, data, weights)
        if found is not None and found.is_transposed is partial:
            return found
    return None


def _factors(body: PrimExpr) -> tuple[ProducerLoad, ProducerLoad, bool] | None:
    """The two tensors of a sum of products, and whether some terms are zero by a condition."""
    if not isinstance(body, Reduce) or len(body.source) != 1 or body.init or not isinstance(body.condition, IntImm):
        return None
    term, partial = body.source[0], False
    match term:
        case Select(_, product, FloatImm(_, 0.0)) | Call(op="tir.if_then_else", args=(_, product, FloatImm(_, 0.0))):
            term, partial = product, True
    if operator_of(body.combiner) is not Add or not isinstance(term, Mul) or not body.condition.value:
        return None
    left, right = _without_casts(term.a), _without_casts(term.b)
    if not isinstance(left, ProducerLoad) or not isinstance(right, ProducerLoad):
        return None
    return (left, right, partial) if isinstance(left.producer, Tensor) and isinstance(right.producer, Tensor) else None


def _without_casts(expr: PrimExpr) -> PrimExpr:
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def _roles(op: ComputeOp, data: ProducerLoad, weights: ProducerLoad) -> Convolution | None:
    """The convolution with these operands, if it is one."""
    # What an axis is follows from where it stands: in the weights alone a channel, with a reduced axis in one index of the data a pixel.
    numbers = {axis.var: number for number, axis in enumerate((*op.axis, *op.reduce_axis))}
    read, fixed, results = access_of(data, numbers.get), access_of(weights, numbers.get), range(len(op.axis))
    channels = [axis for axis in results if fixed.moves_with(axis)]
    pixels, taps = dict[int, int](), set[int]()
    for index, moved in zip(data.indices, read.moved, strict=True):
        mine, inside = [axis for axis in moved if axis in results and axis not in channels], moved.difference(results)
        # A pixel and a tap in one index; alone they are a batch, or a channel that is summed.
        if mine and inside:
            phase = _phase(index)
            if len(mine) > 1 or phase is None or mine[0] in pixels:
                return None
            pixels[mine[0]] = phase
            taps |= inside
    # A reduced axis that only one operand has would be a sum of that operand, which no tile of products computes.
    shared = all(read.moves_with(axis) and fixed.moves_with(axis) for axis in range(len(op.axis), len(numbers)))
    if not channels or not pixels or not shared:
        return None
    # Of several axes of channels the last lies along memory; those before it are in the weights alone, or groups of their own.
    channel = channels[-1]
    per_group = _per_group(op, data, channel)
    if per_group is None:
        return None
    outer = tuple(axis for axis in results if axis not in pixels and axis != channel)
    inner_taps = tuple(axis for axis in op.reduce_axis if numbers[axis.var] in taps)
    summed = tuple(axis for axis in op.reduce_axis if numbers[axis.var] not in taps)
    where = tuple(sorted(pixels))
    return Convolution(
        op, data, weights, read, fixed, channel, outer, where, tuple(pixels[one] for one in where), inner_taps, summed, per_group
    )


def _phase(index: PrimExpr) -> int | None:
    """1 for an affine index, n for one that is such an index // n; None for any other."""
    inner, phase = index, 1
    if isinstance(index, FloorDiv) and isinstance(index.b, IntImm):
        inner, phase = index.a, index.b.value
    return phase if all(isinstance(atom, Var) for atom in linear_form(inner).terms) else None


def _per_group(op: ComputeOp, data: ProducerLoad, channel: int) -> int | None:
    """How many neighbouring channels see the same data; None if each sees its own."""
    axis = op.axis[channel]
    found = extents_of((axis,))[0]
    for index in data.indices:
        if axis.var not in variables(index):
            continue
        for atom in linear_form(index).terms:
            if axis.var not in variables(atom):
                continue
            if not isinstance(atom, FloorDiv) or atom.a is not axis.var or not isinstance(atom.b, IntImm):
                return None
            found = min(found, atom.b.value)
    return found
