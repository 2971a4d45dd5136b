"""What `te.compute` makes of the value of its function: an operation whose bodies are well formed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.attrs import FrozenMap
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr
from .bounds import check_bounds, early_rows
from .lazy_select import lazy_selects
from .operation import ComputeOp
from .tensor_compute import TensorComputeOp, TensorIntrinCall, call_bodies, tensor_axes
from .verify import verify_bodies

_PACKAGE = str(Path(__file__).parent.parent)


def define(name: str, tag: str, attrs: FrozenMap, axes: tuple[IterVar, ...], extents: tuple[PrimExpr, ...], returned: Any) -> Any:
    """The tensor of shape `extents` whose element at `axes` is `returned`; a tuple of tensors for a sequence of several values.

    Raises:
        DeclarationError: if the definition is malformed.
    """
    where = f"compute {name}"
    if isinstance(returned, TensorIntrinCall):
        made = tensor_compute(name, tag, attrs, axes, extents, returned)
        results = tuple(made.output(i) for i in range(made.num_outputs))
        return results if len(results) > 1 else results[0]
    if len(axes) < len(extents):
        names = ", ".join(axis.var.name for axis in axes)
        raise DeclarationError(f"{where}: the shape has {len(extents)} dimensions, the function takes {len(axes)} indices ({names})")
    several = isinstance(returned, (tuple, list))
    bodies = tuple(_body(item, where) for item in (returned if several else (returned,)))
    reduce_axis = verify_bodies(name, axes, bodies)
    op = ComputeOp(name, tag, attrs, axes, reduce_axis, lazy_selects(axes, bodies))
    # rows that look back too far are left to the graph: only it knows who asks for them
    try:
        check_bounds(op, early_rows(op))
    except DeclarationError as error:
        # what only counts or prints a computation needs no values of it
        op = replace(op, reads_outside=f"{error} (declared in {_caller()})")
    outputs = tuple(op.output(i) for i in range(op.num_outputs))
    return outputs if several and len(outputs) > 1 else outputs[0]


def tensor_compute(
    name: str, tag: str, attrs: FrozenMap, axes: tuple[IterVar, ...], extents: tuple[PrimExpr, ...], call: TensorIntrinCall
) -> TensorComputeOp:
    """The operation of an intrinsic over slices; the axes of the function stand around it.

    Raises:
        DeclarationError: if the result has other extents behind them than the intrinsic's, or a tensor is read out of its bounds.
    """
    inner = tensor_axes(call, extents[len(axes) :], f"compute {name}")
    bodies = call_bodies(call, inner)
    reduce_axis = verify_bodies(name, (*axes, *inner), bodies)
    op = TensorComputeOp(name, tag, attrs, (*axes, *inner), reduce_axis, bodies, call, len(axes))
    check_bounds(op, early_rows(op))
    return op


def _caller() -> str:
    """File and line of the innermost frame outside of this package."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _body(item: Any, where: str) -> PrimExpr:
    if item is None or isinstance(item, str):
        raise DeclarationError(f"{where}: the function returned {item!r}; it must return the element's expression, or a tuple of them")
    body = convert(item)
    if parse_dtype(body.dtype).lanes > 1 or body.dtype == "handle":
        raise DeclarationError(f"{where}: the body {body} is {body.dtype}; elements are scalars")
    return body
