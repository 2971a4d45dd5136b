"""Kernels of networks as an AutoTVM task: the convolution or product of a kernel in tiles, what is behind it finished tile by tile.

    conv2d [N, C, H, W] or [N, H, W, C], of each channel too     tile_ic, tile_oc, tile_ow, unroll_kw: see `convolutions`
    sums over one axis: matrices, batches, dense layers          tile_y, tile_x, tile_k: see `products`

TVM's tasks declare an operator of its arguments; here the argument is the computation itself, which graphs made of several operators.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...autotvm.task.task import get_config, template
from ...errors import ScheduleError
from ...schedule.te_schedule import Schedule
from ...te.operation import PlaceholderOp
from ...te.serialize import loads
from ...te.tensor import Tensor
from ...tir.expr import IterVar, ProducerLoad
from ...tir.rewriting import variables
from .convolutions import copied_in_blocks, define_knobs, tile
from .products import define_tiles, in_tiles
from .shared import Opened, copies_at_root, opened

NAME = "kernel.x86"
_declared = lru_cache(maxsize=64)(loads)  # a search makes hundreds of programs of one computation


@template(NAME)
def kernel(computation: str) -> tuple[Schedule, list[Tensor]]:
    """The schedule of a kernel.

    Args:
        computation: its tensors, as `te.serialize.dumps` writes them.

    Raises:
        ScheduleError: for a computation that isn't of one convolution or product, with what is elementwise behind it.
    """
    tensors, cfg = list(_declared(computation)), get_config()
    found = opened([tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)])
    sums = found.product.op.reduce_axis
    if len(sums) == 1 and len(found.product.shape) >= 2 and sums[0].dom is not None:
        *_, rows, columns = found.product.shape
        define_tiles(cfg, rows, columns, sums[0].dom.extent)
        return in_tiles(cfg, found), tensors
    layout = _layout(found)
    channels = found.operands[0].shape[layout.index("C")]
    define_knobs(cfg, channels, found.product, layout, 0, policy="verbose")  # as the tasks, whose records are followed
    if layout == "NCHW":
        return copied_in_blocks(cfg, found, layout), tensors
    copies_at_root(found.s, found.operands)
    tile(found.s, cfg, found, layout)
    return found.s, tensors


def _layout(found: Opened) -> str:
    """That of a convolution over two dimensions; the pixels are the axes along which its data is read with offsets, and no weight is.

    Example:
        data[n, rc, y + ry, x + rx] * kernel[o, rc, ry, rx]  ->  "NCHW"
    """
    op, sums = found.product.op, {axis.var for axis in found.product.op.reduce_axis}
    reads = found.s.tree.reads(found.s.tree[found.s[found.product].id])
    data = next(load for load in reads if load.producer == found.operands[0])
    weighted = {var for load in reads if load.producer != found.operands[0] for var in variables(load)}
    shifted = [axis.var not in weighted and _shifted(data, axis, sums) for axis in op.axis]
    for layout, places in (("NCHW", [False, False, True, True]), ("NHWC", [False, True, True, False])):
        if shifted == places:
            return layout
    raise ScheduleError(f"{op.name} is no product and no convolution over two dimensions, of which this template makes schedules")


def _shifted(load: ProducerLoad, axis: IterVar, sums: set[Any]) -> bool:
    """Whether an index of a load is made of an axis and of one that is summed over."""
    return any(axis.var in (used := variables(index)) and used & sums for index in load.indices)
