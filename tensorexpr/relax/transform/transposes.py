"""OptimizeLayoutTransform: transposes cancel, or move behind what can work in the other order, where they meet those that they cancel.

    permute(permute(x, p), q)     ->  permute(x, p[q]), x if that changes nothing
    f(permute(x, p), c)           ->  permute(f(x, c'), p)                    element by element
    quantize(permute(x, p), s, a) ->  permute(quantize(x, s, p[a]), p)        and dequantize
    sum(permute(x, p), a)         ->  permute(sum(x, p[a]), ...)              reductions
    concat, split                 ->  the same along the axis where it was

A graph from an exporter of networks with channels last has a transpose in front of each convolution and one behind it: all go
but those at its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm
from ..expr import Call, Constant, RelaxExpr, Tuple, TupleGetItem, const
from ..ops.manipulate import concat, permute_dims, reshape, split
from ..ops.row import ROWS, row_of
from ..struct_info import TensorStructInfo
from .identities import is_by_element, is_known
from .rewriting import Rewriter, Rule, Rules, rule_pass

PERMUTE = "relax.permute_dims"
_LAYOUTS = {"NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"}
SCALED = ("relax.quantize", "relax.dequantize", "relax.requantize")
REDUCTIONS = tuple(f"relax.{name}" for name in ("sum", "mean", "max", "min", "prod", "variance", "std"))


def order_of(call: Call) -> list[int] | None:
    """The axes of a transpose, counted from the front; None if their number isn't known."""
    info = call.args[0].struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim == -1:
        return None
    axes: Sequence[int] | None = call.attrs["axes"]
    return list(range(info.ndim))[::-1] if axes is None else [int(axis) % info.ndim for axis in axes]


def permuted(value: Any, order: Sequence[int]) -> Any:
    """A value with its axes in another order; itself for the same one."""
    return value if list(order) == list(range(len(order))) else permute_dims(value, list(order))


def _moves(graph: Rewriter, value: Any) -> bool:
    """Whether a transpose can go behind a call, or end there."""
    row = row_of(value)
    named = (PERMUTE, "relax.concat", "relax.split", *REDUCTIONS, *SCALED)
    if row is None or is_by_element(value) or str(value.op) in named:
        return row is not None
    return str(value.op) in MOVES and graph.has(str(value.op), MOVES[str(value.op)])


def transpose(graph: Rewriter, arg: Any) -> tuple[Any, list[int]] | None:
    """What is transposed, and how, if the operand is a transpose that all its uses can move."""
    inner = graph.call(arg, PERMUTE)
    order = None if inner is None else order_of(inner)
    # A use that can't move it would keep the transpose, and the others would get a second one.
    if inner is None or order is None or (graph.uses(arg) > 1 and not all(_moves(graph, user) for user in graph.users(arg))):
        return None
    return inner.args[0], order


def _one_permute(graph: Rewriter, call: Call) -> Any:
    """A transpose of a transpose, or of nothing."""
    order, inner = order_of(call), graph.call(call.args[0], PERMUTE)
    if order is None:
        return None
    if inner is not None:
        first = order_of(inner) or []
        return permuted(inner.args[0], [first[n] for n in order])
    return call.args[0] if order == list(range(len(order))) else None


def _moves_nothing(graph: Rewriter, call: Call) -> Any:
    """A transpose that moves no element is a reshape."""
    order, info = order_of(call), call.args[0].struct_info
    if order is None or not is_known(info):
        return None
    # (1, 8) to (8, 1): in memory nothing moves where only axes of extent 1 change places.
    moved = [n for n in order if as_int(info.extents[n]) != 1]
    return reshape(call.args[0], list(call.struct_info.extents)) if moved == sorted(moved) else None  # type: ignore[attr-defined]


def _behind_elements(graph: Rewriter, call: Call) -> Any:
    """`f(permute(x), permute(y), c)`."""
    if not is_by_element(call):
        return None
    found = {n: transpose(graph, arg) for n, arg in enumerate(call.args)}
    orders = [one[1] for one in found.values() if one is not None]
    if not orders or any(order != orders[0] for order in orders):
        return None
    args: list[Any] = []
    for n, arg in enumerate(call.args):
        known = found[n]
        new = known[0] if known is not None else _turned(graph, arg, orders[0])
        if new is None:
            return None
        args.append(new)
    return permute_dims(Call(call.op, args, call.attrs, call.sinfo_args), orders[0])


def _turned(graph: Rewriter, arg: Any, order: Sequence[int]) -> Any:
    """An operand that isn't transposed, for beside one that isn't any more; None for one that would have to be."""
    info = arg.struct_info if isinstance(arg, RelaxExpr) else None
    if not isinstance(info, TensorStructInfo) or info.ndim == 0:
        return arg
    value = graph.value(arg)
    if info.ndim > len(order):
        return None
    if not isinstance(value, Constant):
        wide = sum(as_int(extent) != 1 for extent in info.extents) if info.extents is not None else info.ndim
        if wide > 1 or info.extents is None:
            return None
        extents = [IntImm("int64", 1)] * (len(order) - info.ndim) + list(info.extents)
        return reshape(arg, [extents[order.index(n)] for n in range(len(order))])  # no element moves
    values = value.view().reshape((1,) * (len(order) - info.ndim) + tuple(value.data.shape))
    back = sorted(range(len(order)), key=lambda n: order[n])
    return const(values.transpose(back).copy())


