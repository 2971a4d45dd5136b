"""Conditions on indices, and which part of a nest's steps is left out for them: `(x + k) % 2 == 0` of a transposed convolution,
`y + k >= 1` at the border of a padded one.

What a condition leaves out is left out if it is the same for a whole register tile, so that it is a branch around it. Where it differs
between the tile's places, all of them take part, some for nothing:

    for x.phase, for k, for x.block (the tile): x = 2 * x.block + x.phase    ->    half of the steps
    for k, for x (the tile)                                                 ->    all steps
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arith.linear import linear_form
from ...schedule.tree import StageNode
from ...tir.arithmetic import as_int
from ...tir.expr import EQ, GE, GT, LE, LT, Call, CmpExpr, FloorMod, PrimExpr, Reduce, Select
from ...tir.rewriting import walk
from .nest import Array, Form, StageNest, form_of, roots_of

# The values of an index are counted one by one; with more of them what a border leaves out is nothing.
_MOST_VALUES = 1 << 14


def run_share(nest: StageNest) -> Array:
    """[n]: which part of the register tile's steps is executed; 1 for what is no reduction."""
    share = np.ones(len(nest.unroll_step))
    if not isinstance(nest.body[0], Reduce):
        return share
    tile = None
    for form, part in _guards(nest):
        tile = nest.in_tile if tile is None else tile
        mixed = np.zeros(len(share), bool)
        for place, loop in enumerate(nest.loops):
            for root, stride in loop.strides.items():
                if root in form:
                    mixed |= tile[:, place] & (loop.extent > 1) & (form.step(root, stride) > 0)
        # conditions on different indices hold independently
        share = np.where(mixed, share, share * part)
    return share


def _guards(nest: StageNest) -> list[tuple[Form, float]]:
    """The indices that conditions are about, each with the share of iterations in which its condition holds."""
    roots = roots_of(nest.stage)
    found: dict[object, tuple[Form, float]] = {}
    for condition in (c for value in nest.body for c in _conditions(value)):
        for node in walk(condition):
            if not isinstance(node, CmpExpr):
                continue
            form = form_of(node.a, roots)
            key = type(node), tuple(sorted(form.items())) if form else (), linear_form(node.a - node.b).constant
            # simplification may leave one condition at several places: its share must be taken once
            if form and key not in found:
                if isinstance(node, EQ) and isinstance(node.a, FloorMod) and form.period:
                    found[key] = form, 1.0 / form.period
                elif isinstance(node, (LT, LE, GT, GE)) and not form.period:
                    found[key] = form, _share_within(node, form, nest.stage)
    return list(found.values())


def _share_within(node: CmpExpr, form: Form, stage: StageNode) -> float:
    """How often `form + constant` is on the right side of a constant, of all values of the axes."""
    bound = as_int(node.b)
    extents = {axis: as_int(stage.axes[axis].dom.extent) for axis in form if stage.axes[axis].dom is not None}  # type: ignore[union-attr]
    if bound is None or any(not extents.get(axis) or factor != int(factor) for axis, factor in form.items()):
        return 1.0
    counts, low = np.ones(1), linear_form(node.a).constant
    for axis, factor in form.items():
        step, extent = int(factor), extents[axis] or 1
        reach = abs(step) * (extent - 1)
        if len(counts) + reach > _MOST_VALUES:
            return 1.0
        one = np.zeros(reach + 1)
        one[:: abs(step) or 1] = 1.0
        # counts[v]: in how many ways the axes so far add up to low + v
        counts = np.convolve(counts, one)
        # with a negative factor the least value is at the axis's end
        low += min(0, step * (extent - 1))
    values = low + np.arange(len(counts))
    holds = {LT: values < bound, LE: values <= bound, GT: values > bound, GE: values >= bound}[type(node)]
    return float(counts[holds].sum() / counts.sum())


def _conditions(value: PrimExpr) -> Iterator[PrimExpr]:
    for node in walk(value):
        if isinstance(node, (Reduce, Select)):
            yield node.condition
        elif isinstance(node, Call) and node.op == "tir.if_then_else" and isinstance(node.args[0], PrimExpr):
            yield node.args[0]
