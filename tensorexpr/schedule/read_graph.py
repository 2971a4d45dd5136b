"""The graph of a schedule's operations, for programs that ask. Names as TE has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..errors import ScheduleError
from ..te.operation import ComputeOp, Operation, loads
from ..te.scan_body import state_dependent
from ..te.scan_op import ScanOp
from ..te.tensor import Tensor
from ..tir.expr import IntImm, IterVar, Var
from .attachment import enclosing_loops
from .te_schedule import Schedule

ReadGraph = dict[Operation, list[Tensor]]


def CreateReadGraph(ops: Sequence[Operation]) -> ReadGraph:
    """For each operation that `ops` are made of the tensors it reads; a scan reads its init and update."""
    graph: ReadGraph = {}
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in graph:
            graph[op] = list(dict.fromkeys((*op.init, *op.update))) if isinstance(op, ScanOp) else list(op.input_tensors)
            stack.extend(tensor.op for tensor in graph[op])
    return graph


def PostDFSOrder(roots: Sequence[Operation], graph: Mapping[Operation, Sequence[Tensor]]) -> list[Operation]:
    """The operations below `roots`, each after those it reads, in the order of `graph`'s lists."""
    done: dict[Operation, None] = {}
    stack = [(op, False) for op in reversed(roots)]
    while stack:
        op, expanded = stack.pop()
        if expanded:
            done[op] = None
        elif op not in done:
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in reversed(graph[op]) if tensor.op not in done)
    return list(done)


def ScanGetBody(op: Operation) -> list[Operation]:
    """The operations of a scan's step: on a path from a state or a declared input to an update, updates included.

    Raises:
        ScheduleError: if `op` is no scan.
    """
    scan = _scan(op, "ScanGetBody")
    ends = {tensor.op for tensor in (*scan.state_placeholder, *scan.inputs)}
    fed = set(ends)
    graph: ReadGraph = {}
    stack: list[Operation] = [tensor.op for tensor in scan.update]
    while stack:
        current = stack.pop()
        if current not in graph:
            graph[current] = [] if current in ends else list(current.input_tensors)
            stack.extend(tensor.op for tensor in graph[current])
    found: list[Operation] = []
    # Producers first, so that what a state feeds is known before its readers are looked at.
    for current in PostDFSOrder([tensor.op for tensor in scan.update], graph):
        if current not in ends and any(tensor.op in fed for tensor in graph[current]):
            fed.add(current)
            found.append(current)
    return found


def ScanFixPointAnalysis(op: Operation) -> dict[IterVar, IntImm]:
    """For each axis in `spatial_axis_` 1 if a step's elements at it are made of the state's elements at the same place alone, else 0.

    Along an axis with 1 the scan falls apart into independent ones. States that read each other there do so together.

    Raises:
        ScheduleError: if `op` is no scan.
    """
    found = _FixPoints(_scan(op, "ScanFixPointAnalysis")).solve()
    return {axis: IntImm("int32", value) for axis, value in found.items()}


def _scan(op: Any, function: str) -> ScanOp:
    if not isinstance(op, ScanOp):
        raise ScheduleError(f"{function} takes the operation of a te.scan, not {op!r}")
    return op


class _FixPoints:
    """Follows the spatial axes from updates to states. Dimension d of state i is the number of its spatial axis."""

    def __init__(self, scan: ScanOp) -> None:
        self.scan = scan
        self.steps = state_dependent(scan)
        first = [sum(tensor.ndim - 1 for tensor in scan.state_placeholder[:i]) for i in range(scan.num_outputs)]
        self.states = {tensor: first[i] for i, tensor in enumerate(scan.state_placeholder)}
        self.parent = list(range(len(scan.spatial_axis_)))
        self.moved: set[int] = set()
        # Where each axis of an operation came from: a spatial axis, or None if it is made of several.
        self.labels: dict[Operation, list[int | None]] = {}
        for i, tensor in enumerate(scan.update):
            self._label(tensor.op, [None, *range(first[i], first[i] + tensor.ndim - 1)])

    def solve(self) -> dict[IterVar, int]:
        """The answer for each axis."""
        for op in reversed(self.steps):
            self._visit(op)
        for first, end in pairwise([*self.states.values(), len(self.parent)]):  # a class holds one axis of each state
            roots = [self._root(number) for number in range(first, end)]
            self.moved.update(root for root in roots if roots.count(root) > 1)
        bad = {self._root(number) for number in self.moved}
        return {axis: int(self._root(number) not in bad) for number, axis in enumerate(self.scan.spatial_axis_)}

    def _root(self, number: int) -> int:
        while self.parent[number] != number:
            number = self.parent[number]
        return number

    def _label(self, op: Operation, labels: Sequence[int | None]) -> None:
        known = self.labels.setdefault(op, list(labels))
        for place, (old, new) in enumerate(zip(known, labels, strict=True)):
            # Readers that give an axis two origins tie these together; an origin that isn't one axis spoils the other.
            if old is not None and new is not None:
                self.parent[self._root(old)] = self._root(new)
            elif old != new:
                self.moved.update(number for number in (old, new) if number is not None)
                known[place] = None

    def _visit(self, op: ComputeOp) -> None:
        label: dict[Var, int | None] = {axis.var: number for axis, number in zip(op.axis, self.labels[op], strict=True)}
        for load in loads(op):
            producer = load.producer
            if not isinstance(producer, Tensor):
                continue
            sources = [label.get(index) if isinstance(index, Var) else None for index in load.indices]
            if producer in self.states:
                self._meet(self.states[producer], sources[1:])
            elif producer.op in self.steps:
                self._label(producer.op, sources)

    def _meet(self, first: int, sources: Sequence[int | None]) -> None:
        """A state is read with `sources` as the indices of its spatial axes."""
        for place, source in enumerate(sources):
            if source is None:
                self.moved.add(first + place)
            else:
                self.parent[self._root(source)] = self._root(first + place)


def CreateAttachPath(schedule: Schedule) -> dict[Operation, list[IterVar]]:
    """For each stage's operation the loops around the place where it is computed, innermost first."""
    tree = schedule.tree
    return {stage.op: [target.axes[axis] for target, axis in enclosing_loops(tree, stage)] for stage in tree.in_order()}
