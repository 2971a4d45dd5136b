"""The operators of a graph that AutoTVM has tasks for, with the workloads that TVM extracts from the same network."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import Any

from ..tir.arithmetic import as_int
from ..tir.function import IRModule
from ..topi.utils import spread
from .expr import Call, Function
from .ops.window import paddings
from .visitor import bindings_of

Task = tuple[str, tuple[Any, ...]]
# Relay has operators of their own for the two kinds of products, which programs pass as `ops`.
_KINDS = {"nn.dense": "dense_", "nn.batch_matmul": "batch_matmul"}


def tasks_of(mods: Sequence[IRModule], ops: Collection[Any] | None = None) -> list[Task]:
    """Names and arguments of tasks, each once, in the order of the graphs.

    Args:
        mods: their relax functions are looked through; those that are lowered to kernels already have no operators left.
        ops: operators, or their names; all by default.

    Example:
        R.nn.conv2d(x, w, padding=1) -> "conv2d_NCHWc.x86"; R.matmul(x, w) of matrices -> "dense_nopack.x86" and "dense_pack.x86".
    """
    wanted = None if ops is None else {_name(op) for op in ops}
    found: dict[Task, None] = {}
    for given in mods:
        # Relay's functions say themselves which graph they are.
        other = next((func for func in given.functions.values() if hasattr(func, "module_to_graph")), None)
        mod = given if other is None else other.module_to_graph(given)
        for function in mod.functions.values():
            if not isinstance(function, Function):
                continue
            for binding in bindings_of(function):
                call = getattr(binding, "value", None)
                if isinstance(call, Call) and (name := _name(call.op)) in _RULES:
                    found.update(dict.fromkeys(task for task in _RULES[name](call) if _is_wanted(name, task[0], wanted)))
    return list(found)


def _is_wanted(name: str, task: str, wanted: Collection[str] | None) -> bool:
    return wanted is None or name in wanted or any(task.startswith(kind) for op, kind in _KINDS.items() if op in wanted)


def _name(op: Any) -> str:
    return str(getattr(op, "name", op)).removeprefix("relax.")


def _tensor(expr: Any) -> tuple[str, tuple[int, ...], str] | None:
    """A tensor of constant shape as logs say it; None for others: a template's loops have constant extents."""
    info = expr.struct_info
    values = getattr(getattr(info, "shape", None), "values", None)
    extents = [as_int(value) for value in values] if values is not None else [None]
    known = tuple(extent for extent in extents if extent is not None)
    return ("TENSOR", known, str(info.dtype)) if len(known) == len(extents) else None


def _conv2d(call: Call) -> Iterator[Task]:
    data, kernel = _tensor(call.args[0]), _tensor(call.args[1])
    attrs = call.attrs
    if data is None or kernel is None or attrs["data_layout"] != "NCHW" or attrs["kernel_layout"] != "OIHW":
        return  # TVM has no templates for x86 of other layouts
    if (attrs["out_layout"] or "NCHW") != "NCHW" or not data[2].startswith("float"):
        return
    groups, (front, back) = int(attrs["groups"]), paddings(attrs["padding"], 2)
    strides, dilation = (spread("conv2d", name, attrs[name], 2) for name in ("strides", "dilation"))
    geometry = (_ints(strides), _ints((*front, *back)), _ints(dilation))
    dtype = attrs["out_dtype"] or data[2]
    if groups == 1:
        yield "conv2d_NCHWc.x86", (data, kernel, *geometry, "NCHW", "NCHW", dtype)
    elif groups == data[1][1] and kernel[1][1] == 1:
        yield "depthwise_conv2d_NCHWc.x86", (data, kernel, *geometry, "NCHW", "NCHW", dtype)
    else:
        yield "group_conv2d_nchw.x86", (data, kernel, *geometry, groups, dtype)


def _conv3d(call: Call) -> Iterator[Task]:
    data, kernel = _tensor(call.args[0]), _tensor(call.args[1])
    attrs = call.attrs
    name = {("NCDHW", "OIDHW"): "conv3d_ncdhw.x86", ("NDHWC", "DHWIO"): "conv3d_ndhwc.x86"}.get(
        (attrs["data_layout"], attrs["kernel_layout"])
    )
    if data is None or kernel is None or name is None or (attrs["out_layout"] or attrs["data_layout"]) != attrs["data_layout"]:
        return
    front, back = paddings(attrs["padding"], 3)
    strides, dilation = (spread("conv3d", each, attrs[each], 3) for each in ("strides", "dilation"))
    geometry = (_ints(strides), _ints((*front, *back)), _ints(dilation))
    yield name, (data, kernel, *geometry, int(attrs["groups"]), attrs["out_dtype"] or data[2])


def _matmul(call: Call) -> Iterator[Task]:
    """A weight of two dimensions makes a dense layer: TVM's importers transpose it, [N, K], and flatten what is before the last axis."""
    left, right = _tensor(call.args[0]), _tensor(call.args[1])
    if left is None or right is None or len(left[1]) < 2:
        return
    dtype = call.attrs["out_dtype"] or left[2]
    if len(right[1]) == 2:
        depth, columns = right[1]
        data = ("TENSOR", (prod(left[1][:-1]), depth), left[2])
        for name in ("dense_nopack.x86", "dense_pack.x86"):
            yield name, (data, ("TENSOR", (columns, depth), right[2]), None, dtype)
    elif len(left[1]) == len(right[1]) >= 3 and left[1][:-2] == right[1][:-2]:
        batch = prod(left[1][:-2])
        one, other = (("TENSOR", (batch, *side[1][-2:]), side[2]) for side in (left, right))
        yield "batch_matmul.x86", (one, other, (batch, left[1][-2], right[1][-1]), dtype, 0, 0)


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


_RULES = {"nn.conv2d": _conv2d, "nn.conv3d": _conv3d, "matmul": _matmul}
