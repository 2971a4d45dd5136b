"""The stores of a function of blocks, with the loops around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....dataclass import dataclass, field
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import BufferLoad, IntImm, PrimExpr
from ....tir.function import PrimFunc
from ....tir.rewriting import walk
from ....tir.scopes import parts
from ....tir.stmt import BufferStore, For, Stmt
from .touched import Motion, Touched, touched

_UNROLL = ("pragma_auto_unroll_max_step", "meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")


@dataclass(frozen=True, eq=False)
class Store:
    """One statement that stores.

    Args:
        loops: around it, outermost first.
        tensors: what it does with each buffer; the one it writes first.
        indices: where it stores.
        value: what is stored.
        unroll_step: the pragma that holds here; 0 without one.
    """

    loops: tuple[For, ...]
    tensors: tuple[Touched, ...]
    indices: tuple[PrimExpr, ...]
    value: PrimExpr
    unroll_step: float

    @property
    def buffer(self) -> Buffer:
        """What is stored to."""
        return self.tensors[0].buffer

    @property
    def extents(self) -> list[float]:
        """Of the loops."""
        return [extent_of(loop) for loop in self.loops]


def extent_of(loop: For) -> float:
    """Iterations of a loop; 1 if that is symbolic."""
    return float(loop.extent.value) if isinstance(loop.extent, IntImm) else 1.0


@dataclass
class _Place:
    """Where a walk is."""

    loops: tuple[For, ...] = ()
    blocks: tuple[BlockRealize, ...] = ()
    unroll_step: float = 0.0
    found: list[Store] = field(default_factory=list)

    def inside(self, stmt: Stmt) -> _Place:
        """The place within a loop or block."""
        annotations = stmt.annotations if isinstance(stmt, For) else stmt.block.annotations if isinstance(stmt, BlockRealize) else {}
        step = next((_number(annotations[key]) for key in _UNROLL if key in annotations), self.unroll_step)
        loops = (*self.loops, stmt) if isinstance(stmt, For) else self.loops
        blocks = (*self.blocks, stmt) if isinstance(stmt, BlockRealize) else self.blocks
        return _Place(loops, blocks, step, self.found)


def _number(value: Any) -> float:
    return float(value.value if isinstance(value, IntImm) else value)


def stores_of(func: PrimFunc) -> list[Store]:
    """The stores of a function, in the order of its text; a block's init comes before its body."""
    place = _Place()
    _visit(func.body, place)
    return place.found


def _visit(stmt: Stmt, place: _Place) -> None:
    if isinstance(stmt, BufferStore):
        place.found.append(_store(stmt, place))
        return
    inner = place.inside(stmt) if isinstance(stmt, (For, BlockRealize)) else place
    for part in _inner(stmt):
        _visit(part, inner)


def _inner(stmt: Stmt) -> Iterator[Stmt]:
    if isinstance(stmt, BlockRealize):
        stmt = stmt.block
    if isinstance(stmt, Block):
        yield from (part for part in (stmt.init, stmt.body) if part is not None)
    else:
        yield from parts(stmt).bodies


def _motion(place: _Place) -> Motion:
    motion = Motion.of_loops([loop.loop_var for loop in place.loops], [extent_of(loop) for loop in place.loops])
    for realize in place.blocks:
        axes = [axis.var for axis in realize.block.iter_vars]
        motion = motion.within(dict(zip(axes, realize.iter_values, strict=True)))
    return motion


def _store(stmt: BufferStore, place: _Place) -> Store:
    motion = _motion(place)
    reads: dict[Buffer, list[Sequence[PrimExpr]]] = {}
    for node in (n for root in (stmt.value, *stmt.indices) for n in walk(root)):
        if isinstance(node, BufferLoad):
            reads.setdefault(node.buffer, []).append(node.indices)
    own = reads.pop(stmt.buffer, [])
    written = touched(motion, stmt.buffer, [stmt.indices, *own], bool(own), True)
    others = [touched(motion, buffer, accesses, True, False) for buffer, accesses in reads.items()]
    return Store(place.loops, (written, *others), stmt.indices, stmt.value, place.unroll_step)
