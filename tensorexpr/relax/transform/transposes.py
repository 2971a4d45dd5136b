"""OptimizeLayoutTransform: transposes cancel, or move behind what can work in the other order, where they meet those that they cancel.

    permute(permute(x, p), q)     ->  permute(x, p[q]), x if that changes nothing
    f(permute(x, p), c)           ->  permute(f(x, c'), p)                    element by element
    quantize(permute(x, p), s, a) ->  permute(quantize(x, s, p[a]), p)        and dequantize
    sum(permute(x, p), a)         ->  permute(sum(x, p[a]), ...)              reductions
    concat, split                 ->  the same along the axis where it was

A graph from an exporter of networks with channels last has a transpose in front of each convolution and one behind it: all go
but those at its ends. So do layout transforms that cut axes in blocks and join them; `AxisOrder` is what rules know of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm
from ..expr import Call, Constant, PrimValue, RelaxExpr, Tuple, TupleGetItem, const
from ..ops.manipulate import concat, reshape, split
from ..ops.row import ROWS, row_of
from ..struct_info import TensorStructInfo
from .axis_order import LAYOUT, AxisOrder, permuted
from .decompose import for_inference
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


def _moves(graph: Rewriter, value: Any) -> bool:
    """Whether a transpose can go behind a call, or end there."""
    row = row_of(value)
    named = (PERMUTE, LAYOUT, "relax.concat", "relax.split", *REDUCTIONS, *SCALED)
    if row is None or is_by_element(value) or str(value.op) in named:
        return row is not None
    return str(value.op) in MOVES and graph.has(str(value.op), MOVES[str(value.op)])


def _before(inner: Call) -> AxisOrder | None:
    """The layout of what a transpose, or a layout transform that joins blocks, is of."""
    if inner.op == PERMUTE:
        axes = order_of(inner)
        return None if axes is None else AxisOrder.before(axes)
    found = AxisOrder.before_map(inner.attrs["index_map"]) if _is_bare(inner) else None
    extents = getattr(inner.args[0].struct_info, "extents", None)
    # Blocks of 4 of which each has 3 elements are joined with gaps.
    is_dense = extents is not None and all(size in (0, as_int(extents[n])) for n, (_, size) in enumerate(found.places if found else ()))
    return found if is_dense else None


def _is_bare(call: Call) -> bool:
    """Whether a layout transform is nothing but its map."""
    return not any(call.attrs[name] for name in ("pad_value", "axis_separators", "input_axis_separators"))


def transpose(graph: Rewriter, arg: Any) -> tuple[Any, AxisOrder] | None:
    """What is transposed, and in which layout it is, if the operand is a transpose that all its uses can move."""
    inner = graph.call(arg, PERMUTE, LAYOUT)
    order = None if inner is None else _before(inner)
    # A use that can't move it would keep the transpose, and the others would get a second one.
    if inner is None or order is None or (graph.uses(arg) > 1 and not all(_moves(graph, user) for user in graph.users(arg))):
        return None
    return inner.args[0], order


def _one_permute(graph: Rewriter, call: Call) -> Any:
    """A transpose of a transpose, or of nothing."""
    order, inner = order_of(call), graph.call(call.args[0], PERMUTE, LAYOUT)
    known = None if order is None or inner is None else _before(inner)
    if order is None:
        return None
    if inner is not None and known is not None:
        return known.renamed([order.index(n) for n in range(len(order))]).out_of(inner.args[0])
    return call.args[0] if order == list(range(len(order))) else None


def _one_layout(graph: Rewriter, call: Call) -> Any:
    """Blocks that are cut from what was joined or transposed, and joined from what was cut."""
    inner, index_map = graph.call(call.args[0], PERMUTE, LAYOUT), call.attrs["index_map"]
    if inner is None or not _is_bare(call):
        return None
    value, joined, cut = inner.args[0], _before(inner), AxisOrder.behind_map(index_map)
    if joined is not None and cut is not None:
        if inner.op == PERMUTE:
            return cut.renamed(order_of(inner) or []).into(value)
        return permuted(value, [joined.places.index(one) for one in cut.places]) if joined.blocks == cut.blocks else None
    if inner.op == PERMUTE:
        return None
    cut, joined = AxisOrder.behind_map(inner.attrs["index_map"]), _before(call)
    if cut is None or joined is None or not cut.fits(getattr(value.struct_info, "extents", None)):
        return None
    axes = [cut.places[joined.place(n)][0] for n in range(joined.ndim)]
    # All that was cut is joined, in the order of its numbers.
    return permuted(value, axes) if joined.renamed(axes) == cut else None


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
    found = [transpose(graph, arg) for arg in call.args]
    orders = [one[1] for one in found if one is not None]
    if not orders:
        return None
    order = max(orders, key=lambda one: len(one.blocks))
    args: list[Any] = []
    for known, arg in zip(found, call.args, strict=True):
        new = known[0] if known is not None and known[1] == order else _turned(graph, arg, order)
        if new is None:
            return None
        args.append(new)
    return order.out_of(Call(call.op, args, call.attrs, call.sinfo_args))


def _turned(graph: Rewriter, arg: Any, order: AxisOrder) -> Any:
    """An operand that isn't transposed, for beside one that isn't any more; None for one that would have to be."""
    info = arg.struct_info if isinstance(arg, RelaxExpr) else None
    if not isinstance(info, TensorStructInfo) or info.ndim == 0:
        return arg
    value = graph.value(arg)
    if info.ndim > order.ndim or info.ndim == -1:
        return None
    # Somebody asked for blocks, and where these are more operations may follow that want them.
    if order.blocks:
        return None if info.extents is None else order.beside(arg, info.extents)
    places = [axis for axis, _ in order.places]
    if not isinstance(value, Constant):
        wide = sum(as_int(extent) != 1 for extent in info.extents) if info.extents is not None else info.ndim
        if wide > 1 or info.extents is None:
            return None
        extents = [IntImm("int64", 1)] * (order.ndim - info.ndim) + list(info.extents)
        return reshape(arg, [extents[axis] for axis in places])  # no element moves
    return const(value.view().reshape((1,) * (order.ndim - info.ndim) + tuple(value.data.shape)).transpose(places).copy())


def _behind_scales(graph: Rewriter, call: Call) -> Any:
    """`quantize(permute(x), scales, zeros)`, with a scale for all elements or one for each along an axis."""
    found = transpose(graph, call.args[0])
    scales = [one.struct_info for one in call.args[1:3]]
    if found is None or any(not isinstance(one, TensorStructInfo) or one.ndim not in (0, 1) for one in scales):
        return None  # of blocks, with the axes of the data
    value, order = found
    axis = int(call.attrs["axis"]) % order.ndim
    if axis in order.blocks and any(one.ndim for one in scales):
        return None
    return order.out_of(Call(call.op, (value, *call.args[1:]), {**call.attrs, "axis": order.place(axis)}))


def _behind_reduction(graph: Rewriter, call: Call) -> Any:
    """`sum(permute(x), axis)`."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    (value, order), axes, keepdims = found, call.attrs["axis"], call.attrs["keepdims"]
    given = list(range(order.ndim)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    gone = [int(axis) % order.ndim for axis in given]
    # Of blocks that are summed over one element would be left, which is no block.
    if keepdims and not order.blocks.keys().isdisjoint(gone):
        return None
    made = Call(call.op, (value,), {**call.attrs, "axis": order.where(gone)})
    return order.out_of(made) if keepdims else order.without(gone).out_of(made)


def _behind_concat(graph: Rewriter, call: Call) -> Any:
    """`concat(permute(x), permute(y))`."""
    fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
    found = [transpose(graph, field) for field in fields]
    if not found or any(one is None or one[1] != found[0][1] for one in found):  # type: ignore[index]
        return None
    order = found[0][1]  # type: ignore[index]
    place = order.place(int(call.attrs["axis"] or 0) % order.ndim)
    joined, first = concat([one[0] for one in found if one is not None], place), graph.call(fields[0], PERMUTE)
    return order.out_of(joined) if first is None else Call(first.op, (joined,), first.attrs)


def _behind_split(graph: Rewriter, call: Call) -> Any:
    """`split(permute(x))`."""
    found, sections = transpose(graph, call.args[0]), call.attrs["indices_or_sections"]
    if found is None:
        return None
    value, order = found
    axis = int(call.attrs["axis"]) % order.ndim
    size = order.blocks.get(axis)
    if size is not None:
        parts = [_extent(one, axis) for one in call.struct_info.fields]  # type: ignore[attr-defined]
        if any(part is None or part % size for part in parts):
            return None
        sections = sections if isinstance(sections, int) else [int(one) // size for one in sections]
    made = graph.emit(split(value, sections, order.place(axis)))
    return Tuple(tuple(order.out_of(TupleGetItem(made, n)) for n in range(len(made.struct_info.fields))))


def _extent(info: Any, axis: int) -> int | None:
    return as_int(info.extents[axis]) if info.extents is not None else None


def _in_layout(graph: Rewriter, call: Call) -> Any:
    """`pool(permute(x))`, in the layout that `x` has, and others that know theirs by an attribute."""
    found, layout = transpose(graph, call.args[0]), str(call.attrs["layout"])
    if found is None or call.attrs.get("out_layout") not in (None, layout):
        return None
    value, order = found
    # The plane of windows is in one piece, and channels may be in blocks.
    if "".join(layout[axis] for axis, size in order.places if not size) not in _LAYOUTS or any(layout[n] != "C" for n in order.blocks):
        return None
    attrs = {**call.attrs, "layout": order.text(layout), **({"out_layout": None} if "out_layout" in call.attrs else {})}
    return order.out_of(Call(call.op, (value, *call.args[1:]), attrs))


def _pad(graph: Rewriter, call: Call) -> Any:
    """`pad(permute(x))`."""
    found, widths = transpose(graph, call.args[0]), call.attrs["pad_width"]
    if found is None or any(widths[2 * axis + end] for axis in found[1].blocks for end in (0, 1)):
        return None
    value, order = found
    new = [width for axis, size in order.places for width in ((0, 0) if size else widths[2 * axis : 2 * axis + 2])]
    return order.out_of(Call(call.op, (value, *call.args[1:]), {**call.attrs, "pad_width": new}))


def _resize(graph: Rewriter, call: Call) -> Any:
    """`resize(permute(x))`, along the axes that these are of `x`."""
    found, axes = transpose(graph, call.args[0]), call.attrs["axes"]
    if found is None or any(int(axis) in found[1].blocks for axis in axes):
        return None
    value, order = found
    return order.out_of(Call(call.op, (value, *call.args[1:]), {**call.attrs, "axes": [order.place(int(axis)) for axis in axes]}))


def _batch_norm(graph: Rewriter, call: Call) -> Any:
    """`batch_norm(permute(x), ...)`; channels in blocks are scaled element by element, as there are no vectors of blocks."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    value, order = found
    axis = int(call.attrs["axis"]) % order.ndim
    if axis in order.blocks:
        return for_inference(graph, call)
    made = graph.emit(Call(call.op, (value, *call.args[1:]), {**call.attrs, "axis": order.place(axis)}))
    return Tuple((order.out_of(TupleGetItem(made, 0)), *(TupleGetItem(made, n) for n in (1, 2))))


def _slice(graph: Rewriter, call: Call) -> Any:
    """`strided_slice(permute(x), axes, ...)`."""
    found = transpose(graph, call.args[0])
    if found is None:
        return None
    value, order = found
    axes = [as_int(one.value) for one in call.args[1].fields]
    places = Tuple(tuple(PrimValue(order.place(axis % order.ndim)) for axis in axes if axis is not None))  # type: ignore[arg-type]
    if any(axis is None or axis % order.ndim in order.blocks for axis in axes):
        return None
    return order.out_of(Call(call.op, (value, places, *call.args[2:]), call.attrs))


MERGED: Sequence[Rule] = (_one_permute,)
CANCEL: Rules = {PERMUTE: [*MERGED, _moves_nothing], LAYOUT: [_one_layout]}
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
    **{name: [_in_layout] for name in ROWS if name.endswith(("_pool1d", "_pool2d", "_pool3d", ".resize2d"))},
    "relax.nn.pad": [_pad],
    "relax.image.resize": [_resize],
    "relax.nn.batch_norm": [_batch_norm],
    "relax.strided_slice": [_slice],
}


def OptimizeLayoutTransform() -> ModulePass:
    """A pass: transposes cancel where they meet, and move behind operators that can work in the other order; see the module."""
    return rule_pass("OptimizeLayoutTransform", RULES)


def ReorderPermuteDimsAfterConcat() -> ModulePass:
    """A pass: transposed tensors are joined before they are transposed."""
    return rule_pass("ReorderPermuteDimsAfterConcat", CONCAT)
