"""LazyGradientInit: adjoints that are all zeros or ones are never filled arrays where they are added to or multiplied.

add(zeros(shape=[8, 8]), %g)     %g
multiply(ones_like(%y), %x)      %x
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..relax import expr as graph
from ..relax.struct_info import TensorStructInfo
from .expr import Call
from .ops.elementwise import zeros_like

_FILLED = {
    "zeros": 0,
    "zeros_like": 0,
    "ones": 1,
    "ones_like": 1,
    "relax.zeros": 0,
    "relax.zeros_like": 0,
    "relax.ones": 1,
    "relax.ones_like": 1,
}
_CARRIED = (
    "broadcast_to",
    "broadcast_to_like",
    "reshape",
    "reshape_like",
    "collapse_sum_like",
    "relax.broadcast_to",
    "relax.reshape",
    "cast",
)


def _number(expr: Any) -> int | None:
    """0 or 1 where a value is full of it."""
    if isinstance(expr, graph.Constant):
        known = expr.data.numpy()
        # Large weights aren't looked through: nobody fills them with one number.
        return next((n for n in (0, 1) if known.size == 1 and np.all(known == n)), None)
    while isinstance(expr, graph.Call) and expr.op in _CARRIED and (expr.op != "collapse_sum_like" or _same(expr, expr.args[0])):
        expr = expr.args[0]
        if isinstance(expr, graph.Constant):
            return _number(expr)
    return _FILLED.get(str(expr.op)) if isinstance(expr, graph.Call) else None


def _same(one: Any, other: Any) -> bool:
    a, b = one.struct_info, other.struct_info
    return isinstance(a, TensorStructInfo) and isinstance(b, TensorStructInfo) and a == b and a.extents is not None


def without_fills(call: Any) -> Any:
    """What a sum or a product with zeros or ones is; None for others. As with TVM, zero times anything is zero."""
    if not isinstance(call, Call) or call.op not in ("add", "multiply", "subtract"):
        return None
    for own, other in ((0, 1), (1, 0)):
        number, left = _number(call.args[own]), call.args[other]
        if number is None or (call.op == "subtract" and own == 0):
            continue
        if call.op == "multiply" and number == 0:
            return call.args[own] if _same(call, call.args[own]) else zeros_like(call)
        if number == (1 if call.op == "multiply" else 0) and _same(call, left):
            return left
    return None


__all__ = ["without_fills"]
