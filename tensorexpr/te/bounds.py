"""Definitions that provably read out of bounds are refused when somebody wants their values.

Interval arithmetic clears nearly every index. What it does not clear is evaluated on sample points of the axes, all points where
these are few: a point that passes the guards of a read and leaves the tensor is the proof, and is named in the error.
`te.compute` finds it, and the operation keeps it: it may be scheduled, printed and counted, but neither lowered nor evaluated.
Rows that look back before the first one are left to the graph (`demand`), which knows who asks for them. Symbolic extents, and
guards or indices that depend on data, prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice, product

import numpy as np

from ..arith.analyzer import Analyzer
from ..errors import DeclarationError
from ..tir.arithmetic import logical_not
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import (
    Add,
    And,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Mod,
    Or,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    Select,
    Sub,
    Var,
)
from ..tir.intrin import INTRINSICS
from ..tir.rewriting import walk
from .evaluation import Array, children, compile_program
from .operation import ComputeOp, Operation, loads

Bounds = tuple[int, int]
Guards = tuple[tuple[PrimExpr, bool], ...]
_DIVISIONS = (Div, FloorDiv, FloorMod, Mod)
_FOREIGN = ("tir.call_pure_extern", "tir.call_llvm_pure_intrin")
_ALL_POINTS = 1 << 14  # few enough to try every one, so that the answer is exact
_RANDOM_POINTS = 512  # indices with // and % may leave a tensor inside of a box, away from its corners
_CORNER_AXES = 8  # 256 corners; an affine index is largest at one of them
# What lies behind more conditions, or comes after more reads, isn't looked at: declaring must stay quick.
_MOST_GUARDS = 32
_MOST_READS = 512


def early_rows(op: ComputeOp) -> int:
    """How far `op` looks back along its first axis: its rows before that may read before the first row of a tensor.

    Nobody may ask for them: what a scan reads starts with its first step. Only the graph can tell (see `demand`).
    """
    if not op.axis or op.axis[0].dom is None or not isinstance(op.axis[0].dom.extent, IntImm):
        return 0
    first, lag = op.axis[0].var, 0
    for load in loads(op):
        for index in load.indices:
            match index:
                case Sub(a, IntImm(value=back)) if a is first:
                    lag = max(lag, back)
                # t - 1 may be written t + -1
                case Add(a, IntImm(value=ahead)) if a is first:
                    lag = max(lag, -ahead)
    return lag


def check_bounds(op: ComputeOp, start: int = 0) -> None:
    """Refuse `op` if one of its reads leaves a tensor of constant extent at some point.

    Args:
        op: a definition.
        start: the first value of its first axis that is ever computed.

    Raises:
        DeclarationError: naming the read, the index and the point.
    """
    ranges = {axis.var: bounds for axis in (*op.axis, *op.reduce_axis) if (bounds := _axis_bounds(axis)) is not None}
    domains = {axis.var: axis.dom for axis in (*op.axis, *op.reduce_axis) if axis.dom is not None}
    # rows before `start` are never computed, so what they would read proves nothing
    if start:
        first, extent = op.axis[0].var, domains[op.axis[0].var].extent
        if first in ranges:
            ranges[first] = (start, ranges[first][1])
        domains[first] = Range.from_min_extent(IntImm(first.dtype, start), extent - start)
    # an axis without values: nothing is ever read
    if any(high < low for low, high in ranges.values()):
        return
    for load, dim, guards in _doubtful(op, ranges, domains):
        _search(op, load, dim, guards, ranges)


def refuse_reads_outside(ops: Iterable[Operation]) -> None:
    """Refuse operations that `te.compute` found to read out of bounds: their values are wanted now.

    Raises:
        DeclarationError: naming the read, the index, the point and the place of the declaration.
    """
    for op in ops:
        if isinstance(op, ComputeOp) and op.reads_outside:
            raise DeclarationError(op.reads_outside)


def computes_anywhere(op: ComputeOp) -> bool:
    """True if every point of the axes can be computed, wanted or not: it provably reads what exists, and nothing traps."""
    ranges = {axis.var: bounds for axis in (*op.axis, *op.reduce_axis) if (bounds := _axis_bounds(axis)) is not None}
    constant = all(isinstance(extent, IntImm) for load in loads(op) for extent in load.producer.shape)
    domains = {axis.var: axis.dom for axis in (*op.axis, *op.reduce_axis) if axis.dom is not None}
    return constant and all(map(is_harmless, op.body)) and not any(_doubtful(op, ranges, domains))


def is_harmless(body: PrimExpr) -> bool:
    """True if values that nobody asked for can't trap: no calls out, integer division by what may be zero, or float to integer."""
    return not any(_may_trap(node) for node in walk(body) if isinstance(node, PrimExpr))


def _may_trap(node: PrimExpr) -> bool:
    # floats divide by zero to an infinity, integers stop the program
    if isinstance(node, _DIVISIONS):
        return parse_dtype(node.dtype).is_int and not (isinstance(node.b, IntImm) and node.b.value)
    if isinstance(node, Cast):
        return parse_dtype(node.value.dtype).is_float and not parse_dtype(node.dtype).is_float
    if isinstance(node, Call):
        intrinsic = INTRINSICS.get(node.op)
        return intrinsic is None or not intrinsic.pure or node.op in _FOREIGN
    return False


