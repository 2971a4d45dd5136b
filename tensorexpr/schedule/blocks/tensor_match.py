"""Does a block compute what the description of an intrinsic says, and on which parts of its buffers?

Both are brought to loops over stores, with axes replaced by what they are bound to, and walked side by side. An access of the
description at index d stands for one of the block at index offset + d, where the offset is the same for all accesses of that buffer and
doesn't depend on the loops inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize, with_guarded_init
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, FloatImm, IntImm, PrimExpr, Range, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute, variables
from ...tir.stmt import BufferStore, For, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from ...tir.tensor_intrin import body_block, buffers_of


class Mismatch(Exception):
    """Why a block isn't what the description says."""


def matched_regions(desc: PrimFunc, block: Block) -> list[BufferRegion]:
    """The part of a block's buffers that each buffer of the description stands for, in its order.

    Raises:
        Mismatch: if the block computes something else.
    """
    described = body_block(desc)
    buffers = buffers_of(desc)
    match = _Match(buffers, [axis for axis in block.iter_vars])
    if described.init is not None:
        raise Mismatch("the description has an init in its outermost block; describe the update alone")
    match.statement(_plain(described.body), _plain(block.body))
    regions = [match.region(buffer) for buffer in buffers]
    _check_apart(regions, match.written)
    return regions


def _check_apart(regions: Sequence[BufferRegion], written: set[Buffer]) -> None:
    """What is written is no other buffer of the description too: its statements may rely on that."""
    targets = [region.buffer for region in regions]
    for target in written:
        if targets.count(target) > 1:
            raise Mismatch(f"{target.name}, which is written, stands for two buffers of the description")


def _plain(stmt: Stmt) -> Stmt:
    """The statement with inner blocks as what they do, and loops of one iteration taken away."""
    if isinstance(stmt, BlockRealize):
        block = stmt.block
        if block.alloc_buffers or block.match_buffers:
            raise Mismatch(f"the block {block.name_hint} has buffers of its own")
        values = {axis.var: value for axis, value in zip(block.iter_vars, stmt.iter_values, strict=True)}
        body = _plain(substitute(with_guarded_init(block), values))
        return body if as_int(stmt.predicate) == 1 else IfThenElse(stmt.predicate, body)
    if isinstance(stmt, For):
        if as_int(stmt.extent) == 1:
            return _plain(substitute(stmt.body, {stmt.loop_var: stmt.min}))
        return For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, _plain(stmt.body))
    if isinstance(stmt, SeqStmt):
        return seq(*map(_plain, stmt.seq))
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_case is None else _plain(stmt.else_case)
        return IfThenElse(stmt.condition, _plain(stmt.then_case), other)
    if isinstance(stmt, LetStmt):
        return LetStmt(stmt.var, stmt.value, _plain(stmt.body))
    if isinstance(stmt, BufferStore):
        return stmt
    raise Mismatch(f"a {type(stmt).__name__} is nothing that descriptions and blocks are compared in")


@dataclass(frozen=True, slots=True)
class _Place:
    """A buffer of the block, and where in it the description's buffer begins."""

    buffer: Buffer
    offsets: tuple[PrimExpr, ...]


