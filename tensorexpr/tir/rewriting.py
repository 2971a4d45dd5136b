"""Walks and rewrites that every pass is made of.

`map_children` rebuilds one node from rewritten children; `post_order_rewrite` does a whole tree bottom-up without
recursion (expressions may be thousands deep). A rule returns None for "no change", and an unchanged subtree keeps
its identity, so `result is node` means that nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar, cast

from .arithmetic import fold
from .block import Block, MatchBufferRegion
from .buffer import BufferRegion
from .expr import BinaryExpr, IntImm, IterVar, Let, PrimExpr, Range, Var
from .stmt import SeqStmt, Stmt, seq

Node = PrimExpr | Stmt
_N = TypeVar("_N", PrimExpr, Stmt, Node)
_fields: dict[type, tuple[str, ...]] = {}


def _field_names(cls: type) -> tuple[str, ...]:
    names = _fields.get(cls)
    if names is None:
        names = _fields[cls] = tuple(f.name for f in fields(cast(Any, cls)) if f.init) if hasattr(cls, "__dataclass_fields__") else ()
    return names


def _parts(value: Any) -> Iterator[Node]:
    """The nodes directly inside a field's value."""
    if isinstance(value, (PrimExpr, Stmt)):
        yield value
    elif isinstance(value, Range):
        yield value.min
        yield value.extent
    elif isinstance(value, BufferRegion):
        yield from _parts(value.region)
    elif isinstance(value, MatchBufferRegion):
        yield from _parts(value.source)
    elif isinstance(value, tuple):
        for item in value:
            yield from _parts(item)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside `node`, in the order of its fields; loop variables are included, buffers are not."""
    inside: list[Node] = []
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, (PrimExpr, Stmt)):
            inside.append(value)
        elif not isinstance(value, (str, int)):  # most of what is no node
            inside.extend(_parts(value))
    return (*(axis.var for axis in node.iter_vars), *node.domains(), *inside) if isinstance(node, Block) else tuple(inside)


def _map_value(value: Any, rewrite: Callable[[Node], Node]) -> Any:
    if isinstance(value, (PrimExpr, Stmt)):
        return rewrite(value)
    if isinstance(value, Range):
        low, extent = rewrite(value.min), rewrite(value.extent)
        return value if low is value.min and extent is value.extent else Range.from_min_extent(cast(PrimExpr, low), cast(PrimExpr, extent))
    if isinstance(value, BufferRegion):
        region = _map_value(value.region, rewrite)
        return value if region is value.region else BufferRegion(value.buffer, region)
    if isinstance(value, MatchBufferRegion):
        source = _map_value(value.source, rewrite)
        return value if source is value.source else MatchBufferRegion(value.buffer, source)
    if isinstance(value, tuple):
        items = tuple(_map_value(item, rewrite) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _map_axis(axis: IterVar, rewrite: Callable[[Node], Node]) -> IterVar:
    """A block's axis with its range rewritten, and its variable if it stays one."""
    dom, var = _map_value(axis.dom, rewrite), rewrite(axis.var)
    if dom is axis.dom and (var is axis.var or not isinstance(var, Var)):
        return axis
    return replace(axis, dom=dom, var=var if isinstance(var, Var) else axis.var)


def map_children(node: _N, rewrite: Callable[[Node], Node]) -> _N:
    """`node` with `rewrite` applied to its direct children; itself if none changed."""
    changed: dict[str, Any] = {}
    for name in _field_names(type(node)):
        old = getattr(node, name)
        new = _map_value(old, rewrite)
        if new is not old:
            changed[name] = new
    if isinstance(node, Block):
        axes = tuple(_map_axis(axis, rewrite) for axis in node.iter_vars)
        if any(new is not old for new, old in zip(axes, node.iter_vars, strict=True)):
            changed["iter_vars"] = axes
    if not changed:
        return node
    if isinstance(node, SeqStmt):
        # `seq` drops statements that became no-ops; SeqStmt itself would refuse the one that may be left.
        return seq(*changed["seq"])
    return cast(_N, replace(cast(Any, node), **changed))


def post_order_rewrite(node: _N, rule: Callable[[Node], Node | None], into: Callable[[Node], bool] | None = None) -> _N:
    """Apply `rule` to every node below and including `node`, children first.

    `rule` gets a node whose children are rewritten already and returns its replacement or None. `into` says
    whether to descend at all. Each distinct node is rewritten once.
    """
    # By id: `node` keeps all that it holds alive, so no id is used twice.
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        # A node that several others hold is on the stack once for each of them.
        if id(current) in done:
            continue
        if not expanded and (into is None or into(current)):
            stack.append((current, True))
            stack.extend((child, False) for child in reversed(children(current)) if id(child) not in done)
            continue
        rebuilt = map_children(current, lambda child: done[id(child)]) if expanded else current
        result = rule(rebuilt)
        done[id(current)] = rebuilt if result is None else result
    return done[id(node)]  # type: ignore[return-value]


def walk(node: Node) -> Iterator[Node]:
    """Every distinct node below and including `node`, children before parents."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        if expanded:
            yield current
        elif id(current) not in seen:
            # Marked when it is taken off, not when put on: an earlier entry would make a shared child follow one of its parents.
            seen.add(id(current))
            stack.append((current, True))
            stack.extend((child, False) for child in reversed(children(current)))


def substitute(node: _N, mapping: Mapping[Var, PrimExpr]) -> _N:
    """`node` with variables replaced, all at once; operators are rebuilt through the folding builders."""
    if not mapping:
        return node

    def rule(n: Node) -> Node | None:
        if isinstance(n, Var):
            # what takes a variable's place isn't looked into, so {x: y, y: x} exchanges them
            return mapping.get(n)
        folded = fold(n) if isinstance(n, PrimExpr) else None
        # What a program says isn't turned round by renaming a variable in it.
        return None if folded is not None and _is_exchanged(folded, n) else folded

    return post_order_rewrite(node, rule)


def _is_exchanged(after: PrimExpr, before: Node) -> bool:
    """Whether two operations differ in nothing but the order of their operands."""
    if not isinstance(after, BinaryExpr) or not isinstance(before, BinaryExpr):
        return False
    return type(after) is type(before) and after.a is before.b and after.b is before.a


def without_lets(node: _N) -> _N:
    """`node` with the values of its `Let` expressions in place of their variables."""
    return post_order_rewrite(node, lambda n: substitute(n.body, {n.var: n.value}) if isinstance(n, Let) else None)


def variables(node: Node) -> set[Var]:
    """The variables that occur in `node`, bound ones included."""
    if isinstance(node, (Var, IntImm)):  # most are
        return {node} if isinstance(node, Var) else set()
    return set(_variables(node)) if isinstance(node, PrimExpr) else {n for n in walk(node) if isinstance(n, Var)}


# the cache keeps its last 4096 expressions alive
@lru_cache(4096)
def _variables(expr: PrimExpr) -> tuple[Var, ...]:
    # A tuple, as all callers share the cached value.
    return tuple({n for n in walk(expr) if isinstance(n, Var)})
