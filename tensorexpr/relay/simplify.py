"""SimplifyExpr: calls that say the same with fewer operators, by rules of single calls and their operands.

    transpose(transpose(x, [0, 2, 3, 1]), [0, 3, 1, 2])   ->   x
    (x + 1) * c + d                                       ->   x * c + (c + d)
    zeros_like(x)                                         ->   zeros([3, 4], "float32"), where extents are known

A rule gets a call whose operands are simple already, and returns what stands in its place, of the same type, or None. Sums and products of
floats may be rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..relax import expr as graph
from ..relax.struct_info import TensorStructInfo
from ..tir.arithmetic import as_int
from ..tir.dtype import int_limits, parse_dtype
from ..tir.op_registry import Op
from ..topi.transform import parse_layout
from .expr import Call, Constant, const
from .kinds import kind_of
from .lets import known_info
from .ops.create import full, ones, zeros
from .ops.elementwise import add, cast, multiply, rsqrt
from .ops.transform import broadcast_to, collapse_sum_to, layout_transform, reshape, transpose
from .visitor import SameTypes

Rule = Callable[[Any], Any]
_BROADCAST = 1


def is_call(expr: Any, *names: str) -> bool:
    """Whether an expression is a call of one of some operators."""
    return isinstance(expr, graph.Call) and isinstance(expr.op, Op) and str(expr.op) in names


def extents_of(expr: Any) -> tuple[int, ...] | None:
    """The extents of a tensor; None where one isn't known."""
    info = known_info(expr)
    known = [as_int(one) for one in info.extents] if isinstance(info, TensorStructInfo) and info.extents is not None else [None]
    return None if None in known else tuple(known)  # type: ignore[arg-type]


def dtype_of(expr: Any) -> str:
    """The dtype of a tensor; nothing for what is none."""
    return str(getattr(known_info(expr), "dtype", ""))


def _same(a: Any, b: Any) -> bool:
    """Whether two tensors are known to have the same shape and dtype."""
    found = known_info(a)
    return isinstance(found, TensorStructInfo) and found.extents is not None and found == known_info(b)


# What says its shape by another tensor


def _concrete(make: Callable[[Any, tuple[int, ...]], Any]) -> Rule:
    def rule(call: Any) -> Any:
        extents = extents_of(call)
        return None if extents is None else make(call, extents)

    return rule


_CONCRETE: dict[str, Rule] = {
    "zeros_like": _concrete(lambda call, extents: zeros(extents, dtype_of(call))),
    "ones_like": _concrete(lambda call, extents: ones(extents, dtype_of(call))),
    "full_like": _concrete(lambda call, extents: full(call.args[1], extents, dtype_of(call))),
    "reshape_like": _concrete(lambda call, extents: reshape(call.args[0], extents) if 0 not in extents else None),
    "collapse_sum_like": _concrete(lambda call, extents: collapse_sum_to(call.args[0], extents)),
    "broadcast_to_like": _concrete(lambda call, extents: broadcast_to(call.args[0], extents)),
    "cast_like": lambda call: cast(call.args[0], dtype_of(call)),
}


# The order of elements


def _reshaped(call: Any) -> Any:
    """A reshape of a reshape, or to the shape that there is."""
    inner = call.args[0]
    if not is_call(inner, "reshape", "contrib_reverse_reshape"):
        return inner if _same(inner, call) else None
    extents = extents_of(call)
    return None if extents is None or 0 in extents else reshape(inner.args[0], extents)


def _tokens(layout: str) -> list[str]:
    return [f"{size or ''}{name}" for name, size in parse_layout(layout)]


def _order(call: Any) -> list[int] | None:
    """The axes of the operand in the order of the result; None for what changes their number."""
    if call.op == "transpose":
        ndim, axes = len(call.checked_type.shape), call.attrs["axes"]
        return list(range(ndim))[::-1] if axes is None else [int(one) % ndim for one in axes]
    source, target = _tokens(call.attrs["src_layout"]), _tokens(call.attrs["dst_layout"])
    return [source.index(one) for one in target] if sorted(source) == sorted(target) else None


