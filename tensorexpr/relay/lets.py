"""Names for values in the order in which they are computed, as passes make them that rebuild a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..relax import expr as graph
from ..relax.struct_info import ObjectStructInfo, StructInfo
from ..tir.function import GlobalVar
from ..tir.op_registry import Op
from .adt import Constructor
from .expr import Let, Var

ATOMS = (graph.Var, graph.Constant, GlobalVar, Op, Constructor, graph.ShapeExpr, graph.PrimValue, graph.StringImm, graph.DataTypeImm,
         graph.ExternFunc)  # fmt: skip


class Lets:
    """The Lets of a body.

    Args:
        around: those of the body that it stands in, whose names it may use.
    """

    def __init__(self, around: Lets | None = None) -> None:
        self._around = around
        self._numbers: Iterator[int] = count() if around is None else around._numbers
        self._made: list[tuple[Var, Any]] = []

    def outwards(self) -> Iterator[Lets]:
        """These, and those around."""
        one: Lets | None = self
        while one is not None:
            yield one
            one = one._around

    def fresh(self) -> str:
        """A name that no other value here has."""
        return f"x{next(self._numbers)}"

    def named(self, value: Any, info: StructInfo | None = None) -> Any:
        """A variable that is bound to a value, of which `info` is known; what needs no name is itself."""
        if isinstance(value, ATOMS):
            return value
        known = known_info(value) if info is None else info
        return self.bound(Var(self.fresh(), None if type(known) is ObjectStructInfo else known), value)

    def bound(self, var: Var, value: Any) -> Var:
        """Bind a variable."""
        self._made.append((var, value))
        return var

    def around(self, body: Any) -> Any:
        """A body behind the Lets."""
        for var, value in reversed(self._made):
            body = Let(var, value, body)
        return body


def known_info(value: Any) -> StructInfo:
    """What is known of a value; nothing where nothing is of what it is made of."""
    with suppress(DeclarationError, TypeMismatchError):  # of operands of which nothing is known
        info: StructInfo = value.struct_info
        return info
    return ObjectStructInfo()


__all__ = ["ATOMS", "Lets", "known_info"]
