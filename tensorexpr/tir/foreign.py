"""Calls that leave the language: Python functions that are registered by name, and C functions of the math library.

A Python function gets arrays that share the memory of the buffers, numbers and strings:

    tir.call_packed("my.sort", ins[0], outs[0], n)

What it raises is raised by the call of the compiled function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import DeclarationError
from .arithmetic import convert
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import BufferLoad, Call, IntImm, PrimExpr, StringImm, Var
from .pointers import type_annotation

PACKED = "tir.tvm_call_packed"
TRACE = "tir.tvm_call_trace_packed"
ARRAY = "tir.tvm_stack_make_array"
SHAPE = "tir.tvm_stack_make_shape"
DEFAULT_TRACE = "tvm.default_trace_action"

_UNARY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "fabs": np.fabs, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "rint": np.rint,
    "nearbyint": np.rint, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
_BINARY = {
    "atan2": np.arctan2, "copysign": np.copysign, "fmax": np.fmax, "fmin": np.fmin, "fmod": np.fmod, "hypot": np.hypot,
    "nextafter": np.nextafter, "pow": np.power,
}  # fmt: skip


def _libm() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for name, function in {**_UNARY, **_BINARY}.items():
        for suffix, kind in (("", np.float64), ("f", np.float32)):
            # Bound as defaults: a closure would see the last function and dtype of the loop.
            table[name + suffix] = lambda *args, function=function, kind=kind: function(*(kind(arg) for arg in args))
    return table


# What the C library computes, for the interpreter: by name, `f` at the end on float32.
LIBM_FUNCTIONS = _libm()


class PackedCalls:
    """Who runs registered functions: the runtime, once it is loaded, puts itself here."""

    handler: ClassVar[Callable[[str, Sequence[Any]], Any] | None] = None

    @classmethod
    def run(cls, name: str, args: Sequence[Any]) -> Any:
        """The result of the function registered as `name` on NumPy arrays, numbers and strings."""
        if cls.handler is None:
            raise DeclarationError(f"the Python function {name!r} is called, but none is registered; use tensorexpr.register_func first")
        return cls.handler(name, args)


def number_of(found: Any) -> int:
    """What a call is worth whose function returned `found`: a number as an integer, anything else 0."""
    return int(found) if isinstance(found, (int, float, np.number, np.bool_)) else 0


def call_packed(*args: Any) -> PrimExpr:
    """A call of the Python function that is registered under the first argument; an int32 if it returns a number, else 0.

    Args:
        args: the name, then buffers (passed as arrays that share their memory, also for writing), integers, floats,
            bools and strings.

    Raises:
        DeclarationError: for another kind of argument.
    """
    if not args or not isinstance(args[0], (str, StringImm)):
        raise DeclarationError("call_packed takes the name of a registered function first, as a string")
    name, *rest = args
    return Call("int32", PACKED, (convert(name), *(_argument(str(name), arg) for arg in rest)))


def trace(args: Sequence[Any], trace_action: str = DEFAULT_TRACE) -> PrimExpr:
    """The last of `args`, with all of them handed to a registered function each time it is computed; what that returns,
    unless None, takes its place.

    Args:
        args: scalars.
        trace_action: the function's name; the default one prints them.

    Raises:
        DeclarationError: for no argument, or one that is no scalar.
    """
    if isinstance(args, (str, PrimExpr)) or not len(args):
        raise DeclarationError("trace takes a list of scalars, the last of which is its value")
    listed = [convert(arg) for arg in args]
    odd = next((arg for arg in listed if arg.dtype == "handle" or parse_dtype(arg.dtype).lanes > 1), None)
    if odd is not None:
        raise DeclarationError(f"trace takes scalars, not {odd} ({odd.dtype})")
    return Call(listed[-1].dtype, TRACE, (StringImm(trace_action), *listed))


def _argument(name: str, arg: Any) -> PrimExpr:
    buffer = arg if isinstance(arg, Buffer) else getattr(arg, "buffer", None)
    if isinstance(buffer, Buffer) and not isinstance(arg, BufferLoad):
        return array_argument(buffer)
    expr = convert(arg)
    if parse_dtype(expr.dtype).lanes > 1 or (expr.dtype == "handle" and not _is_passed(expr)):
        raise DeclarationError(f"call_packed({name!r}): the argument {expr} ({expr.dtype}) is no buffer, number or string")
    return expr


def _is_passed(expr: PrimExpr) -> bool:
    return isinstance(expr, (StringImm, Var, Call))  # a pointer: for a device's runtime


def array_argument(buffer: Buffer) -> PrimExpr:
    """A buffer as an array of its shape: pointer, shape, strides (none: compact), rank, element type, offset in elements."""
    shape, strides = (Call("handle", SHAPE, part) for part in (buffer.shape, buffer.strides))
    rank = IntImm("int32", len(buffer.shape))
    return Call("handle", ARRAY, (buffer.data, shape, strides, rank, type_annotation(buffer.dtype), buffer.elem_offset))
