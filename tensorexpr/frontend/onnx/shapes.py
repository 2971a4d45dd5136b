"""Shape arithmetic: operators on numbers and expressions that are known are computed at import, and never become kernels.

An array of objects holds integers and expressions of symbols; NumPy moves and combines them as it does numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ... import relax
from ...tir.arithmetic import maximum, minimum
from ...tir.expr import FloorDiv, FloorMod, PrimExpr
from .attributes import Attributes
from .context import Context
from .dtypes import dtype_of, is_computed, numpy_dtype
from .values import LARGEST_KNOWN, known, simple

Operands: TypeAlias = Sequence[Any]


class Unknown(Exception):
    """What an operator gives can't be said at import."""


def computed(context: Context, attrs: Attributes) -> list[Any] | None:
    """The results of a node of shape arithmetic, or None if it is none, or not all that it needs is known."""
    name = context.node.op_type
    if name in ("Shape", "Size"):
        return _shape(context, attrs, name == "Size")
    function = _MEANING.get(name)
    if function is None or not context.values:
        return None
    operands = [context.known(n) for n in range(len(context.values))]
    # Larger arrays are data: computing them here would take time and memory, and a kernel does it as well.
    if any(one is None or one.values.size > LARGEST_KNOWN for one in operands):
        return None
    arrays = [one.values for one in operands if one is not None]
    if any(array.dtype == object for array in arrays):
        # All or none: operators look at their first operand to see whether there are expressions.
        arrays = [array.astype(object) for array in arrays]
    try:
        with np.errstate(all="ignore"):
            found = function(context, attrs, arrays)
    # What NumPy refuses, the operator refuses as well, and says why.
    except (Unknown, ZeroDivisionError, ValueError, IndexError):
        return None
    results = found if isinstance(found, list) else [found]
    if any(np.size(one) > LARGEST_KNOWN for one in results):
        return None
    with np.errstate(all="ignore"):  # NaN as an integer is some number, without a warning
        return [known(one, _result_dtype(context, attrs)) for one in results]


def _result_dtype(context: Context, attrs: Attributes) -> str:
    name = context.node.op_type
    if name == "Cast":
        return dtype_of(attrs.int("to"), context.where)
    if name in _CONDITIONS:
        return "bool"
    return context.dtype(1 if name == "Where" else 0)


def _shape(context: Context, attrs: Attributes, is_size: bool) -> list[Any] | None:
    """The extents of a tensor, or how many elements it has."""
    value = context.value(0)
    info = None if value is None else value.info
    if not isinstance(info, relax.TensorStructInfo) or info.ndim < 0:
        return None
    extents = context.extents(0)
    if is_size:
        total: Any = 1
        for one in extents:
            total = total * one
        return [known(_objects([total]).reshape(()), "int64")]
    start, end = attrs.int("start", 0), attrs.int("end", None)
    return [known(_objects(extents[slice(start, end)]), "int64")]


def _objects(items: Sequence[Any]) -> Any:
    made = np.empty(len(items), dtype=object)
    made[:] = list(items)
    return made


def _list(array: Any) -> list[int]:
    """Numbers that say places.

    Raises:
        Unknown: if they are expressions.
    """
    flat = np.ravel(array).tolist()
    if any(isinstance(one, PrimExpr) for one in flat):
        raise Unknown
    return [int(one) for one in flat]


def _elementwise(function: Callable[..., Any], numpy: Callable[..., Any]) -> Callable[..., Any]:
    """An operator on pairs: NumPy's on numbers, else one by one."""
    each = np.frompyfunc(function, 2, 1)

    def run(context: Context, attrs: Attributes, given: Operands) -> Any:
        # Up to opset 6 these attributes say where the axes of the second operand stand.
        if "axis" in attrs or "broadcast" in attrs or len(given) < 2:
            raise Unknown
        found = given[0]
        for one in given[1:]:
            found = each(found, one) if found.dtype == object else numpy(found, one)
            found = np.asarray(found, dtype=object) if not isinstance(found, np.ndarray) and given[0].dtype == object else np.asarray(found)
        return found

    return run


