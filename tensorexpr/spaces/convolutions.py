"""Convolutions seen in a computation: sums of products of windows of one tensor with another one, the weights.

sum over k.., t.. of data[.., p*stride + t*dilation, .., k..] * weights[.., o, k.., t..]: names, tags and the order of the
indices don't matter, nor how many dimensions a window has. In a transposed convolution the data is
data[.., (p + t) // phases, ..] and terms with a remainder are zero: results p and p + 1 have different taps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..arith import linear_form
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, Call, Cast, FloatImm, FloorDiv, IntImm, IterVar, Mul, PrimExpr, ProducerLoad, Reduce, Select, Var
from ..tir.reduction_laws import operator_of
from ..tir.rewriting import substitute, variables, walk
from .reduction import constant_extents


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution; axes are numbers of the operation's axes, summed axes those of its reduction.

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

    @property
    def depth(self) -> int:
        """How many products a result is the sum of."""
        return prod(extents_of(self.op.reduce_axis)) // prod(list(self.phases))

    @property
    def bytes(self) -> int:
        """Bytes of an element of the result."""
        return max(1, parse_dtype(self.op.output(0).dtype).bits // 8)

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
        used = variables(self.data.indices[self.index_of(pixel)])
        return tuple(tap for tap in self.taps if tap.var in used)

    def stride_of(self, pixel: int) -> int:
        """Elements of the data between the windows of neighbouring pixels; 1 if they are no constant number."""
        return linear_form(self.data.indices[self.index_of(pixel)]).terms.get(self.op.axis[pixel].var, 1)

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
        axis = self.op.axis[pixel].var
        return next(place for place, index in enumerate(self.data.indices) if axis in variables(index))

    def _border(self, place: int) -> tuple[int, int] | None:
        """Elements before the data in this dimension of the padded data, and of the data itself; None if it isn't padded data."""
        producer = self.data.producer
        if not isinstance(producer, Tensor) or not isinstance(producer.op, ComputeOp):
            return None
        axis = producer.op.axis[place].var
        for load in (node for body in producer.op.body for node in walk(body) if isinstance(node, ProducerLoad)):
            for index, extent in zip(load.indices, load.producer.shape, strict=True):
                form, inner = linear_form(index), as_int(extent)
                if dict(form.terms) == {axis: 1} and inner is not None:
                    return -form.constant, inner
        return None

    def has_plain_channel(self) -> bool:
        """True if an index of the weights is the channel and nothing else."""
        return any(index is self.op.axis[self.channel].var for index in self.weights.indices)

    def merged_pixels(self) -> tuple[int, ...]:
        """The last pixel axes that are one axis in memory, of data and result: all of a plane for windows of one pixel."""
        merged = [self.pixels[-1]]
        while len(merged) < len(self.pixels):
            before, after = self.pixels[-1 - len(merged)], merged[0]
            places = [self._place(before), self._place(after)]
            if before + 1 != after or None in places or places[0] != (places[1] or 0) - 1:
                break
            merged.insert(0, before)
        return tuple(merged) if len(merged) > 1 or self._place(merged[0]) is not None else ()

    def ends_with(self, pixel: int) -> bool:
        """True if neighbours along this axis are neighbours in the data."""
        return self._place(pixel) == len(self.data.indices) - 1

    def _place(self, pixel: int) -> int | None:
        """The index of the data that is this axis and nothing else, over all of the dimension."""
        axis = self.op.axis[pixel]
        single = {tap.var: IntImm(tap.var.dtype, 0) for tap in self.op.reduce_axis if extents_of((tap,)) == [1]}
        for place, index in enumerate(self.data.indices):
            if axis.var in variables(index):
                form = linear_form(substitute(index, single))
                alone = form.constant == 0 and dict(form.terms) == {axis.var: 1}
                return place if alone and as_int(self.data.producer.shape[place]) == extents_of((axis,))[0] else None
        return None


def extents_of(axes: tuple[IterVar, ...]) -> list[int]:
    """The extents of axes of a convolution, which are constants."""
    found = constant_extents(axes)
    assert found is not None
    return found


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
    in_data = {var for index in data.indices for var in variables(index)}
    in_weights = {var for index in weights.indices for var in variables(index)}
    spatial = {axis.var: number for number, axis in enumerate(op.axis)}
    reduced = {axis.var: axis for axis in op.reduce_axis}
    channels = [number for var, number in spatial.items() if var in in_weights]
    pixels, taps = dict[int, int](), []
    for index in data.indices:
        used = variables(index)
        mine = [var for var in used if var in spatial and var not in in_weights]
        inside = [var for var in used if var in reduced]
        # A pixel and a tap in one index; alone they are a batch, or a channel that is summed.
        if mine and inside:
            phase = _phase(index)
            if len(mine) > 1 or phase is None or spatial[mine[0]] in pixels:
                return None
            pixels[spatial[mine[0]]] = phase
            taps += [reduced[var] for var in inside]
    # A reduced axis that only one operand has would be a sum of that operand, which no tile of products computes.
    shared = {var for var in reduced if var in in_data and var in in_weights}
    if not channels or not pixels or len(shared) != len(reduced):
        return None
    # Of several axes of channels the last lies along memory; those before it may be in the weights alone, or they would be groups.
    channel = channels[-1]
    per_group = _per_group(op, data, channel)
    if per_group is None or any(op.axis[number].var in in_data for number in channels[:-1]):
        return None
    outer = tuple(number for number in range(len(op.axis)) if number not in pixels and number != channel)
    inner_taps = tuple(axis for axis in op.reduce_axis if any(axis is tap for tap in taps))
    summed = tuple(axis for axis in op.reduce_axis if all(axis is not tap for tap in taps))
    where = tuple(sorted(pixels))
    return Convolution(op, data, weights, channel, outer, where, tuple(pixels[one] for one in where), inner_taps, summed, per_group)


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
