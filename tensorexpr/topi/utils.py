"""Arguments of operators: constants out of expressions, axes, paddings, and numbers made into tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import DeclarationError
from ..later import later
from ..target import Target
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int, const, convert, floordiv, floormod
from ..tir.expr import IntImm, PrimExpr, Range
from ..tir.intrin import select
from ..tir.rewriting import variables
from .tag import is_injective

_LAYOUTS = "get_shape nchw_pack_layout nchw_xc_layout ncw_pack_layout ncw_xc_layout"
# Ends from here on mean "to the end": exporters write the largest int64, and no axis is so long.
_NO_END = 1 << 62
_LARGEST_SIZE = (1 << 31) - 1


class InvalidShapeError(DeclarationError):
    """A shape that an operator's algorithm doesn't take."""


def get_const_int(expr: Any) -> int:
    """The value of an integer or of a constant expression.

    Raises:
        DeclarationError: if it is no constant.
    """
    value = expr if isinstance(expr, int) else as_int(convert(expr))
    if value is None:
        raise DeclarationError(f"expected a constant integer, not {expr}")
    return int(value)


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """Integers where the values are constants; other expressions stay as they are."""
    return tuple(extent_value(value) for value in in_tuple)


def extent_value(extent: Any) -> Any:
    """An extent as an integer if it is a constant, else as it is."""
    if isinstance(extent, int):
        return extent
    value = as_int(convert(extent))
    return extent if value is None else value


def equal_const_int(expr: Any, value: int) -> bool:
    """True if `expr` is that constant."""
    found = expr if isinstance(expr, int) else as_int(expr)
    return found is not None and found == value


def spread(where: str, name: str, value: Any, count: int) -> tuple[Any, ...]:
    """One value for each of `count` dimensions: a single value is repeated.

    Raises:
        DeclarationError: for a sequence of another length.
    """
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise DeclarationError(f"{where}: {name} is {tuple(value)}; it takes one number, or {count}")
        return tuple(extent_value(item) for item in value)
    return (extent_value(value),) * count


def positive_axis(where: str, axis: int, ndim: int) -> int:
    """The axis counted from the first.

    Raises:
        DeclarationError: if there is no such axis.
    """
    # True is an integer to Python, but no axis: somebody has mixed up arguments.
    if not isinstance(axis, int) or isinstance(axis, bool) or not -ndim <= axis < ndim:
        raise DeclarationError(f"{where}: there is no axis {axis!r}; a tensor of {ndim} dimensions has axes {-ndim} to {ndim - 1}")
    return axis % ndim


def positive_axes(where: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the first, sorted; None stands for all of them.

    Raises:
        DeclarationError: for an axis that isn't there or is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (list, tuple)) else (axis,)
    axes = sorted(positive_axis(where, a, ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise DeclarationError(f"{where}: axis {tuple(given)} names an axis twice")
    return tuple(axes)


def taken(extent: Any, begin: Any, end: Any, step: int) -> tuple[Any, Any] | None:
    """Where `[begin:end:step]` of an axis starts, and how many elements it takes, with Python's meaning of negative and large numbers.

    Args:
        extent, begin, end: integers, or expressions of sizes.
        step: not 0.

    Returns:
        (start, count), or None where sizes decide whether a bound lies inside, so that no formula without minima says it.
    """
    if any(isinstance(extent_value(one), PrimExpr) for one in (extent, begin, end)):
        return _taken_symbolic(convert(extent), begin, end, step) if step > 0 else None
    size, low, high = (int(extent_value(one)) for one in (extent, begin, end))
    places = range(size)[low:high:step]
    return places.start, len(places)


def _taken_symbolic(extent: PrimExpr, begin: Any, end: Any, step: int) -> tuple[PrimExpr, PrimExpr] | None:
    from ..arith.analyzer import Analyzer

    def place(bound: Any) -> PrimExpr:
        number = extent_value(bound)
        if isinstance(number, int) and number >= _NO_END:
            return extent
        return extent + number if isinstance(number, int) and number < 0 else convert(bound, extent.dtype)

    low, high = place(begin), place(end)
    sizes = {var for one in (extent, low, high) for var in variables(one)}
    # Sizes aren't negative, and that is all: of n elements the last one is none if n is 0, so [-1:] has no formula.
    analyzer = Analyzer({var: Range.from_min_extent(const(0, var.dtype), const(_LARGEST_SIZE, var.dtype)) for var in sizes})
    if not all(analyzer.known_true(a <= b) for a, b in ((const(0, extent.dtype), low), (low, high), (high, extent))):
        return None
    return analyzer.simplify(low), analyzer.simplify(floordiv(high - low + (step - 1), step))


def need_rank(where: str, name: str, tensor: Any, ndim: int) -> None:
    """Refuse what is no tensor of `ndim` dimensions."""
    if not isinstance(tensor, Tensor):
        raise DeclarationError(f"{where}: {name} is {tensor!r}; it takes a tensor")
    if tensor.ndim != ndim:
        raise DeclarationError(f"{where}: {name} has the shape {shape_text(tensor)}; it takes {ndim} dimensions")


def need_matrices(where: str, tensor: Tensor) -> None:
    """Refuse a tensor of fewer than two dimensions."""
    if tensor.ndim < 2:
        raise DeclarationError(f"{where}: {tensor.name} has {tensor.ndim} dimensions; it takes matrices, two or more")


def need_equal(where: str, what: str, a: Any, b: Any) -> None:
    """Refuse two extents that are different constants."""
    x, y = extent_value(a), extent_value(b)
    if isinstance(x, int) and isinstance(y, int) and x != y:
        raise DeclarationError(f"{where}: {what} must be equal, but they are {x} and {y}")


def need_shape(where: str, name: str, tensor: Any, *extents: Any) -> None:
    """Refuse what is no tensor of these extents; None stands for any."""
    need_rank(where, name, tensor, len(extents))
    for place, (found, wanted) in enumerate(zip(tensor.shape, extents, strict=True)):
        if wanted is not None:
            need_equal(where, f"extent {place} of {name} {shape_text(tensor)} and what it goes with", found, wanted)


def shape_text(tensor: Tensor) -> str:
    """A tensor's shape for messages."""
    return f"[{', '.join(map(str, tensor.shape))}]"


