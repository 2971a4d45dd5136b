"""Loops: a function of the module, called until it says that it is enough; its meaning for the evaluator and the virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ...tir.function import GlobalVar
from ...tir.op_registry import Op
from ..expr import Call, Tuple, convert_to_expr
from ..struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .row import operator

_NONE = Tuple(())  # a limit that there isn't: arguments of calls can't be None


def loop(body: Any, state: Any, captured: Any = (), trip_count: Any = None, condition: Any = None, sinfo_args: Any = None) -> Call:
    """A loop with a state and results of each turn, as ONNX's Loop and Scan are.

    Turn `i` calls `body(i, *state, *captured)`, which returns a tuple `(go_on, *state, *results)`. The value of the loop is the tuple of
    the last state and, for each of `results`, those of all turns stacked along a new first axis, whose extent is 0 if there was no turn.

    Args:
        body: the GlobalVar of a function of the module; `i` is a tensor () of int64, `go_on` one of bool.
        state: a tuple of values of any kind.
        captured: a tuple of values that don't change.
        trip_count: the most turns, a number or a tensor of one; as many as the condition allows if None.
        condition: whether there is a first turn; if None, `go_on` is ignored, and `trip_count` turns are taken.
        sinfo_args: what is known of the value: a TupleStructInfo.

    Raises:
        TypeMismatchError: if `body` is no function of the module, or the value isn't stated as a tuple.
    """
    stated = sinfo_args[0] if isinstance(sinfo_args, (tuple, list)) and len(sinfo_args) == 1 else sinfo_args
    if not isinstance(body, GlobalVar):
        raise TypeMismatchError(f"loop: the body is a function of the module, by its GlobalVar, not {body!r}")
    if not isinstance(stated, TupleStructInfo):
        raise TypeMismatchError(f"loop: state what the state and the stacked results are, as sinfo_args=R.Tuple(...), not {sinfo_args!r}")
    tuples = [convert_to_expr(tuple(one) if isinstance(one, list) else one) for one in (state, captured)]
    limits = [_NONE if one is None else convert_to_expr(one) for one in (trip_count, condition)]
    return Call(Op.of("relax.loop"), (body, *tuples, *limits), None, stated)


@operator("loop")
def _loop() -> StructInfo:
    """Stated by each call."""
    return ObjectStructInfo()


def iterate(
    step: Callable[[Sequence[Any]], Sequence[Any]],
    returned: StructInfo,
    values: Sequence[Any],
    array_of: Callable[[Any], Any],
    value_of: Callable[[Any], Any],
) -> tuple[Any, ...]:
    """The value of a loop.

    Args:
        step: calls the body.
        returned: what the body returns.
        values: state, captured, trip_count, condition; () for the latter two if there is none.
        array_of: from a value of a tensor to its NumPy array.
        value_of: back.

    Raises:
        ArgumentError: for a loop without any end, or a body that returns too little.
    """
    state, captured, trips, condition = list(values[0]), list(values[1]), _number(values[2], array_of), _number(values[3], array_of)
    if trips is None and condition is None:
        raise ArgumentError("loop: there is neither a trip count nor a condition, so it never ends")
    fields = returned.fields if isinstance(returned, TupleStructInfo) else ()
    stacked: list[list[Any]] = [[] for _ in fields[1 + len(state) :]]
    turn, go_on = 0, condition is None or bool(condition)
    while go_on and (trips is None or turn < trips):
        found = step([value_of(np.asarray(turn, "int64")), *state, *captured])
        if len(found) != 1 + len(state) + len(stacked):
            raise ArgumentError(f"loop: the body returned {len(found)} values, where 1 + {len(state)} + {len(stacked)} are expected")
        if condition is not None:
            go_on = bool(_number(found[0], array_of))
        state = list(found[1 : 1 + len(state)])
        for one, whole in zip(found[1 + len(state) :], stacked, strict=True):
            whole.append(array_of(one))
        turn += 1
    rows = zip(stacked, fields[1 + len(state) :], strict=True)
    return (*state, *(value_of(np.stack(whole) if whole else _no_rows(info)) for whole, info in rows))


def _number(value: Any, array_of: Callable[[Any], Any]) -> int | None:
    return None if isinstance(value, tuple) else int(np.asarray(array_of(value)).reshape(()))


def _no_rows(info: StructInfo) -> Any:
    """An array of no turns; extents that aren't constants are 0."""
    if not isinstance(info, TensorStructInfo):
        raise ArgumentError(f"loop: a result of each turn is {info}, and only tensors can be stacked")
    extents = [as_int(one) or 0 for one in info.extents] if info.extents is not None else [0] * max(info.ndim, 0)
    return np.zeros((0, *extents), to_numpy(info.dtype) if info.dtype else np.dtype("float32"))
