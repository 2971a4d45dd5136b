"""Groups of nodes of a graph that one kernel can compute, by how each reads its operands: what FuseOps of both kinds of graphs goes by.

In three phases a value joins the first one that everything made of it passes (its post-dominator), if the way there is regular enough:

    0   sums of products, windows, and reductions with something behind them take what is elementwise behind them, with the operands that
        this has beside them; elementwise and broadcast operators join what is injective, or a reduction, behind them
    1   injective operators join injective ones
    2   injective operators join a tuple of such ones
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dataclass import dataclass, field
from ...lower.context import PassContext
from ..ops.row import Pattern
from ..relations import same_extents
from ..struct_info import TensorStructInfo
from .post_dominators import Dominator, Edge, post_dominators

_MOST_NODES = 256
_ENDS = (Pattern.REDUCTION, Pattern.OUT_FUSABLE)
_MAX_DEPTH = ("relax.FuseOps.max_depth", "relay.FuseOps.max_depth")


@dataclass(eq=False)
class Group:
    """Nodes that become one function; of joined groups `joined` is the one that all are."""

    pattern: Pattern
    members: list[int]
    joined: Group | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return len(self.members)

    def root(self) -> Group:
        """The group that this one is by now."""
        found = self
        while found.joined is not None:
            found = found.joined
        return found


def join(one: Group, other: Group) -> None:
    """Make two groups one, whose pattern is the less regular one."""
    a, b = one.root(), other.root()
    if a is not b:
        a.joined = b
        b.members = sorted({*a.members, *b.members})
        b.pattern = max(a.pattern, b.pattern)


def most_nodes(context: PassContext) -> int:
    """How many nodes a group has at most, as a context says it."""
    return next((int(context.config[name]) for name in _MAX_DEPTH if name in context.config), _MOST_NODES)


def same_shape(a: TensorStructInfo, b: TensorStructInfo) -> bool:
    """Whether two tensors are known to have the same extents."""
    if a.extents is None or b.extents is None or len(a.extents) != len(b.extents):
        return False
    return all(same_extents(x, y) is True for x, y in zip(a.extents, b.extents, strict=True))


def edge_pattern(pattern: Pattern, read: object, result: object) -> Pattern:
    """How a node reads an operand, by what is known of it and of the result: a broadcast of a tensor of that shape is elementwise."""
    if pattern != Pattern.BROADCAST or not isinstance(read, TensorStructInfo) or not isinstance(result, TensorStructInfo):
        return pattern
    return Pattern.ELEMENTWISE if same_shape(read, result) else pattern


class Grouping:
    """The groups of a graph.

    Args:
        patterns: of its nodes, in an order in which they can be computed.
        readers: of each, those that read it.
        leaves: whether a node's value is used outside of the graph.
        most: how many nodes a group has at most.
    """

    def __init__(self, patterns: Sequence[Pattern], readers: Sequence[Sequence[Edge]], leaves: Sequence[bool], most: int) -> None:
        self.patterns, self.readers, self._leaves, self._most = patterns, readers, leaves, most
        self.groups = [Group(pattern, [number]) for number, pattern in enumerate(patterns)]
        self._tree = post_dominators(readers, leaves)

    def by_phases(self) -> None:
        """Join groups."""
        # Products with what is elementwise, then what moves elements, then tuples: no transpose takes the place of an epilogue.
        for phase in range(3):
            for number, dominator in enumerate(self._tree):
                if dominator.parent is not None:
                    self._visit(phase, number, dominator, dominator.parent)

    def _is_of_reader(self, number: int) -> bool:
        """Whether the only reader of a value is to compute it, in another kernel than the one that computes what it is made of."""
        return False

    def _is_too_large(self, number: int, parent: int) -> bool:
        return self._size(number, parent) > self._most

    def _visit(self, phase: int, number: int, dominator: Dominator, parent: int) -> None:
        group, target = self.groups[number].root(), self.groups[parent].root()
        if group.pattern == Pattern.OPAQUE or self._is_too_large(number, parent):
            return
        if phase == 2:
            # A tuple that no kernel reads stays one of the graph: what it has of elsewhere would be copied.
            if group.pattern <= Pattern.INJECTIVE and target.pattern == Pattern.TUPLE and target.size > 1:
                self._join_if(number, parent, lambda kind, is_end: kind <= Pattern.INJECTIVE or is_end)
            return
        if group is target or target.pattern == Pattern.TUPLE:
            return
        if group.pattern == Pattern.OUT_FUSABLE:
            # Any other way to the parent takes its elements in another order, or more than once.
            if phase == 0 and dominator.pattern == Pattern.ELEMENTWISE and not self._is_of_reader(parent):
                self._join_if(number, parent, lambda kind, is_end: kind <= Pattern.BROADCAST)
        elif group.pattern <= Pattern.BROADCAST:
            if dominator.pattern <= Pattern.INJECTIVE or dominator.pattern == Pattern.REDUCTION:
                self._join_if(number, parent, lambda kind, is_end: kind <= Pattern.INJECTIVE or (is_end and kind in _ENDS))
        elif group.pattern in (Pattern.INJECTIVE, Pattern.TUPLE) and phase == 1:
            self._join_if(number, parent, lambda kind, is_end: kind <= Pattern.INJECTIVE)

    def _between(self, number: int, parent: int) -> list[int] | None:
        """The nodes on the paths from a node to its post-dominator, without these two."""
        found: dict[int, None] = {}
        waiting = [edge.reader for edge in self.readers[number]]
        while waiting:
            node = waiting.pop()
            # Every way comes to the parent, which post-dominates: the walk ends there.
            if node != parent and node not in found:
                found[node] = None
                waiting += [edge.reader for edge in self.readers[node]]
        return list(found)

    def _join_if(self, number: int, parent: int, fits: Callable[[Pattern, bool], bool]) -> None:
        """Join a node, and what is between, with its post-dominator, if the patterns of all their groups fit."""
        # All or nothing: a node between that stays outside would read the kernel's value and be read by it.
        between = self._between(number, parent) or []
        if all(fits(self.groups[node].root().pattern, False) for node in between) and fits(self.groups[parent].root().pattern, True):
            for node in (number, *between):
                join(self.groups[node], self.groups[parent])

    def _size(self, number: int, parent: int) -> int:
        """How many nodes a group would have."""
        roots = {self.groups[node].root() for node in (number, parent, *(self._between(number, parent) or []))}
        return sum(root.size for root in roots)