def _behind_scales(graph: Rewriter, call: Call) -> Any:
    """`quantize(permute(x), scales, zeros)`, with a scale for all elements or one for each along an axis."""
    found = transpose(graph, call.args[0])
    scales = [one.struct_info for one in call.args[1:3]]
    if found is None or any(not isinstance(one, TensorStructInfo) or one.ndim not in (0, 1) for one in scales):
        return None  # of blocks, with the axes of the data
    value, order = found
    axis = order[int(call.attrs["axis"]) % len(order)]
    return permute_dims(Call(call.op, (value, *call.args[1:]), {**call.attrs, "axis": axis}), order)


def _behind_reduction(graph: Rewriter, call: Call) -> Any:
    """`sum(permute(x), axis)`."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    (value, order), axes, keepdims = found, call.attrs["axis"], call.attrs["keepdims"]
    given = list(range(len(order))) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    gone = [order[int(axis) % len(order)] for axis in given]
    made = Call(call.op, (value,), {**call.attrs, "axis": sorted(gone)})
    if keepdims:
        return permuted(made, order)
    # Those that stay are counted anew: of axes 0 and 2 of the operand, 2 is axis 1 of the sum.
    left = [n for n in order if n not in gone]
    return permuted(made, [sorted(left).index(n) for n in left])


def _behind_concat(graph: Rewriter, call: Call) -> Any:
    """`concat(permute(x), permute(y))`."""
    fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
    found = [transpose(graph, field) for field in fields]
    if not found or any(one is None or one[1] != found[0][1] for one in found):  # type: ignore[index]
        return None
    order = found[0][1]  # type: ignore[index]
    axis = order[int(call.attrs["axis"] or 0) % len(order)]
    return permute_dims(concat([one[0] for one in found if one is not None], axis), order)


def _behind_split(graph: Rewriter, call: Call) -> Any:
    """`split(permute(x))`."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    value, order = found
    parts = graph.emit(split(value, call.attrs["indices_or_sections"], order[int(call.attrs["axis"]) % len(order)]))
    return Tuple(tuple(permute_dims(TupleGetItem(parts, n), order) for n in range(len(parts.struct_info.fields))))


def _pool(graph: Rewriter, call: Call) -> Any:
    """`pool(permute(x))`, in the layout that `x` has."""
    found, layout = transpose(graph, call.args[0]), str(call.attrs["layout"])
    if found is None or call.attrs.get("out_layout") not in (None, layout):
        return None
    value, order = found
    # Axis n of the operand stands at place order.index(n) behind the transpose.
    new = "".join(layout[order.index(n)] for n in range(len(order)))
    if new not in _LAYOUTS:
        return None
    attrs = {**call.attrs, "layout": new, **({"out_layout": None} if "out_layout" in call.attrs else {})}
    return permute_dims(Call(call.op, (value, *call.args[1:]), attrs), order)


def _pad(graph: Rewriter, call: Call) -> Any:
    """`pad(permute(x))`."""
    found, widths = transpose(graph, call.args[0]), call.attrs["pad_width"]
    if found is None:
        return None
    value, order = found
    places = [order.index(n) for n in range(len(order))]
    new = [width for n in places for width in widths[2 * n : 2 * n + 2]]
    return permute_dims(Call(call.op, (value, *call.args[1:]), {**call.attrs, "pad_width": new}), order)


def _resize(graph: Rewriter, call: Call) -> Any:
    """`resize(permute(x))`, along the axes that these are of `x`."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    value, order = found
    axes = [order[int(axis)] for axis in call.attrs["axes"]]
    return permute_dims(Call(call.op, (value, *call.args[1:]), {**call.attrs, "axes": axes}), order)


MERGED: Sequence[Rule] = (_one_permute,)
CANCEL: Rules = {PERMUTE: [*MERGED, _moves_nothing]}
CONCAT: Rules = {"relax.concat": [_behind_concat]}
RULES: Rules = {
    **CANCEL,
    **CONCAT,
    "relax.split": [_behind_split],
    **{name: [_behind_reduction] for name in REDUCTIONS if name in ROWS},
    **{name: [_behind_scales] for name in SCALED},
    "": [_behind_elements],
}


# Of no use by themselves, as these take as long in either layout.
MOVES: Rules = {
    **{name: [_pool] for name in ROWS if name.endswith(("_pool1d", "_pool2d", "_pool3d"))},
    "relax.nn.pad": [_pad],
    "relax.image.resize": [_resize],
}


def OptimizeLayoutTransform() -> ModulePass:
    """A pass: transposes cancel where they meet, and move behind operators that can work in the other order; see the module."""
    return rule_pass("OptimizeLayoutTransform", RULES)


def ReorderPermuteDimsAfterConcat() -> ModulePass:
    """A pass: transposed tensors are joined before they are transposed."""
    return rule_pass("ReorderPermuteDimsAfterConcat", CONCAT)