class _Match:
    """The walk: what the description's variables and buffers stand for so far."""

    def __init__(self, buffers: Sequence[Buffer], axes: Sequence[Any]) -> None:
        self.written: set[Buffer] = set()
        self._buffers = list(buffers)
        self._places: dict[Buffer, _Place] = {}
        self._meaning: dict[Var, PrimExpr] = {}
        self._inner: set[Var] = set()
        self._analyzer = Analyzer({axis.var: axis.dom for axis in axes})

    def region(self, buffer: Buffer) -> BufferRegion:
        """What a buffer of the description stands for."""
        place = self._places.get(buffer)
        if place is None:
            raise Mismatch(f"the description never uses its buffer {buffer.name}")
        leading = len(place.offsets) - buffer.ndim
        one = [IntImm(offset.dtype, 1) for offset in place.offsets[:leading]]
        return BufferRegion(place.buffer, tuple(map(Range.from_min_extent, place.offsets, [*one, *buffer.shape])))

    def statement(self, desc: Stmt, found: Stmt) -> None:
        """Compare two statements.

        Raises:
            Mismatch: where they differ.
        """
        if type(desc) is not type(found):
            raise Mismatch(f"the description has a {type(desc).__name__} where the block has a {type(found).__name__}")
        match desc, found:
            case For(), For():
                self._loop(desc, found)
            case SeqStmt(), SeqStmt():
                if len(desc.seq) != len(found.seq):
                    raise Mismatch(f"the description has {len(desc.seq)} statements where the block has {len(found.seq)}")
                for left, right in zip(desc.seq, found.seq, strict=True):
                    self.statement(left, right)
            case IfThenElse(), IfThenElse():
                self._branches(desc, found)
            case LetStmt(), LetStmt():
                self._expr(desc.value, found.value)
                self._bind(desc.var, found.var)
                self.statement(desc.body, found.body)
            case BufferStore(), BufferStore():
                self._access(desc.buffer, desc.indices, found.buffer, found.indices)
                self.written.add(found.buffer)
                if desc.predicate is not None or found.predicate is not None:
                    raise Mismatch("a store with a mask is nothing that descriptions and blocks are compared in")
                self._expr(desc.value, found.value)

    def _bind(self, desc: Var, found: Var) -> None:
        if desc.dtype != found.dtype:
            raise Mismatch(f"{desc.name} is {desc.dtype}, {found.name} is {found.dtype}")
        self._meaning[desc] = found
        self._inner.add(found)

    def _branches(self, desc: IfThenElse, found: IfThenElse) -> None:
        self._expr(desc.condition, found.condition)
        self.statement(desc.then_case, found.then_case)
        if (desc.else_case is None) != (found.else_case is None):
            raise Mismatch("only one of the description and the block has an else")
        if desc.else_case is not None and found.else_case is not None:
            self.statement(desc.else_case, found.else_case)

    def _loop(self, desc: For, found: For) -> None:
        for left, right in ((desc.min, found.min), (desc.extent, found.extent)):
            if as_int(left) is None or as_int(left) != as_int(right):
                raise Mismatch(
                    f"the loop {desc.loop_var.name} of the description runs over {desc.min}..{desc.min + desc.extent}, "
                    f"{found.loop_var.name} of the block over {found.min}..{found.min + found.extent}"
                )
        self._bind(desc.loop_var, found.loop_var)
        self._analyzer.bind(found.loop_var, Range.from_min_extent(found.min, found.extent), allow_override=True)
        self.statement(desc.body, found.body)

    def _expr(self, desc: PrimExpr, found: PrimExpr) -> None:
        if type(desc) is not type(found) or desc.dtype != found.dtype:
            raise Mismatch(f"the description computes {desc} ({desc.dtype}) where the block computes {found} ({found.dtype})")
        if isinstance(desc, BufferLoad) and isinstance(found, BufferLoad):
            self._access(desc.buffer, desc.indices, found.buffer, found.indices)
        elif isinstance(desc, (Var, IntImm, FloatImm, StringImm)):
            if self._meaning.get(desc, desc) is not found if isinstance(desc, Var) else desc is not found:
                raise Mismatch(f"the description has {desc} where the block has {found}")
        else:
            for one in fields(desc):  # type: ignore[arg-type]
                self._part(getattr(desc, one.name), getattr(found, one.name), desc, found)

    def _part(self, left: Any, right: Any, desc: PrimExpr, found: PrimExpr) -> None:
        if isinstance(left, PrimExpr) and isinstance(right, PrimExpr):
            self._expr(left, right)
        elif isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
            for a, b in zip(left, right, strict=True):
                self._part(a, b, desc, found)
        elif isinstance(left, (PrimExpr, tuple)) or left != right:
            raise Mismatch(f"the description computes {desc} where the block computes {found}")

    def _access(self, desc: Buffer, wanted: Sequence[PrimExpr], found: Buffer, indices: Sequence[PrimExpr]) -> None:
        if desc not in self._buffers:
            raise Mismatch(f"the description uses {desc.name}, which is none of its parameters")
        leading = len(indices) - len(wanted)
        if desc.dtype != found.dtype or leading < 0:
            raise Mismatch(f"{desc!r} of the description can't stand for {found!r}")
        relative = [IntImm(index.dtype, 0) for index in indices[:leading]] + [substitute(index, self._meaning) for index in wanted]
        offsets = tuple(self._analyzer.simplify(index - rel) for index, rel in zip(indices, relative, strict=True))
        moving = next((offset for offset in offsets if variables(offset) & self._inner), None)
        if moving is not None:
            here, there = (", ".join(map(str, one)) for one in (indices, wanted))
            raise Mismatch(f"{found.name}[{here}] is no shift of {desc.name}[{there}] of the description: they differ by {moving}")
        known = self._places.setdefault(desc, _Place(found, offsets))
        if known.buffer is not found:
            raise Mismatch(f"{desc.name} of the description stands for both {known.buffer.name} and {found.name}")
        if any(a is not b for a, b in zip(known.offsets, offsets, strict=True)):
            raise Mismatch(f"{desc.name} of the description begins at different places of {found.name}")
