"""Errors of primitives that show the program with the offending place marked."""

from __future__ import annotations

from ...errors import ScheduleError
from ...tir.block import BlockRealize
from ...tir.expr import Var
from ...tir.stmt import For, Stmt
from .program import BlockProgram

LEVELS = ("detail", "fast", "none")


class PrimitiveError(ScheduleError):
    """A primitive that is illegal where it was requested. `place` is the loop or block that it is about, if one is."""

    def __init__(self, message: str, place: Stmt | None = None) -> None:
        super().__init__(message)
        self.place = place


class WrongTypeError(ScheduleError, TypeError):
    """An argument of a primitive that is of another type."""


class UnknownHandleError(ScheduleError, IndexError):
    """A handle that stands for nothing in this schedule."""


def rendered(error: ScheduleError, primitive: str, program: BlockProgram, level: str) -> ScheduleError:
    """The error as a user sees it.

    Args:
        level: "detail" for the program with the place marked, "fast" for the sentence alone, "none" for neither.
    """
    kind = next((special for special in (WrongTypeError, UnknownHandleError) if isinstance(error, special)), ScheduleError)
    if level == "none":
        return kind("ScheduleError: (not rendered)")
    message = str(error) if str(error).startswith(primitive) else f"{primitive}: {error}"
    if level == "fast":
        return kind(message)
    place = error.place if isinstance(error, PrimitiveError) else None
    return kind(f"{message}\nThe program is:\n{marked(program, place)}")


def marked(program: BlockProgram, place: Stmt | None) -> str:
    """The program's text with the first line of a loop or block underlined."""
    found: list[str] = []
    before = _alike_before(program, place)
    for line in program.func.script().splitlines():
        found.append(line)
        if place is not None and _begins(line.strip(), place):
            if before == 0:
                found.append(" " * (len(line) - len(line.lstrip())) + "^" * len(line.strip()))
            before -= 1
    return "\n".join(found)


def loop_name(program: BlockProgram, var: Var) -> str:
    """A loop in words: with the blocks inside, as loops of several nests may have one name."""
    inside = [node.stmt.block.name_hint for node in program.child_blocks(program.loop_node(var)) if isinstance(node.stmt, BlockRealize)]
    return f"{var.name} (around {', '.join(inside) or 'no block'})"


def _alike_before(program: BlockProgram, place: Stmt | None) -> int:
    """How many loops or blocks of the same name stand before one."""
    if isinstance(place, For):
        names = [node.stmt.loop_var.name for node in program.loops.values() if isinstance(node.stmt, For) and node.stmt is not place]
        own = next((n for n, node in enumerate(program.loops.values()) if node.stmt is place), 0)
        return names[:own].count(place.loop_var.name)
    return 0


def _begins(line: str, place: Stmt) -> bool:
    """True for the line on which a loop or block begins."""
    if isinstance(place, BlockRealize):
        return line.startswith(f'with T.block("{place.block.name_hint}")')
    if not isinstance(place, For) or not line.startswith("for ") or " in " not in line:
        return False
    return place.loop_var.name in line.removeprefix("for ").split(" in ")[0].split(", ")
