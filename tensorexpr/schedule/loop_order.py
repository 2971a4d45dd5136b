"""A loop whose length depends on another loop lies inside of it."""

from __future__ import annotations

from ..tir.expr import IntImm
from ..tir.rewriting import variables
from .domain import StageDomain


def check_order(domain: StageDomain) -> None:
    """Check that no loop of a stage runs over a range that a loop inside of it says.

    Raises:
        ScheduleError: naming both loops.
    """
    stage = domain.stage
    open_extents = {axis: extent for axis in stage.leaf if not isinstance(extent := domain.extents[axis], IntImm)}
    for place, axis in enumerate(stage.leaf if open_extents else ()):
        if axis not in open_extents:
            continue
        used = variables(open_extents[axis])
        for inner in stage.leaf[place + 1 :]:
            if stage.axes[inner].var in used:
                loop, other = stage.axes[axis].name, stage.axes[inner].name
                raise stage.refused(
                    f"the loop {loop!r} runs over {open_extents[axis]}, which depends on {other!r}, "
                    f"a loop inside of it; reorder {other!r} to the outside of {loop!r}"
                )
