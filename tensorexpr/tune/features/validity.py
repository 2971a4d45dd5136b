"""Which candidates may be built: known before any of them is lowered.

A register tile holds its accumulators, a row of vectors and a broadcast in registers, or it is no register tile. A stage
that is computed at a loop has to be small, or it should be computed before. And the bodies that loop partition and
expansion write out have to compile in reasonable time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...schedule.tree import At, LoopKind, SplitRelation, StageNode
from ...target.machine import Machine
from ...te.operation import Operation
from ...tir.dtype import parse_dtype
from .nest import Array, StageNest

# Statements of all bodies of a tile: each takes LLVM some 20 us, so that this is below a second.
MOST_STATEMENTS = 16_384


def admissible(
    nests: Sequence[StageNest], boxes: Mapping[Operation, Sequence[Array]], columns: Sequence[Mapping[str, Array]], machine: Machine
) -> npt.NDArray[np.bool_]:
    """[n]: True for what may be built.

    Args:
        nests: the loops of all stages.
        boxes: the storage of stages that are computed at a loop.
        columns: the stages' features, unscaled.
    """
    count = len(nests[0].unroll_step) if nests else 0
    allowed = np.ones(count, bool)
    by_stage = {nest.stage.id: nest.stage for nest in nests}
    for nest, features in zip(nests, columns, strict=True):
        if len(nest.stage.reduction) and is_register_tile(nest.stage, by_stage):
            allowed &= features["spills"] <= 0
        if nest.stage.origin in boxes:
            size = np.prod(np.stack(list(boxes[nest.stage.origin]) or [np.ones(count)]), axis=0)
            allowed &= size * parse_dtype(nest.stage.origin.output_dtype(0)).itemsize <= machine.caches[-1].size
        # full and shorter tiles of each such axis, in all combinations
        bodies = 2.0 ** _uneven_axes(nest.stage, by_stage)
        allowed &= bodies * features["tile_rows"] * features["tile_vectors"] <= MOST_STATEMENTS
    return allowed


def is_register_tile(stage: StageNode, stages: Mapping[int, StageNode]) -> bool:
    """True for a stage that is computed at the tiles of a consumer and whose own spatial loops are split into vectors at most.

    Then the tile is all of it. So it is where loops are split for an intrinsic.
    """
    if not isinstance(stage.attach, At) or stage.attach.stage not in stages:
        return False
    if any(mark.kind is LoopKind.TENSORIZE for mark in stage.marks.values()):
        return True
    splits = (r for r in stage.relations if isinstance(r, SplitRelation) and r.parent in stage.spatial)
    return all(stage.mark(split.parts[-1]).kind is LoopKind.VECTORIZE for split in splits)


def _uneven_axes(stage: StageNode, stages: Mapping[int, StageNode]) -> int:
    """Axes whose tiles come in two sizes, with a body for each."""
    around = stages.get(stage.attach.stage) if isinstance(stage.attach, At) else stage
    return sum(isinstance(r, SplitRelation) and r.balanced for r in around.relations) if around is not None else 0