def _quotient(a: Any, b: Any) -> Any:
    """Of extents, which aren't negative, by a positive number; rounded towards zero where both are numbers."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if any(isinstance(one, int) and one < 0 for one in (a, b)):
        raise Unknown
    # No operand is negative here, so rounding down is rounding towards zero.
    return FloorDiv(a, b) if isinstance(a, PrimExpr) and isinstance(b, PrimExpr) else a // b


def _np_quotient(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    # NumPy answers 0 for n // 0; the kernel shall say what that is.
    if np.any(b == 0):
        raise Unknown
    return np.where((a < 0) != (b < 0), -(np.abs(a) // np.abs(b)), np.abs(a) // np.abs(b)).astype(a.dtype)


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b <= 0:
        raise Unknown
    return FloorMod(a, b) if isinstance(a, PrimExpr) and isinstance(b, PrimExpr) else a % b


def _np_remainder(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iu" or np.any(b == 0):
        raise Unknown
    return np.mod(a, b)


def _mod(context: Context, attrs: Attributes, given: Operands) -> Any:
    """What division leaves; with `fmod` it has the sign of the dividend, which isn't said of expressions."""
    if not attrs.bool("fmod", False):
        return _elementwise(_remainder, _np_remainder)(context, attrs, given)
    if any(one.dtype == object for one in given) or np.any(given[1] == 0):
        raise Unknown
    return np.fmod(*given)


