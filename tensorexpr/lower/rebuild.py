"""Rebuilding programs: one level at a time, by substitution, and as copies with fresh names.

`map_expr` and `map_stmt` apply functions to the direct children and keep identity when nothing changed; a pass is a
recursive function that handles the nodes it cares about and hands the rest to them. The recursion limit is raised
around passes, so deep programs are fine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from ..errors import InternalError
from ..tir import expr as nodes
from ..tir.arithmetic import fold
from ..tir.block import Block, BlockRealize, MatchBufferRegion
from ..tir.buffer import Buffer, BufferRegion
from ..tir.expr import BinaryExpr, BufferLoad, CmpExpr, IntImm, Let, LogicalExpr, PointerType, PrimExpr, Range, Var
from ..tir.pointers import pointer_scope as pointer_scope
from ..tir.stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferBind,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
    seq,
)  # fmt: skip

ExprFn = Callable[[PrimExpr], PrimExpr]
StmtFn = Callable[[Stmt], Stmt]

_LEAVES = (nodes.Var, nodes.SizeVar, nodes.IntImm, nodes.FloatImm, nodes.StringImm)
_BINARY: list[type[PrimExpr]] = [*BinaryExpr.__subclasses__(), *CmpExpr.__subclasses__(), *LogicalExpr.__subclasses__()]


def _load_operands(load: Any) -> tuple[PrimExpr, ...]:
    return load.indices if load.predicate is None else (*load.indices, load.predicate)


# How to take each kind of expression apart, and how to make it again from operands.
_OPERANDS: dict[type[PrimExpr], Callable[[Any], tuple[PrimExpr, ...]]] = {
    **{kind: lambda e: () for kind in _LEAVES},
    **{kind: lambda e: (e.a, e.b) for kind in _BINARY},
    nodes.Not: lambda e: (e.a,),
    nodes.Cast: lambda e: (e.value,),
    nodes.Broadcast: lambda e: (e.value,),
    nodes.Ramp: lambda e: (e.base, e.stride),
    nodes.Select: lambda e: (e.condition, e.true_value, e.false_value),
    nodes.Let: lambda e: (e.value, e.body),
    nodes.Call: lambda e: e.args,
    nodes.Shuffle: lambda e: e.vectors,
    nodes.BufferLoad: _load_operands,
    nodes.ProducerLoad: lambda e: e.indices,
}
_REMAKE: dict[type[PrimExpr], Callable[[Any, list[PrimExpr]], PrimExpr]] = {
    **{kind: lambda e, new: type(e)(*new) for kind in _BINARY},
    nodes.Not: lambda e, new: nodes.Not(new[0]),
    nodes.Select: lambda e, new: nodes.Select(new[0], new[1], new[2]),
    nodes.Cast: lambda e, new: nodes.Cast(e.dtype, new[0]),
    nodes.Broadcast: lambda e, new: nodes.Broadcast(new[0], e.lanes),
    nodes.Ramp: lambda e, new: nodes.Ramp(new[0], new[1], e.lanes),
    nodes.Let: lambda e, new: Let(e.var, new[0], new[1]),
    nodes.Call: lambda e, new: nodes.Call(e.dtype, e.op, tuple(new)),
    nodes.Shuffle: lambda e, new: nodes.Shuffle(tuple(new), e.indices),
    nodes.BufferLoad: lambda e, new: BufferLoad(e.buffer, tuple(new[: len(e.indices)]), new[-1] if e.predicate is not None else None),
    nodes.ProducerLoad: lambda e, new: nodes.ProducerLoad(e.producer, tuple(new)),
}
_STMT_FIELDS: dict[type[Stmt], tuple[tuple[str, ...], tuple[str, ...]]] = {  # the fields that hold expressions, and statements
    For: (("min", "extent"), ("body",)),
    While: (("condition",), ("body",)),
    BufferStore: (("value", "indices", "predicate"), ()),
    BufferBind: (("source",), ("body",)),
    BufferRealize: (("bounds", "condition"), ("body",)),
    ProducerStore: (("value", "indices"), ()),
    ProducerRealize: (("bounds", "condition"), ("body",)),
    Allocate: (("extents", "condition"), ("body",)),
    AllocateConst: ((), ("body",)),
    DeclBuffer: ((), ("body",)),
    SeqStmt: ((), ("seq",)),
    IfThenElse: (("condition",), ("then_case", "else_case")),
    LetStmt: (("value",), ("body",)),
    AssertStmt: (("condition",), ("body",)),
    AttrStmt: (("value",), ("body",)),
    Evaluate: (("value",), ()),
    Prefetch: (("bounds",), ()),
    BlockRealize: (("iter_values", "predicate"), ("block",)),
    Block: (("iter_vars", "reads", "writes", "match_buffers"), ("init", "body")),
}


def _map_field(old: Any, rewrite: Callable[[Any], Any]) -> Any:
    if old is None:
        return None
    if isinstance(old, tuple):
        new = tuple(_map_field(item, rewrite) for item in old)
        return old if all(map(_same, new, old)) else new
    if isinstance(old, Range):
        low, extent = rewrite(old.min), rewrite(old.extent)
        return old if low is old.min and extent is old.extent else Range.from_min_extent(low, extent)
    if isinstance(old, BufferRegion):
        region = _map_field(old.region, rewrite)
        return old if region is old.region else BufferRegion(old.buffer, region)
    if isinstance(old, MatchBufferRegion):
        source = _map_field(old.source, rewrite)
        return old if source is old.source else MatchBufferRegion(old.buffer, source)
    if isinstance(old, nodes.IterVar):
        dom = _map_field(old.dom, rewrite)
        return old if dom is old.dom else replace(old, dom=dom)
    return rewrite(old)


def _same(a: object, b: object) -> bool:
    return a is b


def operands(expr: PrimExpr) -> tuple[PrimExpr, ...]:
    """The direct operands of an expression."""
    kind = _OPERANDS.get(type(expr))
    if kind is None:
        raise InternalError(f"lowering met a {type(expr).__name__}, which is no part of the loop IR")
    return kind(expr)


def map_expr(expr: PrimExpr, rewrite: ExprFn) -> PrimExpr:
    """`expr` with `rewrite` applied to its operands; the node itself if none changed. Nothing is folded."""
    old = operands(expr)
    new = [rewrite(operand) for operand in old]
    for before, after in zip(old, new, strict=True):
        if before is not after:
            # Not through the builders, which would fold: callers rely on getting the same kind of node.
            return _REMAKE[type(expr)](expr, new)
    return expr


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
    result: Stmt = _replaced(stmt, exprs, on_expr) if on_expr is not None and exprs else stmt
    changed: dict[str, Stmt] = {}
    for name in stmts:
        old = getattr(stmt, name)
        if old is not None:
            moved = on_stmt(old)
            if moved is not old:
                changed[name] = moved
    return cast(Stmt, replace(cast(Any, result), **changed)) if changed else result


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


def _flat(value: Any) -> Iterator[PrimExpr]:
    if isinstance(value, PrimExpr):
        yield value
    elif isinstance(value, Range):
        yield value.min
        yield value.extent
    elif isinstance(value, BufferRegion):
        yield from _flat(value.region)
    elif isinstance(value, MatchBufferRegion):
        yield from _flat(value.source)
    elif isinstance(value, nodes.IterVar):
        yield from _flat(value.dom)
    elif isinstance(value, tuple):
        for item in value:
            yield from _flat(item)


def walk_statements(stmt: Stmt) -> Iterator[Stmt]:
    """Every statement below and including `stmt`, parents first, in program order."""
    stack = [stmt]
    while stack:
        current = stack.pop()
        yield current
        # A stack pops the last one first.
        stack.extend(reversed(list(sub_statements(current))))


def loads_in(exprs: Iterable[PrimExpr]) -> Iterator[BufferLoad]:
    """Every distinct load below and including some expressions."""
    stack, seen = list(exprs), set[PrimExpr]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            if isinstance(expr, BufferLoad):
                yield expr
            stack.extend(operands(expr))


def with_values(stmt: Stmt, values: Mapping[PrimExpr, PrimExpr]) -> Stmt:
    """`stmt` with other expressions in place of some."""
    known = dict(values)

    def on_expr(expr: PrimExpr) -> PrimExpr:
        found = known.get(expr)
        if found is None:
            found = known[expr] = map_expr(expr, on_expr)
        return found

    def on_stmt(inner: Stmt) -> Stmt:
        return map_stmt(inner, on_stmt, on_expr)

    return on_stmt(stmt)


class FreeVars:
    """The free variables of expressions, the data variables of loaded buffers included; each expression is computed once."""

    def __init__(self) -> None:
        self._known: dict[PrimExpr, frozenset[Var]] = {}
        self._memory: dict[PrimExpr, bool] = {}

    def __call__(self, expr: PrimExpr) -> frozenset[Var]:
        """The free variables of `expr`."""
        known = self._known
        found = known.get(expr)
        if found is not None:
            return found
        stack = [expr]
        while stack:
            # A stack of its own: sums of thousands of terms would be as deep a recursion.
            waiting = [operand for operand in operands(stack[-1]) if operand not in known]
            if waiting:
                stack += waiting
            else:
                node = stack.pop()
                known[node] = self._compute(node)
        return known[expr]

    def _compute(self, expr: PrimExpr) -> frozenset[Var]:
        """The free variables, from those of the operands."""
        if isinstance(expr, Var):
            return frozenset((expr,))
        parts = [self._known[operand] for operand in operands(expr)]
        found = parts[0].union(*parts[1:]) if parts else frozenset()
        if isinstance(expr, BufferLoad):
            # A load depends on its memory as on a variable: a store to it is then a change like any other.
            return found | {expr.buffer.data}
        # The variable is bound in the body, not in its own value.
        return (parts[1] - {expr.var}) | parts[0] if isinstance(expr, Let) else found

    def touches_memory(self, expr: PrimExpr) -> bool:
        """True if `expr` loads from a buffer or holds a pointer."""
        found = self._memory.get(expr)
        if found is None:
            found = self._memory[expr] = any(var.dtype == "handle" for var in self(expr))
        return found


class Copier:
    """Copies code with variables replaced and every variable bound inside renamed, so that a program stays in SSA form.

    One copier makes one copy: the memo relies on each variable having one meaning throughout.
    """

    def __init__(self, mapping: dict[Var, PrimExpr], buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        self.mapping = dict(mapping)
        self._exprs: dict[PrimExpr, PrimExpr] = {}
        self._buffers: dict[Buffer, Buffer] = dict(buffers or {})  # their data must be in `mapping`

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The copy of an expression, folded where constants met."""
        if isinstance(expr, Var):
            # Not from the memo: the mapping grows as the copy meets bindings.
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
        # What didn't change was folded, or left as it is on purpose, where it was made.
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
        if buffer not in self._buffers:  # perhaps another view of bound memory, with the same strides and offset
            shape, strides = tuple(map(self.expr, buffer.shape)), tuple(map(self.expr, buffer.strides))
            self._buffers[buffer] = replace(
                buffer, data=cast(Var, data), shape=shape, strides=strides, elem_offset=self.expr(buffer.elem_offset)
            )
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
            case AllocateConst():
                return replace(stmt, buffer_var=cast(Var, self._fresh(stmt.buffer_var)), body=self.stmt(stmt.body))
            case LetStmt():
                value = self.expr(stmt.value)
                return LetStmt(cast(Var, self._fresh(stmt.var)), value, self.stmt(stmt.body))
            case BufferRealize() | DeclBuffer():
                if isinstance(stmt, BufferRealize):
                    self._fresh(stmt.buffer.data)
                copied = map_stmt(stmt, lambda s: s, self.expr)
                return cast(Stmt, replace(cast(Any, copied), buffer=self.buffer(stmt.buffer), body=self.stmt(stmt.body)))
            case BufferBind():
                return self._bind(stmt)
            case Block():
                return self._block(stmt)
            case IfThenElse():
                return self._branch(stmt)
            case BufferStore():
                value, indices = self.expr(stmt.value), tuple(map(self.expr, stmt.indices))
                return BufferStore(self.buffer(stmt.buffer), value, indices, None if stmt.predicate is None else self.expr(stmt.predicate))
            case _:
                return map_stmt(stmt, self.stmt, self.expr)

    def _bind(self, stmt: BufferBind) -> Stmt:
        region = tuple(Range.from_min_extent(self.expr(r.min), self.expr(r.extent)) for r in stmt.source.region)
        source, bound = BufferRegion(self.buffer(stmt.source.buffer), region), stmt.buffer
        for var in stmt.defines():
            self._fresh(var)
        shape, strides = tuple(map(self.expr, bound.shape)), tuple(map(self.expr, bound.strides))
        data, offset = cast(Var, self.mapping[bound.data]), self.expr(bound.elem_offset)
        self._buffers[bound] = replace(bound, data=data, shape=shape, strides=strides, elem_offset=offset)
        return BufferBind(self._buffers[bound], source, self.stmt(stmt.body))

    def _block(self, stmt: Block) -> Block:
        axes = tuple(replace(axis, dom=_map_field(axis.dom, self.expr), var=cast(Var, self._fresh(axis.var))) for axis in stmt.iter_vars)
        for var in stmt.defines()[len(axes) :]:
            self._fresh(var)
        for buffer in (*stmt.alloc_buffers, *(match.buffer for match in stmt.match_buffers)):
            shape, strides = tuple(map(self.expr, buffer.shape)), tuple(map(self.expr, buffer.strides))
            data, offset = cast(Var, self.mapping[buffer.data]), self.expr(buffer.elem_offset)
            self._buffers[buffer] = replace(buffer, data=data, shape=shape, strides=strides, elem_offset=offset)
        return Block(
            axes,
            tuple(map(self._region, stmt.reads)),
            tuple(map(self._region, stmt.writes)),
            stmt.name_hint,
            self.stmt(stmt.body),
            None if stmt.init is None else self.stmt(stmt.init),
            tuple(map(self.buffer, stmt.alloc_buffers)),
            tuple(MatchBufferRegion(self.buffer(match.buffer), self._region(match.source)) for match in stmt.match_buffers),
            stmt.annotations,
        )

    def _region(self, region: BufferRegion) -> BufferRegion:
        return BufferRegion(self.buffer(region.buffer), _map_field(region.region, self.expr))

    def _branch(self, stmt: IfThenElse) -> Stmt:
        condition = self.expr(stmt.condition)
        # The branch that isn't taken isn't copied: there an index may be out of bounds for these constants.
        if isinstance(condition, IntImm):
            taken = stmt.then_case if condition.value else stmt.else_case
            return NOP if taken is None else self.stmt(taken)
        return IfThenElse(condition, self.stmt(stmt.then_case), None if stmt.else_case is None else self.stmt(stmt.else_case))


def substituted(expr: PrimExpr, mapping: dict[Var, PrimExpr]) -> PrimExpr:
    """`expr` with variables replaced, folded where constants met."""
    return Copier(mapping).expr(expr) if mapping else expr


def pointer_like(var: Var, scope: str, element: str) -> Var:
    """A fresh data variable named as `var`, for elements of another type in another scope."""
    return Var(var.name, "handle", PointerType(nodes.PrimType(element), scope))
