"""Which value is used by which: `producer >> consumer`, inside of a `PatternContext`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError


@dataclass(frozen=True, slots=True)
class Edge:
    """A value is used by another one, as its argument `index` (any if -1); with `only` by no others."""

    source: Any
    user: Any
    index: int
    only: bool


class Constraints:
    """What a context knows of its patterns."""

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.nodes: dict[Any, None] = {}
        self.same_shapes: list[tuple[Any, ...]] = []

    def add(self, source: Any, user: Any, index: int, only: bool) -> None:
        """Note that a value is used by another one."""
        self.nodes.update({source: None, user: None})
        self.edges.append(Edge(source, user, index, only))


class _Open(threading.local):
    def __init__(self) -> None:
        self.contexts: list[Constraints] = []


OPEN = _Open()


def current() -> Constraints:
    """The innermost context that is open.

    Raises:
        DeclarationError: if none is.
    """
    if not OPEN.contexts:
        raise DeclarationError("which value is used by which is said inside of `with PatternContext() as ctx:`")
    return OPEN.contexts[-1]


class Relations:
    """What patterns and sequences of them have in common: `a.used_by(b)` or `a ^ b`, `a.only_used_by(b)` or `a >> b`."""

    def used_by(self, other: Any, index: int = -1) -> PatternSeq:
        """Let the last value of this be an argument of the first one of `other`.

        Args:
            other: a pattern or a sequence.
            index: which argument; any if -1.

        Raises:
            DeclarationError: outside of contexts.
        """
        return self._joined(other, index, False)

    def only_used_by(self, other: Any, index: int = -1) -> PatternSeq:
        """As `used_by`, and nothing else uses it."""
        return self._joined(other, index, True)

    def __xor__(self, other: Any) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Any) -> PatternSeq:
        return self.only_used_by(other)

    def _joined(self, other: Any, index: int, only: bool) -> PatternSeq:
        mine, others = _listed(self), _listed(other)
        current().add(mine[-1], others[0], index, only)
        return PatternSeq([*mine, *others])

    def fork_to(self, *args: Any) -> None:
        """Let the value be used by all of these."""
        for one in args:
            self.used_by(one)

    def dup(self) -> Any:
        """A copy, which stands for another value; a context that is open knows it as it knows this."""
        copies: dict[Any, Any] = {}
        made = _copied(self, copies)
        # On a copy of the list, as `add` appends to it.
        for edge in list(OPEN.contexts[-1].edges if OPEN.contexts else ()):
            if edge.source in copies and edge.user in copies:
                OPEN.contexts[-1].add(copies[edge.source], copies[edge.user], edge.index, edge.only)
        return made

    def same_shape_as(self, *args: Any) -> None:
        """Let these have one shape.

        Raises:
            DeclarationError: outside of contexts.
        """
        constraints = current()
        constraints.nodes.update(dict.fromkeys((self, *args)))
        constraints.same_shapes.append((self, *args))

    def note_arguments(self, args: Sequence[Any]) -> None:
        """Let a context that is open know that this uses its arguments."""
        if OPEN.contexts:
            for index, one in enumerate(args):
                OPEN.contexts[-1].add(one, self, index, False)


class PatternSeq(Relations):
    """Patterns of which each is used by the next one.

    Args:
        patterns: at least one.
        only_use: whether nothing else uses them.
    """

    def __init__(self, patterns: Sequence[Any], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        if not self.patterns:
            raise DeclarationError("a sequence of patterns has at least one")

    def __getitem__(self, index: int) -> Any:
        return self.patterns[index]


def _listed(one: Any) -> list[Any]:
    return one.patterns if isinstance(one, PatternSeq) else [one]


def _copied(one: Any, copies: dict[Any, Any]) -> Any:
    """A copy of a pattern or sequence with all inside, each object once."""
    if isinstance(one, (tuple, list)):
        return type(one)(_copied(item, copies) for item in one)
    if not isinstance(one, Relations):
        return one
    if one not in copies:
        # By its fields, whatever its constructor takes; known before they are copied, as they may share parts.
        made = copies[one] = object.__new__(type(one))
        made.__dict__.update({key: _copied(value, copies) for key, value in one.__dict__.items()})
    return copies[one]
