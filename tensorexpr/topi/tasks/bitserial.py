"""Products of integers of few bits as AutoTVM's tasks for x86, by TVM's names, with TVM's knobs.

bitserial_conv2d_nchw, _nhwc
    tile_co, tile_oh, tile_ow   channels of a block, which are the lanes, and the rows and columns of pixels of a tile
    ann_reduce                  which sums are written out: over planes of data and of weights, over the taps
    reorder_0                   the order of the loops around the lanes; that of blocks of channels stays outside of the tile
    tile_ah                     rows of data (nhwc), or words of a row (nchw), that are packed at a time
    tile_bco                    output channels whose weights one core packs
bitserial_dense
    tile_y, tile_x, tile_k      tiles, and words of a step of the sum; tile_x are the lanes
    reorder_0                   steps of the sum around the rows of a tile, or inside of them
    ann_reduce, ann_spatial     which sums, over planes of data and of weights, and which loops of a tile are written out
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...autotvm.task.topi_integration import register_topi_compute, register_topi_schedule
from ...schedule.te_schedule import Schedule
from ...te.operation import ComputeOp, PlaceholderOp
from ...te.tensor import Tensor
from ...tir.expr import IterVar
from .. import nn
from ..utils import extent_value, get_const_int, pad_pairs
from .convolutions import cut
from .shared import MOST_UNROLLED, Opened, accumulate, at_root, copies_at_root, in_blocks, opened

# The longest tile that is written out, and the longest blocks that TVM's knobs offer.
_MOST_WRITTEN = 64
_LONGEST_TILE, _LONGEST_PACK = 16, 32
# The loops of a convolution in the order of `reorder_0`, and the places among them that it permutes.
_ORDERS = {
    "NCHW": (("n", "co", "oh", "ow", "vc", "vh", "vw", "kh", "kw", "kb", "ib", "ci"), (6, 11)),
    "NHWC": (("n", "oh", "ow", "co", "vh", "vw", "kh", "kw", "kb", "ib", "vc", "ci"), (3, 7)),
}


def _length(axis: IterVar) -> int:
    assert axis.dom is not None
    return get_const_int(axis.dom.extent)


def _define_knobs(cfg: Any, data: Tensor, kernel: Tensor, padding: Any, out: Tensor, layout: str) -> None:
    sizes = dict(zip(layout, map(extent_value, out.shape), strict=True))
    for name, axis in (("tile_co", "C"), ("tile_oh", "H"), ("tile_ow", "W")):
        cfg.define_split(name, sizes[axis], num_outputs=2, max_factor=_LONGEST_TILE)
    cfg.define_annotate("ann_reduce", [cfg.axis(1)] * 4, policy="try_unroll")
    names, interval = _ORDERS[layout]
    cfg.define_reorder("reorder_0", [cfg.axis(1)] * len(names), policy="interval_all", interval=interval)
    taps = [extent_value(extent) for extent in (kernel.shape[2:4] if layout == "NCHW" else kernel.shape[:2])]
    place = 1 if layout == "NCHW" else 0
    low, high = pad_pairs("bitserial_conv2d", padding, taps)[place]
    packed = extent_value(data.shape[layout.index("HW"[place])] + low + high)
    cfg.define_split("tile_ah", packed, num_outputs=2, max_factor=_LONGEST_PACK)
    cfg.define_split("tile_bco", sizes["C"], num_outputs=2, max_factor=_LONGEST_PACK)
    # bits aren't counted, so that figures of different numbers of them compare
    channels = extent_value(data.shape[layout.index("C")])
    cfg.add_flop(2 * prod(sizes.values()) * channels * prod(taps))


@register_topi_compute("bitserial_conv2d_nchw.x86")
def bitserial_conv2d_nchw(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    in_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """A convolution of integers of few bits, [N, C, H, W]."""
    out = nn.bitserial_conv2d_nchw(data, kernel, stride, padding, in_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    _define_knobs(cfg, data, kernel, padding, out, "NCHW")
    return out


@register_topi_compute("bitserial_conv2d_nhwc.x86")
def bitserial_conv2d_nhwc(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    in_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """A convolution of integers of few bits, [N, H, W, C]."""
    out = nn.bitserial_conv2d_nhwc(data, kernel, stride, padding, in_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    _define_knobs(cfg, data, kernel, padding, out, "NHWC")
    return out


@register_topi_schedule("bitserial_conv2d_nchw.x86")
def schedule_bitserial_conv2d_nchw(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution of few bits, [N, C, H, W]: tiles are stored transposed."""
    return _schedule(cfg, opened(outs), "NCHW")


