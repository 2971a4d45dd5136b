"""Rebuilding programs: one level at a time, by substitution, and as copies with fresh names.

`map_expr` and `map_stmt` apply functions to the direct children and keep identity when nothing changed; a pass is a
recursive function that handles the nodes it cares about and hands the rest to them. The recursion limit is raised
around passes, so deep programs are fine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, cast

from ..errors import InternalError
from ..tir import expr as nodes
from ..tir.arithmetic import fold
from ..tir.buffer import Buffer
from ..tir.expr import BinaryExpr, BufferLoad, CmpExpr, Let, LogicalExpr, PointerType, PrimExpr, Range, Var
from ..tir.stmt import (
    Allocate, AssertStmt, AttrStmt, BufferRealize, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt, SeqStmt, Stmt, While,
    seq,
)  # fmt: skip

ExprFn = Callable[[PrimExpr], PrimExpr]
StmtFn = Callable[[Stmt], Stmt]

_LEAVES = (nodes.Var, nodes.SizeVar, nodes.IntImm, nodes.FloatImm, nodes.StringImm)
_ONE_CHILD: dict[type[PrimExpr], str] = {nodes.Not: "a", nodes.Cast: "value", nodes.Broadcast: "value"}
_EXPR_FIELDS: dict[type[PrimExpr], tuple[str, ...]] = {
    nodes.Select: ("condition", "true_value", "false_value"),
    nodes.BufferLoad: ("indices", "predicate"),
    nodes.ProducerLoad: ("indices",),
    nodes.Ramp: ("base", "stride"),
    nodes.Shuffle: ("vectors",),
    nodes.Let: ("value", "body"),
    nodes.Call: ("args",),
}
_STMT_FIELDS: dict[type[Stmt], tuple[tuple[str, ...], tuple[str, ...]]] = {  # the fields that hold expressions, and statements
    For: (("min", "extent"), ("body",)),
    While: (("condition",), ("body",)),
    BufferStore: (("value", "indices", "predicate"), ()),
    BufferRealize: (("bounds", "condition"), ("body",)),
    Allocate: (("extents", "condition"), ("body",)),
    DeclBuffer: ((), ("body",)),
    SeqStmt: ((), ("seq",)),
    IfThenElse: (("condition",), ("then_case", "else_case")),
    LetStmt: (("value",), ("body",)),
    AssertStmt: (("condition",), ("body",)),
    AttrStmt: (("value",), ("body",)),
    Evaluate: (("value",), ()),
}


def _map_field(old: Any, rewrite: Callable[[Any], Any]) -> Any:
    if old is None:
        return None
    if isinstance(old, tuple):
        new = tuple(_map_field(item, rewrite) for item in old)
        return old if all(map(_same, new, old)) else new
    if isinstance(old, Range):
        low, extent = rewrite(old.min), rewrite(old.extent)
        return old if low is old.min and extent is old.extent else Range(low, extent)
    return rewrite(old)


def _same(a: object, b: object) -> bool:
    return a is b


def map_expr(expr: PrimExpr, rewrite: ExprFn) -> PrimExpr:
    """`expr` with `rewrite` applied to its operands; the node itself if none changed. Nothing is folded."""
    kind = type(expr)
    if isinstance(expr, (BinaryExpr, CmpExpr, LogicalExpr)):
        a, b = rewrite(expr.a), rewrite(expr.b)
        return expr if a is expr.a and b is expr.b else kind(a, b)  # type: ignore[call-arg]
    if kind in _LEAVES:
        return expr
    if kind in _ONE_CHILD:
        name = _ONE_CHILD[kind]
        old = getattr(expr, name)
        new = rewrite(old)
        return expr if new is old else replace(cast(Any, expr), **{name: new})
    names = _EXPR_FIELDS.get(kind)
    if names is None:
        raise InternalError(f"lowering met a {kind.__name__}, which is no part of the loop IR")
    return _replaced(expr, names, rewrite)


def _replaced(node: Any, names: Iterable[str], rewrite: Callable[[Any], Any]) -> Any:
    changed: dict[str, Any] = {}
    for name in names:
        old = getattr(node, name)
        new = _map_field(old, rewrite)
        if new is not old:
            changed[name] = new
    if not changed:
        return node
    values = {f.name: getattr(node, f.name) for f in fields(node) if f.init}
    return type(node)(**{**values, **changed})


def map_stmt(stmt: Stmt, on_stmt: StmtFn, on_expr: ExprFn | None = None) -> Stmt:
    """`stmt` with its sub-statements through `on_stmt` and its expressions through `on_expr`; itself if none changed."""
    exprs, stmts = _STMT_FIELDS[type(stmt)]
    if isinstance(stmt, SeqStmt):
        new = [on_stmt(s) for s in stmt.seq]
        return stmt if all(map(_same, new, stmt.seq)) else seq(*new)
    result = _replaced(stmt, exprs, on_expr) if on_expr is not None and exprs else stmt
    changed: dict[str, Stmt] = {}
    for name in stmts:
        old = getattr(stmt, name)
        if old is not None:
            moved = on_stmt(old)
            if moved is not old:
                changed[name] = moved
    return replace(result, **changed) if changed else result


def sub_statements(stmt: Stmt) -> Iterator[Stmt]:
    """The statements directly inside `stmt`, in order."""
    if isinstance(stmt, SeqStmt):
        yield from stmt.seq
        return
    for name in _STMT_FIELDS[type(stmt)][1]:
        inner = getattr(stmt, name)
        if inner is not None:
            yield inner


def own_expressions(stmt: Stmt) -> Iterator[PrimExpr]:
    """The expressions that stand directly in `stmt`."""
    for name in _STMT_FIELDS[type(stmt)][0]:
        yield from _flat(getattr(stmt, name))


def operands(expr: PrimExpr) -> Iterator[PrimExpr]:
    """The direct operands of an expression."""
    if isinstance(expr, (BinaryExpr, CmpExpr, LogicalExpr)):
        yield expr.a
        yield expr.b
    elif type(expr) in _ONE_CHILD:
        yield getattr(expr, _ONE_CHILD[type(expr)])
    else:
        for name in _EXPR_FIELDS.get(type(expr), ()):
            yield from _flat(getattr(expr, name))


def _flat(value: Any) -> Iterator[PrimExpr]:
    if isinstance(value, PrimExpr):
        yield value
    elif isinstance(value, Range):
        yield value.min
        yield value.extent
    elif isinstance(value, tuple):
        for item in value:
            yield from _flat(item)


def walk_statements(stmt: Stmt) -> Iterator[Stmt]:
    """Every statement below and including `stmt`, parents first, in program order."""
    stack = [stmt]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(sub_statements(current))))


class FreeVars:
    """The free variables of expressions, the data variables of loaded buffers included; each expression is computed once."""

    def __init__(self) -> None:
        self._known: dict[PrimExpr, frozenset[Var]] = {}

    def __call__(self, expr: PrimExpr) -> frozenset[Var]:
        """The free variables of `expr`."""
        found = self._known.get(expr)
        if found is None:
            if isinstance(expr, Var):
                found = frozenset((expr,))
            else:
                found = frozenset().union(*(self(operand) for operand in operands(expr)))
                if isinstance(expr, Let):
                    found -= {expr.var}
                    found |= self(expr.value)
                elif isinstance(expr, BufferLoad):
                    found |= {expr.buffer.data}
            self._known[expr] = found
        return found


class Copier:
    """Copies code with variables replaced and every variable bound inside renamed, so that a program stays in SSA form.

    One copier makes one copy: the memo relies on each variable having one meaning throughout.
    """

    def __init__(self, mapping: dict[Var, PrimExpr]) -> None:
        self.mapping = dict(mapping)
        self._exprs: dict[PrimExpr, PrimExpr] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The copy of an expression, folded where constants met."""
        if isinstance(expr, Var):
            return self.mapping.get(expr, expr)
        known = self._exprs.get(expr)
        if known is None:
            known = self._exprs[expr] = self._copied(expr)
        return known

    def _copied(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, Let):
            value = self.expr(expr.value)
            return Let(cast(Var, self._fresh(expr.var, value.dtype)), value, self.expr(expr.body))
        result = map_expr(expr, self.expr)
        if isinstance(result, BufferLoad):
            buffer = self.buffer(result.buffer)
            return result if buffer is result.buffer else BufferLoad(buffer, result.indices, result.predicate)
        folded = None if result is expr else fold(result)
        return result if folded is None else folded

    def _fresh(self, var: Var, dtype: str | None = None) -> PrimExpr:
        new = type(var)(var.name, dtype or var.dtype, var.type_annotation)
        self.mapping[var] = new
        return new

    def buffer(self, buffer: Buffer) -> Buffer:
        """The copy of a buffer whose memory was allocated inside the copied code; others stay."""
        data = self.mapping.get(buffer.data)
        if data is None:
            return buffer
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(buffer, data=cast(Var, data))
        return self._buffers[buffer]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The copy of a statement."""
        match stmt:
            case For():
                low, extent = self.expr(stmt.min), self.expr(stmt.extent)
                var = cast(Var, self._fresh(stmt.loop_var))
                return For(var, low, extent, stmt.kind, self.stmt(stmt.body), stmt.thread_binding, stmt.annotations)
            case Allocate():
                copied = map_stmt(stmt, lambda s: s, self.expr)
                var = cast(Var, self._fresh(stmt.buffer_var))
                return replace(cast(Allocate, copied), buffer_var=var, body=self.stmt(stmt.body))
            case LetStmt():
                value = self.expr(stmt.value)
                return LetStmt(cast(Var, self._fresh(stmt.var)), value, self.stmt(stmt.body))
            case BufferRealize() | DeclBuffer():
                if isinstance(stmt, BufferRealize):
                    self._fresh(stmt.buffer.data)
                copied = map_stmt(stmt, lambda s: s, self.expr)
                return replace(cast(Any, copied), buffer=self.buffer(stmt.buffer), body=self.stmt(stmt.body))
            case BufferStore():
                value, indices = self.expr(stmt.value), tuple(map(self.expr, stmt.indices))
                return BufferStore(self.buffer(stmt.buffer), value, indices, None if stmt.predicate is None else self.expr(stmt.predicate))
            case _:
                return map_stmt(stmt, self.stmt, self.expr)


def substituted(expr: PrimExpr, mapping: dict[Var, PrimExpr]) -> PrimExpr:
    """`expr` with variables replaced, folded where constants met."""
    return Copier(mapping).expr(expr) if mapping else expr


def pointer_like(var: Var, scope: str, element: str) -> Var:
    """A fresh data variable named as `var`, for elements of another type in another scope."""
    return Var(var.name, "handle", PointerType(nodes.PrimType(element), scope))
