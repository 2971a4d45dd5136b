"""Products of uint8 data and int8 weights as AutoTVM's tasks for x86, by TVM's names, with TVM's knobs.

Weights are packed in groups of four of the summed elements, which one instruction multiplies and adds where the target has it (VNNI):

    conv2d_NCHWc_int8    as conv2d_NCHWc; blocks of the data are of whole groups, those of the result of whole vectors
    dense_int8           tile_y, rows of a tile; the weight is given packed, [N/16, K/4, 16, 4]
    batch_matmul_int8    tile_y; layout_trans_compute_root, whether the second operand is packed before the product or for each row of tiles
"""

from __future__ import annotations

from typing import Any

from ... import te
from ...autotvm.task.topi_integration import register_topi_compute, register_topi_schedule
from ...errors import DeclarationError
from ...schedule.te_schedule import Schedule
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import IterVar, Var
from .. import nn
from ..nn.dense import bias_add
from ..transform import layout_transform
from ..utils import extent_value, need_equal
from .convolutions import blocked, define_knobs
from .shared import GROUP, Opened, accumulate, copies_at_root, in_blocks, of_arguments, opened, sum_groups, write_out

# Results of a vector of AVX-512.
_LANES = 16


@register_topi_compute("conv2d_NCHWc_int8.x86")
def conv2d_NCHWc_int8(
    cfg: Any,
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHW4c",
    out_layout: str = "NCHW16c",
    out_dtype: str = "int32",
    n_elems: int = GROUP,
) -> Tensor:
    """A convolution of small numbers in blocks of channels; data [N, C, H, W] and kernel [O, C, KH, KW] are packed."""
    whole, geometry = data.ndim == 4, (strides, padding, dilation)
    if whole:
        out = nn.conv2d_nchw(data, kernel, *geometry, out_dtype)
    else:
        out = nn.conv2d_NCHWc_int8(data, kernel, *geometry, layout, out_layout, out_dtype, n_elems)
    channels = extent_value(data.shape[1] if whole else data.shape[1] * data.shape[4])
    _define_knobs(cfg, channels, out, whole, extent_value(kernel.shape[2]) * extent_value(kernel.shape[3]))
    if not whole or of_arguments():
        return out
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    packed = layout_transform(layout_transform(kernel, "OIHW", f"OIHW{inner}i{outer}o"), "OIHWio", f"OIHWi{outer}o4i")
    return nn.conv2d_NCHWc_int8(layout_transform(data, "NCHW", f"NCHW{inner}c"), packed, *geometry, layout, out_layout, out_dtype, n_elems)


def _define_knobs(cfg: Any, channels: int, out: Tensor, whole: bool, taps: int) -> None:
    """Those of a convolution; blocks are of whole groups and whole vectors."""
    outputs = extent_value(out.shape[1] if whole else out.shape[1] * out.shape[4])
    if channels % GROUP or outputs % _LANES:
        raise DeclarationError(
            f"conv2d_NCHWc_int8.x86 is for a multiple of {GROUP} channels in and of {_LANES} out, not {channels} and {outputs}; "
            "topi.nn.conv2d takes any"
        )
    define_knobs(cfg, channels, out, "NCHW" if whole else "NCHWc", taps, multiples=(GROUP, _LANES))


