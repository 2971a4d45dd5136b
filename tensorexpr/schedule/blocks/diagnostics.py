"""Errors of primitives that show the program with the offending place marked."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ScheduleError
from ...tir.block import BlockRealize
from ...tir.expr import Var
from ...tir.function import IRModule
from ...tir.stmt import Stmt
from .program import BlockProgram

LEVELS = ("detail", "fast", "none")


class PrimitiveError(ScheduleError):
    """A primitive that is illegal where it was requested. `places` are the loops and blocks that it is about."""

    def __init__(self, message: str, *places: Stmt | None) -> None:
        super().__init__(message)
        self.places = tuple(place for place in places if place is not None)


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
    places = error.places if isinstance(error, PrimitiveError) else ()
    return kind(f"{message}\nThe program is:\n{marked(program, places)}")


def marked(program: BlockProgram, places: Sequence[Stmt]) -> str:
    """The program's text, with a line for every loop and block; those at `places` are numbered and their first lines underlined."""
    kinds = ("Block" if isinstance(place, BlockRealize) else type(place).__name__ for place in places)
    remarks = {place: f"tir.{kind}#{number}" for number, (place, kind) in enumerate(zip(places, kinds, strict=True))}
    name = str(program.func.attrs.get("global_symbol", "main"))
    found: list[str] = []
    for line in IRModule({name: program.func}).script(syntax_sugar=False, obj_to_annotate=remarks).splitlines():
        # the printer puts a remark in the line before its statement
        is_place = bool(found) and found[-1].strip().removeprefix("# ") in remarks.values()
        found.append(line)
        if is_place:
            found.append(" " * (len(line) - len(line.lstrip())) + "^" * len(line.strip()))
    return "\n".join(found)


def loop_name(program: BlockProgram, var: Var) -> str:
    """A loop in words: with the blocks inside, as loops of several nests may have one name."""
    inside = [node.stmt.block.name_hint for node in program.child_blocks(program.loop_node(var)) if isinstance(node.stmt, BlockRealize)]
    return f"{var.name} (around {', '.join(inside) or 'no block'})"
