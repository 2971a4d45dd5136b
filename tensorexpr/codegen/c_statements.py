"""Statements as C: loops, branches, memory. Parallel loops are those of OpenMP where the compiler has that, else plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CodegenError
from ..tir.arithmetic import binary
from ..tir.attrs import IMPORT_C
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, BufferLoad, Call, IntImm, Max, PrimExpr, Range, StringImm, Var
from ..tir.rewriting import walk
from ..tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Stmt,
    While,
)
from ..tir.thread import bound_tag
from . import registers
from .c_calls import is_foreign, no_value
from .c_context import CContext, StmtHandler, failed
from .c_expressions import define, element, stored
from .c_types import float_literal, int_literal, is_narrow, memory_type, value_type
from .storage import STACK_LIMIT
from .types import size_in_bytes

_CONSTANTS_A_LINE = 12


def statement(ctx: CContext, stmt: Stmt) -> None:
    """The lines of a statement."""
    handler = ctx.module.statements.get(type(stmt))
    if handler is None:
        raise CodegenError(f"In {ctx.name}: {type(stmt).__name__} has no C; lower the function through phase 3 first")
    handler(ctx, stmt)


def _sequence(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, SeqStmt)
    for part in stmt.seq:
        statement(ctx, part)


# Loops


def _for(ctx: CContext, stmt: Stmt) -> None:
    """For: serial or parallel."""
    assert isinstance(stmt, For)
    if stmt.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or bound_tag(stmt) is not None:
        kind = bound_tag(stmt) or ForKind(stmt.kind).name.lower()
        raise ctx.refuse(f"the loop over {stmt.loop_var.name}, which is {kind},")
    if isinstance(stmt.extent, IntImm) and stmt.extent.value <= 0:
        return
    first = _bound(ctx, stmt.loop_var, "first", stmt.min)
    last = _bound(ctx, stmt.loop_var, "end", ctx.simplified(binary(Add, stmt.min, stmt.extent)))
    kind = value_type(stmt.loop_var.dtype if parse_dtype(stmt.loop_var.dtype).bits >= 32 else "int32")  # which counts past the last value
    name = ctx.bind(stmt.loop_var)
    head = f"for ({kind} {name} = {first}; {name} < {last}; ++{name}) {{"
    with ctx.ranged(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent)):
        if stmt.kind is ForKind.PARALLEL and ctx.exit_label is None:
            _parallel(ctx, head, name, stmt.body)
        else:
            with ctx.block(head):
                statement(ctx, stmt.body)
    ctx.names.release(name)


def _bound(ctx: CContext, var: Var, what: str, expr: PrimExpr) -> str:
    """An end of a loop; what the body may change is computed in front of the loop."""
    if isinstance(expr, IntImm) and abs(expr.value) < 1 << 31:
        return str(expr.value)
    with ctx.statement(expr):
        text = ctx.text(expr)
        if any(isinstance(node, (BufferLoad, Call)) for node in walk(expr)):
            name = ctx.names.fresh(f"{var.name}_{what}")
            ctx.emit(f"const {value_type(expr.dtype)} {name} = {text};")
            return name
    return text


def _parallel(ctx: CContext, head: str, name: str, body: Stmt) -> None:
    """A loop whose iterations threads share. A failure can't leave it: it ends the iteration, and is returned behind the loop."""
    label = ctx.exit_label = ctx.names.fresh(f"next_{name}")
    outer, outer_lines, ctx.lines = ctx.live, ctx.lines, []
    ctx.live = []
    with ctx.block(head):
        statement(ctx, body)
        fails = any(f"goto {label};" in line for line in ctx.lines)
        if fails:
            ctx.emit(f"{label}:;")
    lines, ctx.lines, ctx.live, ctx.exit_label = ctx.lines, outer_lines, outer, None
    if fails:
        ctx.emit(f"int32_t {failed(label)} = 0;")
    for line in ("#ifdef _OPENMP", "#pragma omp parallel for", "#endif"):
        ctx.directive(line)
    ctx.lines += lines
    if fails:
        with ctx.block(f"if ({failed(label)} != 0) {{"):
            for workspace in reversed(ctx.live):
                ctx.emit(f"free({workspace});")
            ctx.emit(f"return {failed(label)};")


def _while(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, While)
    with ctx.statement(stmt.condition):
        lines, condition = ctx.arm(stmt.condition)
    with ctx.block("while (true) {" if lines else f"while ({condition.text}) {{"):
        if lines:
            ctx.lines += lines
            ctx.emit(f"if (!({condition.text})) break;")
        statement(ctx, stmt.body)


# Branches and values


def _if(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, IfThenElse)
    if isinstance(stmt.condition, IntImm):
        chosen = stmt.then_case if stmt.condition.value else stmt.else_case
        if chosen is not None:
            statement(ctx, chosen)
        return
    with ctx.statement(stmt.condition):
        condition = ctx.text(stmt.condition)
    with ctx.block(f"if ({condition}) {{"):
        statement(ctx, stmt.then_case)
    if stmt.else_case is not None:
        ctx.lines.pop()
        with ctx.block("} else {"):
            statement(ctx, stmt.else_case)


def _let(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, LetStmt)
    annotation = stmt.var.type_annotation
    if stmt.var.dtype == "handle" and annotation is not None and hasattr(annotation, "element_type"):
        ctx.elements[stmt.var] = memory_type(str(annotation.element_type.dtype))
    with ctx.statement(stmt.value):
        define(ctx, stmt.var, stmt.value)
    statement(ctx, stmt.body)