@register_topi_schedule("bitserial_conv2d_nhwc.x86")
def schedule_bitserial_conv2d_nhwc(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution of few bits, [N, H, W, C]."""
    return _schedule(cfg, opened(outs), "NHWC")


def _schedule(cfg: Any, found: Opened, layout: str) -> Schedule:
    s, result, first = found.s, found.result, layout == "NCHW"
    _pack(cfg, found, layout)
    accumulators = accumulate(s, found.product, result)
    if first:
        accumulators = in_blocks(s, accumulators, cut(1, cfg["tile_co"].size[-1]))
    stage = s[result]
    axes = dict(zip(layout, stage.op.axis, strict=True))
    chunk, lane = cfg["tile_co"].apply(s, result, axes["C"])
    rows, row = cfg["tile_oh"].apply(s, result, axes["H"])
    columns, column = cfg["tile_ow"].apply(s, result, axes["W"])
    outer = [axes["N"], chunk, rows, columns] if first else [axes["N"], rows, columns, chunk]
    stage.reorder(*outer, *((lane, row, column) if first else (row, column, lane)))
    stage.vectorize(column if first else lane)
    s[accumulators].compute_at(stage, outer[-1])
    stage.parallel(stage.fuse(*outer[:-1]))
    _sum_up(cfg, s, accumulators, layout)
    return s


def _sum_up(cfg: Any, s: Schedule, accumulators: Tensor, layout: str) -> None:
    stage = s[accumulators]
    *_, row, column, lane = stage.op.axis
    words, *taps, weights, planes = stage.op.reduce_axis
    loops = {"vh": row, "vw": column, "kh": taps[0], "kw": taps[1], "kb": weights, "ib": planes, "ci": words}
    names, _ = _ORDERS[layout]
    order = [loops[names[place]] for place in cfg["reorder_0"].perm if names[place] in loops]
    stage.reorder(*order, lane)
    stage.vectorize(lane)
    summed = [planes, weights, *taps]
    lengths = [_length(axis) for axis in summed]
    cfg["ann_reduce"].apply(s, accumulators, summed, axis_lens=lengths, max_unroll=MOST_UNROLLED, cfg=cfg)
    steps = prod(length for length, how in zip(lengths, cfg["ann_reduce"].anns, strict=True) if how == "unroll")
    tile = cfg["tile_oh"].size[-1] * cfg["tile_ow"].size[-1]
    # accumulators are registers only where all places of a tile are written out
    if tile * steps <= _MOST_WRITTEN:
        stage.unroll(row)
        stage.unroll(column)


def _pack(cfg: Any, found: Opened, layout: str) -> None:
    """Bits are gathered in words: those of the data at the root, weights in blocks of channels besides."""
    s, (data, kernel) = found.s, found.operands
    first, block = layout == "NCHW", cfg["tile_co"].size[-1]
    (source,) = data.op.input_tensors
    bits = source if source.ndim == data.ndim else data  # a border keeps the rank, words have planes besides
    if bits is not data:
        at_root(s, data)
    axes = list(s[bits].op.axis)
    if first:
        outer, inner = cfg["tile_ah"].apply(s, bits, axes[-1])
        s[bits].vectorize(inner)
        s[bits].parallel(s[bits].fuse(*axes[:-1], outer))
    else:
        outer, _ = cfg["tile_ah"].apply(s, bits, axes[1])
        s[bits].parallel(s[bits].fuse(axes[0], outer))
    copies_at_root(s, bits.op.input_tensors)
    copy = s.cache_read(kernel, "global", [found.product]) if isinstance(kernel.op, PlaceholderOp) else kernel
    if isinstance(kernel.op, ComputeOp):
        copies_at_root(s, kernel.op.input_tensors)
    packed = in_blocks(s, copy, cut(0 if first else 3, block))
    *rest, lane = s[packed].op.axis
    chunk = rest[0 if first else 3]
    outer, inner = s[packed].split(chunk, factor=max(1, cfg["tile_bco"].size[-1] // block))
    s[packed].reorder(outer, inner, *(axis for axis in rest if axis is not chunk), lane)
    s[packed].parallel(outer)
    s[packed].vectorize(lane)


@register_topi_compute("bitserial_dense.x86")
def bitserial_dense(
    cfg: Any,
    data: Tensor,
    weight: Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """data [M, K] times weight [N, K] of integers of few bits."""
    out = nn.bitserial_dense(data, weight, data_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    rows, columns = map(extent_value, out.shape)
    for name, extent in (("tile_k", _length(out.op.reduce_axis[2])), ("tile_y", rows), ("tile_x", columns)):
        cfg.define_split(name, extent, num_outputs=2)
    yo, xo, ko, yi, wb, db, ki, xi = (cfg.axis(1) for _ in range(8))
    orders = [[yo, xo, ko, yi, wb, db, ki, xi], [yo, xo, yi, ko, wb, db, ki, xi]]
    cfg.define_reorder("reorder_0", orders[0], policy="candidate", candidate=orders)
    cfg.define_annotate("ann_reduce", [db, wb], policy="try_unroll")
    cfg.define_annotate("ann_spatial", [yi, xi], policy="try_unroll_vec")
    cfg.add_flop(2 * rows * columns * extent_value(data.shape[1]))
    return out


@register_topi_schedule("bitserial_dense.x86")
def schedule_bitserial_dense(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a dense layer of few bits: weights are packed with the columns of a tile side by side."""
    found = opened(outs)
    s, (data, weight), width = found.s, found.operands, cfg["tile_x"].size[-1]
    copies_at_root(s, [data])
    copy = s.cache_read(weight, "global", [found.product]) if isinstance(weight.op, PlaceholderOp) else weight
    if isinstance(weight.op, ComputeOp):
        copies_at_root(s, weight.op.input_tensors)
    packed = in_blocks(s, copy, lambda n, b, k: [n // width, b, k, n % width])
    at_root(s, packed)
    accumulators = accumulate(s, found.product, found.result)
    stage = s[found.result]
    yo, yi = cfg["tile_y"].apply(s, found.result, stage.op.axis[0])
    xo, xi = cfg["tile_x"].apply(s, found.result, stage.op.axis[1])
    stage.reorder(yo, xo, yi, xi)
    place = stage.fuse(yo, xo)
    s[accumulators].compute_at(stage, place)
    stage.parallel(place)
    stage.vectorize(xi)
    _sum_up_dense(cfg, s, accumulators)
    return s


def _sum_up_dense(cfg: Any, s: Schedule, accumulators: Tensor) -> None:
    stage = s[accumulators]
    row, lane = stage.op.axis
    weights, planes, word = stage.op.reduce_axis
    steps, step = cfg["tile_k"].apply(s, accumulators, word)
    loops: list[IterVar | None] = [None, None, steps, row, weights, planes, step, lane]
    stage.reorder(*(axis for axis in (loops[place] for place in cfg["reorder_0"].perm) if axis is not None))
    summed = [planes, weights]
    lengths = [_length(axis) for axis in summed]
    cfg["ann_reduce"].apply(s, accumulators, summed, axis_lens=lengths, max_unroll=MOST_UNROLLED, cfg=cfg)
    stage.vectorize(lane)
    if cfg["ann_spatial"].anns[0] == "unroll" and cfg["tile_y"].size[-1] <= _MOST_WRITTEN:
        stage.unroll(row)
