"""How operations read their producers: the facts that sketch rules decide by.

All predicates look at definitions only, never at a schedule. `op` is the reader; its spatial axes are what an index
is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from ..dataclass import dataclass
from ..tir.arithmetic import as_int
from ..tir.expr import Call, IntImm, IterVar, PrimExpr, ProducerLoad, Select, Var
from ..tir.rewriting import walk
from .affine_access import shifted_axis
from .dag import consumer_map, same_extents, topological_order
from .operation import ComputeOp, Operation, loads
from .tensor import Tensor

Indices = tuple[PrimExpr, ...]
_SIMPLIFY_CONST = "auto_scheduler_simplify_const_tensor_indices"
_EXPENSIVE = ("tir.exp",)


@dataclass(frozen=True, slots=True)
class SimpleAccess:
    """A read whose indices are axes, axes shifted by a constant, or constants."""

    axis_missing: bool  # an axis of the reader is no index
    axis_duplicated: bool  # an axis is an index twice
    same_order: bool  # the indices are in the order of the axes

    @property
    def is_elementwise(self) -> bool:
        """True if each axis is one index, in order."""
        return self.same_order and not self.axis_missing and not self.axis_duplicated


def simple_access(op: Operation, indices: Indices) -> SimpleAccess | None:
    """What kind of simple access `indices` are in the definition of `op`, or None if they aren't."""
    places = {axis.var: place for place, axis in enumerate(op.axis)}
    # a constant index is simple, and says nothing about axes
    found = [shifted_axis(index) for index in indices if as_int(index) is None]
    if not all(axis in places for axis in found):
        return None
    positions = [places[axis] for axis in found if axis is not None]
    distinct = set(positions)
    return SimpleAccess(
        axis_missing=len(distinct) < len(op.axis),
        axis_duplicated=len(distinct) < len(positions),
        same_order=all(a <= b for a, b in pairwise(positions)),
    )


def is_strictly_inlineable(op: Operation) -> bool:
    """True if inlining `op` surely costs nothing: simple reads in order, no duplicated axis, no exp, no branch.

    An operation that reads nothing is a constant tensor, and inlineable.
    """
    if not isinstance(op, ComputeOp):
        return False
    reads = list(loads(op))
    accesses = [simple_access(op, load.indices) for load in reads]
    plain = all(access is not None and access.same_order and not access.axis_duplicated for access in accesses)
    return not reads or (plain and not is_costly(op))


def is_costly(op: ComputeOp) -> bool:
    """True if an element takes an exp or a branch: more than computing it again may cost."""
    nodes = (node for body in op.body for node in walk(body))
    return any(isinstance(n, Select) or (isinstance(n, Call) and n.op in ("tir.if_then_else", *_EXPENSIVE)) for n in nodes)


def needs_multi_level_tiling(op: Operation) -> bool:
    """True if `op` reads elements again along its axes: tiling then saves memory traffic.

    A producer counts if some spatial axis longer than 1 is in none of its indices; needed are two of them, or one and
    a reduction.
    """
    if not isinstance(op, ComputeOp) or _SIMPLIFY_CONST in op.attrs:
        return False
    used: dict[object, set[Var]] = {}
    for load in loads(op):
        producer = load.producer.op if isinstance(load.producer, Tensor) else load.producer
        used.setdefault(producer, set()).update(n for index in load.indices for n in walk(index) if isinstance(n, Var))
    long_axes = [axis for axis in op.axis if not _has_extent(axis, 1)]
    # an element is read again for each value of an axis that its indices lack; an axis of one value repeats nothing
    missing = sum(any(axis.var not in variables for axis in long_axes) for variables in used.values())
    return missing >= 2 or (missing >= 1 and bool(op.reduce_axis))


def _has_extent(axis: IterVar, extent: int) -> bool:
    return axis.dom is not None and isinstance(axis.dom.extent, IntImm) and axis.dom.extent.value == extent


