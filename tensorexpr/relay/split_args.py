"""SplitArgs: concatenations of more tensors than a function of a device takes, in several steps."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..relax import expr as graph
from ..relax.struct_info import StructInfo, TupleStructInfo
from ..tir.arithmetic import as_int
from .expr import Call, Tuple
from .lets import known_info
from .ops.annotation import stop_fusion


def arguments_of(value: Any) -> int:
    """How many arguments a value is: a tensor itself and, where its shape isn't known yet, its unknown extents and its strides."""
    info = value if isinstance(value, StructInfo) else known_info(value)
    if isinstance(info, TupleStructInfo):
        return sum(map(arguments_of, info.fields))
    extents = getattr(info, "extents", None) or ()
    unknown = sum(as_int(one) is None for one in extents)
    return 1 + (unknown + len(extents) if unknown else 0)


def split_concatenation(call: Any, most: int) -> Any:
    """A concatenation of concatenations, none of which takes more than `most` arguments with its result; None where one does.

    Args:
        call: of an operator.
        most: arguments; 0 for any number.

    Raises:
        DeclarationError: where not even two operands fit.
    """
    if call.op != "concatenate" or most <= 0 or not isinstance(call.args[0], graph.Tuple):
        return None
    result = call.checked_type
    unknown = any(as_int(one) is None for one in result.shape)
    room = most - 1 - (len(result.shape) if unknown else 0)
    fields = call.args[0].fields
    if sum(map(arguments_of, fields)) <= room:
        return None
    if 2 * max(map(arguments_of, fields)) > room:
        raise DeclarationError(f"SplitArgs: two operands and the result of {call.op} are more than {most} arguments")

    def joined(parts: list[Any]) -> Any:
        return Call(call.op, (stop_fusion(Tuple(parts)),), call.attrs, span=call.span)

    parts: list[Any] = []
    used = 0
    for one in fields:
        own = arguments_of(one)
        if used + own > room and parts:
            parts = [joined(parts)]
            used = own
        parts.append(one)
        used += own
    return joined(parts)


__all__ = ["arguments_of", "split_concatenation"]
