"""SimplifyExpr: calls that change nothing, or that another call undoes, go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ..expr import Call, Constant, PrimValue, Tuple
from ..ops.elementwise import astype, clip
from ..ops.elementwise import relu as make_relu
from ..ops.grad_marks import MARKS
from ..ops.row import Pattern, row_of
from ..struct_info import TensorStructInfo
from .rewriting import Rewriter, Rules, rule_pass


def is_known(info: Any) -> bool:
    """Whether a struct info is that of a tensor of known shape and dtype, so that two equal ones say that nothing changes."""
    return isinstance(info, TensorStructInfo) and info.extents is not None and bool(info.dtype)


def is_by_element(call: Call) -> bool:
    """Whether each element of a call's result depends on those at its place in the operands, which broadcast as NumPy's do.

    Operators with axes or shapes of their own mean these of the operands as they are.
    """
    row = row_of(call)
    if row is None or row.pattern > Pattern.BROADCAST or not call.args:
        return False
    own = any(name in ("axis", "axes", "shape", "layout") for name in row.signature.parameters)
    return not own and not any(kind.startswith(("Shape", "Exprs")) for kind in row.arguments.values())


def _same(call: Call, operand: Any) -> bool:
    """Whether a call gives what an operand could be."""
    return is_known(call.struct_info) and call.struct_info == operand.struct_info


def _all(graph: Rewriter, expr: Any, number: float) -> bool:
    """Whether an operand is this number everywhere."""
    found = graph.value(expr)
    if not isinstance(found, Constant):
        return False
    values = found.data._array
    return values.dtype.kind in "fiu" and bool((values == number).all())


def _neutral(number: float, both: bool) -> Callable[[Rewriter, Call], Any]:
    """`x + 0`, `x * 1`: an operand that changes nothing but the sign of a zero; `both` if it may stand in front."""

    def rule(graph: Rewriter, call: Call) -> Any:
        for one, other in ((0, 1), (1, 0))[: 1 + both]:
            # x + 0 may still be a broadcast of x to the shape of the zeros.
            if _same(call, call.args[one]) and _all(graph, call.args[other], number):
                return call.args[one]
        return None

    return rule


def _unchanged(graph: Rewriter, call: Call) -> Any:
    """A broadcast to the shape that it has."""
    return call.args[0] if _same(call, call.args[0]) else None


def _same_dtype(graph: Rewriter, call: Call) -> Any:
    """A cast to the dtype that there is."""
    return call.args[0] if call.args[0].struct_info.dtype == call.attrs["dtype"] else None


def _undone(graph: Rewriter, call: Call) -> Any:
    """`-(-x)`, `not not x`."""
    inner = graph.call(call.args[0], str(call.op))
    return None if inner is None else inner.args[0]


def _idempotent(graph: Rewriter, call: Call) -> Any:
    """`relu(relu(x))`."""
    return call.args[0] if graph.call(call.args[0], str(call.op)) is not None else None


def _one_cast(graph: Rewriter, call: Call) -> Any:
    """A cast of a cast that loses nothing."""
    inner = graph.call(call.args[0], "relax.astype")
    if inner is None:
        return None
    first, second = inner.args[0].struct_info.dtype, str(inner.attrs["dtype"])
    # By way of float32 an int32 above 2**24 would be rounded.
    if not first or not _holds(second, first):
        return None
    return astype(inner.args[0], call.attrs["dtype"])


def _holds(wide: str, narrow: str) -> bool:
    """Whether a dtype has every value of another one."""
    if wide == narrow:
        return True
    try:
        too_wide = narrow in ("int64", "uint64") and wide.startswith("float")  # NumPy calls these casts safe
        return wide != "bool" and not too_wide and bool(np.can_cast(to_numpy(narrow), to_numpy(wide), "safe"))
    except TypeError:
        return False


def _one_part(graph: Rewriter, call: Call) -> Any:
    """`concat` of one tensor; without those that are empty."""
    fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
    return fields[0] if len(fields) == 1 else None


def _whole(graph: Rewriter, call: Call) -> Any:
    """A slice of everything, in order."""
    if not _same(call, call.args[0]):
        return None
    # x[::-1] has the shape of x, too.
    row = row_of(call)
    given = None if row is None else row.bound(call)["strides"]
    steps = given.fields if isinstance(given, Tuple) else given or ()
    return call.args[0] if all(as_int(getattr(one, "value", one)) == 1 for one in steps) else None


def _number(expr: Any) -> float | None:
    found: Any = expr.value if isinstance(expr, PrimValue) else None
    value = getattr(found, "value", None)
    return None if value is None else float(value)


def _one_clip(graph: Rewriter, call: Call) -> Any:
    """A clip of a clip, of `relu`, or that is one."""
    low, high = _number(call.args[1]), _number(call.args[2])
    if low is None or high is None or low > high:
        return None
    info: Any = call.struct_info
    if low == 0 and info.dtype.startswith("float") and high >= float(np.finfo(info.dtype).max):
        return make_relu(call.args[0])
    if graph.call(call.args[0], "relax.nn.relu") is not None and low == 0:
        return clip(graph.value(call.args[0]).args[0], call.args[1], call.args[2])
    inner = graph.call(call.args[0], "relax.clip")
    if inner is None:
        return None
    first, last = _number(inner.args[1]), _number(inner.args[2])
    # Ranges that don't meet make a constant: clip(clip(x, 0, 1), 2, 3) is 2.
    if first is None or last is None or first > last or max(low, first) > min(high, last):
        return None
    lower, upper = (call if low >= first else inner).args[1], (call if high <= last else inner).args[2]
    return clip(inner.args[0], lower, upper)


def _operand(graph: Rewriter, call: Call) -> Any:
    return call.args[0]


RULES: Rules = {
    "relax.add": [_neutral(0, True)],
    "relax.subtract": [_neutral(0, False)],
    "relax.multiply": [_neutral(1, True)],
    "relax.divide": [_neutral(1, False)],
    "relax.power": [_neutral(1, False)],
    "relax.astype": [_same_dtype, _one_cast],
    "relax.broadcast_to": [_unchanged],
    "relax.tile": [_unchanged],
    "relax.negative": [_undone],
    "relax.logical_not": [_undone],
    "relax.bitwise_not": [_undone],
    "relax.nn.relu": [_idempotent],
    "relax.abs": [_idempotent],
    "relax.concat": [_one_part],
    "relax.strided_slice": [_whole],
    "relax.clip": [_one_clip],
    **{name: [_operand] for name in MARKS},
}


def SimplifyExpr() -> ModulePass:
    """A pass: calls that change nothing (x * 1, casts to the same dtype, slices of everything), or that another one undoes, go."""
    return rule_pass("SimplifyExpr", RULES)
