"""Names of things and the engine that turns expressions into text, for every style of output.

A style is a table: node class -> function that gives the binding strength of the node's text and its parts, which are
strings and operands still to be written. The engine expands them left to right on a stack, so depth does not matter
and the work is linear in the length of the text.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, cast

from ...errors import InternalError
from ..expr import PrimExpr
from .options import MARK_BEGIN, MARK_END, Options

Operand = tuple[PrimExpr, int]
"""An expression and the strength below which its text needs parentheses."""
Parts = tuple[str | Operand, ...]
Format = Callable[[Any, "Names"], tuple[int, Parts]]

# Binding strengths, as Python has them: a weaker text inside a stronger operator needs parentheses.
ANY, OR, AND, NOT, COMPARE, SUM, PRODUCT, ATOM = range(8)

# Shared subexpressions make a text exponentially longer than the expression; nobody reads more than this.
_MAX_PARTS = 400_000
_RESERVED = frozenset(keyword.kwlist) | {"T", "I", "R", "range"}


class Names:
    """Which text stands for which variable, buffer or tensor; names are unique among what is in scope."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.marks: frozenset[int] | set[int] = self.options.marked  # expressions to mark here, by identity
        self._texts: dict[int, str] = {}
        self._taken: set[str] = set(_RESERVED)
        self._frames: list[list[tuple[Any, str | None]]] = [[]]

    def push(self) -> None:
        """Enter a scope."""
        self._frames.append([])

    def pop(self) -> None:
        """Leave a scope: what was named in it is forgotten and its names are free again."""
        for thing, taken in self._frames.pop():
            del self._texts[id(thing)]
            if taken is not None:
                self._taken.discard(taken)

    def __contains__(self, thing: object) -> bool:
        return id(thing) in self._texts

    def define(self, thing: Any, hint: str) -> str:
        """Name `thing` after `hint`, with _1, _2, ... behind it if the name is taken."""
        base = identifier(hint) + (f"_{id(thing):#x}" if self.options.show_object_address else "")
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        self._record(thing, name, name)
        return name

    def at(self, owner: Any) -> None:
        """Mark from here on what is marked in `owner`, a statement or buffer, besides what is marked everywhere."""
        if self.options.marked_in:
            self.marks = self.options.marked | self.options.marked_in.get(id(owner), set())

    def alias(self, thing: Any, text: str) -> None:
        """Let `text`, such as ``A.data``, stand for `thing`."""
        self._record(thing, text, None)

    def _record(self, thing: Any, text: str, taken: str | None) -> None:
        if id(thing) not in self._texts:
            # The frame holds the thing itself: while it has a name, its id belongs to no other.
            self._frames[-1].append((thing, taken))
        self._texts[id(thing)] = text

    def get(self, thing: Any, hint: str) -> str:
        """The text of `thing`; named after `hint` if it has none."""
        found = self._texts.get(id(thing))
        return found if found is not None else self.define(thing, hint)


def identifier(hint: str) -> str:
    """`hint` made a Python identifier: ``i.outer`` becomes ``i_outer``."""
    name = re.sub(r"\W", "_", hint, flags=re.ASCII)
    return name if name and not name[0].isdigit() else f"v{name}"


def join(separator: str, operands: tuple[Operand, ...]) -> Parts:
    """The operands with `separator` between them."""
    parts: list[str | Operand] = []
    for operand in operands:
        parts += (separator, operand) if parts else (operand,)
    return tuple(parts)


def call(name: str, *args: str | Operand | Parts) -> tuple[int, Parts]:
    """The parts of ``name(arg, ...)``; an argument is text, an operand or the parts of one."""
    parts: list[str | Operand] = [f"{name}("]
    for number, arg in enumerate(args):
        if number:
            parts.append(", ")
        parts += (arg,) if isinstance(arg, str) or _is_operand(arg) else cast(Parts, arg)
    parts.append(")")
    return ATOM, tuple(parts)


def _is_operand(part: Operand | Parts) -> TypeGuard[Operand]:
    return len(part) == 2 and isinstance(part[0], PrimExpr)


def render(expr: PrimExpr, style: Mapping[type, Format], names: Names, strength: int = ANY) -> str:
    """`expr` in `style`, in parentheses if its text binds weaker than `strength`."""
    out: list[str] = []
    stack: list[str | Operand] = [(expr, strength)]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        # Per operand, not per piece: what is on the stack already stays unwritten, and the text ends here.
        if len(out) > _MAX_PARTS:
            return "".join(out) + "..."
        node, needed = part
        form = style.get(type(node))
        if form is None:
            raise InternalError(f"the printer does not know {type(node).__name__}")
        own, parts = form(node, names)
        if own < needed:
            parts = ("(", *parts, ")")
        if names.marks and id(node) in names.marks:
            parts = (MARK_BEGIN, *parts, MARK_END)
        stack.extend(reversed(parts))
    return "".join(out)
