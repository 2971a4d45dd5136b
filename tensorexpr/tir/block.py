"""Blocks: computations that state what they read and write and over which axes, whatever loops run them.

    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])      iter_vars, bound to the realization's iter_values
        T.where(i * 16 + j < 100)                         its predicate
        T.reads(A[vi, vk], B[vk, vj])
        T.writes(C[vi, vj])
        D = T.alloc_buffer((16,))                         memory that exists within the block
        with T.init(): ...                                runs where all reduction axes stand at their first value
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

Blocks live in phase 0; phase 1 turns them into plain statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dataclass import dataclass
from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import all as all_of
from .arithmetic import as_int
from .attrs import EMPTY, FrozenMap
from .buffer import Buffer, BufferRegion
from .expr import EQ, IntImm, IterVar, PrimExpr, Var, each, refuse
from .interning import ADAPTERS, Built
from .node import Object
from .stmt import NOP, BufferBind, IfThenElse, Stmt, seq


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class MatchBufferRegion(Built, Object):
    """`buffer` stands for the box `source` of another buffer, within one block."""

    buffer: Buffer
    source: BufferRegion

    def __post_init__(self) -> None:
        self.bind(NOP)  # which refuses another dtype and too many dimensions
        extents = [as_int(side.extent) for side in self.source.region]
        # The view may leave out leading extents of 1.
        wanted = [*[1] * (len(extents) - self.buffer.ndim), *map(as_int, self.buffer.shape)]
        if any(None not in pair and pair[0] != pair[1] for pair in zip(extents, wanted, strict=True)):
            raise DeclarationError(f"buffer {self.buffer.name} of shape {self.buffer.shape} can't stand for the box {self.source}")

    def bind(self, body: Stmt) -> BufferBind:
        """The same as a statement around `body`."""
        return BufferBind(self.buffer, self.source, body)

    def defines(self) -> tuple[Var, ...]:
        """The variables that the box gives a value: the pointer, and strides and offset where they are variables."""
        return self.bind(NOP).defines()


ADAPTERS["tuple[MatchBufferRegion, ...]"] = each(MatchBufferRegion, refuse("match_buffer"))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Block(Stmt):
    """`body` at one point of the axes `iter_vars`, which states the regions that it `reads` and `writes`.

    `init` gives what is reduced into its first value. `alloc_buffers` exist within the block.
    """

    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: FrozenMap = EMPTY

    def __post_init__(self) -> None:
        for axis in self.iter_vars:
            if axis.dom is None:
                raise DeclarationError(f"axis {axis.name} of block {self.name_hint!r} has no range; give it one")

    def defines(self) -> tuple[Var, ...]:
        """The variables that hold within the block: axes, pointers of its buffers, and what its views define."""
        views = (var for match in self.match_buffers for var in match.defines())
        return (*(axis.var for axis in self.iter_vars), *(buffer.data for buffer in self.alloc_buffers), *views)

    def domains(self) -> Iterator[PrimExpr]:
        """The bounds of the axes, which stand outside of the block."""
        for axis in self.iter_vars:
            if axis.dom is not None:
                yield from (axis.dom.min, axis.dom.extent)

    def regions(self) -> tuple[BufferRegion, ...]:
        """All regions that are mentioned: reads, writes and the sources of views."""
        return (*self.reads, *self.writes, *(match.source for match in self.match_buffers))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BlockRealize(Stmt):
    """`block` with its axes bound to `iter_values`, where `predicate` holds."""

    iter_values: tuple[PrimExpr, ...]
    predicate: PrimExpr
    block: Block

    def __post_init__(self) -> None:
        wanted, given = len(self.block.iter_vars), len(self.iter_values)
        if wanted != given:
            raise DeclarationError(f"block {self.block.name_hint!r} has {wanted} axes, bound to {given} values; give one for each")
        for axis, value in self.bindings():
            if axis.dtype != value.dtype:
                raise TypeMismatchError(
                    f"axis {axis.name} of block {self.block.name_hint!r} is {axis.dtype}, bound to {value} ({value.dtype})"
                )
        if self.predicate.dtype != "bool":
            raise TypeMismatchError(f"the predicate of block {self.block.name_hint!r} is {self.predicate.dtype}, not bool")

    def bindings(self) -> Iterator[tuple[IterVar, PrimExpr]]:
        """The axes of the block, each with the value that it is bound to."""
        return zip(self.block.iter_vars, self.iter_values, strict=True)


def is_plain_root(stmt: Stmt) -> bool:
    """True for a block that only holds a function's buffers: what scripts leave out."""
    if not isinstance(stmt, BlockRealize) or not (isinstance(stmt.predicate, IntImm) and stmt.predicate.value):
        return False
    block = stmt.block
    stated = (*block.iter_vars, *block.regions(), *block.annotations)
    return not stated and block.init is None and block.name_hint in ("", "root")


def with_guarded_init(block: Block) -> Stmt:
    """The statements of a block: its `init` under the condition that all reduction axes stand at their start, then its body."""
    if block.init is None:
        return block.body
    starts = [EQ(axis.var, axis.dom.min) for axis in block.iter_vars if axis.iter_type == IterVar.COMM_REDUCE and axis.dom is not None]
    condition = all_of(*starts) if starts else IntImm("bool", 1)
    first = block.init if isinstance(condition, IntImm) and condition.value else IfThenElse(condition, block.init)
    return seq(first, block.body)
