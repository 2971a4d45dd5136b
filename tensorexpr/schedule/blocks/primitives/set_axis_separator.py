"""Set axis separators: which dimensions of a buffer are flattened together where memory has several dimensions.

B = T.alloc_buffer((128, 100))   -- set_axis_separator(B, ("write", 0), [1]) ->   B = T.alloc_buffer((128, 100), axis_separators=[1])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....errors import DeclarationError, ScheduleError
from ....tir.arithmetic import as_int, convert
from ....tir.buffer import Buffer
from ....tir.expr import IntImm
from ..buffers import READ, WRITE, buffer_at, exchanged
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram
from .reindex import Side


def set_axis_separator(program: BlockProgram, name: str, index: int, side: str, separators: Sequence[int]) -> BlockProgram:
    """The program with the dimensions of a buffer in groups, which begin at the separators."""
    realize = program.realize(name)
    buffer = buffer_at(realize, side, index, "set_axis_separator")
    try:
        made = replace(buffer, axis_separators=tuple(IntImm("int32", cut) for cut in separators))
    except DeclarationError as error:
        raise PrimitiveError(f"set_axis_separator: {error}", realize) from error
    params = {var: made if given is buffer else given for var, given in program.func.buffer_map.items()}
    return exchanged(BlockProgram(replace(program.func, buffer_map=params)), buffer, made, lambda view: _as_in(view, made))


def _as_in(view: Buffer, whole: Buffer) -> Buffer:
    """A view with the groups of dimensions of what it is a box of; one of fewer dimensions has empty groups before its own."""
    same = view.ndim == whole.ndim
    return replace(view, axis_separators=tuple(cut if same else IntImm("int32", 0) for cut in whole.axis_separators))


def _number(cut: object) -> int:
    found = as_int(convert(cut))
    if found is None:
        raise ScheduleError(f"set_axis_separator takes numbers of dimensions, not {cut}")
    return found


class SetAxisSeparator(Primitive):
    """The instruction."""

    kind, method, inputs = "SetAxisSeparator", "set_axis_separator", ("block",)
    attrs = ("buffer_index", "buffer_index_type", "axis_separators")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        side = WRITE if attrs[1] else READ
        program = set_axis_separator(state.program_of(ref), ref.name, int(attrs[0]), side, [_number(cut) for cut in attrs[2]])
        return Applied(state.updated(ref.func, program))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        return [("block", inputs[0]), ("buffer", Side(int(attrs[1]), int(attrs[0]))), ("axis_separators", list(attrs[2]))]
