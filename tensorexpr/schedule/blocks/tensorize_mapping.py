"""How a block's axes are brought together into those of an intrinsic's description, whatever layouts its operands have."""

from __future__ import annotations

from collections.abc import Sequence

from ...arith import IndexMap
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.block import Block
from ...tir.buffer import Buffer
from ...tir.expr import BinaryExpr, BufferLoad, IterVar, PrimExpr, ProducerLoad
from ...tir.function import PrimFunc
from ...tir.rewriting import variables
from ...tir.stmt import BufferStore
from ..intrinsic_match import Comparison, Mismatch
from .analysis import innermost, program_of
from .bindings import loosely
from .handles import BlockRV
from .program import BlockProgram, block_at
from .schedule import Schedule


@dataclass(frozen=True, eq=False)
class AutoTensorizeMappingInfo:
    """Maps of a block's axes to axes that go like those of a description.

    mappings: of the axes; axes that the description has none like come first, then one fused axis for each of its own.
    lhs_buffer_map: the block's buffers -> the description's.
    rhs_buffer_indices: the description's buffers -> the axes that it accesses them at.
    lhs_iters, rhs_iters: the axes of the block, and of the description.
    """

    mappings: list[IndexMap]
    lhs_buffer_map: dict[Buffer, Buffer]
    rhs_buffer_indices: dict[Buffer, list[PrimExpr]]
    lhs_iters: list[IterVar]
    rhs_iters: list[IterVar]


def get_auto_tensorize_mapping_info(sch: Schedule, block: BlockRV, desc_func: PrimFunc) -> AutoTensorizeMappingInfo | None:
    """How a block's axes may be brought together, so that it computes what a description does.

    An axis is like one of the description if it takes part in the indices of the same buffers; alike axes are fused.

        conv2d (n, h, w, c, rh, rw, rc), a product of matrices   ->   (n * 256 + h * 16 + w, c, rh * 192 + rw * 64 + rc)

    Returns:
        None if the block computes something else, or has no axis like one of the description's. Whether the block with
        these axes can be tensorized shows when its buffers have got their layouts.
    """
    _, node = program_of(sch, block)
    inner = innermost(BlockProgram.of(desc_func))
    if inner is None:
        return None
    own, described = block_at(node), block_at(inner)
    pairs = _pairs(own, described)
    if pairs is None:
        return None
    kinds, wanted = _kinds(own, [access for access, _ in pairs]), _kinds(described, [access for _, access in pairs])
    # With two axes of one kind, which of the block's belong to which can't be told from the accesses.
    if len(set(wanted)) != len(wanted) or any(kind not in kinds for kind in wanted):
        return None
    axes = own.iter_vars
    final: list[PrimExpr] = [axis.var for axis, kind in zip(axes, kinds, strict=True) if kind not in wanted]
    final += [_fused([axis for axis, own_kind in zip(axes, kinds, strict=True) if own_kind == kind]) for kind in wanted]
    return AutoTensorizeMappingInfo(
        [IndexMap(tuple(axis.var for axis in axes), tuple(final))],
        {mine.buffer: its.buffer for mine, its in pairs},
        {its.buffer: list(its.indices) for _, its in pairs},
        list(axes),
        list(described.iter_vars),
    )


def _fused(axes: Sequence[IterVar]) -> PrimExpr:
    total: PrimExpr = axes[0].var
    for axis in axes[1:]:
        assert axis.dom is not None
        total = total * axis.dom.extent + axis.var
    return total


def _kinds(block: Block, accesses: Sequence[BufferLoad | BufferStore]) -> list[tuple[tuple[bool, ...], int]]:
    """Of each axis, in the indices of which accesses it takes part, and whether it is reduced."""
    loose = {axis.var: loosely(axis.dom) for axis in block.iter_vars if axis.dom is not None}  # those of one value count too
    facts = Analyzer(loose)
    used = [set().union(*(variables(facts.simplify(index)) for index in access.indices)) for access in accesses]
    return [(tuple(axis.var in one for one in used), axis.iter_type) for axis in block.iter_vars]


class _Pairs(Comparison):
    """Expressions that are the same but for buffers and indices, which are noted; operands stand in the same order."""

    def __init__(self, own: BufferStore, described: BufferStore) -> None:
        super().__init__("the description", Analyzer(), (), set())
        self.found: list[tuple[BufferLoad | BufferStore, BufferLoad | BufferStore]] = [(own, described)]

    def access(self, ours: PrimExpr, theirs: ProducerLoad | BufferLoad) -> None:
        if not isinstance(ours, BufferLoad) or isinstance(theirs, ProducerLoad) or ours.dtype != theirs.dtype:
            self.differ(ours, theirs)
        self.found.append((ours, theirs))

    def either_order(self, ours: BinaryExpr, theirs: BinaryExpr) -> None:
        self.same(ours.a, theirs.a)
        self.same(ours.b, theirs.b)


def _pairs(own: Block, described: Block) -> list[tuple[BufferLoad | BufferStore, BufferLoad | BufferStore]] | None:
    """The accesses of two blocks side by side, if they compute the same but for indices; else None."""
    mine, its = own.body, described.body
    if not isinstance(mine, BufferStore) or not isinstance(its, BufferStore):
        return None
    comparison = _Pairs(mine, its)
    try:
        comparison.same(mine.value, its.value)
    except Mismatch:
        return None
    found = comparison.found
    buffers = {a.buffer: b.buffer for a, b in found}
    # a buffer gets one layout, so it can't stand for two of the description, nor two for one
    one_to_one = len(set(buffers.values())) == len(buffers) and all(buffers[a.buffer] is b.buffer for a, b in found)
    return found if one_to_one and mine.buffer.dtype == its.buffer.dtype else None