def _assert(ctx: CContext, stmt: Stmt) -> None:
    """AssertStmt: where the condition fails, the function returns the number of the message."""
    assert isinstance(stmt, AssertStmt)
    if not (isinstance(stmt.condition, IntImm) and stmt.condition.value):
        with ctx.statement(stmt.condition):
            condition = ctx.text(stmt.condition)
        with ctx.block(f"if (!({condition})) {{"):
            ctx.fail(stmt.message.value if isinstance(stmt.message, StringImm) else str(stmt.message))
    statement(ctx, stmt.body)


def _attribute(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, AttrStmt)
    if stmt.attr_key == "thread_extent":
        raise ctx.refuse(f"a launch of threads ({getattr(stmt.node, 'thread_tag', '')})")
    if stmt.attr_key == IMPORT_C:
        ctx.module.imports[stmt.value.value if isinstance(stmt.value, StringImm) else str(stmt.value)] = None
    statement(ctx, stmt.body)


def _body(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, DeclBuffer)
    statement(ctx, stmt.body)


def _evaluate(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, Evaluate)
    if isinstance(stmt.value, (IntImm, StringImm)) or no_value(stmt.value):
        return
    with ctx.statement(stmt.value):
        text = ctx.text(stmt.value)
    if is_foreign(stmt.value):  # what else does something has done it in lines of its own
        ctx.emit(f"{text};")


# Memory


def _store(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, BufferStore)
    if stmt.predicate is not None:
        raise ctx.refuse(f"a predicate of a store of one element to {stmt.buffer.name}")
    with ctx.statement(stmt.value, stmt.indices[0]):
        value = stored(ctx, stmt.value)
        ctx.emit(f"{element(ctx, stmt.buffer.data, stmt.buffer.dtype, stmt.indices[0], written=True)} = {value};")


def _allocate(ctx: CContext, stmt: Stmt) -> None:
    """Allocate: a variable, an array on the stack, or memory from malloc."""
    assert isinstance(stmt, Allocate)
    var, kind, count = stmt.buffer_var, memory_type(stmt.dtype), stmt.constant_size()
    if count is not None and count < 0:
        raise CodegenError(f"In {ctx.name}: the allocation of {var.name} has {count} elements; extents must not be negative")
    name = ctx.bind(var)
    ctx.elements[var] = kind
    annotation = var.type_annotation
    if count == 1 and annotation is not None and annotation.storage_scope == registers.SCOPE:
        ctx.single.add(var)
        ctx.emit(f"{kind} {name};")
    elif count is not None and ctx.stack_bytes + count * size_in_bytes(stmt.dtype) <= STACK_LIMIT:
        ctx.stack_bytes += count * size_in_bytes(stmt.dtype)
        ctx.emit(f"{kind} {name}[{max(count, 1)}];")
    else:
        _workspace(ctx, stmt, kind, name, count)
        return
    statement(ctx, stmt.body)


def _workspace(ctx: CContext, stmt: Allocate, kind: str, name: str, count: int | None) -> None:
    if count is not None:
        size = str(max(count, 1))
    else:
        with ctx.statement(*stmt.extents):
            parts = [f"(size_t){ctx.text(binary(Max, extent, IntImm(extent.dtype, 0)), 14)}" for extent in stmt.extents]
        size = f"({' * '.join(parts)} + 1)"  # of no bytes malloc may give NULL, too
    ctx.emit(f"{kind}* {name} = ({kind}*)malloc(sizeof({kind}) * {size});")
    with ctx.block(f"if ({name} == NULL) {{"):
        ctx.fail(f"out of memory: no workspace for {stmt.buffer_var.name}")
    ctx.live.append(name)
    statement(ctx, stmt.body)
    ctx.live.pop()
    ctx.emit(f"free({name});")


def _constant(ctx: CContext, stmt: Stmt) -> None:
    assert isinstance(stmt, AllocateConst)
    var, kind = stmt.buffer_var, memory_type(stmt.dtype)
    if stmt.data is None:
        raise CodegenError(f"In {ctx.name}: the elements of the constant {var.name} stand in the module's attribute, not in the function")
    numbers = [_literal(value, str(parse_dtype(stmt.dtype).scalar)) for value in stmt.data.numpy().reshape(-1)]
    ctx.elements[var] = kind
    indent = "  " * (ctx.depth + 1)
    rows = [", ".join(numbers[first : first + _CONSTANTS_A_LINE]) for first in range(0, len(numbers), _CONSTANTS_A_LINE)] or ["0"]
    elements = ",".join(f"\n{indent}{row}" for row in rows)
    ctx.emit(f"static const {kind} {ctx.bind(var)}[{max(len(numbers), 1)}] = {{{elements}}};")  # one definition, whatever its lines
    statement(ctx, stmt.body)
    if var in ctx.written_through:
        raise CodegenError(f"In {ctx.name}: the constant {var.name} is written; use T.allocate for memory that changes")


def _literal(value: Any, dtype: str) -> str:
    if is_narrow(dtype):
        return f"{int(np.asarray(value).view(f'uint{parse_dtype(dtype).bits}')):#x}"
    if parse_dtype(dtype).is_float:
        return float_literal(float(value), dtype)
    return str(int(value)) if parse_dtype(dtype).code == "bool" else int_literal(int(value), dtype)


STATEMENTS: dict[type, StmtHandler] = {
    SeqStmt: _sequence,
    For: _for,
    While: _while,
    IfThenElse: _if,
    LetStmt: _let,
    AssertStmt: _assert,
    AttrStmt: _attribute,
    DeclBuffer: _body,
    Evaluate: _evaluate,
    BufferStore: _store,
    Allocate: _allocate,
    AllocateConst: _constant,
    Prefetch: lambda ctx, stmt: None,  # a hint
}
