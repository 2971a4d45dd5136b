"""Axes of which operators read the quotient and the remainder, cut there: each block of them is a walk through memory.

    Y[i, j] = X[j // 48, i, j % 48]    heads of 48 side by side: loops over i, 16 blocks of j, and 48 elements

Vectors that reach over the end of a block would have to divide to know where each of their elements lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..arith.analyzer import Analyzer
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.affine_access import Access
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import FloorDiv, FloorMod, IterVar, PrimExpr, ProducerLoad, Range, Var
from ..tir.rewriting import substitute, walk
from .access import Loop, StageReads, flat_access, merged
from .machine import lanes_of, vector_factor
from .stages import extents_of


def loops_at_blocks(s: Schedule, tensor: Tensor, axes: Sequence[IterVar], reads: StageReads, target: Target) -> list[Loop]:
    """The merged loops of a stage whose axes are cut into blocks; none if there is nothing to cut.

    Args:
        s: the schedule, in which axes are split and fused.
        tensor: the stage's result.
        axes: of constant extents, outermost first.
        reads: of the stage.
        target: that it is for.
    """
    lanes = lanes_of(target, tensor.dtype)
    sizes = {axis: _block(axis, reads, lanes) for axis in axes}
    if not any(sizes.values()):
        return []
    # With j = 48 * b + e the analyzer makes b of j // 48 and e of j % 48, so that the parts have strides.
    cut, analyzer, whole = [], Analyzer(), dict[Var, PrimExpr]()
    for axis in axes:
        (extent,), size = extents_of((axis,)), sizes[axis]
        if not size:
            analyzer.bind(axis.var, Range.from_min_extent(0, extent))
            cut.append((axis, axis.var, extent))
            continue
        parts = [(Var(f"{axis.var.name}.b", axis.var.dtype), extent // size), (Var(f"{axis.var.name}.e", axis.var.dtype), size)]
        for var, count in parts:
            analyzer.bind(var, Range.from_min_extent(0, count))
        whole[axis.var] = parts[0][0] * size + parts[1][0]
        cut += [(loop, *part) for loop, part in zip(s[tensor].split(axis, factor=size), parts, strict=True)]
    found = replace(reads, accesses=tuple(_behind(access, whole, analyzer) for access in reads.accesses))
    loops = [Loop(axis, extent, tuple(access.stride(var) for access in found.accesses)) for axis, var, extent in cut]
    return merged(s, tensor, loops, found)


def _block(axis: IterVar, reads: StageReads, lanes: int) -> int:
    """The longest blocks of an axis that are worth a loop, and that vectors of the uncut axis would reach over the ends of; else 0."""
    (extent,) = extents_of((axis,))
    sizes = [size for size in _divisors(axis.var, reads) if lanes <= size < extent and extent % size == 0]
    size = max(sizes, default=0)
    return size if size and size % vector_factor(extent, lanes) else 0


def _divisors(var: Var, reads: StageReads) -> Iterator[int]:
    for access in reads.accesses:
        for index in access.load.indices:
            for node in walk(index):
                if isinstance(node, (FloorDiv, FloorMod)) and node.a is var and (size := as_int(node.b)) is not None:
                    yield size


def _behind(access: Access[Var], whole: dict[Var, PrimExpr], analyzer: Analyzer) -> Access[Var]:
    """A read by the loops that axes were cut into."""
    indices = tuple(analyzer.simplify(substitute(index, whole)) for index in access.load.indices)
    return flat_access(ProducerLoad(access.load.producer, indices))
