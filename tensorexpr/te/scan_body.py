"""What one step of a scan computes: the operations between the states and the updates, and the box of each that step t needs.

A step may read what earlier steps have written. Whether it does is proved here, from the definitions, with t a symbol;
what can't be proved is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from ..arith.analyzer import Analyzer
from ..arith.interval import Interval, relax
from ..errors import DeclarationError
from ..tir.arithmetic import const, logical_not
from ..tir.expr import IntImm, PrimExpr, ProducerLoad, Range, SizeVar, Var
from ..tir.rewriting import substitute, walk
from .bounds import check_bounds, guarded_loads
from .dag import post_dfs_order
from .demand import around, check_demand, whole
from .operation import ComputeOp, Operation
from .scan_op import ScanOp
from .tensor import Tensor

Box = tuple[Interval, ...]
Boxes = Mapping[ComputeOp, Box]
_MAX_SIZE = (1 << 31) - 1  # of a symbolic size: proofs need both its ends


def state_dependent(scan: ScanOp) -> tuple[ComputeOp, ...]:
    """The operations that a step computes: those that updates are made of and that depend on a state, producers first.

    Raises:
        DeclarationError: if one of them is no te.compute.
    """
    order = post_dfs_order([tensor.op for tensor in scan.update])
    dependent = {tensor.op for tensor in scan.state_placeholder}
    for op in order:
        if any(tensor.op in dependent for tensor in op.input_tensors):
            dependent.add(op)
    # an update that reads no state is computed by the steps all the same
    dependent.update(tensor.op for tensor in scan.update)
    dependent.difference_update(tensor.op for tensor in scan.state_placeholder)
    steps = [op for op in order if op in dependent]
    for op in steps:
        if not isinstance(op, ComputeOp):
            raise DeclarationError(f"scan {scan.name}: {op.name} depends on a state but is no te.compute; a step is made of computes only")
    return tuple(op for op in steps if isinstance(op, ComputeOp))


def check_scan(scan: ScanOp) -> None:
    """Check that each step reads only rows that are there by then.

    Raises:
        DeclarationError: naming the operation and the read.
    """
    steps = state_dependent(scan)
    bound = {*steps, *(tensor.op for tensor in scan.state_placeholder)}
    for tensor in scan.init:
        if not bound.isdisjoint(post_dfs_order([tensor.op])):
            raise DeclarationError(f"scan {scan.name}: init {tensor.name} depends on a state; init is computed before the first step")
    boxes = step_boxes(scan)
    analyzer = _analyzer(scan)
    rows = scan.init[0].shape[0]
    for op in steps:
        over_time = bool(op.axis) and all(analyzer.known_equal(end, scan.scan_axis.var) for end in (boxes[op][0].min, boxes[op][0].max))
        # an operation whose first axis is time is never computed before the first step
        check_bounds(op, rows.value if over_time and isinstance(rows, IntImm) else 0)


def step_boxes(scan: ScanOp) -> Boxes:
    """For each operation of a step the elements that step t (`scan.scan_axis.var`) computes, as inclusive bounds of its axes.

    Raises:
        DeclarationError: if a step reads rows that are not computed before it.
    """
    steps = state_dependent(scan)
    time = scan.scan_axis.var
    wanted: dict[ComputeOp, list[list[Interval | None]]] = {op: [] for op in steps}
    for tensor in scan.update:
        if isinstance(tensor.op, ComputeOp):
            wanted[tensor.op].append([Interval(time, time), *(whole(axis) for axis in tensor.op.axis[1:])])
    boxes: dict[ComputeOp, Box] = {}
    # readers first: what they want of an operation is complete when its box is made
    for op in reversed(steps):
        analyzer = _analyzer(scan)
        asked = [around(axis, [box[d] for box in wanted[op]], analyzer) for d, axis in enumerate(op.axis)]
        boxes[op] = tuple(Interval(analyzer.simplify(part.min), analyzer.simplify(part.max)) for part in asked)
        _Step(scan, op, boxes[op], analyzer).visit(wanted)
    return boxes


def _analyzer(scan: ScanOp) -> Analyzer:
    """Knows the steps, and that sizes are not negative."""
    analyzer = Analyzer()
    dom = scan.scan_axis.dom
    assert dom is not None
    shapes = [extent for tensor in (*scan.state_placeholder, *scan.init) for extent in tensor.shape]
    for var in dict.fromkeys(node for extent in shapes for node in walk(extent) if isinstance(node, Var) and not isinstance(node, SizeVar)):
        analyzer.bind(var, Range.from_min_extent(IntImm(var.dtype, 0), IntImm(var.dtype, _MAX_SIZE)))
    analyzer.bind(scan.scan_axis.var, dom)
    return analyzer


class _Step:
    """The reads of one operation of a step, whose axes run over `box`."""

    def __init__(self, scan: ScanOp, op: ComputeOp, box: Box, analyzer: Analyzer) -> None:
        self.scan, self.op, self.analyzer = scan, op, analyzer
        self.states = {tensor.op for tensor in scan.state_placeholder}
        self.updates = {tensor.op for tensor in scan.update}
        self.values: dict[Var, PrimExpr] = {}
        self.domain: dict[Var, Range] = {}
        for axis, interval in zip(op.axis, box, strict=True):
            self.values[axis.var] = interval.min
            # equal expressions are one object: an axis of one value has no range, its value takes its place
            if interval.min is not interval.max:
                extent = analyzer.simplify(interval.max - interval.min + 1)
                self.domain[axis.var] = Range.from_min_extent(const(0, axis.dtype), extent)
                self.values[axis.var] = interval.min + axis.var
        self.domain |= {axis.var: axis.dom for axis in op.reduce_axis if axis.dom is not None}
        for var, dom in self.domain.items():
            analyzer.bind(var, dom)

    def visit(self, wanted: Mapping[ComputeOp, list[list[Interval | None]]]) -> None:
        """Check the reads of states, and note what is read of other operations of the step."""
        for load, guards in guarded_loads(self.op):
            producer = load.producer.op if isinstance(load.producer, Tensor) else None
            # the guards count: `if_then_else(t > 2, state[t - 3], 0)` never reads before the first row
            if producer in self.states:
                with ExitStack() as scopes:
                    for condition, holds in guards:
                        known = substitute(condition, self.values)
                        scopes.enter_context(self.analyzer.constraint_scope(known if holds else logical_not(known)))
                    self._check_state(load)
            elif isinstance(producer, ComputeOp) and producer in wanted:
                indices = [self.analyzer.simplify(substitute(index, self.values)) for index in load.indices]
                if producer in self.updates:
                    self._check_update(load, indices[0])
                wanted[producer].append([relax(index, self.domain, self.analyzer) for index in indices])

    def _check_state(self, load: ProducerLoad) -> None:
        row = self.analyzer.simplify(substitute(load.indices[0], self.values))
        if not self.analyzer.known_less(row, self.scan.scan_axis.var):
            raise DeclarationError(
                f"scan {self.scan.name}: step t of {self.op.name} reads {load}, which isn't certainly a row before t; "
                f"read earlier rows, such as {load.producer.name}[t - 1, ...]"
            )
        if not self.analyzer.known_nonnegative(row):
            rows = self.scan.init[0].shape[0]
            raise DeclarationError(
                f"scan {self.scan.name}: {self.op.name} reads {load}, which may lie before the first row: steps start at t = {rows}, "
                "as init has so many rows; give init more of them, or guard the read with te.if_then_else"
            )

    def _check_update(self, load: ProducerLoad, row: PrimExpr) -> None:
        if not self.analyzer.known_equal(row, self.scan.scan_axis.var):
            raise DeclarationError(
                f"scan {self.scan.name}: {self.op.name} reads {load}, an update at another step than its own; "
                f"read the state placeholder there, which has init's rows too"
            )


def check_states_bound(ops: Sequence[Operation], outputs: Sequence[Operation] = ()) -> dict[Operation, ScanOp]:
    """For each operation of `ops` that a scan computes step by step, and each state, its scan.

    Args:
        ops: a whole graph, producers first.
        outputs: operations that are wanted as a whole although others read them.

    Raises:
        DeclarationError: if such an operation is read outside of its scan, or anyone asks for a row that reads out of bounds.
    """
    owners: dict[Operation, ScanOp] = {}
    for scan in ops:
        if isinstance(scan, ScanOp):
            for op in (*state_dependent(scan), *(tensor.op for tensor in scan.state_placeholder)):
                if op in owners:
                    raise DeclarationError(f"scan {scan.name}: {op.name} belongs to scan {owners[op].name} already; declare another one")
                owners[op] = scan
    check_demand(ops, outputs, owners)
    for op in ops if owners else ():
        for tensor in op.input_tensors:
            scan_of_tensor = owners.get(tensor.op)
            if scan_of_tensor not in (None, op, owners.get(op)):
                assert scan_of_tensor is not None
                raise DeclarationError(
                    f"{op.name} reads {tensor.name}, which exists only while scan {scan_of_tensor.name} runs; read the result of the scan"
                )
    return owners
