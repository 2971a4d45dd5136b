"""Any node as text, with the options of `script()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..block import MatchBufferRegion
from ..buffer import Buffer, BufferRegion
from ..expr import CommReducer, IterVar, PointerType, PrimExpr, PrimType, Range, TupleType, Type, Var
from ..function import GlobalVar, IRModule, PrimFunc
from ..global_info import GlobalInfo
from ..node import Object
from ..rewriting import walk
from ..scopes import buffer_vars, uses
from ..stmt import Stmt
from .blocks import region_text, write_match
from .expressions import quoted, script_value
from .options import Options
from .placement import Placement, place
from .program import info_text, script_function, script_module
from .statements import StatementPrinter
from .text import Names


def script_node(node: Any, **options: Any) -> str:
    """A node as TVMScript.

    Args:
        options: the fields of `Options`.

    Raises:
        TypeError: for an option that is none.
    """
    bound = Options(**options).bind(node)
    return bound.finished(_text(node, bound))


def _text(node: Any, options: Options) -> str:
    graph = Object._printers.get("graph")  # which graphs enter, once there are any
    text = None if graph is None else graph(node, options)
    if text is not None:
        return text
    if isinstance(node, PrimFunc):
        return script_function(node, options)
    if isinstance(node, IRModule):
        return script_module(node, options)
    if isinstance(node, Stmt):
        return script_stmt(node, options)
    if isinstance(node, MatchBufferRegion):
        printer = _declaring(options, [node.source.buffer], _variables_of(node.source))
        write_match(printer, node)
        return "\n".join(printer.lines)
    if isinstance(node, Type):
        return type_text(node)
    if isinstance(node, GlobalInfo):
        return info_text(node, Names(options))
    if isinstance(node, GlobalVar):
        return f"I.GlobalVar({quoted(node.name_hint)})"
    return _value(node, options)


def _value(node: Any, options: Options) -> str:
    """An expression, buffer, axis, region or range; in verbose mode what it mentions is declared in front of it."""
    variables, buffers = _mentioned(node)
    printer = _declaring(options, buffers, variables) if options.verbose_expr else StatementPrinter(Names(options), Placement())
    if isinstance(node, BufferRegion):
        text = region_text(printer, node)
    elif isinstance(node, Range):
        text = f"I.Range({', '.join(printer.ends(node))})"
    else:
        text = printer.marked(node, script_value(node, printer.names)) if isinstance(node, Buffer) else script_value(node, printer.names)
    return "\n".join([*printer.lines, text])


def script_stmt(stmt: Stmt, options: Options | None = None) -> str:
    """A statement; what it uses but does not define is declared in front."""
    printer = StatementPrinter(Names(options), place(stmt, ()))
    printer.write(stmt, last=False)
    return "\n".join(printer.lines)


def _declaring(options: Options, buffers: Iterable[Buffer], variables: Iterable[Var]) -> StatementPrinter:
    """A printer that has declared variables, and buffers with the variables in their shapes."""
    printer = StatementPrinter(Names(options), Placement())
    known = list(buffers)
    for var in (*variables, *(v for buffer in known for v in buffer_vars(buffer))):
        if var not in printer.names and not any(var is buffer.data for buffer in known):
            printer.declare_var(var)
    for buffer in known:
        printer.declare_buffer(buffer)
    return printer


def _mentioned(node: Any) -> tuple[list[Var], list[Buffer]]:
    """The variables and the buffers that a value mentions, in order."""
    exprs = list(_expressions(node))
    buffers = [node] if isinstance(node, Buffer) else [node.buffer] if isinstance(node, BufferRegion) else []
    variables: list[Var] = []
    for expr in exprs:
        found = uses(expr)
        buffers += [buffer for buffer in found[1] if buffer not in buffers]
        variables += [v for v in walk(expr) if isinstance(v, Var) and not any(v is w for w in variables)]
    return [v for v in variables if not any(v is b.data for b in buffers)], buffers


def _expressions(node: Any) -> Iterator[PrimExpr]:
    if isinstance(node, PrimExpr):
        yield node
    elif isinstance(node, Range):
        yield from (node.min, node.extent)
    elif isinstance(node, IterVar):
        yield node.var
        yield from _expressions(node.dom)
    elif isinstance(node, BufferRegion):
        yield from _variables_of(node)
    elif isinstance(node, CommReducer):
        yield from ()


def _variables_of(region: BufferRegion) -> list[Var]:
    return [v for r in region.region for expr in (r.min, r.extent) for v in walk(expr) if isinstance(v, Var)]


def type_text(node: Type) -> str:
    """A type: ``T.float32``, ``T.handle("float32", "global")``, ``T.Tuple(T.float32, T.int32)``."""
    if isinstance(node, PrimType):
        return f"T.{node.dtype}"
    if isinstance(node, TupleType):
        return f"T.Tuple({', '.join(map(type_text, node.fields))})" if node.fields else "None"
    if not isinstance(node, PointerType):
        return repr(node)
    return f"T.handle({quoted(node.element_type.dtype)}, {quoted(node.storage_scope or 'global')})"
