"""Does a block compute what the description of an intrinsic says, and on which parts of its buffers?

Both are brought to loops over stores, with axes replaced by what they are bound to, and walked side by side; values and accesses are
compared as those of stages are (`intrinsic_match`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize, with_guarded_init
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, IterVar, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute
from ...tir.stmt import BufferStore, For, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from ...tir.tensor_intrin import body_block, buffers_of
from ..intrinsic_match import Comparison, Mismatch


def matched_regions(desc: PrimFunc, block: Block) -> list[BufferRegion]:
    """The part of a block's buffers that each buffer of the description stands for, in its order.

    Raises:
        Mismatch: if the block computes something else.
    """
    described = body_block(desc)
    buffers = buffers_of(desc)
    match = _Match(buffers, block.iter_vars)
    if described.init is not None:
        raise Mismatch("the description has an init in its outermost block; describe the update alone")
    match.statement(_plain(block.body), _plain(described.body))
    regions = [match.box(buffer) for buffer in buffers]
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
        values = {axis.var: value for axis, value in stmt.bindings()}
        # an init is a statement under a condition here, so both sides' inits are compared like any other
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


class _Match(Comparison):
    """The walk over statements; variables of the description are replaced by those that they stand for."""

    def __init__(self, buffers: Sequence[Buffer], axes: Sequence[IterVar]) -> None:
        ranges = {axis.var: axis.dom for axis in axes if axis.dom is not None}
        super().__init__("the description", Analyzer(ranges), buffers, set())
        self.written: set[Buffer] = set()

    def statement(self, found: Stmt, desc: Stmt) -> None:
        """Compare two statements.

        Raises:
            Mismatch: where they differ.
        """
        match found, desc:
            case For(), For():
                self._loop(found, desc)
            case SeqStmt(), SeqStmt():
                if len(desc.seq) != len(found.seq):
                    raise Mismatch(f"the description has {len(desc.seq)} statements where the block has {len(found.seq)}")
                for left, right in zip(found.seq, desc.seq, strict=True):
                    self.statement(left, right)
            case IfThenElse(), IfThenElse():
                self._branches(found, desc)
            case LetStmt(), LetStmt():
                self.same(found.value, desc.value)
                self._inside(found.var, found.body, desc.var, desc.body)
            case BufferStore(), BufferStore():
                self.access(*(BufferLoad(store.buffer, store.indices, store.predicate) for store in (found, desc)))
                self.written.add(found.buffer)
                self.same(found.value, desc.value)
            case _:
                raise Mismatch(f"the description has a {type(desc).__name__} where the block has a {type(found).__name__}")

    def _inside(self, found: Var, body: Stmt, desc: Var, described: Stmt) -> None:
        """Compare what stands inside of two variables."""
        if desc.dtype != found.dtype:
            raise Mismatch(f"{desc.name} is {desc.dtype}, {found.name} is {found.dtype}")
        # no operand may lie at a place that moves with a loop of the intrinsic's own
        self.local.add(found)
        self.statement(body, substitute(described, {desc: found}))

    def _branches(self, found: IfThenElse, desc: IfThenElse) -> None:
        self.same(found.condition, desc.condition)
        self.statement(found.then_case, desc.then_case)
        if (desc.else_case is None) != (found.else_case is None):
            raise Mismatch("only one of the description and the block has an else")
        if desc.else_case is not None and found.else_case is not None:
            self.statement(found.else_case, desc.else_case)

    def _loop(self, found: For, desc: For) -> None:
        for left, right in ((desc.min, found.min), (desc.extent, found.extent)):
            if as_int(left) is None or as_int(left) != as_int(right):
                raise Mismatch(
                    f"the loop {desc.loop_var.name} of the description runs over {desc.min}..{desc.min + desc.extent}, "
                    f"{found.loop_var.name} of the block over {found.min}..{found.min + found.extent}"
                )
        self.analyzer.bind(found.loop_var, Range.from_min_extent(found.min, found.extent), allow_override=True)
        self._inside(found.loop_var, found.body, desc.loop_var, desc.body)
