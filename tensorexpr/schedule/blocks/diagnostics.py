"""Errors of primitives that show the program with the offending place marked."""

from __future__ import annotations

from ...errors import ScheduleError
from ...tir.block import BlockRealize
from ...tir.stmt import For, Stmt
from .program import BlockProgram

LEVELS = ("detail", "fast", "none")


class PrimitiveError(ScheduleError):
    """A primitive that is illegal where it was requested. `place` is the loop or block that it is about, if one is."""

    def __init__(self, message: str, place: Stmt | None = None) -> None:
        super().__init__(message)
        self.place = place


def rendered(error: ScheduleError, primitive: str, program: BlockProgram, level: str) -> ScheduleError:
    """The error as a user sees it.

    Args:
        level: "detail" for the program with the place marked, "fast" for the sentence alone, "none" for the primitive's name.
    """
    if level == "none":
        return ScheduleError(f"(not rendered) the primitive {primitive!r} can't be applied")
    message = f"{primitive}: {error}"
    if level == "fast":
        return ScheduleError(message)
    place = error.place if isinstance(error, PrimitiveError) else None
    return ScheduleError(f"{message}\nThe program is:\n{marked(program, place)}")


def marked(program: BlockProgram, place: Stmt | None) -> str:
    """The program's text with the first line of a loop or block underlined."""
    lines = program.func.script().splitlines()
    words = _first_words(place)
    if words is None:
        return "\n".join(lines)
    found: list[str] = []
    done = False
    for line in lines:
        found.append(line)
        text = line.strip()
        if not done and any(text.startswith(word) for word in words):
            found.append(" " * (len(line) - len(line.lstrip())) + "^" * len(text))
            done = True
    return "\n".join(found)


def _first_words(place: Stmt | None) -> tuple[str, ...] | None:
    if isinstance(place, BlockRealize):
        return (f'with T.block("{place.block.name_hint}")',)
    if isinstance(place, For):
        name = place.loop_var.name
        return (f"for {name} in ", f"for {name}, ")
    return None
