"""Dense layers and batched products as AutoTVM's tasks for x86, by TVM's names, with TVM's knobs.

dense_pack     tile_y, tile_x (3 parts)  blocks, tiles of blocks, and rows and columns of a tile; the weight is packed in the columns
               tile_k, tile_inner        steps of the sum; rows that are written out
dense_nopack   tile_y, tile_x, tile_k    tiles, and partial sums side by side along k: what lies side by side in both operands
batch_matmul   tile_y, tile_x, tile_k    tiles, steps of the sum
"""

from __future__ import annotations

from typing import Any

from ...autotvm.task.topi_integration import register_topi_compute, register_topi_schedule
from ...errors import ScheduleError
from ...schedule.te_schedule import Schedule
from ...spaces.tiles import pack
from ...te.tensor import Tensor
from .. import nn
from ..transform import layout_transform
from ..utils import extent_value
from .shared import (
    MOST_UNROLLED,
    Opened,
    accumulate,
    copies_at_root,
    free_registers,
    in_blocks,
    lanes,
    of_arguments,
    opened,
    write_out,
)


@register_topi_compute("dense_pack.x86")
def dense_pack(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """data [M, K] times weight [N, K], or [N/b, K, b], plus bias [N]: the weight is packed in the columns of the configuration."""
    whole = weight.ndim == 2
    rows, depth = data.shape
    columns = weight.shape[0] if whole else extent_value(weight.shape[0] * weight.shape[2])
    cfg.define_split("tile_y", rows, num_outputs=3)
    cfg.define_split("tile_x", columns, num_outputs=3)
    cfg.define_split("tile_k", depth, num_outputs=2)
    cfg.define_split("tile_inner", rows, num_outputs=2, filter=lambda inner: inner.size[-1] <= MOST_UNROLLED)
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 1, free_registers()])
        cfg.fallback_split("tile_x", [-1, 1, lanes()])
        cfg.fallback_split("tile_k", [-1, 1])
        cfg.fallback_split("tile_inner", [-1, cfg["tile_y"].size[-1]])
    if not whole:
        return nn.dense_pack(data, weight, bias, out_dtype)
    if of_arguments():
        return nn.dense(data, weight, bias, out_dtype)
    return nn.dense_pack(data, layout_transform(weight, "NK", f"NK{cfg['tile_x'].size[-1]}n"), bias, out_dtype)


