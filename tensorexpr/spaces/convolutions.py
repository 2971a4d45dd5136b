"""Convolutions seen in a computation: contractions whose rows slide over one operand in windows.

    C[n, y, x, o] = sum over r, s, k of D[n, 2y + r, 2x + s, k] * W[r, s, k, o]
        column o   is in the lanes: the weights move along it
        rows y, x  are pixels: each stands in an index of the data with a summed axis, its tap r or s
        batch n    moves one operand, without a window
        summed     taps r, s and channels k of the data

Names, tags and the order of the indices don't matter, nor how many dimensions a window has. In a transposed convolution the data is
D[.., (y + r) // phases, ..] and terms with a remainder are zero: results y and y + 1 have different taps.
"""

from __future__ import annotations

from math import prod

from ..arith import linear_form
from ..dataclass import dataclass
from ..te.affine_access import access_of
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Add, Call, Cast, FloatImm, FloorDiv, IntImm, Mul, PrimExpr, ProducerLoad, Reduce, Select, Var
from ..tir.reduction_laws import operator_of
from ..tir.rewriting import variables
from .access import bordered
from .contractions import Contraction, Operand, axis_numbers, operand_at
from .stages import constant_extents, extents_of


@dataclass(frozen=True, eq=False)
class Convolution(Contraction):
    """A contraction with windows; `left` is the data, `right` the weights, `rows` are pixels. Axes are numbers.

    Args:
        phases: for each axis of pixels, how far apart results with the same taps are: 1 unless the convolution is transposed.
        taps: summed axes inside a window, in order.
        per_group: channels that see the same data; all of them without groups.
    """

    phases: tuple[int, ...] = ()
    taps: tuple[int, ...] = ()
    per_group: int = 0

    @property
    def data(self) -> Operand:
        """What the window slides over."""
        return self.left[0]

    @property
    def depth(self) -> int:
        """How many products a result is the sum of."""
        return self.size(*self.summed) // prod(self.phases)

    @property
    def channels(self) -> tuple[int, ...]:
        """The summed axes that aren't in a window."""
        return tuple(axis for axis in self.summed if axis not in self.taps)

    @property
    def is_transposed(self) -> bool:
        """True if terms are left out."""
        return any(phase > 1 for phase in self.phases)

    def taps_of(self, pixel: int) -> tuple[int, ...]:
        """The axes of the window along a pixel axis."""
        return tuple(axis for axis in sorted(self.data.moved[self.index_of(pixel)]) if axis in self.summed)

    def stride_of(self, pixel: int) -> int:
        """Elements of the data between the windows of neighbouring pixels; 1 if they are no constant number."""
        return self.data.partial[self.index_of(pixel)].get(pixel, 1)

    def live_pixels(self, pixel: int, bordered: bool) -> list[range]:
        """For each tap along a pixel axis, the pixels (of one phase) whose terms it has.

        Args:
            bordered: the terms of a border of zeros are there too.

        Example:
            A window of 3 over 7 pixels with a border of 1: range(1, 7), range(0, 7), range(0, 6).
        """
        place, extent, taps = self.index_of(pixel), self.size(pixel), self.taps_of(pixel)
        phase, count, stride = self.phases[self.rows.index(pixel)], self.size(*taps), self.stride_of(pixel)
        # Terms are left out only where the index is one tap and one pixel: with two taps in it no range of pixels says which are zero.
        border, form = self._border(place), linear_form(self.data.load.indices[place])
        is_one_tap = len(taps) == 1 and phase == 1 and stride > 0
        if bordered or border is None or not is_one_tap:
            return [range(-(-extent // phase))] * (count // phase)
        # A tap's term reads data, not border, at pixels with first <= stride * pixel < first + length: both ends round up.
        firsts = [border[0] - form.constant - tap * form.terms[self.axis(taps[0]).var] for tap in range(count)]
        return [range(max(0, -(-first // stride)), min(extent, -(-(first + border[1]) // stride))) for first in firsts]

    def index_of(self, pixel: int) -> int:
        """Which index of the data a pixel axis moves."""
        return next(place for place, moved in enumerate(self.data.moved) if pixel in moved)

    def _border(self, place: int) -> tuple[int, int] | None:
        """Elements before the data in this dimension of the padded data, and of the data itself; None if it isn't padded data."""
        load = bordered(self.data.tensor.op)
        inner = None if load is None else as_int(load.producer.shape[place])
        return None if load is None or inner is None else (-linear_form(load.indices[place]).constant, inner)

    def merged_rows(self) -> tuple[int, ...]:
        """The last pixel axes that are one axis in memory, of data and result: all of a plane for windows of one pixel."""
        merged = tuple[int, ...]()
        for pixel in reversed(self.rows):
            is_next = not merged or (pixel + 1 == merged[0] and self.index_of(pixel) + 1 == self.index_of(merged[0]))
            if not is_next or not self._is_whole(pixel):
                break
            merged = (pixel, *merged)
        return merged

    def _is_whole(self, pixel: int) -> bool:
        """True if an index of the data is this axis and nothing else, over all of its dimension."""
        place = self.index_of(pixel)
        form = linear_form(self.data.load.indices[place])
        one_pixel = self.size(*self.taps_of(pixel)) == 1 and self.stride_of(pixel) == 1
        alone = one_pixel and self.data.forms[place] is not None and form.constant == 0
        return alone and as_int(self.data.tensor.shape[place]) == self.size(pixel)


def convolution_of(op: object) -> Convolution | None:
    """The operation as a convolution, or None if it is anything else.

    Example:
        Y[o, y, x] += D[k, y + r, x] * W[o, k, r]: rows y and x, tap r. Not Y[c, y] += D[c, y + r] * W[c, r]: each channel has its own data.
    """
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or constant_extents((*op.axis, *op.reduce_axis)) is None:
        return None
    factors = _factors(op.body[0])
    if factors is None:
        return None
    left, right, partial = factors
    # A product commutes, so either factor may be the data; the window tells which.
    for data, weights in ((left, right), (right, left)):
        found = _roles(op, data, weights)
        # Zeros by a condition are the remainders of a transposed convolution; either without the other is something else.
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
    # A sum of products alone: padding a maximum of sums with zeros would change it.
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
    sizes = extents_of((*op.axis, *op.reduce_axis))
    results, summed = range(len(op.axis)), range(len(op.axis), len(sizes))
    read, fixed = _operand(op, data), _operand(op, weights)
    channels = [axis for axis in results if fixed.moves_with(axis)]
    phases, taps = dict[int, int](), set[int]()
    for index, moved in zip(data.indices, read.moved, strict=True):
        mine, inside = [axis for axis in moved if axis in results and axis not in channels], moved.intersection(summed)
        # A pixel and a tap in one index; alone they are a batch, or a channel that is summed.
        if mine and inside:
            phase = _phase(index)
            if len(mine) > 1 or phase is None or mine[0] in phases:
                return None
            phases[mine[0]] = phase
            taps |= inside
    # A reduced axis that only one operand has would be a sum of that operand, which no tile of products computes.
    shared = all(read.moves_with(axis) and fixed.moves_with(axis) for axis in summed)
    if not channels or not phases or not shared:
        return None
    # Of several axes of channels the last lies along memory; those before it are in the weights alone, or groups of their own.
    column = channels[-1]
    # Example: depthwise, D[n, c, y + r, x + s] with c in the lanes: each channel sees its own data, nothing is broadcast.
    per_group = _per_group(op, data, column)
    if per_group is None:
        return None
    pixels = tuple(sorted(phases))
    return Convolution(
        op,
        tuple(sizes),
        left=(read,),
        right=fixed,
        column=column,
        batch=tuple(axis for axis in results if axis not in phases and axis != column),
        rows=pixels,
        summed=(*sorted(taps), *(axis for axis in summed if axis not in taps)),
        phases=tuple(phases[pixel] for pixel in pixels),
        taps=tuple(sorted(taps)),
        per_group=per_group,
    )


def _operand(op: ComputeOp, load: ProducerLoad) -> Operand:
    """A load by the numbers of the axes, as it stands in the definition."""
    access = access_of(load, axis_numbers(op).get)
    return operand_at(access, access if access.is_affine else None)


def _phase(index: PrimExpr) -> int | None:
    """1 for an affine index, n for one that is such an index // n; None for any other."""
    # Example: (y + r) // 2 of a transposed convolution of stride 2: results 0 and 2 meet the same taps, 0 and 1 don't.
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
            # D[.., o // 8 * 4 + k]: eight neighbouring o see the same channels
            found = min(found, atom.b.value)
    return found
