"""Conditions such as `(x + k) % 2 == 0`, which hold for every second iteration: of a transposed convolution, or of a dilated input.

Where nothing in the register tile moves `x + k` by anything but multiples of 2, a whole tile is left out at once. So it is if a schedule
has the loop over odd and even places outside:

    for x.phase, for k, for x.block (the tile): x = 2 * x.block + x.phase    ->    half of the steps
    for k, for x (the tile)                                                 ->    all steps, half of the lanes for nothing
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...tir.expr import EQ, Call, FloorMod, PrimExpr, Reduce, Select
from ...tir.rewriting import walk
from .nest import Array, Form, StageNest, form_of, roots_of


def run_share(nest: StageNest) -> Array:
    """[n]: which part of the register tile's steps is executed."""
    share, tile = np.ones(len(nest.unroll_step)), None
    for form in _periodic(nest):
        tile = nest.in_tile() if tile is None else tile
        mixed = np.zeros(len(share), bool)
        for place, loop in enumerate(nest.loops):
            for root, stride in loop.strides.items():
                if root in form:
                    mixed |= tile[:, place] & (loop.extent > 1) & (form.step(root, stride) > 0)
        share = np.where(mixed, share, share / form.period)
    return share


def _periodic(nest: StageNest) -> list[Form]:
    """What has to be a certain number modulo some period for a statement to do something."""
    roots = roots_of(nest.stage)
    found = {}
    for condition in (c for value in nest.body for c in _conditions(value)):
        for node in walk(condition):
            form = form_of(node.a, roots) if isinstance(node, EQ) and isinstance(node.a, FloorMod) else None
            if form is not None and form.period:
                found[form.period, tuple(sorted(form.items()))] = form
    return list(found.values())


def _conditions(value: PrimExpr) -> Iterator[PrimExpr]:
    for node in walk(value):
        if isinstance(node, (Reduce, Select)):
            yield node.condition
        elif isinstance(node, Call) and node.op == "tir.if_then_else" and isinstance(node.args[0], PrimExpr):
            yield node.args[0]
