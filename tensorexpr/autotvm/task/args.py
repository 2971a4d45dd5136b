"""Arguments of tasks as values that can be compared, hashed and written to logs: tensors become their shape and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import TuningError
from ...te.declare import placeholder
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.expr import FloatImm, PrimExpr, StringImm, Var

TENSOR = "TENSOR"


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as values: a tensor as ("TENSOR", shape, dtype), lists as tuples, constants as numbers, variables by name.

    Raises:
        TuningError: for a value that a log can't hold.
    """
    return tuple(map(_value, args))


def _value(arg: Any) -> Any:
    if isinstance(arg, Tensor):
        return (TENSOR, tuple(_value(size) for size in arg.shape), str(arg.dtype))
    if arg is None or isinstance(arg, (bool, int, float, str)):
        return arg
    if isinstance(arg, Sequence):
        return tuple(map(_value, arg))
    if isinstance(arg, PrimExpr):
        constant = as_int(arg)
        if constant is not None:
            return constant
        if isinstance(arg, (FloatImm, StringImm)):
            return arg.value
        if isinstance(arg, Var):
            return arg.name
    # arrays have `item` too
    if hasattr(arg, "item") and getattr(arg, "shape", None) == ():  # a NumPy scalar
        return arg.item()
    raise TuningError(f"an argument of a task is a tensor, a number, a word, None, or a list of them, not {arg!r} ({type(arg).__name__})")


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """The arguments that values stand for: placeholders where they tell of tensors."""
    return [placeholder(arg[1], dtype=arg[2]) if _is_tensor(arg) else arg for arg in args]


def _is_tensor(arg: Any) -> bool:
    return isinstance(arg, (tuple, list)) and len(arg) == 3 and arg[0] == TENSOR


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """What a configuration is looked up by: the name of the task, then its arguments as values."""
    values = serialize_args(args)
    return values if task_name is None else (task_name, *values)
