"""Which rows of an operation anyone asks for, where that matters: where its first rows read what lies before a tensor.

    X = te.placeholder((7, n)); Y = te.compute((8, n), lambda t, i: X[t - 1, i])       legal if only rows from 1 on are read

A scan asks for the rows of its steps, an output is asked for as a whole, and what an operation asks for follows from what is
asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..arith.analyzer import Analyzer
from ..arith.interval import Interval, hull, relax
from ..tir.expr import IntImm, IterVar, ProducerLoad, Range, Var
from .bounds import check_bounds, early_rows
from .dag import output_ops
from .operation import ComputeOp, Operation, loads
from .scan_op import ScanOp
from .tensor import Tensor

Box = list[Interval | None]


def first_rows(ops: Sequence[Operation], outputs: Iterable[Operation] = ()) -> dict[Operation, int]:
    """For each operation that looks back before the first row, the first of its rows that is asked for.

    Args:
        ops: a whole graph, producers first.
        outputs: operations that are asked for as a whole; besides those that nothing reads.
    """
    # nearly no graph has any; the rest costs a walk through all bodies
    early = [op for op in ops if isinstance(op, ComputeOp) and early_rows(op)]
    if not early:
        return {}
    asked: dict[Operation, list[Box]] = {op: [] for op in ops}
    for op in (*output_ops(ops), *outputs):
        asked[op].append([whole(axis) for axis in op.axis])
    analyzer = Analyzer()
    found: dict[Operation, int] = {}
    # readers first, so that all boxes of an operation are known when they are joined
    for op in reversed(ops):
        box = _union(op, asked[op], analyzer)
        if op in early and box and box[0] is not None:
            low = analyzer.simplify(box[0].min)
            # a symbolic first row might be 0
            found[op] = max(0, low.value) if isinstance(low, IntImm) else 0
        for load, domain in _reads(op, box):
            producer = load.producer.op if isinstance(load.producer, Tensor) else None
            if producer in asked:
                asked[producer].append([relax(index, domain, analyzer) for index in load.indices])
    return found


def check_demand(ops: Sequence[Operation], outputs: Iterable[Operation] = (), of_scans: Iterable[Operation] = ()) -> None:
    """Refuse a graph in which a row is asked for that reads out of bounds.

    Args:
        ops: a whole graph, producers first.
        outputs: operations that are asked for as a whole; besides those that nothing reads.
        of_scans: what scans compute step by step, and have checked themselves.

    Raises:
        DeclarationError: naming the read, the index and the point.
    """
    known = set(of_scans)
    for op, row in first_rows(ops, outputs).items():
        if isinstance(op, ComputeOp) and op not in known:
            check_bounds(op, min(row, early_rows(op)))


def _reads(op: Operation, box: Box) -> Iterable[tuple[ProducerLoad, Mapping[Var, Range]]]:
    """What an operation reads while its axes run over a box; what is asked of a box that nobody asks for is nothing."""
    if isinstance(op, ScanOp):
        spatial = {axis.var: axis.dom for axis in (*op.spatial_axis_, op.init_axis, op.scan_axis) if axis.dom is not None}
        return [(load, spatial) for load in (*op.init_reads, *op.update_reads)]
    if not isinstance(op, ComputeOp):
        extents = [extent for tensor in op.input_tensors for extent in tensor.shape]
        places = {Var(f"d{n}", extent.dtype): Range.from_min_extent(IntImm(extent.dtype, 0), extent) for n, extent in enumerate(extents)}
        return [(load, places) for load in _whole_reads(op, list(places))]
    if not box:
        box = [whole(axis) for axis in op.axis]
    domain = {axis.var: axis.dom for axis in op.reduce_axis if axis.dom is not None}
    for axis, interval in zip(op.axis, box, strict=True):
        ends = interval or whole(axis)
        domain[axis.var] = Range.from_min_extent(ends.min, ends.max - ends.min + 1)
    return [(load, domain) for load in loads(op)]


def _whole_reads(op: Operation, axes: list[Var]) -> list[ProducerLoad]:
    """Reads of all elements of all inputs."""
    found = []
    for tensor in op.input_tensors:
        found.append(ProducerLoad(tensor, tuple(axes[: tensor.ndim])))
        axes = axes[tensor.ndim :]
    return found


def whole(axis: IterVar) -> Interval:
    """All values of an axis."""
    assert axis.dom is not None
    return Interval(axis.dom.min, axis.dom.min + axis.dom.extent - 1)


def around(axis: IterVar, intervals: Sequence[Interval | None], analyzer: Analyzer) -> Interval:
    """The values of an axis that several parties ask for; all of them where one isn't known."""
    known = [interval for interval in intervals if interval is not None]
    return hull(known, analyzer) if len(known) == len(intervals) else whole(axis)


def _union(op: Operation, boxes: list[Box], analyzer: Analyzer) -> Box:
    """The box around several; none of those that bounds aren't known for."""
    if not isinstance(op, ComputeOp) or not boxes:
        return []
    return [around(axis, [box[place] for box in boxes], analyzer) for place, axis in enumerate(op.axis)]
