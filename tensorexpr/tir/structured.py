"""What nodes of higher rows of the house say about themselves, to be compared and hashed as those of loops are.

A node lists its parts by name. Some say what happens on the way: `Defines` lets variables stand for each other from there on,
`Declared` is a variable where it is defined, with what is known of it, `Proven` an integer expression that equals another one
if that can be proved.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from ..dataclass import dataclass, fields
from .expr import PrimExpr
from .node import Object

Parts = tuple[tuple[str, Any], ...]
_IGNORED = {"name", "name_hint"}


class Structured(Object):
    """Base of such nodes: their parts are their fields, unless they say otherwise."""

    # Whether it is a variable: then `struct_info` is what is known of it.
    structural_variable: ClassVar[bool] = False
    # Whether what it defines ends with it.
    structural_scope: ClassVar[bool] = False
    # Whether it is a line of its own in a text.
    structural_line: ClassVar[bool] = False

    def structural_parts(self) -> Parts:
        """The parts by name, in the order in which they mean something."""
        return tuple((f.name, getattr(self, f.name)) for f in fields(cast(Any, self)) if f.init and f.name not in _IGNORED)


@dataclass(frozen=True, slots=True)
class Defines:
    """From here on these variables stand for those of the other program, one by one; with `only_new` those that don't yet."""

    variables: tuple[Any, ...]
    only_new: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """A variable where it is defined: it stands for the other one, and as much has to be known of it."""

    var: Any

    @property
    def struct_info(self) -> Any:
        """What is known of the variable."""
        return self.var.struct_info


@dataclass(frozen=True, slots=True)
class Proven:
    """An integer expression of symbols, equal to what is always the same number."""

    value: PrimExpr

    def equals(self, mine: PrimExpr, other: PrimExpr) -> bool:
        """Whether two expressions, the first one of this side, can be proved equal."""
        return False

    def simplest(self) -> PrimExpr:
        """The expression, shorter if there is a shorter one."""
        return self.value