def _moved(call: Any) -> Any:
    """A change of the order of elements behind another one, or one that changes nothing."""
    outer, inner = _order(call), call.args[0]
    if outer == sorted(outer or [0, -1]):
        return inner
    if not is_call(inner, "transpose", "layout_transform"):
        return None
    first, data = _order(inner), inner.args[0]
    made = None
    if first is not None and outer is not None:
        axes = [first[one] for one in outer]
        made = data if axes == sorted(axes) else transpose(data, axes)
    elif first is not None:
        source = _tokens(call.attrs["src_layout"])
        made = layout_transform(data, "".join(source[first.index(n)] for n in range(len(first))), call.attrs["dst_layout"])
    elif outer is not None:
        target = _tokens(inner.attrs["dst_layout"])
        made = layout_transform(data, inner.attrs["src_layout"], "".join(target[one] for one in outer))
    elif inner.attrs["dst_layout"] == call.attrs["src_layout"]:
        ends = inner.attrs["src_layout"], call.attrs["dst_layout"]
        made = data if ends[0] == ends[1] else layout_transform(data, *ends)
    # Blocks that are no divisors of an extent lose elements, which a transform without these blocks would keep.
    return made if made is not None and _same(made, call) and _elements(inner) == _elements(data) else None


def _elements(expr: Any) -> int:
    extents = extents_of(expr)
    return -1 if extents is None else int(np.prod(extents))


# Dtypes


def _holds(wide: str, narrow: str) -> bool:
    """Whether a dtype has all values of another one."""
    a, b = parse_dtype(wide), parse_dtype(narrow)
    if narrow == "bool":
        return wide != "bool"
    if wide == "bool" or "bfloat" in wide + narrow or "custom" in wide + narrow:
        return wide == narrow
    if a.is_float:
        return a.bits >= b.bits if b.is_float else {16: 11, 32: 24, 64: 53}.get(a.bits, 0) >= b.bits
    if b.is_float:
        return False
    (low, high), (least, most) = int_limits(wide), int_limits(narrow)
    return low <= least and most <= high


def _casts(call: Any) -> Any:
    """A cast to the dtype that there is, and one behind another one that loses nothing."""
    inner = call.args[0]
    target, between = dtype_of(call), dtype_of(inner)
    if target == between != "":
        return inner
    if not is_call(inner, "cast") or not target:
        return None
    data = inner.args[0]
    own = dtype_of(data)
    if own and _holds(between, own):
        return data if own == target else cast(data, target)
    if is_call(data, "clip") and _fits(data, between) and not parse_dtype(target).is_float:
        return data if own == target else cast(data, target)
    return None


def _fits(clip: Any, dtype: str) -> bool:
    """Whether integers of a dtype are all that a clip leaves, or what is in front of the point of it."""
    if parse_dtype(dtype).is_float or dtype == "bool":
        return False
    low, high = int_limits(dtype)
    return bool(low <= clip.attrs["a_min"] and clip.attrs["a_max"] <= high)


def _clipped(call: Any) -> Any:
    """A clip to what a dtype has."""
    data = call.args[0]
    dtype = dtype_of(data)
    if not dtype or parse_dtype(dtype).is_float or dtype == "bool":
        return None
    low, high = int_limits(dtype)
    return data if call.attrs["a_min"] <= low and high <= call.attrs["a_max"] else None


# Arithmetic


def _filled(expr: Any) -> Any:
    """The number that all elements of a tensor are, as an expression; None for others."""
    if is_call(expr, "zeros", "ones"):
        return const(expr.op == "ones", dtype_of(expr))
    if is_call(expr, "full") and dtype_of(expr.args[0]) == dtype_of(expr):
        return expr.args[0]
    return expr if isinstance(expr, graph.Constant) and expr.data.ndim == 0 else None


def _number(expr: Any) -> Any:
    found = _filled(expr)
    return (
        found.data.numpy().item()
        if isinstance(found, graph.Constant) and dtype_of(found).startswith(("int", "uint", "float", "bool"))
        else None
    )


def _pairs(call: Any) -> Iterator[tuple[Any, Any]]:
    """The operands of a call in both orders."""
    yield call.args[0], call.args[1]
    yield call.args[1], call.args[0]


def _identity(number: int, both: bool) -> Rule:
    """`x + 0` and the like; with `both` `0 + x`, too."""

    def rule(call: Any) -> Any:
        for data, other in list(_pairs(call))[: 1 + both]:
            if _number(other) == number and _same(data, call):
                return data
        return None

    return rule


