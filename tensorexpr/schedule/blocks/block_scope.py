"""Where blocks and loops stand, and which blocks of a scope depend on which."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ...dataclass import dataclass
from ...tir.block import Block
from ...tir.stmt import For
from .scope import read, written


class StmtSRef:
    """The place of a block or loop in a program, which stays when statements around it are replaced.

    `stmt` is what stands there now, None if it is gone; `parent` the nearest block or loop around it.
    """

    __slots__ = ("parent", "stmt")

    def __init__(self, stmt: Block | For | None, parent: StmtSRef | None = None) -> None:
        self.stmt = stmt
        self.parent = parent

    @staticmethod
    def inline_mark() -> StmtSRef:
        """What stands for "inlined" where a loop to compute at is asked for."""
        return _INLINE

    @staticmethod
    def root_mark() -> StmtSRef:
        """What stands for "at the root" where a loop to compute at is asked for."""
        return _ROOT

    def same_as(self, other: object) -> bool:
        """True if the other is this very place."""
        return self is other

    def __repr__(self) -> str:
        shown = self.stmt.name_hint if isinstance(self.stmt, Block) else self.stmt.loop_var.name if self.stmt is not None else "gone"
        return f"StmtSRef({shown})"


_INLINE, _ROOT = StmtSRef(None), StmtSRef(None)


class DepKind(IntEnum):
    """How a block depends on one before it: what it reads was written, what it writes was written, what it writes was read."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@dataclass(frozen=True, eq=False, slots=True)
class Dependency:
    """`dst` depends on `src`, which stands before it."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


class BlockScope:
    """The dependences among the blocks directly within a block.

    Args:
        children: their places, in the order of the text.
    """

    def __init__(self, children: Sequence[StmtSRef]) -> None:
        self.children = tuple(children)
        self.dependencies = tuple(_dependencies(self.children))

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """What depends on a block."""
        return [dependency for dependency in self.dependencies if dependency.src is block]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """What a block depends on."""
        return [dependency for dependency in self.dependencies if dependency.dst is block]


def _dependencies(children: Sequence[StmtSRef]) -> list[Dependency]:
    found: list[Dependency] = []
    for place, late in enumerate(children):
        for kind, own, others in ((DepKind.RAW, read, written), (DepKind.WAW, written, written), (DepKind.WAR, written, read)):
            assert isinstance(late.stmt, Block)
            wanted = set(own(late.stmt))
            found += [Dependency(early, late, kind) for early in children[:place] if wanted & set(others(_block(early)))]
    return found


def _block(place: StmtSRef) -> Block:
    assert isinstance(place.stmt, Block)
    return place.stmt