def is_zero(value: Any) -> bool:
    """True for the integer constant 0."""
    return equal_const_int(value, 0)


def one() -> IntImm:
    """The extent 1."""
    return IntImm("int32", 1)


def one_of(values: Sequence[PrimExpr], place: PrimExpr) -> PrimExpr:
    """The value at a place of few, by comparisons; of a place that isn't there the last one."""
    found = values[-1]
    for number in reversed(range(len(values) - 1)):
        found = select(convert(place == number), values[number], found)
    return found


def index_map(axes: Sequence[PrimExpr], **fixed: PrimExpr) -> tuple[PrimExpr, ...]:
    """The indices `axes` with some of them replaced: `index_map(axes, at1=k)` has k at position 1."""
    changed = list(axes)
    for key, value in fixed.items():
        changed[int(key.removeprefix("at"))] = value
    return tuple(changed)


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Padding of two dimensions as (top, left, bottom, right). See `pad_pairs`."""
    (top, bottom), (left, right) = pad_pairs("get_pad_tuple", padding, kernel)
    return top, left, bottom, right


def get_pad_tuple1d(padding: Any, kernel: Any) -> tuple[Any, Any]:
    """Padding of one dimension as (left, right). See `pad_pairs`."""
    size = kernel if isinstance(kernel, (list, tuple)) else (kernel,)
    return pad_pairs("get_pad_tuple1d", padding, size)[0]


def get_pad_tuple3d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, ...]:
    """Padding of three dimensions as (front, top, left, back, bottom, right). See `pad_pairs`."""
    pairs = pad_pairs("get_pad_tuple3d", padding, kernel)
    return (*(before for before, _ in pairs), *(after for _, after in pairs))


def pad_pairs(where: str, padding: Any, kernel: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """Padding as (before, after) for each dimension.

    Args:
        padding: one number for all; one for each dimension, on both sides; all befores and then all afters; "VALID"
            for none; or "SAME", which makes the output of stride 1 as large as the input.
        kernel: the dilated extents of the window.

    Raises:
        DeclarationError: for anything else.
    """
    dims = len(kernel)
    if padding == "VALID":
        return ((0, 0),) * dims
    if padding == "SAME":
        # Of an odd total the larger half comes in front, as in TVM; TensorFlow puts it behind.
        totals = [extent_value(size) - 1 for size in kernel]
        return tuple(((total + 1) // 2, total - (total + 1) // 2) for total in totals)
    if isinstance(padding, str):
        raise DeclarationError(f'{where}: padding is {padding!r}; it takes "VALID", "SAME", one number, {dims} or {2 * dims} numbers')
    if isinstance(padding, (list, tuple)):
        values = get_const_tuple(padding)
        if len(values) == dims:
            return tuple((v, v) for v in values)
        if len(values) == 2 * dims:
            return tuple(zip(values[:dims], values[dims:], strict=True))
        raise DeclarationError(f"{where}: padding is {tuple(padding)}; it takes one number, {dims} or {2 * dims} of them")
    return ((extent_value(padding), extent_value(padding)),) * dims


def get_pad_tuple_generic(padding: Any, kernel: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Padding of any number of dimensions, as all befores and all afters. See `pad_pairs`."""
    pairs = pad_pairs("get_pad_tuple_generic", padding, kernel)
    return [before for before, _ in pairs], [after for _, after in pairs]