def _by_number(call: Any) -> Any:
    """An operation with a tensor of one number as that with the number, where the other operand has the shape of the result."""
    for place, (data, other) in enumerate(_pairs(call)):
        found = _filled(other)
        if found is not None and found is not other and _same(data, call):
            return Call(call.op, (data, found) if place == 0 else (found, data), call.attrs)
    return None


def _constant(expr: Any) -> Any:
    """The array of a constant of numbers; None for others."""
    found = expr.data.numpy() if isinstance(expr, graph.Constant) else None
    return found if found is not None and found.dtype.kind in "fiu" else None


def _constants(function: Any, a: Any, b: Any) -> Any:
    """A constant of two; None if it overflows as the results of other orders might not, or is larger than both."""
    with np.errstate(all="ignore"):
        found = np.asarray(function(a, b), a.dtype)
    return Constant(found) if np.isfinite(found).all() and found.size <= max(a.size, b.size) else None


def _combined(name: str, function: Any) -> Rule:
    """`(x + a) + b` as `x + (a + b)`."""

    def rule(call: Any) -> Any:
        for inner, other in _pairs(call):
            outer = _constant(other)
            if outer is None or not is_call(inner, name):
                continue
            for data, first in _pairs(inner):
                own = _constant(first)
                both = None if own is None or _constant(data) is not None else _constants(function, own, outer)
                if both is not None and _same(data, call):
                    return Call(call.op, (data, both), call.attrs)
        return None

    return rule


def _distributed(call: Any) -> Any:
    """`(x + a) * b` as `x * b + a * b`, after which constants meet."""
    for inner, other in _pairs(call):
        factor = _constant(other)
        if factor is None or not is_call(inner, "add"):
            continue
        for data, first in _pairs(inner):
            own = _constant(first)
            both = None if own is None or _constant(data) is not None else _constants(np.multiply, own, factor)
            if both is not None and _same(data, call):
                return add(multiply(data, other), both)
    return None


def _doubled(call: Any) -> Any:
    """`x + x`."""
    a, b = call.args
    return multiply(a, const(2, dtype_of(a))) if a is b and dtype_of(a).startswith(("int", "uint", "float")) else None


def _by_root(call: Any) -> Any:
    """`a / sqrt(x)`."""
    return multiply(call.args[0], rsqrt(call.args[1].args[0])) if is_call(call.args[1], "sqrt") else None


def _of_steps(call: Any) -> Any:
    """The order of dequantized bytes is that of the bytes."""
    inner = call.args[0]
    if not is_call(inner, "qnn.dequantize") or dtype_of(inner.args[0]) not in ("int8", "uint8", "int16", "uint16"):
        return None
    scale = _constant(inner.args[1])
    is_rising = scale is not None and scale.size == 1 and scale.item() > 0 and extents_of(inner.args[2]) in ((), (1,))
    return Call(call.op, (inner.args[0], *call.args[1:]), call.attrs) if is_rising else None


RULES: dict[str, Sequence[Rule]] = {
    **{name: (rule,) for name, rule in _CONCRETE.items()},
    **dict.fromkeys(("reshape", "contrib_reverse_reshape"), (_reshaped,)),
    **dict.fromkeys(("transpose", "layout_transform"), (_moved,)),
    **dict.fromkeys(("argmax", "argmin", "argsort"), (_of_steps,)),
    "cast": (_casts,),
    "clip": (_clipped,),
    "add": (_identity(0, True), _combined("add", np.add), _doubled),
    "subtract": (_identity(0, False),),
    "multiply": (_identity(1, True), _combined("multiply", np.multiply), _distributed),
    "divide": (_identity(1, False), _by_root),
}


class Simplifying(SameTypes):
    """Puts what rules return in place of calls, until none applies."""

    def visit_call(self, call: Any) -> Any:
        """The call, or what stands in its place."""
        made = super().visit_call(call)
        if not isinstance(made, graph.Call) or not isinstance(made.op, Op):
            return made
        rules = RULES.get(str(made.op), ())
        found = next((one for rule in rules if (one := rule(made)) is not None), None)
        if found is None and len(made.args) == 2 and kind_of(made.op) == _BROADCAST:
            found = _by_number(made)
        # What was made may have an operand that a rule applies to, as (x * a + b) * c has.
        return made if found is None else self.visit(found)


__all__ = ["RULES", "Rule", "Simplifying", "dtype_of", "extents_of", "is_call"]
