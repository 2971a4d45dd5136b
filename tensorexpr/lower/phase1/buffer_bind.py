"""What a buffer that stands for a box of another becomes: the box's memory, strides and offset.

All that the bound buffer declares is proved here. An intrinsic may have compiled its declarations into addresses, so
what can't be proved is refused and not checked when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ...arith.analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import binary, cast, compare, is_const_int
from ...tir.expr import BinaryExpr, CmpExpr, IntImm, PrimExpr, Ramp, Var
from ...tir.stmt import BufferBind
from ..rebuild import map_expr, operands
from .layout import Layout, flat_index, row_major

ExprFn = Callable[[PrimExpr], PrimExpr]


def bound_layout(stmt: BufferBind, source: Layout, analyzer: Analyzer, value: ExprFn) -> tuple[Layout, dict[Var, PrimExpr]]:
    """The layout of the bound buffer, and what the variables that it defines stand for.

    Args:
        source: the layout of the buffer that the box belongs to.
        analyzer: knows the loops and conditions around.
        value: rewrites an expression of the program in terms of what is outside.

    Raises:
        LoweringError: for a shape, stride, offset or alignment that is not proved to be that of the box.
    """
    bound = stmt.buffer
    left_out = len(source.strides) - bound.ndim
    _check_shape(stmt, analyzer, value, left_out)
    strides = source.strides[left_out:]
    offset = analyzer.simplify(flat_index(source, [value(r.min) for r in stmt.source.region]))
    values: dict[Var, PrimExpr] = {bound.data: source.flat.data}
    _check_strides(stmt, analyzer, strides, value, values)
    _check_offset(stmt, analyzer, offset, value, values)
    mins = tuple(IntImm(extent.dtype, 0) for extent in bound.shape)
    return Layout(source.flat, mins, strides, offset, source.dtype if offset.dtype == "int32" else "int64"), values


def _check_strides(stmt: BufferBind, analyzer: Analyzer, strides: Sequence[PrimExpr], value: ExprFn, values: dict[Var, PrimExpr]) -> None:
    """Strides that are variables of the buffer get the box's values; all others are proved. Extent 1 makes any stride right."""
    bound, own = stmt.buffer, stmt.defines()
    shape = [value(extent) for extent in bound.shape]
    for number, (asked, found) in enumerate(zip(bound.strides or row_major(shape), strides, strict=True)):
        wanted = values.setdefault(asked, found) if isinstance(asked, Var) and asked in own else value(asked)
        if wanted is not found and not is_const_int(shape[number], 1) and not _same(analyzer, wanted, found):
            _refuse_stride(stmt, number, wanted, found)


def _same(analyzer: Analyzer, a: PrimExpr, b: PrimExpr) -> bool:
    return analyzer.known_equal(cast(a, "int64"), cast(b, "int64"))


def _check_shape(stmt: BufferBind, analyzer: Analyzer, value: ExprFn, left_out: int) -> None:
    bound, source = stmt.buffer, stmt.source
    extents = [value(r.extent) for r in source.region]
    for number, extent in enumerate(extents[:left_out]):
        if not _same(analyzer, extent, IntImm("int32", 1)):
            raise LoweringError(
                f"buffer {bound.name} with {bound.ndim} dimensions stands for a box of {source.buffer.name} with {len(extents)}: "
                f"its dimension {number} is left out, but has extent {extent}, not 1; declare {bound.name} with {len(extents)} dimensions"
            )
    for number, (asked, found) in enumerate(zip(bound.shape, extents[left_out:], strict=True)):
        if not _same(analyzer, value(asked), found):
            raise LoweringError(
                f"buffer {bound.name} is declared with extent {asked} in dimension {number}, but its box of {source.buffer.name} has "
                f"{found} there; tensorize an axis over exactly that many elements, or declare the extent that the box has"
            )


def _refuse_stride(stmt: BufferBind, number: int, asked: PrimExpr, found: PrimExpr) -> NoReturn:
    bound, source = stmt.buffer, stmt.source.buffer
    how = f"with stride {asked} in dimension {number}" if bound.strides else f"compact, so with stride {asked} in dimension {number}"
    raise LoweringError(
        f"buffer {bound.name} is declared {how}, but its box of {source.name} has stride {found} there; "
        f'declare it with a free stride (strides=[te.var("s"), ...]), or lay out {source.name} so that the box has that stride'
    )


def _check_offset(stmt: BufferBind, analyzer: Analyzer, offset: PrimExpr, value: ExprFn, values: dict[Var, PrimExpr]) -> None:
    bound, source = stmt.buffer, stmt.source.buffer
    asked = bound.elem_offset
    if isinstance(asked, Var) and asked in stmt.defines() and asked not in values:
        values[asked] = offset
    elif not _same(analyzer, values[asked] if isinstance(asked, Var) and asked in values else value(asked), offset):
        raise LoweringError(
            f"buffer {bound.name} is declared with elem_offset {asked}, but its box of {source.name} starts at element {offset}; "
            "leave the offset free: offset_factor=1, or elem_offset=te.var()"
        )
    if bound.offset_factor > 1 and not analyzer.known_divisible(offset, bound.offset_factor):
        raise LoweringError(
            f"buffer {bound.name} is declared with offset_factor={bound.offset_factor}, but its box of {source.name} starts at element "
            f"{offset}, which is not proved to be a multiple of it; split evenly by a multiple, or declare offset_factor=1"
        )
    if source.data_alignment % bound.data_alignment:
        raise LoweringError(
            f"buffer {bound.name} is declared with data_alignment={bound.data_alignment}, but the memory of {source.name} is aligned to "
            f"{source.data_alignment} bytes; declare at most that, or decl_buffer {source.name} with more"
        )


def remade(expr: PrimExpr, rewrite: ExprFn) -> PrimExpr:
    """`map_expr` where an index may have become wider: the other operand of an operator follows it."""
    if not isinstance(expr, (BinaryExpr, CmpExpr, Ramp)):
        return map_expr(expr, rewrite)
    old = operands(expr)
    new = [rewrite(operand) for operand in old]
    if all(a is b for a, b in zip(old, new, strict=True)):
        return expr
    first, second = _aligned(new)
    if isinstance(expr, Ramp):
        return Ramp(first, second, expr.lanes)
    if isinstance(expr, CmpExpr):
        return compare(type(expr), first, second)
    return binary(type(expr), first, second)


def _aligned(new: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr]:
    first, second = new
    if first.dtype == second.dtype:
        return first, second
    wide = first.dtype if first.dtype.startswith("int64") else second.dtype
    return cast(first, wide), cast(second, wide)