@register_topi_schedule("dense_pack.x86")
def schedule_dense_pack(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a dense layer of packed weights; a weight [N, K] is an argument that is passed packed."""
    found = opened(outs)
    s, (data, weight) = found.s, found.operands
    if len(weight.shape) == 2:
        width = cfg["tile_x"].size[-1]
        in_blocks(s, weight, lambda n, k: [n // width, k, n % width])
    copies_at_root(s, [data, weight])
    accumulators = accumulate(s, found.product, found.result)
    stage = s[found.result]
    outer_y, block_y, row = cfg["tile_y"].apply(s, found.result, stage.op.axis[0])
    outer_x, block_x, lane = cfg["tile_x"].apply(s, found.result, stage.op.axis[1])
    stage.reorder(outer_x, outer_y, block_y, block_x, row, lane)
    place = stage.fuse(block_y, block_x)
    stage.vectorize(lane)
    s[accumulators].compute_at(stage, place)
    stage.parallel(stage.fuse(outer_x, outer_y))
    inner = s[accumulators]
    row, lane = inner.op.axis
    steps, step = cfg["tile_k"].apply(s, accumulators, inner.op.reduce_axis[0])
    rows, row = cfg["tile_inner"].apply(s, accumulators, row)
    inner.reorder(steps, rows, step, row, lane)
    inner.vectorize(lane)
    inner.unroll(row)
    return s


@register_topi_compute("dense_nopack.x86")
def dense_nopack(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """data [M, K] times weight [N, K] as they lie, plus bias [N]."""
    for name, extent in (("tile_y", data.shape[0]), ("tile_x", weight.shape[0]), ("tile_k", data.shape[1])):
        cfg.define_split(name, extent, num_outputs=2)
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 2])
        cfg.fallback_split("tile_x", [-1, 4])
        cfg.fallback_split("tile_k", [-1, lanes()])
    return nn.dense(data, weight, bias, out_dtype)


@register_topi_schedule("dense_nopack.x86")
def schedule_dense_nopack(cfg: Any, outs: Any) -> Schedule:
    """The schedule of a dense layer whose sums are cut in as many partial ones as a vector has lanes.

    for y.outer, x.outer (parallel): for y.inner, x.inner: partial[lane] += data[y, k] * weight[x, k] for k.outer ; sum of the lanes
    """
    found = opened(outs)
    s = found.s
    copies_at_root(s, found.operands)
    product = found.product
    _, lane = cfg["tile_k"].apply(s, product, s[product].op.reduce_axis[0])
    partial = s.rfactor(product, lane)
    stage = s[found.result]
    y, x = stage.op.axis
    outer_y, row = cfg["tile_y"].apply(s, found.result, y)
    outer_x, column = cfg["tile_x"].apply(s, found.result, x)
    stage.reorder(outer_y, outer_x, row, column)
    place = stage.fuse(outer_y, outer_x)
    stage.parallel(place)
    if found.result.op is not product.op:
        s[product].compute_at(stage, column)
        s[partial].compute_at(stage, column)
    else:
        s[partial].compute_at(stage, column)
    lanes_axis, *others = s[partial].op.axis
    s[partial].reorder(*others, *s[partial].op.reduce_axis, lanes_axis)
    s[partial].vectorize(lanes_axis)
    return s


@register_topi_compute("batch_matmul.x86")
def batch_matmul(
    cfg: Any,
    tensor_a: Tensor,
    tensor_b: Tensor,
    out_shape: Any = None,
    out_dtype: str | None = None,
    transpose_a: Any = False,
    transpose_b: Any = True,
) -> Tensor:
    """The products of two batches of matrices, each transposed if said so."""
    out = nn.batch_matmul(tensor_a, tensor_b, out_shape, out_dtype, bool(transpose_a), bool(transpose_b))
    define_tiles(cfg, out.shape[1], out.shape[2], tensor_a.shape[1] if transpose_a else tensor_a.shape[2])
    return out


def define_tiles(cfg: Any, rows: Any, columns: Any, depth: Any) -> None:
    """Define the knobs of a product: rows and columns of a tile, steps of the sum that are taken together."""
    for name, extent in (("tile_y", rows), ("tile_x", columns), ("tile_k", depth)):
        cfg.define_split(name, extent, num_outputs=2)
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, free_registers()])
        cfg.fallback_split("tile_x", [-1, lanes()])
        cfg.fallback_split("tile_k", [-1, 1])


@register_topi_schedule("batch_matmul.x86")
def schedule_batch_matmul(cfg: Any, outs: Any) -> Schedule:
    """The schedule of batched products."""
    return in_tiles(cfg, opened(outs))


def in_tiles(cfg: Any, found: Opened) -> Schedule:
    """A product, or a batch of them; columns that aren't neighbours in memory are brought into panels of a tile's width first.

    Raises:
        ScheduleError: if no operand has the columns and the sum as indices of its own.
    """
    s, (*_, x), (k,) = found.s, found.product.op.axis, found.product.op.reduce_axis
    reads = s.tree.reads(s.tree[s[found.product].id])
    load = next((one for one in reads if x.var in one.indices and k.var in one.indices), None)
    if load is None:
        raise ScheduleError(
            f"no operand of {found.product.op.name} is read at the columns and the steps of the sum, as that of a product is"
        )
    right, column = next(one for one in found.operands if one == load.producer), load.indices.index(x.var)
    is_row = column == len(load.indices) - 1
    copies_at_root(s, [operand for operand in found.operands if operand is not right or is_row])
    if not is_row:
        copy = s.cache_read(right, "global", [found.product])
        pack(s, copy, [column], [load.indices.index(k.var)], (1, cfg["tile_x"].size[-1]), True, True)
    accumulators = accumulate(s, found.product, found.result)
    stage = s[found.result]
    *batch, y, x = stage.op.axis
    outer_y, row = cfg["tile_y"].apply(s, found.result, y)
    outer_x, lane = cfg["tile_x"].apply(s, found.result, x)
    stage.reorder(*batch, outer_y, outer_x, row, lane)
    place = stage.fuse(*batch, outer_y, outer_x)
    stage.vectorize(lane)
    stage.parallel(place)
    s[accumulators].compute_at(stage, place)
    inner = s[accumulators]
    *_, row, lane = inner.op.axis
    steps, step = cfg["tile_k"].apply(s, accumulators, inner.op.reduce_axis[0])
    inner.reorder(steps, step, row, lane)
    inner.vectorize(lane)
    write_out(inner, row, cfg["tile_y"].size[-1])
    return s
