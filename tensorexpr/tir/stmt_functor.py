"""Visitors and rewrites for user passes, by the names that passes of the TE era call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from ..errors import DeclarationError
from .analysis import undefined_vars
from .arithmetic import convert, fold
from .block import Block, MatchBufferRegion
from .buffer import Buffer, BufferRegion
from .expr import BufferLoad, IterVar, Let, PrimExpr, Range, Var
from .function import PrimFunc
from .rewriting import Node, children, post_order_rewrite, walk
from .scopes import buffer_vars, parts
from .stmt import BufferBind, BufferRealize, BufferStore, DeclBuffer, SeqStmt, Stmt
from .stmt import seq as stmt_seq

_N = TypeVar("_N", PrimExpr, Stmt)


def post_order_visit(stmt: Node, fvisit: Callable[[Node], Any]) -> None:
    """Call `fvisit` on every distinct node of `stmt`, children before parents."""
    for node in walk(stmt):
        fvisit(node)


def pre_order_visit(stmt: Node, fvisit: Callable[[Node], bool]) -> None:
    """Call `fvisit` on the nodes of `stmt`, parents first; where it returns False, the children are left out."""
    stack: list[Node] = [stmt]
    # No set of seen nodes: a shared expression is visited at each of its places.
    while stack:
        node = stack.pop()
        if fvisit(node):
            stack.extend(reversed(children(node)))


def ir_transform(
    stmt: Stmt,
    preorder: Callable[[Node], Node | None] | None,
    postorder: Callable[[Node], Node | None] | None,
    only_enable: Iterable[str | type] | None = None,
) -> Stmt:
    """Rewrite a statement.

    Args:
        preorder: called before a node's children; a node that it returns replaces the whole subtree.
        postorder: called with the node after its children have been rewritten; None keeps the node.
        only_enable: classes, or names such as "tir.For", of the nodes that both are called on; None means all.
    """
    names = None if only_enable is None else {_class_name(kind) for kind in only_enable}
    replaced: list[Node] = []

    def enabled(node: Node) -> bool:
        return names is None or type(node).__name__ in names

    def into(node: Node) -> bool:
        new = preorder(node) if preorder is not None and enabled(node) else None
        if new is not None:
            replaced.append(new)
        return new is None

    def rule(node: Node) -> Node | None:
        # It is asked right after an `into` that said no. Not by the node: y + 1 may become an x + 1 that stands elsewhere, too.
        if replaced:
            return replaced.pop()
        return postorder(node) if postorder is not None and enabled(node) else None

    return post_order_rewrite(stmt, rule, into)


def _class_name(kind: str | type) -> str:
    return kind.removeprefix("tir.") if isinstance(kind, str) else kind.__name__


def substitute(node: _N, vmap: Mapping[Any, Any]) -> _N:
    """`node` with free variables replaced, all at once, in expressions and in the buffers that they shape.

    A variable that `node` itself defines, such as the variable of a loop in it, stays.

    Args:
        vmap: variables or axes -> expressions or numbers.

    Raises:
        DeclarationError: if a key is no variable, if a key is both free and defined in `node`, or if a buffer's
            pointer would become something else than a variable.
    """
    mapping: dict[Var, PrimExpr] = {}
    for key, value in vmap.items():
        var = key.var if isinstance(key, IterVar) else key
        if not isinstance(var, Var):
            raise DeclarationError(f"substitute replaces variables, not {key!r}")
        mapping[var] = convert(value)
    for var in _defined(node):
        # A walk of its own, only for the few keys that are defined inside at all.
        if var in mapping and var in undefined_vars(node):
            raise DeclarationError(f"{var.name} is defined in a part of what it is to be replaced in, and free in another; rename one")
        mapping.pop(var, None)
    return Renaming(mapping, folding=True).apply(node) if mapping else node


def renew_defs(func: PrimFunc) -> PrimFunc:
    """`func` with a fresh variable for each definition, so that both can stand in one program."""
    buffers = list(func.buffer_map.values())
    outside = (*func.params, *(b.data for b in buffers), *(v for b in buffers for v in buffer_vars(b)))
    defined = [*outside, *_defined(func.body)]
    # `type(var)` keeps a SizeVar one, whose bound at 0 simplifiers use.
    fresh = {var: type(var)(var.name, var.dtype, var.type_annotation) for var in dict.fromkeys(defined)}
    renaming = Renaming(dict(fresh), folding=False)
    buffer_map = {fresh[param]: renaming.buffer(buffer) for param, buffer in func.buffer_map.items()}
    params = tuple(fresh[param] for param in func.params)
    return replace(func, params=params, body=renaming.apply(func.body), buffer_map=buffer_map)


def _defined(node: Node) -> list[Var]:
    """The variables that statements and `Let`s in `node` define."""
    defined: list[Var] = []
    for inner in walk(node):
        if isinstance(inner, Let):
            defined.append(inner.var)
        elif isinstance(inner, Stmt):
            defined += parts(inner).defines
    return defined


class Renaming:
    """Replaces variables everywhere in a node, definitions and buffers included."""

    def __init__(self, mapping: Mapping[Var, PrimExpr], folding: bool, buffers: Mapping[Buffer, Buffer] | None = None) -> None:
        self._mapping = mapping
        self._folding = folding
        self._buffers: dict[Buffer, Buffer] = dict(buffers or {})

    def apply(self, node: _N) -> _N:
        """`node` with everything replaced."""
        return post_order_rewrite(node, self._rule)

    def _rule(self, node: Node) -> Node | None:
        if isinstance(node, Var):
            return self._mapping.get(node)
        if isinstance(node, (BufferLoad, BufferStore, BufferRealize, DeclBuffer)):
            buffer = self.buffer(node.buffer)
            return None if buffer is node.buffer else cast(Node, replace(cast(Any, node), buffer=buffer))
        if isinstance(node, PrimExpr):
            return fold(node) if self._folding else None
        if isinstance(node, Block):
            return self._block(node)
        if isinstance(node, BufferBind):
            source = BufferRegion(self.buffer(node.source.buffer), node.source.region)
            return replace(node, buffer=self.buffer(node.buffer), source=source)
        return self._attribute(node)

    def _attribute(self, stmt: Stmt) -> Stmt | None:
        """Axes and buffers that a statement names besides its expressions."""
        changed: dict[str, Any] = {}
        for name in ("node", "thread_binding"):
            old = getattr(stmt, name, None)
            if isinstance(old, IterVar):
                changed[name] = self._axis(old)
            elif isinstance(old, Buffer):
                changed[name] = self.buffer(old)
        changed = {name: new for name, new in changed.items() if new is not getattr(stmt, name)}
        return cast(Stmt, replace(cast(Any, stmt), **changed)) if changed else None

    def _block(self, node: Block) -> Block | None:
        """A block whose expressions are replaced already: its buffers, and those of its regions."""
        changed: dict[str, Any] = {
            "reads": tuple(map(self._region, node.reads)),
            "writes": tuple(map(self._region, node.writes)),
            "alloc_buffers": tuple(map(self.buffer, node.alloc_buffers)),
            "match_buffers": tuple(map(self._match, node.match_buffers)),
        }
        same = all(new is old for name, items in changed.items() for new, old in zip(items, getattr(node, name), strict=True))
        return None if same else replace(node, **changed)

    def _region(self, region: BufferRegion) -> BufferRegion:
        buffer = self.buffer(region.buffer)
        return region if buffer is region.buffer else BufferRegion(buffer, region.region)

    def _match(self, match: MatchBufferRegion) -> MatchBufferRegion:
        buffer, source = self.buffer(match.buffer), self._region(match.source)
        return match if buffer is match.buffer and source is match.source else MatchBufferRegion(buffer, source)

    def _axis(self, axis: IterVar) -> IterVar:
        var = self._mapping.get(axis.var, axis.var)
        if not isinstance(var, Var):  # an axis is no expression: it keeps its variable, and only what uses it changes
            return axis
        if axis.dom is None:
            return axis if var is axis.var else replace(axis, var=var)
        low, extent = self.apply(axis.dom.min), self.apply(axis.dom.extent)
        same = var is axis.var and low is axis.dom.min and extent is axis.dom.extent
        return axis if same else replace(axis, var=var, dom=Range.from_min_extent(low, extent))

    def buffer(self, old: Buffer) -> Buffer:
        """A buffer with its variables replaced; one new buffer for each old one."""
        new = self._buffers.get(old)
        if new is None:
            data = self._mapping.get(old.data, old.data)
            if not isinstance(data, Var):
                raise DeclarationError(f"buffer {old.name} stands on the variable {old.data.name}, which can't become {data}")
            shape, strides = tuple(map(self.apply, old.shape)), tuple(map(self.apply, old.strides))
            parts_new = (data, *shape, *strides, self.apply(old.elem_offset))
            parts_old = (old.data, *old.shape, *old.strides, old.elem_offset)
            if all(a is b for a, b in zip(parts_new, parts_old, strict=True)):
                new = old
            else:
                new = replace(old, data=data, shape=shape, strides=strides, elem_offset=parts_new[-1])
            self._buffers[old] = new
        return new


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence; a single one is a list of itself."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "stmt_list", "stmt_seq", "substitute"]
