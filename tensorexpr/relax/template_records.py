"""What AutoTVM's logs know of the kernels of a graph: which operator a kernel computes, and its program with the knobs of a record.

    fused_conv2d_add_relu, in whatever layout        conv2d_NCHWc.x86, depthwise_conv2d_NCHWc.x86: tile_ic, tile_oc, tile_ow, unroll_kw
    fused_matmul_add, nn.dense                       dense_pack.x86, dense_nopack.x86: the innermost sizes of tile_y, tile_x, tile_k
    batch_matmul                                     batch_matmul.x86: the same

A record was measured of the operator alone, which a kernel finishes with what is fused behind it: its program is that of the template for
kernels (`topi.tasks.kernels`), whose knobs have the same names. Knobs that this has and the record doesn't are at their first candidate.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from ..arith.linear import Linear, linear_form
from ..auto_scheduler.layout_rewrite import LayoutRewriteOption
from ..auto_scheduler.search_task import SearchTask
from ..autotvm.policy import RelaidSpace
from ..autotvm.task.dispatcher import DispatchContext
from ..autotvm.task.knobs import SplitEntity
from ..autotvm.task.task import create
from ..dataclass import dataclass
from ..errors import ScheduleError, TensorExprError
from ..log import once
from ..schedule.trace import Trace
from ..schedule.tree import loads_of
from ..target import Target
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.serialize import dumps
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, ProducerLoad, Var
from ..topi.tasks.kernels import NAME
from ..topi.tasks.shared import opened
from .kernel_tasks import with_free_layouts

_logger = logging.getLogger(__name__)
Workload = tuple[Any, ...]


def program_by_template(tensors: Sequence[Tensor], weights: Sequence[int], target: Target) -> Trace | None:
    """The program of a kernel by the record that AutoTVM's contexts in scope have for its operator; None without one.

    Args:
        tensors: of the kernel's computation.
        weights: arguments that are passed packed.
        target: what it will run on.
    """
    try:
        workloads = list(workloads_of(tensors))
    except ScheduleError:  # none of a product, or one whose tiles can't be finished at once
        return None
    found = (DispatchContext.current.recorded(target, workload) for workload in workloads)
    config = next((one for one in found if one is not None), None)
    if config is None:
        return None
    try:
        option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED if weights else None
        free = with_free_layouts(tensors, weights)
        task = SearchTask(compute_dag=free, target=target, layout_rewrite_option=option)
        with target:
            space = RelaidSpace(create(NAME, [dumps(task.compute_dag.tensors)], target), task)
            knobs = space.config.space_map.items()
            if not any(name in config for name, _ in knobs):
                return None
            return space.program([_place(name, one, config[name]) if name in config else 0 for name, one in knobs])
    except TensorExprError as error:
        once(_logger, f"a record of AutoTVM isn't followed: {error}")
        return None


def _place(name: str, space: Any, chosen: Any) -> int:
    """The candidate of a knob that a record chose; of a split that has the same innermost size."""
    for place, entity in enumerate(space.entities):
        same = entity.size[-1] == chosen.size[-1] if isinstance(entity, SplitEntity) else entity == chosen
        if same:
            return place
    raise TensorExprError(f"{name} is {chosen!r} in the log, which isn't among the kernel's {len(space.entities)} candidates")


def workloads_of(tensors: Sequence[Tensor]) -> Iterator[Workload]:
    """The workloads of AutoTVM's tasks that compute what a kernel's product or convolution does.

    Example:
        relu(conv2d(x, w) + b), all channels last  ->  ("conv2d_NCHWc.x86", ("TENSOR", (1, 16, 14, 14), "float32"), ...)

    Raises:
        ScheduleError: for a computation without a sum, or with more behind it than is elementwise.
    """
    found = opened([tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)])
    product = found.product.op
    assert isinstance(product, ComputeOp)  # `opened` finds no other sums
    loads = list(loads_of(product))
    if len(loads) != 2 or any(as_int(extent) is None for load in loads for extent in load.producer.shape):
        return
    if len(product.reduce_axis) == 1:
        yield from _product(product, *loads)
    elif len(product.axis) == 4 and len(product.reduce_axis) == 3:
        read = _Windows.of(product, *loads)
        if read is not None:
            yield from read.workloads()


def _product(op: ComputeOp, left: ProducerLoad, right: ProducerLoad) -> Iterator[Workload]:
    """Rows of the left operand with columns of the right one; axes in front of both, which both are read by, are a batch."""
    *batch, row, column = [axis.var for axis in op.axis]
    k, extent = op.reduce_axis[0].var, {axis.var: _extent(axis) for axis in (*op.axis, *op.reduce_axis)}
    dtype = str(op.output_dtype(0))

    def tensor(load: ProducerLoad, *shape: int) -> Workload:
        return ("TENSOR", shape, str(load.producer.dtype))

    if not set(right.indices) - {column, k}:
        rows = prod(extent[var] for var in (*batch, row))
        if set(left.indices) == {*(var for var in (*batch, row) if var in left.indices), k}:
            for name in ("dense_pack.x86", "dense_nopack.x86"):
                yield name, tensor(left, rows, extent[k]), tensor(right, extent[column], extent[k]), None, dtype
    elif batch and set(left.indices) == {*batch, row, k} and set(right.indices) == {*batch, column, k}:
        count = prod(extent[var] for var in batch)
        out = (count, extent[row], extent[column])
        for turned in (1, 0):  # Relay's products have the right operand transposed; where a log has both, it says the same of them
            there = (extent[column], extent[k]) if turned else (extent[k], extent[column])
            sides = tensor(left, count, extent[row], extent[k]), tensor(right, count, *there)
            yield "batch_matmul.x86", *sides, out, dtype, 0, turned


def _extent(axis: IterVar) -> int:
    known = None if axis.dom is None else as_int(axis.dom.extent)
    return -1 if known is None else known


@dataclass(frozen=True)
class _Windows:
    """A convolution over two dimensions as its loads say it: sizes as in NCHW, whatever the layout is.

    data[n, c, y * stride + ry * dilation - front, ...] * kernel[o, c, ry, rx]
    """

    data: Workload
    kernel: Workload
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    by_channel: bool
    dtype: str

    @staticmethod
    def of(op: ComputeOp, data: ProducerLoad, kernel: ProducerLoad) -> _Windows | None:
        """None if it is no such convolution."""
        sums = {axis.var: _extent(axis) for axis in op.reduce_axis}
        axes = {axis.var: _extent(axis) for axis in op.axis}
        forms = [linear_form(index) for index in data.indices]
        windows = [(place, *found) for place, form in enumerate(forms) if (found := _window(form, axes, sums, kernel)) is not None]
        if len(windows) != 2:
            return None
        (first, y, ry), (second, x, rx) = windows
        channel = next(var for var in sums if var not in (ry, rx))
        places = [n for n in range(4) if n not in (first, second)]
        out = next((var for var in axes if var in kernel.indices), None)
        deep = next((n for n in places if forms[n].coefficient_of(channel) == 1), None)
        if out is None or deep is None or channel not in kernel.indices:
            return None
        by_channel = forms[deep].coefficient_of(out) == 1 and sums[channel] == 1
        if not by_channel and data.indices[deep] is not channel:
            return None  # channels in groups
        order = [next(n for n in places if n != deep), deep, first, second]
        assert isinstance(data.producer, Tensor)
        source, fronts = _unpadded(data.producer, order)
        whole = [int(as_int(extent) or 0) for extent in data.producer.shape]
        given = [int(as_int(source.shape[n]) or 0) for n in order]
        backs = [whole[n] - size - front for n, size, front in zip(order, given, fronts, strict=True)]
        if any(fronts[:2]) or any(backs[:2]) or min(*fronts, *backs) < 0:
            return None
        return _Windows(
            ("TENSOR", tuple(given), str(data.producer.dtype)),
            ("TENSOR", (axes[out], sums[channel], sums[ry], sums[rx]), str(kernel.producer.dtype)),
            (forms[first].coefficient_of(y), forms[second].coefficient_of(x)),
            (*fronts[2:], *backs[2:]),
            (forms[first].coefficient_of(ry), forms[second].coefficient_of(rx)),
            by_channel,
            str(op.output_dtype(0)),
        )

    def workloads(self) -> Iterator[Workload]:
        """As TVM's tasks of graphs are called with it."""
        name = "depthwise_conv2d_NCHWc.x86" if self.by_channel else "conv2d_NCHWc.x86"
        yield name, self.data, self.kernel, self.strides, self.padding, self.dilation, "NCHW", "NCHW", self.dtype


def _window(form: Linear, axes: Any, sums: Any, kernel: ProducerLoad) -> tuple[Var, Var] | None:
    """The axis of pixels and that of taps by which an index goes; no weight is read by pixels."""
    pixels = [var for var in axes if form.coefficient_of(var) and var not in kernel.indices]
    taps = [var for var in sums if form.coefficient_of(var) and var in kernel.indices]
    return (pixels[0], taps[0]) if len(pixels) == len(taps) == 1 and not form.constant else None


def _unpadded(data: Tensor, order: Sequence[int]) -> tuple[Tensor, list[int]]:
    """What a tensor pads, and by how much in front of each axis; itself if it pads nothing."""
    op = data.op
    loads = list(loads_of(op)) if isinstance(op, ComputeOp) and not op.reduce_axis else []
    if len(loads) == 1 and isinstance(op, ComputeOp) and loads[0].producer.shape != data.shape and len(loads[0].indices) == len(op.axis):
        forms = [linear_form(index) for index in loads[0].indices]
        source = loads[0].producer
        if isinstance(source, Tensor) and all(form.coefficient_of(axis.var) == 1 for form, axis in zip(forms, op.axis, strict=True)):
            return source, [-forms[n].constant for n in order]
    return data, [0] * len(order)
