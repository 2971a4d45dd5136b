"""Accesses of a buffer, sent elsewhere: to another buffer, at other indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, PrimExpr, Range, Var
from ...tir.rewriting import Node, children, map_children
from ...tir.scopes import parts
from ...tir.stmt import BufferStore, For, Stmt
from .bindings import loosely
from .diagnostics import PrimitiveError

Indices = tuple[PrimExpr, ...]


@dataclass(frozen=True)
class Redirection:
    """Where accesses of one buffer go: to `new`, at `index(indices, facts)`, and regions to `region(region, facts)`.

    `facts` know the ranges of the loops and axes around. With `data` the pointer itself is replaced too, which is right only
    if both buffers have the same layout. With `exact` the facts know axes of one value too, whose names else stay in indices.
    """

    old: Buffer
    new: Buffer
    index: Callable[[Indices, Analyzer], Indices]
    region: Callable[[tuple[Range, ...], Analyzer], tuple[Range, ...]]
    data: bool = False
    exact: bool = False

    def __call__(self, stmt: Stmt, around: Mapping[Var, Range] | None = None) -> Stmt:
        """The statement with the accesses sent elsewhere.

        Args:
            around: the ranges of the loops and axes around it.
        """
        return _Rewrite(self, Analyzer(around or {})).stmt(stmt)


class _Rewrite:
    def __init__(self, to: Redirection, facts: Analyzer) -> None:
        self._to, self._facts = to, facts

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement, and what is inside of it."""
        with self._facts.scope():
            if isinstance(stmt, For):
                self._bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
            if isinstance(stmt, Block):
                return self._block(stmt)
            made = map_children(stmt, self._child)
        if isinstance(made, BufferStore) and made.buffer is self._to.old:
            return replace(made, buffer=self._to.new, indices=self._to.index(made.indices, self._facts))
        return made

    def _bind(self, var: Var, dom: Range) -> None:
        self._facts.bind(var, dom if self._to.exact else loosely(dom), allow_override=True)

    def _child(self, node: Node) -> Node:
        return self.stmt(node) if isinstance(node, Stmt) else self.expr(node)

    def _block(self, block: Block) -> Stmt:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self._bind(axis.var, axis.dom)
        made: dict[str, Any] = {
            "reads": self._regions(block.reads),
            "writes": self._regions(block.writes),
            "body": self.stmt(block.body),
            "init": None if block.init is None else self.stmt(block.init),
        }
        changed = {name: value for name, value in made.items() if value is not getattr(block, name)}
        return replace(block, **changed) if changed else block

    def _regions(self, regions: tuple[BufferRegion, ...]) -> tuple[BufferRegion, ...]:
        made = tuple(self._region(region) for region in regions)
        return regions if all(new is old for new, old in zip(made, regions, strict=True)) else made

    def _region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self._to.old:
            return region
        return BufferRegion(self._to.new, self._to.region(region.region, self._facts))

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """An expression; inner loads first."""
        made = map_children(expr, self._child)
        if isinstance(made, BufferLoad) and made.buffer is self._to.old:
            return BufferLoad(self._to.new, self._to.index(made.indices, self._facts), made.predicate)
        return self._to.new.data if made is self._to.old.data and self._to.data else made


def shifted(origin: Sequence[PrimExpr]) -> tuple[Callable[..., Indices], Callable[..., tuple[Range, ...]]]:
    """Indices and regions counted from an origin."""

    def index(indices: Indices, facts: Analyzer) -> Indices:
        return tuple(_less(i, low, facts) for i, low in zip(indices, origin, strict=True))

    def region(ranges: tuple[Range, ...], facts: Analyzer) -> tuple[Range, ...]:
        return tuple(Range.from_min_extent(_less(r.min, low, facts), r.extent) for r, low in zip(ranges, origin, strict=True))

    return index, region


def _less(index: PrimExpr, low: PrimExpr, facts: Analyzer) -> PrimExpr:
    made = index - low
    # an origin of 0 leaves the index as it was written
    return index if made is index else facts.simplify(made)


def redirected(stmt: Stmt, old: Buffer, new: Buffer, origin: Sequence[PrimExpr]) -> Stmt:
    """The statement with one buffer's accesses sent to another one that begins at an origin in it."""
    index, region = shifted(origin)
    return Redirection(old, new, index, region)(stmt)


def check_plain_use(stmt: Stmt, buffer: Buffer, primitive: str, place: Stmt) -> None:
    """Refuse a buffer that is used otherwise than by loads and stores: through its pointer, or as another buffer.

    Raises:
        PrimitiveError: with the use.
    """
    reason = odd_use(stmt, buffer)
    if reason is not None:
        raise PrimitiveError(f"{primitive}: {buffer.name} is used {reason}; only loads and stores can be sent to another buffer", place)


def odd_use(stmt: Stmt, buffer: Buffer) -> str | None:
    """How a buffer is used otherwise than by loads and stores; None if it isn't."""
    stack: list[Node] = [stmt]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        # interned expressions share parts: walked as trees they may take exponential time
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node is buffer.data:
            return "through its pointer"
        if isinstance(node, Stmt):
            found = parts(node)
            views = [other for other in (*found.buffers, *found.inner_buffers) if other.data is buffer.data and other is not buffer]
            if views or any(buffer is match.source.buffer for match in getattr(node, "match_buffers", ())):
                return "as a view of another shape"
        elif isinstance(node, BufferLoad) and node.buffer.data is buffer.data and node.buffer is not buffer:
            return "as a view of another shape"
        stack.extend(children(node))
    return None
