"""Tile sizes of a replayed trace, cut to what there is to tile.

In TE a tile is never larger than the loop it cuts: where a stage computes only 16 rows at a loop of its consumer, a tile of
64 rows is one of 16. Here a tile has the size that the split says, and lowering guards what lies past the end. So the
sizes of a log's splits are cut when the places of all stages are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith.analyzer import Analyzer
from ...errors import InternalError
from ...lower.phase0.infer_bound import infer_bound
from ...lower.phase0.inline_stages import inline_stages
from ...schedule.domain import StageDomain
from ...schedule.legality import check_tree
from ...schedule.steps import Split, Step
from ...schedule.trace import Trace
from ...schedule.tree import ScheduleTree, SplitRelation
from ...tir.arithmetic import as_int

_MOST_ROUNDS = 64


def cut_tiles(trace: Trace, tree: ScheduleTree) -> Trace:
    """The trace with no tile larger than what it is cut from.

    Args:
        trace: all decisions made.
        tree: the unscheduled program.

    Raises:
        ScheduleError: if the trace is illegal.
    """
    # to a fixed point: a smaller tile of a consumer makes its producers compute less, whose tiles shrink in turn
    for _ in range(_MOST_ROUNDS):
        after = trace.apply(tree)
        check_tree(after)
        domains = infer_bound(after, inline_stages(after), Analyzer())
        cut = Trace(tuple(_cut_step(step, domains.get(step.stage)) if isinstance(step, Split) else step for step in trace))
        if cut == trace:
            return trace
        trace = cut
    raise InternalError(f"tile sizes still change after {_MOST_ROUNDS} rounds")


def _cut_step(step: Split, domain: StageDomain | None) -> Step:
    if domain is None or domain.stage.id != step.stage:
        return step
    for relation in domain.stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == step.axis and len(relation.parts) == len(step.factors):
            extent = as_int(domain.extents[step.axis])
            return step if extent is None else _cut(step, extent)
    return step


def _cut(step: Split, extent: int) -> Split:
    """Each given size at most what is left by those that were cut off before it, from the open part's far end."""
    open_part = step.factors.index(None)
    inner = open_part == 0
    given = list(reversed(step.factors[1:])) if inner else list(step.factors[:open_part])
    sizes = _cut_sizes(given, extent)
    # logs leave a part open at one end only; what is open in the middle isn't of theirs
    if sizes is None or (not inner and open_part != len(step.factors) - 1):
        return step
    return replace(step, factors=(None, *reversed(sizes)) if inner else (*sizes, None))


def _cut_sizes(given: Sequence[object], extent: int) -> list[int] | None:
    sizes, left = [], max(1, extent)
    for size in given:
        if not isinstance(size, int):
            return None
        sizes.append(min(size, left))
        # of 10 rows in tiles of 4 three are left for the next size
        left = -(-left // sizes[-1])
    return sizes