def get_const_float(expr: Any) -> float:
    """The value of a number or of a constant expression.

    Raises:
        DeclarationError: if it is no constant.
    """
    value = expr if isinstance(expr, (int, float)) else getattr(convert(expr), "value", None)
    if not isinstance(value, (int, float)):
        raise DeclarationError(f"expected a constant number, not {expr}")
    return float(value)


def get_float_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """Floats where the values are constants; other expressions stay as they are."""
    return tuple(v if isinstance(v, PrimExpr) and not hasattr(v, "value") else get_const_float(v) for v in in_tuple)


def is_dynamic_shape(shape: Sequence[Any]) -> bool:
    """True if an extent is no constant."""
    return not all(isinstance(extent_value(extent), int) for extent in shape)


def is_empty_shape(shape: Sequence[Any]) -> bool:
    """True if an extent is 0."""
    return any(equal_const_int(extent, 0) for extent in shape)


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The position of an element, counted row by row."""
    position: Any = 0
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of an element whose position is counted row by row."""
    found: list[Any] = []
    for extent in reversed(shape):
        found.append(floormod(idx, extent))
        idx = floordiv(idx, extent)
    return found[::-1]


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The largest power of two that divides n, and is at most `max_value` if that is given."""
    power = n & -n
    while max_value is not None and power > max_value:
        power //= 2
    return power


def is_target(names: Any) -> bool:
    """Is one of the names a key of the current target?"""
    wanted = {names} if isinstance(names, str) else set(names)
    return bool(wanted & set(Target.target_or_current(None).keys))


def simplify(expr: Any) -> Any:
    """An expression in its simplest form; numbers stay as they are."""
    from ..arith.analyzer import Analyzer

    return Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def traverse_inline(s: Any, final_op: Any, callback: Any) -> None:
    """Inline the elementwise and broadcasting operations between a schedule's outputs and what they are made of.

    Args:
        s: a te.Schedule, changed in place.
        final_op: where to begin.
        callback: called with `final_op` and the operations reached through those that are inlined, producers first; not with placeholders.
    """
    seen: set[Any] = set()

    def visit(op: Any) -> None:
        if op in seen:
            return
        seen.add(op)
        if is_injective(op.tag):
            if op not in s.outputs:
                s[op].compute_inline()
            for tensor in op.input_tensors:
                if tensor.op.input_tensors:
                    visit(tensor.op)
        callback(op)

    visit(final_op)


__getattr__, __dir__ = later(__name__, {".advanced_indexing": "const_matrix", ".layouts": _LAYOUTS})
