"""What a block states before its body: axes, predicate, regions, attributes and buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..block import Block, BlockRealize, MatchBufferRegion
from ..buffer import BufferRegion
from ..expr import IntImm, IterVar, PrimExpr, Var
from .expressions import script_map

if TYPE_CHECKING:
    from .statements import StatementPrinter

# The name of an axis's constructor, and its letter in T.axis.remap if it has one.
_AXES: dict[int, tuple[str, str | None]] = {
    IterVar.DATA_PAR: ("spatial", "S"),
    IterVar.COMM_REDUCE: ("reduce", "R"),
    IterVar.ORDERED: ("scan", None),
}
_OPAQUE = ("opaque", None)


def write_realization(printer: StatementPrinter, stmt: BlockRealize) -> None:
    """The lines of a block before its init and body."""
    _write_axes(printer, stmt)
    if not (isinstance(stmt.predicate, IntImm) and stmt.predicate.value):
        printer.line(f"T.where({printer.expr(stmt.predicate)})")
    _write_statements(printer, stmt.block)


def write_unbound(printer: StatementPrinter, block: Block) -> None:
    """The same for a block alone, whose axes are not bound to anything."""
    for axis in block.iter_vars:
        _write_axis(printer, axis)
    _write_statements(printer, block)


def _write_statements(printer: StatementPrinter, block: Block) -> None:
    printer.line(f"T.reads({', '.join(region_text(printer, region) for region in block.reads)})")
    printer.line(f"T.writes({', '.join(region_text(printer, region) for region in block.writes)})")
    if block.annotations:
        printer.line(f"T.block_attr({script_map(block.annotations, printer.names)})")
    write_buffers(printer, block)


def write_buffers(printer: StatementPrinter, block: Block) -> None:
    """The buffers that exist within a block, and its views."""
    for buffer in block.alloc_buffers:
        printer.declare_buffer(buffer, "T.alloc_buffer")
    for match in block.match_buffers:
        write_match(printer, match)


def region_text(printer: StatementPrinter, region: BufferRegion) -> str:
    """``A[i, 0:16]``: an index where the extent is 1, else a slice."""
    parts = [printer.expr(r.min) if isinstance(r.extent, IntImm) and r.extent.value == 1 else printer.slice_text(r) for r in region.region]
    return f"{printer.names.get(region.buffer, region.buffer.name)}[{', '.join(parts) or '()'}]"


def write_match(printer: StatementPrinter, match: MatchBufferRegion) -> None:
    """A view of a part of another buffer."""
    source = match.source
    box = ", ".join(map(printer.slice_text, source.region)) or "()"
    text = f"{printer.names.get(source.buffer, source.buffer.name)}[{box}], {printer.buffer_arguments(match.buffer, data=False)}"
    printer.line(f"{printer.define_view(match.buffer)} = T.match_buffer({text})")


def _write_axes(printer: StatementPrinter, stmt: BlockRealize) -> None:
    """Axes bound to whole loops in one line, where two or more stand together; the others one by one."""
    together: list[tuple[IterVar, PrimExpr]] = []
    for axis, value in stmt.bindings():
        if printer.names.options.syntax_sugar and _AXES.get(axis.iter_type, _OPAQUE)[1] is not None and _is_loop(printer, axis, value):
            together.append((axis, value))
            continue
        # Those that stood together before this one, so that axes keep their order.
        _write_remap(printer, together)
        together = []
        _write_axis(printer, axis, value)
    _write_remap(printer, together)


def _is_loop(printer: StatementPrinter, axis: IterVar, value: PrimExpr) -> bool:
    loop = printer.loops.get(value) if isinstance(value, Var) else None
    # Only a range that is the loop's own: the parser takes it from there.
    return loop is not None and axis.dom is not None and axis.dom.min is loop.min and axis.dom.extent is loop.extent


def _write_remap(printer: StatementPrinter, axes: list[tuple[IterVar, PrimExpr]]) -> None:
    if len(axes) == 1:
        _write_axis(printer, *axes[0])
    elif axes:
        values = ", ".join(printer.expr(value) for _, value in axes)
        names = ", ".join(printer.names.define(axis.var, axis.name) for axis, _ in axes)
        kinds = "".join(str(_AXES[axis.iter_type][1]) for axis, _ in axes)
        printer.line(f'{names} = T.axis.remap("{kinds}", [{values}])')


def _write_axis(printer: StatementPrinter, axis: IterVar, value: PrimExpr | None = None) -> None:
    kind = _AXES.get(axis.iter_type, _OPAQUE)[0]
    bound = "" if value is None else f", {printer.expr(value)}"
    dom = "None"
    if axis.dom is not None:
        plain = isinstance(axis.dom.min, IntImm) and axis.dom.min.value == 0
        dom = printer.expr(axis.dom.extent) if plain else f"({', '.join(printer.ends(axis.dom))})"
    printer.line(f"{printer.names.define(axis.var, axis.name)} = T.axis.{kind}({dom}{bound})")
