"""Row programs: what works row by row, of which one kernel computes each row while it is in the nearest cache.

    s[i, j] = x[i, j] + r[i, j];  y[i, j] = layer_norm(s)[i, j]        row i of s and of y are made of rows i
    m[i] = max over j of x[i, j];  e[i, j] = exp(x[i, j] - m[i])       the row's maximum, too

In kernels of their own each of these reads all rows from where they have got to meanwhile, and starts all threads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import prod

from ...dataclass import dataclass
from ...te.dag import post_dfs_order
from ...te.operation import ComputeOp, PlaceholderOp, loads
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar, PrimExpr, ProducerLoad
from ...tir.rewriting import variables

# Fewer rows leave threads of their reductions idle; a longer one, with what is kept of it, isn't in the nearest cache any more.
_FEWEST_ROWS = 16
_LONGEST_ROW = 1 << 13


@dataclass(frozen=True)
class Rows:
    """How a computation, or several one after the other, works row by row.

    Args:
        shared: how many leading axes all its stages have in common, and the arguments that it is asked for.
        least: how many of them rows have to have, so that each of its reductions makes one number of a row.
        reduces: whether it has a reduction.
        extents: of its largest result.
    """

    shared: int
    least: int
    reduces: bool
    extents: tuple[int, ...]

    def with_(self, other: Rows, read: int) -> Rows:
        """This and what reads it, at so many leading axes."""
        largest = max(self.extents, other.extents, key=prod)
        return Rows(min(self.shared, other.shared, read), max(self.least, other.least), self.reduces or other.reduces, largest)

    @property
    def pays(self) -> bool:
        """Whether one kernel of it is worth more than several."""
        rows, row = self.extents[: self.shared], self.extents[self.shared :]
        return self.reduces and 0 < self.shared >= self.least and prod(rows) >= _FEWEST_ROWS and prod(row) <= _LONGEST_ROW


def rows_of(tensors: Sequence[Tensor]) -> Rows | None:
    """How a computation works row by row; None for several results, open sizes, and sums for all columns of a row, as products have."""
    outputs = [tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]
    stages = [op for op in post_dfs_order([tensor.op for tensor in outputs]) if not isinstance(op, PlaceholderOp)]
    computes = [op for op in stages if type(op) is ComputeOp]
    if len(outputs) != 1 or len(computes) != len(stages) or outputs[0].ndim == 0 or any(_is_product(op) or _turns(op) for op in computes):
        return None
    extents = tuple(as_int(extent) or 0 for extent in outputs[0].shape)
    shared = len(extents)
    for op in computes:
        inner = [load for load in loads(op) if isinstance(load.producer, Tensor) and not isinstance(load.producer.op, PlaceholderOp)]
        shared = min([shared, *(_same(load, op.axis) for load in inner)])
    # A reduction of a row makes one number: all its own axes, but those of extent 1, are among the rows.
    least = max((_long(op.axis) for op in computes if op.reduce_axis), default=0)
    known = all(extents) and all(axis.dom is not None and as_int(axis.dom.extent) for op in computes for axis in op.reduce_axis)
    return Rows(shared, least, least > 0 or any(op.reduce_axis for op in computes), extents) if known and least <= shared else None


def _is_product(op: ComputeOp) -> bool:
    """Whether a sum is of all pairs of rows and columns: C[i, j] += A[i, k] * B[k, j], where B misses i and A misses j."""
    long = [axis.var for axis in op.axis if axis.dom is None or as_int(axis.dom.extent) != 1] if op.reduce_axis else []
    return any(var not in variables(load) for load in loads(op) for var in long) and len({load.producer for load in loads(op)}) > 1


def _turns(op: ComputeOp) -> bool:
    """Whether neighbours in a row of the result are apart in an operand: B[i, j] = A[j, i], which rows would read one by one."""
    last = op.axis[-1].var if op.axis and not op.reduce_axis else None
    return any(last in variables(load) and last not in variables(load.indices[-1]) for load in loads(op) if load.indices)


def rows_read(tensors: Sequence[Tensor], argument: int) -> int:
    """How many leading axes a computation reads an argument at that are those of its result; all for one that it doesn't look at."""
    own = tensors[argument]
    stages = [op for op in post_dfs_order([tensor.op for tensor in tensors]) if type(op) is ComputeOp]
    found = [_same(load, op.axis) for op in stages for load in loads(op) if load.producer == own]
    return min(found, default=tensors[-1].ndim)


def _same(load: ProducerLoad, axes: Sequence[IterVar]) -> int:
    """How many leading indices are the leading axes."""
    return len(list(takewhile(lambda pair: _is(*pair), zip(load.indices, axes, strict=False))))


def _is(index: PrimExpr, axis: IterVar) -> bool:
    # An axis of extent 1 is read at 0 as well as at its variable.
    return index is axis.var or (as_int(index) == 0 and axis.dom is not None and as_int(axis.dom.extent) == 1)


def _long(axes: Sequence[IterVar]) -> int:
    """How many axes there are up to the last one that is longer than 1."""
    return max((n + 1 for n, axis in enumerate(axes) if axis.dom is None or as_int(axis.dom.extent) != 1), default=0)
