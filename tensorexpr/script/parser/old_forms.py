"""Forms of earlier releases: calls that state the dtype of their result, other names, and what to write in place of what is gone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from ...errors import DeclarationError
from ...tir import expr as ir
from ...tir.arithmetic import const
from ...tir.dtype import parse_dtype
from .values import Number

# A name of the language that is gone -> what to write.
INSTEAD: Mapping[str, str] = {
    "preflattened_buffer": "a parameter has one buffer: leave this out, and match the parameter with the shape of T.preflattened_buffer",
    "load": 'name the memory, as in b = T.Buffer((16,), "float32", data=pointer), and read b[index]',
    "store": 'name the memory, as in b = T.Buffer((16,), "float32", data=pointer), and write b[index] = value',
    "bind": "an axis is bound where it is defined, as in vi = T.axis.spatial(16, value)",
    "reduce_axis": "axes are defined inside of the block, as in vk = T.axis.reduce(16, k)",
    "scan_axis": "axes are defined inside of the block, as in vk = T.axis.scan(16, k)",
    "opaque_axis": "axes are defined inside of the block, as in vk = T.axis.opaque(16, k)",
}


def stating_dtype(name: str, build: Callable[..., ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    """A builder that also takes the dtype of its result, ``T.exp(x, dtype="float32")``; numbers among its operands get that dtype."""
    signature = inspect.signature(build)
    if "dtype" in signature.parameters:
        return build

    @wraps(build)
    def stated(*args: Any, dtype: str | None = None, **kwargs: Any) -> ir.PrimExpr:
        made = build(*args, **kwargs)
        if dtype is None or made.dtype == dtype:
            return made
        parse_dtype(dtype)
        typed = [const(arg, dtype) if isinstance(arg, Number) and not isinstance(arg, bool) else arg for arg in args]
        # Only where a number took the dtype can the result be another one.
        again = build(*typed, **kwargs) if any(a is not b for a, b in zip(args, typed, strict=True)) else made
        if again.dtype != dtype:
            raise DeclarationError(f"T.{name} of these operands is {made.dtype}, not {dtype}; convert it with T.Cast({dtype!r}, ...)")
        return again

    option = inspect.Parameter("dtype", inspect.Parameter.KEYWORD_ONLY, default=None)
    vars(stated)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), option])
    return stated
