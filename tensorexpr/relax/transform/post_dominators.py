"""Post-dominators of a dataflow graph: where everything that is made of a value meets again.

A node's parent is the first node that each path from it passes. Kept with it is the most irregular edge on the paths to there, as what
may join what depends on that. (Cooper, Harvey and Kennedy 2001: intersection along the tree.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataclass import dataclass
from ..ops.row import Pattern


@dataclass(frozen=True, slots=True)
class Edge:
    """From a node to one that reads it, with how that reads it."""

    reader: int
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Dominator:
    """The parent of a node; None where the value leaves the graph or is used by nothing. `pattern` is the worst on the paths to it."""

    parent: int | None
    pattern: Pattern
    depth: int


def post_dominators(edges: Sequence[Sequence[Edge]], leaves: Sequence[bool]) -> list[Dominator]:
    """The parent of each node.

    Args:
        edges: of each node, in topological order: a node's readers have greater numbers.
        leaves: whether a node's value is used outside of the graph.
    """
    found: list[Dominator] = [Dominator(None, Pattern.OPAQUE, 1)] * len(edges)
    # Readers have greater numbers, so their parents are known.
    for node in reversed(range(len(edges))):
        if leaves[node] or not edges[node]:
            continue
        parent: int | None = edges[node][0].reader
        worst = edges[node][0].pattern
        for edge in edges[node][1:]:
            parent, met = _met(found, parent, edge.reader)
            worst = max(worst, met, edge.pattern)
        found[node] = Dominator(parent, worst, 1 if parent is None else found[parent].depth + 1)
    return found


def _met(found: Sequence[Dominator], a: int | None, b: int | None) -> tuple[int | None, Pattern]:
    """Where two nodes' ways up the tree meet, and the worst pattern on them."""
    worst = Pattern.ELEMENTWISE
    while a != b:
        if a is None or b is None:
            return None, Pattern.OPAQUE
        # The deeper one goes up, and of two that are equally deep either: the other follows.
        if found[a].depth >= found[b].depth:
            worst = max(worst, found[a].pattern)
            a = found[a].parent
        else:
            worst = max(worst, found[b].pattern)
            b = found[b].parent
    return a, worst