@register_topi_schedule("conv2d_NCHWc_int8.x86")
def schedule_conv2d_NCHWc_int8(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a convolution of small numbers; data and kernel in one piece are arguments that are passed in blocks."""
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    return blocked(cfg, outs, lambda o, i, h, w: [o // outer, i // inner, h, w, i % inner // GROUP, o % outer, i % GROUP], GROUP)


@register_topi_compute("dense_int8.x86")
def dense_int8(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """data [M, K] times a packed weight [N/16, K/4, 16, 4], plus bias [N].

    Raises:
        DeclarationError: for a weight that isn't packed.
    """
    if weight.ndim != 4:
        raise DeclarationError(
            f"dense_int8.x86 takes its weight packed, [N/16, K/4, 16, 4], not {list(weight.shape)}; topi.nn.dense takes [N, K]"
        )
    depth, width, group = extent_value(data.shape[1]), weight.shape[2], weight.shape[3]
    need_equal("dense_int8", "the summed extents of data and weight", depth, extent_value(weight.shape[1] * group))
    cfg.define_split("tile_y", data.shape[0], num_outputs=2)
    dtype, k = out_dtype or "int32", te.reduce_axis((0, depth), name="k")

    def body(y: Var, x: Var) -> Any:
        right = weight(floordiv(x, width), floordiv(k.var, group), floormod(x, width), floormod(k.var, group))
        return te.sum(cast(data(y, k.var), dtype) * cast(right, dtype), axis=k)

    product: Tensor = compute((data.shape[0], extent_value(weight.shape[0] * width)), body, "dense_int8", "dense_int8")
    return product if bias is None else bias_add(product, bias, -1)


@register_topi_schedule("dense_int8.x86")
def schedule_dense_int8(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a dense layer of small numbers: tiles of `tile_y` rows by a vector of columns."""
    found = opened(outs)
    copies_at_root(found.s, found.operands)
    _tile_rows(cfg, found)
    return found.s


@register_topi_compute("batch_matmul_int8.x86")
def batch_matmul_int8(
    cfg: Any,
    tensor_a: Tensor,
    tensor_b: Tensor,
    out_shape: Any = None,
    out_dtype: str | None = None,
    transpose_a: Any = False,
    transpose_b: Any = True,
) -> Tensor:
    """The products of a batch of matrices [B, M, K] of uint8 and one [B, N, K] of int8.

    Raises:
        DeclarationError: for other transpositions, or extents that aren't whole groups and vectors.
    """
    columns, depth = extent_value(tensor_b.shape[1]), extent_value(tensor_b.shape[2])
    if transpose_a or not transpose_b or columns % _LANES or depth % GROUP:
        raise DeclarationError(
            f"batch_matmul_int8.x86 is for [B, M, K] and [B, N, K], N a multiple of {_LANES} and K of {GROUP}; "
            "topi.nn.batch_matmul takes any"
        )
    cfg.define_split("tile_y", tensor_a.shape[1], num_outputs=2)
    cfg.define_knob("layout_trans_compute_root", [0, 1])
    return nn.batch_matmul(tensor_a, tensor_b, out_shape, out_dtype or "int32", False, True)


@register_topi_schedule("batch_matmul_int8.x86")
def schedule_batch_matmul_int8(cfg: Any, outs: Any) -> Schedule:
    """The schedule of batched products of small numbers; the second operand is packed in groups."""
    found = opened(outs)
    s, right = found.s, found.operands[1]
    copies_at_root(s, found.operands)
    copy = s.cache_read(right, "global", [found.product])
    packed = in_blocks(s, copy, lambda b, n, k: [b, n // _LANES, k // GROUP, n % _LANES, k % GROUP])
    place = _tile_rows(cfg, found)
    *outer, lane, group = s[packed].op.axis
    if cfg["layout_trans_compute_root"].val:
        s[packed].parallel(s[packed].fuse(*outer))
    else:
        s[packed].compute_at(s[found.result], place)
    s[packed].vectorize(s[packed].fuse(lane, group))
    return s


def _tile_rows(cfg: Any, found: Opened) -> IterVar:
    """Tiles of `tile_y` rows by a vector of columns; returns the loop over the vectors, in which a row of tiles is."""
    s, result = found.s, found.result
    accumulators = accumulate(s, found.product, result)
    stage = s[result]
    *batch, y, x = stage.op.axis
    outer, row = cfg["tile_y"].apply(s, result, y)
    columns, lane = stage.split(x, factor=_LANES)
    stage.reorder(*batch, columns, outer, row, lane)
    place = stage.fuse(*batch, columns)
    stage.vectorize(lane)
    stage.parallel(place)
    s[accumulators].compute_at(stage, outer)
    *_, row, lane = s[accumulators].op.axis
    steps, group = s[accumulators].split(s[accumulators].op.reduce_axis[0], factor=GROUP)
    s[accumulators].reorder(steps, row, lane, group)
    write_out(s[accumulators], row, cfg["tile_y"].size[-1])
    sum_groups(s, found, accumulators, lane, group, _LANES)
    return place