@dataclass(frozen=True, eq=False)
class AccessAnalysis:
    """The predicates that need the whole graph of `ops` (in topological order)."""

    ops: tuple[Operation, ...]

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> AccessAnalysis:
        """The analysis of all operations that `tensors` are made of."""
        return AccessAnalysis(topological_order(tensors))

    @cached_property
    def consumers(self) -> dict[Operation, tuple[Operation, ...]]:
        """The operations that read each operation."""
        return consumer_map(self.ops)

    @cached_property
    def _reads(self) -> dict[tuple[Operation, Operation], list[Indices]]:
        found: dict[tuple[Operation, Operation], list[Indices]] = {}
        for op in self.ops:
            for load in _loads(op):
                if isinstance(load.producer, Tensor):
                    found.setdefault((op, load.producer.op), []).append(load.indices)
        return found

    def reads(self, reader: Operation, producer: Operation) -> list[Indices]:
        """The indices of every distinct read of `producer` by `reader`."""
        return self._reads.get((reader, producer), [])

    def is_output(self, op: Operation) -> bool:
        """True if no operation reads `op`."""
        return not self.consumers[op]

    def elementwise_match(self, op: Operation, target: Operation) -> bool:
        """True if a chain of single consumers leads from `op` to `target`, of equal shapes and elementwise reads."""
        current = op
        while current is not target:
            readers = self.consumers[current]
            # with a second reader the tensor is needed in full elsewhere, so it can't be a temporary of this chain
            if len(readers) != 1 or not self._matches(current, readers[0]):
                return False
            current = readers[0]
        return True

    def _matches(self, op: Operation, reader: Operation) -> bool:
        if not (isinstance(op, ComputeOp) and isinstance(reader, ComputeOp)):
            return False
        if not same_extents(op.output_shape(0), reader.output_shape(0)):
            return False
        accesses = [simple_access(reader, indices) for indices in self.reads(reader, op)]
        return all(access is not None and access.is_elementwise for access in accesses)

    @cached_property
    def _shared_outer(self) -> dict[Operation, dict[Operation, int]]:
        return {op: {reader: self._shared_with(op, reader) for reader in self.consumers[op]} for op in self.ops}

    def _shared_with(self, op: Operation, reader: Operation) -> int:
        count = 0
        # only a common prefix counts: loops inside of one that differs can't be shared
        for extent, axis in zip(op.output_shape(0), reader.axis, strict=False):
            if axis.dom is None or not same_extents((extent,), (axis.dom.extent,)):
                break
            if not all(shifted_axis(indices[count]) is axis.var for indices in self.reads(reader, op)):
                break
            count += 1
        return count

    def num_common_outer_iterators(self, op: Operation, target: Operation) -> int:
        """How many outermost axes of `op` and `target` run over the same elements, along every path between them.

        0 if `target` doesn't depend on `op`.
        """
        best = {op: len(op.output_shape(0))}
        for current in self.ops:  # topological: all paths into `current` are known when it is reached
            for reader, shared in self._shared_outer[current].items() if current in best and current is not target else ():
                best[reader] = min(best.get(reader, shared), best[current], shared)
        return best.get(target, 0)

    def __str__(self) -> str:
        return "\n".join(line for op in self.ops for line in self._lines(op)) + "\n"

    def _lines(self, op: Operation) -> list[str]:
        reads = ", ".join(tensor.op.name for tensor in dict.fromkeys(op.input_tensors))
        facts = {
            "needs_multi_level_tiling": isinstance(op, ComputeOp) and needs_multi_level_tiling(op),
            "is_strictly_inlineable": isinstance(op, ComputeOp) and is_strictly_inlineable(op),
            "is_output": self.is_output(op),
        }
        words = "  ".join(f"{word}: {int(value)}" for word, value in facts.items())
        return [op.name, f"  {words}", f"  reads: {reads}", f"  read by: {', '.join(other.name for other in self.consumers[op])}"]


def _loads(op: Operation) -> tuple[ProducerLoad, ...]:
    return tuple(loads(op)) if isinstance(op, ComputeOp) else ()
