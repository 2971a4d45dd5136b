"""Sums of products of affinely indexed tensors, evaluated by `np.einsum` on strided views.

Matrix products, batched ones, convolutions and dot products are all this one form. Floats are multiplied and added in
float64; integers wrap in their ring, in float64 too where that is exact, since it is much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..arith import linear_form
from ..dataclass import dataclass
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import Add, Cast, FloatImm, IntImm, Mul, PrimExpr, ProducerLoad, Reduce, Var
from ..tir.intrin import max_value
from ..tir.reduction_laws import operator_of
from .blocks import Box, boxes
from .evaluation import Array

_EXACT = 1 << 53  # integers up to here are exact in float64


@dataclass(frozen=True, slots=True)
class Index:
    """constant + sum of coefficient * variable."""

    terms: tuple[tuple[Var, int], ...]
    constant: int


@dataclass(frozen=True, slots=True)
class Factor:
    """An element of a tensor at affine indices, converted through `casts` in order."""

    load: ProducerLoad
    indices: tuple[Index, ...]
    casts: tuple[str, ...]

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of the indices, each once."""
        return tuple(dict.fromkeys(var for index in self.indices for var, _ in index.terms))


@dataclass(frozen=True, slots=True)
class Contraction:
    """The sum over reduce axes of scale * the product of factors."""

    factors: tuple[Factor, ...]
    scale: float | int
    dtype: str


def recognise(reduction: Reduce) -> Contraction | None:
    """`reduction` as a sum of products, or None if it is anything else."""
    plain = len(reduction.source) == 1 and operator_of(reduction.combiner) is Add
    always = isinstance(reduction.condition, IntImm) and reduction.condition.value == 1
    dtype = parse_dtype(reduction.dtype)
    if not plain or not always or not (dtype.is_float or dtype.is_int):
        return None
    # sum(2 * cast(A[i, k]) * B[k, j + 1]) over k
    factors: list[Factor] = []
    scale: float | int = 1
    # a * (b * 2) * c: products nest to either side
    stack = [reduction.source[0]]
    while stack:
        node = stack.pop()
        if isinstance(node, Mul):
            stack += [node.b, node.a]
        elif isinstance(node, (IntImm, FloatImm)):
            # of a float the number that its dtype has, 0.09998 for 0.1 of float16, as elements have it elsewhere
            scale = scale * (float(node) if isinstance(node, FloatImm) else node.value)
        else:
            factor = _factor(node)
            if factor is None:
                return None
            factors.append(factor)
    return Contraction(tuple(factors), scale, reduction.dtype) if factors else None


def _factor(node: PrimExpr) -> Factor | None:
    casts: list[str] = []
    while isinstance(node, Cast):
        # the outermost cast is found first, and is done last
        casts.append(node.dtype)
        node = node.value
    if not isinstance(node, ProducerLoad):
        return None
    indices = [_affine(index) for index in node.indices]
    found = tuple(index for index in indices if index is not None)
    return Factor(node, found, tuple(reversed(casts))) if len(found) == len(indices) else None


def _affine(index: PrimExpr) -> Index | None:
    form = linear_form(index)
    terms = tuple(form.terms.items())
    if any(not isinstance(atom, Var) for atom, _ in terms):
        return None
    return Index(tuple((atom, coefficient) for atom, coefficient in terms if isinstance(atom, Var)), form.constant)


Ranges = Mapping[Var, tuple[int, int]]


def views(contraction: Contraction, arrays: Callable[[ProducerLoad], Array], ranges: Ranges, env: Mapping[Var, int]) -> list[Array] | None:
    """Each factor as a view with one dimension for each of its variables; None if an index leaves its tensor."""
    found = [_view(factor, arrays(factor.load), ranges, env) for factor in contraction.factors]
    kept = [view for view in found if view is not None]
    return kept if len(kept) == len(found) else None