def _decided(comparison: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """A comparison that may be of expressions: their difference decides it, or that extents aren't negative."""

    def decide(a: Any, b: Any) -> Any:
        if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
            difference = simple(a - b)
            if isinstance(difference, int):
                return comparison(difference, 0)
            if isinstance(b, int) and b < 0:  # an extent against a number below 0
                return comparison(1, 0)
            if isinstance(a, int) and a < 0:
                return comparison(-1, 0)
            raise Unknown
        return comparison(a, b)

    return decide


def _expression_min(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else minimum(a, b)


def _expression_max(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else maximum(a, b)


def _cast(context: Context, attrs: Attributes, given: Operands) -> Any:
    dtype = dtype_of(attrs.int("to"), context.where)
    if given[0].dtype == object:
        # Expressions of extents are integers: in a float or a bool they would mean something else.
        if dtype not in ("int64", "int32"):
            raise Unknown
        return given[0]
    if not is_computed(dtype) or given[0].dtype.kind not in "biuf":
        raise Unknown
    return given[0].astype(numpy_dtype(dtype))


def _gather(context: Context, attrs: Attributes, given: Operands) -> Any:
    axis, places = attrs.int("axis", 0), np.asarray(_list(given[1])).reshape(given[1].shape).astype(np.int64)
    extent = given[0].shape[axis]
    if np.any((places < -extent) | (places >= extent)):
        context.fail(f"index {places.tolist()} of {extent} elements")
    return np.take(given[0], places, axis)


def _slice(context: Context, attrs: Attributes, given: Operands) -> Any:
    data = given[0]
    if context.opset < 10:
        starts, ends = attrs.ints("starts"), attrs.ints("ends")
        axes, steps = attrs.ints("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = _list(given[1]), _list(given[2])
        axes = _list(given[3]) if len(given) > 3 else list(range(len(starts)))
        steps = _list(given[4]) if len(given) > 4 else [1] * len(starts)
    index: list[Any] = [slice(None)] * data.ndim
    for axis, low, high, step in zip(axes, starts, ends, steps, strict=True):
        stop: int | None = high
        if step < 0 and high < -data.shape[axis]:
            stop = None
        index[axis] = slice(low, stop, step)
    return data[tuple(index)]


def _axes_of(context: Context, attrs: Attributes, given: Operands) -> list[int] | None:
    if len(given) > 1:
        return _list(given[1])
    found: list[int] | None = attrs.ints("axes", None)
    return found


def _unsqueeze(context: Context, attrs: Attributes, given: Operands) -> Any:
    return np.expand_dims(given[0], tuple(_axes_of(context, attrs, given) or ()))


def _squeeze(context: Context, attrs: Attributes, given: Operands) -> Any:
    axes = _axes_of(context, attrs, given)
    return np.squeeze(given[0], None if axes is None else tuple(axes))


def _reshape(context: Context, attrs: Attributes, given: Operands) -> Any:
    shape = attrs.ints("shape") if context.opset < 5 else _list(given[1])
    if not attrs.bool("allowzero", False):
        shape = [given[0].shape[n] if one == 0 else one for n, one in enumerate(shape)]
    return given[0].reshape(shape)


def _expand(context: Context, attrs: Attributes, given: Operands) -> Any:
    shape = np.broadcast_shapes(given[0].shape, tuple(_list(given[1])))
    if math.prod(shape) > LARGEST_KNOWN:
        raise Unknown
    return np.broadcast_to(given[0], shape)


def _range(context: Context, attrs: Attributes, given: Operands) -> Any:
    if given[0].dtype.kind not in "iuO" or any(one.size != 1 for one in given):
        raise Unknown
    start, limit, delta = (_list(one)[0] for one in given)
    if delta == 0 or (limit - start) // delta > LARGEST_KNOWN:
        raise Unknown
    return np.arange(start, limit, delta, dtype=np.int64)


def _where(context: Context, attrs: Attributes, given: Operands) -> Any:
    return np.where(np.asarray(given[0], dtype=bool), given[1], given[2])


def _reduced(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    fold = np.frompyfunc(combine, 2, 1)

    def run(context: Context, attrs: Attributes, given: Operands) -> Any:
        axes = _axes_of(context, attrs, given)
        if given[0].ndim != 1 or axes not in (None, [0], [-1]) or not given[0].size:
            raise Unknown
        return np.asarray(fold.reduce(given[0].astype(object)), dtype=object).reshape((1,) if attrs.bool("keepdims", True) else ())

    return run


def _split(context: Context, attrs: Attributes, given: Operands) -> Any:
    axis, count = attrs.int("axis", 0), len(context.node.output)
    sizes = _list(given[1]) if len(given) > 1 else attrs.ints("split", None)
    if sizes is None:
        # Rounded up: of 7 elements 3 parts have 3, 3 and 1.
        size = -(-given[0].shape[axis] // count)
        return np.split(given[0], [size * n for n in range(1, count)], axis)
    if min(sizes, default=0) < 0 or sum(sizes) != given[0].shape[axis]:
        raise Unknown
    return np.split(given[0], np.cumsum(sizes)[:-1].tolist(), axis)


_CONDITIONS = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"}
_MEANING: Mapping[str, Callable[..., Any]] = {
    "Add": _elementwise(lambda a, b: a + b, np.add),
    "And": _elementwise(lambda a, b: a and b, np.logical_and),
    "Cast": _cast,
    "Concat": lambda context, attrs, given: np.concatenate(given, attrs.int("axis", 1 if context.opset < 4 else 0)),
    "Div": _elementwise(_quotient, _np_quotient),
    "Equal": _elementwise(_decided(lambda a, b: a == b), np.equal),
    "Expand": _expand,
    "Gather": _gather,
    "Greater": _elementwise(_decided(lambda a, b: a > b), np.greater),
    "GreaterOrEqual": _elementwise(_decided(lambda a, b: a >= b), np.greater_equal),
    "Identity": lambda context, attrs, given: given[0],
    "Less": _elementwise(_decided(lambda a, b: a < b), np.less),
    "LessOrEqual": _elementwise(_decided(lambda a, b: a <= b), np.less_equal),
    "Max": _elementwise(_expression_max, np.maximum),
    "Min": _elementwise(_expression_min, np.minimum),
    "Mod": _mod,
    "Mul": _elementwise(lambda a, b: a * b, np.multiply),
    "Neg": lambda context, attrs, given: -given[0],
    "Not": lambda context, attrs, given: np.logical_not(given[0]),
    "Or": _elementwise(lambda a, b: a or b, np.logical_or),
    "Range": _range,
    "ReduceMax": _reduced(_expression_max),
    "ReduceMin": _reduced(_expression_min),
    "ReduceProd": _reduced(lambda a, b: a * b),
    "ReduceSum": _reduced(lambda a, b: a + b),
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _elementwise(lambda a, b: a - b, np.subtract),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