def _doubtful(op: ComputeOp, ranges: dict[Var, Bounds], domains: dict[Var, Range]) -> Iterator[tuple[ProducerLoad, int, Guards]]:
    """The indices of reads that aren't known to stay inside."""
    analyzer = Analyzer(domains)
    for load, guards in islice(guarded_loads(op), _MOST_READS):
        with ExitStack() as scopes:
            for condition, wanted in guards:
                scopes.enter_context(analyzer.constraint_scope(condition if wanted else logical_not(condition)))
            # nothing is yielded within the scopes: a caller that stops early would leave the constraints in force
            found = [dim for dim in range(len(load.indices)) if not _cleared(analyzer, load, dim, ranges)]
        yield from ((load, dim, guards) for dim in found)


def _axis_bounds(axis: IterVar) -> Bounds | None:
    dom = axis.dom
    if dom is None or not isinstance(dom.min, IntImm) or not isinstance(dom.extent, IntImm):
        return None
    return dom.min.value, dom.min.value + dom.extent.value - 1


def _cleared(analyzer: Analyzer, load: ProducerLoad, dim: int, ranges: dict[Var, Bounds]) -> bool:
    """True if an index stays inside by interval arithmetic, or by a proof from the guards, or nothing can be said."""
    index, extent = load.indices[dim], load.producer.shape[dim]
    if not isinstance(extent, IntImm):
        return True
    # most indices are just an axis; asking the analyzer for each would make declaring slow
    if isinstance(index, Var) and index in ranges:
        low, high = ranges[index]
        if low >= 0 and high < extent.value:
            return True
    bound = analyzer.const_int_bound(index)
    inside = bound.min_value >= 0 and bound.max_value < extent.value
    return inside or (analyzer.known_nonnegative(index) and analyzer.known_less(index, extent))


def guarded_loads(op: ComputeOp) -> Iterator[tuple[ProducerLoad, Guards]]:
    """The reads of `op` with the conditions, each to be true or false, under which alone they are evaluated."""
    seen: set[tuple[int, Guards]] = set()
    stack: list[tuple[PrimExpr, Guards]] = [(body, ()) for body in reversed(op.body)]
    while stack:
        node, guards = stack.pop()
        # a shared subexpression counts once for each set of guards: it may be safe in one arm only
        key = (id(node), guards)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, ProducerLoad):
            yield node, guards
        if len(guards) <= _MOST_GUARDS:
            stack.extend(reversed(_guarded_children(node, guards)))


def _guarded_children(node: PrimExpr, guards: Guards) -> list[tuple[PrimExpr, Guards]]:
    match node:
        case Select(condition, yes, no) | Call(op="tir.if_then_else", args=(condition, yes, no)):
            return [(condition, guards), (yes, (*guards, (condition, True))), (no, (*guards, (condition, False)))]
        case And(a, b):
            return [(a, guards), (b, (*guards, (a, True)))]
        case Or(a, b):
            return [(a, guards), (b, (*guards, (a, False)))]
        case Reduce(source=source, condition=condition, init=init):
            # the sources are evaluated where the condition holds, itself and the first value always
            held = guards if isinstance(condition, IntImm) else (*guards, (condition, True))
            return [(condition, guards), *((s, held) for s in source), *((s, guards) for s in init)]
        case _:
            return [(child, guards) for child in children(node)]


def _search(op: ComputeOp, load: ProducerLoad, dim: int, guards: Guards, ranges: dict[Var, Bounds]) -> None:
    """Raise if a sample point passes the guards and takes index `dim` of `load` out of its extent."""
    index, extent = load.indices[dim], load.producer.shape[dim]
    assert isinstance(extent, IntImm)
    roots = (index, *(condition for condition, _ in guards))
    nodes = [node for root in roots for node in walk(root)]
    used = {node: None for node in nodes if isinstance(node, Var)}
    if any(isinstance(node, ProducerLoad) for node in nodes) or any(v not in ranges for v in used):
        return
    points = _sample([ranges[v] for v in used])
    env: dict[Var, Array] = {v: points[:, i].astype(to_numpy(v.dtype)) for i, v in enumerate(used)}
    values, *conditions = (np.broadcast_to(a, len(points)) for a in compile_program(roots).run(env))
    wrong = (values < 0) | (values >= extent.value)
    for condition, (_, wanted) in zip(conditions, guards, strict=True):
        wrong = wrong & (condition == wanted)
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    where = ", ".join(f"{v.name} = {points[at, i]}" for i, v in enumerate(used))
    guarded = " although the conditions around it hold" if guards else ""
    raise DeclarationError(
        f"compute {op.name}: {load} reads index {int(values[at])} of dimension {dim} of {load.producer.name} (extent {extent.value})"
        f"{f', at {where}' if where else ''}{guarded}; change the shape or guard the read with te.if_then_else"
    )


def _sample(ranges: list[Bounds]) -> Array:
    """Points of a box, one a row: all if they are few, else corners and random ones (always the same)."""
    sizes = [high - low + 1 for low, high in ranges]
    total = 1
    for size in sizes:
        total *= size
    if total <= _ALL_POINTS:
        # no variable, as in A[5]: one point without coordinates
        grid = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), np.int64)
        return grid + np.asarray([low for low, _ in ranges], np.int64)
    # axes behind the first eight stay at their lowest value: 2**n corners of many axes would be too many
    corners = product(*ranges[:_CORNER_AXES])
    rest = tuple(low for low, _ in ranges[_CORNER_AXES:])
    # a fixed seed: the same definition is accepted or refused in every process
    generator = np.random.default_rng(0)
    drawn = [generator.integers(low, high, _RANDOM_POINTS, endpoint=True) for low, high in ranges]
    return np.concatenate([np.asarray([(*corner, *rest) for corner in corners], np.int64), np.stack(drawn, axis=1)])
