"""What stands for blocks, loops and sampled numbers in a user's hands and in traces.

Handles know nothing: a schedule says what they stand for at the moment. Numbers that are sampled are `tir.Var`s.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ...tir.expr import Var


class _Handle:
    """What blocks and loops share: a handle is equal to itself alone."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """True if the other is this very handle."""
        return self is other


class BlockRV(_Handle):
    """A block of a schedule."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"BlockRV({id(self):#x})"


class LoopRV(_Handle):
    """A loop of a schedule."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"LoopRV({id(self):#x})"


RV = BlockRV | LoopRV | Var


@dataclass(frozen=True, slots=True)
class BlockRef:
    """The block `name` of the function `func`."""

    func: str
    name: str


@dataclass(frozen=True, slots=True)
class LoopRef:
    """The loop over `var` in the function `func`."""

    func: str
    var: Var


INLINE = -2  # TVM's number of the decision in traces


@dataclass(frozen=True, slots=True)
class NoLoop:
    """No loop: a computation that is to stand at the root (-1) or to be inlined (INLINE)."""

    place: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A block or loop that a primitive removed."""

    what: str
    primitive: str


Ref = BlockRef | LoopRef | NoLoop | Gone