def _view(factor: Factor, array: Array, ranges: Ranges, env: Mapping[Var, int]) -> Array | None:
    strides = dict.fromkeys((var for var in factor.variables if var in ranges), 0)
    first: list[int] = []
    for dim, index in enumerate(factor.indices):
        base = low = high = index.constant + sum(c * (ranges[v][0] if v in ranges else env[v]) for v, c in index.terms)
        for var, coefficient in index.terms:
            if var in ranges:
                reach = coefficient * (ranges[var][1] - ranges[var][0] - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
                # A[i, i] walks along the diagonal: the strides add up
                strides[var] += coefficient * array.strides[dim]
        if low < 0 or high >= array.shape[dim]:
            return None
        first.append(base)
    # slices, not numbers: the corner must stay a view of the array's memory
    corner = array[tuple(slice(b, b + 1) for b in first)] if first else array
    shape = tuple(ranges[var][1] - ranges[var][0] for var in strides)
    return as_strided(corner, shape, tuple(strides.values()), writeable=False)  # several iterations may read one element


def overflows(contraction: Contraction, arrays: Callable[[ProducerLoad], Array]) -> bool:
    """True if a product may leave the range of its float dtype, or isn't finite: float64 would hide that."""
    if not parse_dtype(contraction.dtype).is_float:
        return False
    bound = abs(float(contraction.scale))
    for factor in contraction.factors:
        array = arrays(factor.load)
        largest = max(abs(float(array.max())), abs(float(array.min()))) if array.size else 0.0
        # which factors are multiplied first isn't known here, so a small one makes up for no large one
        bound = max(bound, 1.0) * largest  # not a number if any element isn't
    # a NaN fails this comparison too
    limit = max_value(contraction.dtype)
    return not (isinstance(limit, FloatImm) and bound < float(limit))


def contract(contraction: Contraction, operands: Sequence[Array], ranges: Ranges, spatial: Sequence[Var], reduced: Sequence[Var]) -> Array:
    """The values over the box `ranges`, shaped like `spatial`, in float64 for floats and modulo 2**64 for integers."""
    labels = {var: number for number, var in enumerate((*spatial, *reduced))}
    names = [[labels[var] for var in factor.variables if var in labels] for factor in contraction.factors]
    used = {name for own in names for name in own}
    # a reduce axis that no factor has adds the same product once for each of its values
    repeats = 1
    for var in reduced:
        repeats *= 1 if labels[var] in used else ranges[var][1] - ranges[var][0]
    # an upper bound of the terms of a sum, for `_working_dtype`
    length = repeats
    for var in reduced:
        length *= ranges[var][1] - ranges[var][0]
    operands = [_converted(view, factor.casts) for view, factor in zip(operands, contraction.factors, strict=True)]
    kind = _working_dtype(contraction, operands, length)
    output = [labels[var] for var in spatial if labels[var] in used]
    with np.errstate(all="ignore"):
        total = (
            _sum_of_products([view.astype(kind) for view in operands], names, output) * kind.type(contraction.scale) * kind.type(repeats)
        )
    # float64 may have held exact integers (see `_working_dtype`): they are integers again before anyone narrows them
    total = np.asarray(total if parse_dtype(contraction.dtype).is_float else total.astype(np.int64))
    shape = [ranges[var][1] - ranges[var][0] for var in spatial]
    # along an axis that no factor has all values are the same
    kept = [extent if labels[var] in used else 1 for var, extent in zip(spatial, shape, strict=True)]
    return np.broadcast_to(total.reshape(kept), shape)


def _converted(view: Array, casts: tuple[str, ...]) -> Array:
    with np.errstate(all="ignore"):
        for dtype in casts:
            view = view.astype(to_numpy(dtype))
    return view


def _working_dtype(contraction: Contraction, operands: Sequence[Array], length: int) -> np.dtype[np.generic]:
    if parse_dtype(contraction.dtype).is_float:
        return np.dtype(np.float64)
    # no partial sum is larger than |scale| * length * the largest product
    bound = abs(int(contraction.scale)) * length
    for view in operands:
        # Python's integers: |-128| has no place in int8
        bound *= max(abs(int(view.max())), abs(int(view.min()))) if view.size else 1
    return np.dtype(np.float64 if bound < _EXACT else np.int64)


def _sum_of_products(operands: list[Array], names: list[list[int]], output: list[int]) -> Array:
    # one operand or more than two: there is no single matrix product to map to
    if len(operands) != 2:
        arguments: list[object] = [item for pair in zip(operands, names, strict=True) for item in pair]
        return np.einsum(*arguments, output)  # type: ignore[call-overload]
    (a, b), (in_a, in_b) = operands, names
    # a name that one operand alone has and the output lacks is summed at once; what is left is a batched matrix product, which BLAS does
    a, in_a = _drop(a, in_a, {*in_b, *output})
    b, in_b = _drop(b, in_b, {*in_a, *output})
    batch = [n for n in in_a if n in in_b and n in output]
    inner = [n for n in in_a if n in in_b and n not in output]
    rows = [n for n in in_a if n not in in_b]
    columns = [n for n in in_b if n not in in_a]
    sizes = dict(zip(in_a + in_b, a.shape + b.shape, strict=True))
    left = _arranged(a, in_a, (batch, rows, inner), sizes)
    right = _arranged(b, in_b, (batch, inner, columns), sizes)
    order = batch + rows + columns
    product = np.matmul(left, right).reshape([sizes[n] for n in order])
    return product.transpose([order.index(n) for n in output])


def _drop(operand: Array, names: list[int], keep: set[int]) -> tuple[Array, list[int]]:
    """`operand` summed over the dimensions that nobody else has."""
    gone = tuple(d for d, name in enumerate(names) if name not in keep)
    return (operand.sum(axis=gone), [n for n in names if n in keep]) if gone else (operand, names)


def _arranged(operand: Array, names: list[int], groups: tuple[list[int], ...], sizes: Mapping[int, int]) -> Array:
    shape = []
    for group in groups:
        extent = 1
        for name in group:
            extent *= sizes[name]
        shape.append(extent)
    return operand.transpose([names.index(n) for group in groups for n in group]).reshape(shape)


def first_fitting(extents: Sequence[int], fits: Callable[[Box], bool]) -> int:
    """The largest volume, among the total and its halvings, whose first box `fits`; at least 1."""
    volume = 1
    for extent in extents:
        volume *= extent
    # halvings, so `fits` is asked O(log volume) times
    # no box is larger than the first
    while volume > 1 and not fits(next(boxes(extents, volume))):
        volume //= 2
    return max(volume, 1)
