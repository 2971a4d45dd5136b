"""Convolutions as AutoTVM's tasks for x86, by TVM's names, with TVM's knobs:

tile_ic, tile_oc   channels of a block of the data, and of the result: the lanes
tile_ow            pixels of a row that are summed up at a time
unroll_kw          write out the taps of a row of the window, inside of the channels of a block
tile_oh            for windows of one tap, rows of a tile in place of that

for n, oc.outer, oh (parallel): for ow.outer: for ic.outer, kh, kw, ic.inner: for ow.inner (registers): for oc.inner (vector)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...autotvm.task.topi_integration import register_topi_compute, register_topi_schedule
from ...schedule.te_schedule import Schedule
from ...te.operation import ComputeOp, PlaceholderOp
from ...te.tensor import Tensor
from ...tir.expr import IterVar
from .. import nn
from ..transform import layout_transform
from ..utils import extent_value
from .shared import (
    MOST_UNROLLED,
    Opened,
    accumulate,
    at_root,
    copies_at_root,
    free_registers,
    in_blocks,
    lanes,
    of_arguments,
    opened,
    sum_groups,
)

# The longest row of pixels of a tile: of the tasks with two spatial axes, and with three.
_ROW, _ROW_3D = 64, 8


def define_knobs(
    cfg: Any,
    channels: Any,
    out: Tensor,
    layout: str,
    taps: int,
    longest: int = _ROW,
    policy: str = "factors",
    multiples: tuple[int, int] = (1, 1),
) -> None:
    """Define the knobs of a convolution.

    Args:
        channels: of the data.
        out: the result, in one piece or in blocks.
        layout: of the result, such as "NCHW"; a "c" at the end stands for the channels of a block.
        taps: of a window; with one `tile_oh` takes the place of `unroll_kw`.
        longest: row of pixels of a tile.
        policy: of `tile_ow`.
        multiples: what blocks of the data's channels, and of the result's, are multiples of.
    """
    extent = dict(zip(layout, map(extent_value, out.shape), strict=True))
    sizes = (("tile_ic", channels, multiples[0]), ("tile_oc", extent["C"] * extent.get("c", 1), multiples[1]))
    for name, size, multiple in sizes:
        cfg.define_split(name, size, num_outputs=2, filter=lambda block, of=multiple: block.size[-1] % of == 0)
    cfg.define_split("tile_ow", extent["W"], num_outputs=2, policy=policy, filter=lambda row: row.size[-1] <= longest)
    if taps == 1:
        cfg.define_knob("tile_oh", [1, 2] if extent["H"] > 1 else [1])
    else:
        cfg.define_knob("unroll_kw", [True, False])
    if cfg.is_fallback:
        cfg.fallback_split("tile_ic", [-1, lanes()])
        cfg.fallback_split("tile_oc", [-1, lanes()])
        cfg.fallback_split("tile_ow", [-1, free_registers()])


@register_topi_compute("conv2d_NCHWc.x86")
def conv2d_NCHWc(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: str | None = "float32",
) -> Tensor:
    """A convolution in blocks of channels; data [N, C, H, W] and kernel [O, C, KH, KW] are packed in the blocks of the configuration."""
    whole = data.ndim == 4
    geometry = (strides, padding, dilation)
    if not whole:
        out = nn.conv2d_NCHWc(data, kernel, *geometry, layout, out_layout, out_dtype)
    else:
        out = nn.conv2d_nchw(data, kernel, *geometry, out_dtype)
    taps = extent_value(kernel.shape[2]) * extent_value(kernel.shape[3])
    channels = data.shape[1] if whole else data.shape[1] * data.shape[4]
    define_knobs(cfg, channels, out, "NCHW" if whole else "NCHWc", taps, policy="verbose")
    if not whole or of_arguments():
        return out
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    packed = layout_transform(data, "NCHW", f"NCHW{inner}c"), layout_transform(kernel, "OIHW", f"OIHW{inner}i{outer}o")
    return nn.conv2d_NCHWc(*packed, *geometry, f"NCHW{inner}c", f"NCHW{outer}c", out_dtype)


@register_topi_schedule("conv2d_NCHWc.x86")
def schedule_conv2d_NCHWc(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution in blocks of channels; data and kernel in one piece are arguments that are passed in blocks."""
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    return blocked(cfg, outs, lambda o, i, h, w: [o // outer, i // inner, h, w, i % inner, o % outer])


@register_topi_compute("depthwise_conv2d_NCHWc.x86")
def depthwise_conv2d_NCHWc(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of each channel in blocks; data [N, C, H, W] and kernel [C, M, KH, KW] are packed in those of the configuration."""
    whole = data.ndim == 4
    geometry = (strides, padding, dilation)
    if not whole:
        out = nn.depthwise_conv2d_NCHWc(data, kernel, *geometry, layout, out_layout, out_dtype)
    else:
        out = nn.depthwise_conv2d_nchw(data, kernel, *geometry, out_dtype)
    define_knobs(cfg, data.shape[1] if whole else data.shape[1] * data.shape[4], out, "NCHW" if whole else "NCHWc", 0)
    if not whole or of_arguments():
        return out
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    flat = layout_transform(kernel, "OIHW", f"OIHW1i{outer}o")
    return nn.depthwise_conv2d_NCHWc(layout_transform(data, "NCHW", f"NCHW{inner}c"), flat, *geometry, "", "", out_dtype)


@register_topi_schedule("depthwise_conv2d_NCHWc.x86")
def schedule_depthwise_conv2d_NCHWc(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution of each channel."""
    outer = cfg["tile_oc"].size[-1]
    return blocked(cfg, outs, lambda o, i, h, w: [o // outer, i, h, w, o % outer])


def blocked(cfg: Any, outs: Any, kernel_layout: Callable[..., list[Any]], group: int = 1) -> Schedule:
    """A convolution whose operands and result are in blocks of channels, or passed in them.

    Args:
        kernel_layout: where the elements of a kernel in one piece go.
        group: channels that one instruction sums.
    """
    found = opened(outs)
    s, out, result = found.s, found.product, found.result
    data, kernel = found.operands
    if len(out.shape) == 4:
        inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
        for tensor in (data, *(data.op.input_tensors if isinstance(data.op, ComputeOp) else ())):
            in_blocks(s, tensor, cut(1, inner))
        in_blocks(s, kernel, kernel_layout)
        same = result.op is out.op
        out = in_blocks(s, out, cut(1, outer))
        result = out if same else in_blocks(s, result, cut(1, outer))
    copies_at_root(s, [data, kernel])
    taps = [extent_value(axis.dom.extent) for axis in found.product.op.reduce_axis[1:] if axis.dom is not None]
    tile(s, cfg, replace(found, product=out, result=result), "NCHWc", taps[:2] == [1, 1], group)
    return s


def cut(place: int, block: int) -> Callable[..., list[Any]]:
    """The layout in which blocks of the axis at a place are innermost: NCHW with its second axis cut becomes NCHWc."""
    return lambda *i: [*i[:place], i[place] // block, *i[place + 1 :], i[place] % block]


def tile(s: Schedule, cfg: Any, found: Opened, layout: str, by_rows: bool = False, group: int = 1) -> None:
    """Sum up tiles of `tile_ow` pixels by `tile_oc` channels in registers, and finish them.

    Args:
        found: the convolution, and what its elements end up in.
        layout: of both. Without "c" the channels are cut in blocks here.
        by_rows: a tile has `tile_oh` rows, as that of a window of one tap.
        group: channels that one instruction sums.
    """
    result = found.result
    accumulators = accumulate(s, found.product, result)
    if "c" not in layout:  # a block of channels is a vector, wherever they stand in the result
        place, block = layout.index("C"), cfg["tile_oc"].size[-1]
        accumulators = in_blocks(s, accumulators, cut(place, block))
    stage, axes = s[result], dict(zip(layout, s[result].op.axis, strict=True))
    chunk, lane = (axes["C"], axes["c"]) if "c" in axes else cfg["tile_oc"].apply(s, result, axes["C"])
    along, pixel = cfg["tile_ow"].apply(s, result, axes["W"])
    rows = [axes["H"]]
    if by_rows:
        rows = list(stage.split(axes["H"], factor=cfg["tile_oh"].val))
    outer = [axes["N"], chunk, *([axes["D"]] if "D" in axes else []), rows[0]]
    # lanes that aren't neighbours in the result are stored pixel by pixel: a tile is transposed in registers
    last = layout[-1] in "cC"
    stage.reorder(*outer, along, *rows[1:], *((pixel, lane) if last else (lane, pixel)))
    if not last and cfg["tile_oc"].size[-1] <= MOST_UNROLLED:
        stage.unroll(lane)
    stage.vectorize(lane if last else pixel)
    s[accumulators].compute_at(stage, along)
    stage.parallel(stage.fuse(*outer))
    within = _sum_up(s, cfg, accumulators, by_rows, group)
    if group == 1:
        s[accumulators].vectorize(s[accumulators].op.axis[-1])
    else:
        sum_groups(s, found, accumulators, s[accumulators].op.axis[-1], within, cfg["tile_oc"].size[-1])


def _sum_up(s: Schedule, cfg: Any, accumulators: Tensor, by_rows: bool, group: int) -> IterVar:
    """Order the loops of the sums; returns the innermost one over channels."""
    stage = s[accumulators]
    *_, row, pixel, lane = stage.op.axis
    blocks, taps, channels = _sums(s, cfg, accumulators, group)
    if by_rows:
        order, written = [*blocks, *taps, *channels, row], [row, pixel]
    elif cfg["unroll_kw"].val:
        order, written = [*blocks, *taps[:-1], *channels, taps[-1]], [taps[-1], pixel]
    else:
        order, written = [*blocks, *taps, *channels], [pixel]
    within = channels[-1] if group > 1 else pixel
    stage.reorder(*(axis for axis in order if axis is not within), pixel, lane, *([within] if group > 1 else []))
    for axis in written:
        stage.unroll(axis)
    return within


def _sums(s: Schedule, cfg: Any, accumulators: Tensor, group: int) -> tuple[list[IterVar], list[IterVar], list[IterVar]]:
    """The loops over blocks of channels, over the taps, and over the channels of a block.

    The channels are the first axis of a sum; kernels in groups may have a block's as axes of their own behind the taps; a convolution of
    each channel sums over none.
    """
    stage = s[accumulators]
    sums, rank = list(stage.op.reduce_axis), len(s[accumulators].op.axis)
    if len(sums) == 2:
        return [], sums, []
    window = 3 if rank == 6 else 2  # [N, C, D, H, W, c] or [N, C, H, W, c]
    first, taps, within = sums[0], sums[1 : 1 + window], sums[1 + window :]
    if within:
        return [first], taps, within
    blocks, channel = stage.split(first, factor=cfg["tile_ic"].size[-1])
    return [blocks], taps, list(stage.split(channel, factor=group)) if group > 1 else [channel]


@register_topi_compute("conv3d_ncdhw.x86")
def conv3d_ncdhw(
    cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution over three spatial dimensions, [N, C, D, H, W]."""
    out = nn.conv3d_ncdhw(data, kernel, strides, padding, dilation, groups, out_dtype)
    define_knobs(cfg, data.shape[1], out, "NCDHW", 0, _ROW_3D)
    return out


@register_topi_schedule("conv3d_ncdhw.x86")
def schedule_conv3d_ncdhw(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution [N, C, D, H, W]: data and kernel are copied in blocks of channels."""
    return copied_in_blocks(cfg, opened(outs), "NCDHW")


@register_topi_compute("conv3d_ndhwc.x86")
def conv3d_ndhwc(
    cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution over three spatial dimensions, [N, D, H, W, C]."""
    out = nn.conv3d_ndhwc(data, kernel, strides, padding, dilation, groups, out_dtype)
    define_knobs(cfg, data.shape[4], out, "NDHWC", 0, _ROW_3D)
    return out


@register_topi_schedule("conv3d_ndhwc.x86")
def schedule_conv3d_ndhwc(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution [N, D, H, W, C], whose channels are neighbours already."""
    found = opened(outs)
    copies_at_root(found.s, found.operands)
    tile(found.s, cfg, found, "NDHWC")
    return found.s


@register_topi_compute("group_conv2d_nchw.x86")
def group_conv2d_nchw(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = "float32",
) -> Tensor:
    """A convolution of channels in groups, [N, C, H, W]."""
    out = nn.group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)
    define_knobs(cfg, data.shape[1], out, "NCHW", 0)
    return out


@register_topi_schedule("group_conv2d_nchw.x86")
def schedule_group_conv2d_nchw(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution in groups: data and kernel are copied in blocks of channels."""
    return copied_in_blocks(cfg, opened(outs), "NCHW")


def copied_in_blocks(cfg: Any, found: Opened, layout: str) -> Schedule:
    """A convolution with channels before the pixels: its operands are copied in blocks, a block of results is stored transposed."""
    s, (data, kernel) = found.s, found.operands
    copies = []
    for operand, block in ((data, cfg["tile_ic"].size[-1]), (kernel, cfg["tile_oc"].size[-1])):
        # padding is a copy already, which may as well have blocks
        copy = s.cache_read(operand, "global", [found.product]) if isinstance(operand.op, PlaceholderOp) else operand
        place = 1 if operand is data else 0
        copies.append(in_blocks(s, copy, cut(place, block)))
    for copy in copies:
        at_root(s, copy)
    tile(s, cfg, found, layout)
    return s
