"""Cache index: indices that are costly to compute are computed once, into buffers of their own.

for i, j in T.grid(80, 80)                        ->   for ax0, ax1 in T.grid(80, 80)
    B: B[vi, vj] = A[vi // 4 + vj // 4, vj // 2]           index_0: index_var_0[v0, v1] = v0 // 4 + v1 // 4
                                                       for ax0 in range(80)
                                                           index_1: index_var_1[v0] = v0 // 2
                                                       for i, j in T.grid(80, 80)
                                                           B: B[vi, vj] = A[index_var_0[vi, vj], index_var_1[vj]]
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence, Set

from ....dataclass import dataclass, replace
from ....tir.arithmetic import const
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer, BufferRegion, decl_buffer
from ....tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import Node as TreeNode
from ....tir.rewriting import children, map_children, substitute, variables, walk
from ....tir.stmt import BufferStore, SeqStmt, Stmt, seq
from ..bindings import TRUE
from ..copying import extent_from_zero
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..nests import looped
from ..program import BlockProgram, Node, block_at


@dataclass(frozen=True)
class _Cached:
    """An index, the axes that it depends on, and the buffer that has its values."""

    index: PrimExpr
    axes: tuple[IterVar, ...]
    buffer: Buffer


def cache_index(program: BlockProgram, name: str, storage_scope: str, cse_thresh: int) -> tuple[BlockProgram, list[str]]:
    """The program with blocks that compute the indices of a block's loads first, and their names.

    Args:
        cse_thresh: up to 1: whole indices. Else what occurs in indices at least so often.
    """
    node = program.block_node(name)
    block, scope = block_at(node), program.scope_of(node)
    if any(isinstance(inner, BlockRealize) for inner in walk(block.body)):
        raise PrimitiveError(f"cache_index: {name} holds blocks, which load themselves; give one of these", node.stmt)
    chosen = _chosen(block, cse_thresh)
    if not chosen:
        wanted = "no index to compute" if cse_thresh <= 1 else f"nothing that occurs {cse_thresh} times in its indices"
        raise PrimitiveError(f"cache_index: {name} has {wanted}; constants and single axes aren't computed", node.stmt)
    taken = {*program.blocks, *(buffer.name for buffer in program.buffers())}
    stem = _free_stem(name, len(chosen), taken)
    found: list[_Cached] = []
    for number, index in enumerate(chosen):
        axes = tuple(axis for axis in block.iter_vars if axis.var in variables(index))
        shape = [extent_from_zero(axis, node, "cache_index") for axis in axes]
        found.append(_Cached(index, axes, decl_buffer(shape, index.dtype, f"{stem}_var_{number}", scope=storage_scope)))
    names = [f"{stem}_{number}" for number in range(len(found))]
    nests = [_nest(cached, block_name) for cached, block_name in zip(found, names, strict=True)]
    moved = _with_loads(node.stmt, found)
    made = program.replace(node.stmt, moved)
    first = _outermost(made.node_of(moved))
    made = made.replace(first, seq(*nests, first))
    return made.allocated(block_at(scope).name_hint, *(cached.buffer for cached in found)), names


def _free_stem(name: str, count: int, taken: Set[str]) -> str:
    """What names of blocks (stem_0) and buffers (stem_var_0) begin with: "index", or with the block's name where some are taken."""
    stems = itertools.chain(("index", f"index_{name}"), (f"index_{name}_{again}" for again in itertools.count(1)))
    return next(stem for stem in stems if not any(f"{stem}{kind}_{n}" in taken for n in range(count) for kind in ("", "_var")))


def _outermost(node: Node) -> Stmt:
    """The statement in the sequence of a scope that a block is in."""
    top = node
    for above in node.ancestors():
        in_scope = above.parent is not None and isinstance(above.parent.stmt, Block)
        if isinstance(above.stmt, Block) or (isinstance(above.stmt, SeqStmt) and in_scope):
            break
        top = above
    return top.stmt


def _chosen(block: Block, cse_thresh: int) -> list[PrimExpr]:
    """What is to be computed first, the largest first."""
    whole: list[PrimExpr] = []
    counts: Counter[PrimExpr] = Counter()
    axes = {axis.var for axis in block.iter_vars}
    for index in _indices(block):
        stack = [index]
        while stack:
            part = stack.pop()
            # what depends on a loop or a let inside of the block has no value before the block
            if _is_plain(part) or not variables(part) <= axes:
                continue
            counts[part] += 1
            stack.extend(inner for inner in children(part) if isinstance(inner, PrimExpr))
        if not _is_plain(index) and variables(index) <= axes:
            whole.append(index)
    kept = list(dict.fromkeys(whole)) if cse_thresh <= 1 else [part for part, count in counts.items() if count >= cse_thresh]
    found: list[PrimExpr] = []
    # The largest first: a smaller one is wanted only where it occurs outside of larger ones.
    for part in sorted((index for index in kept if not _has_loads(index)), key=lambda index: -_size(index)):
        if any(_occurs(part, index, found) for index in _indices(block)):
            found.append(part)
    return found


def _occurs(part: PrimExpr, index: PrimExpr, larger: Sequence[PrimExpr]) -> bool:
    """True if a part of an index isn't in larger parts alone, which are computed anyway."""
    if index is part:
        return True
    return index not in larger and any(_occurs(part, inner, larger) for inner in children(index) if isinstance(inner, PrimExpr))


def _is_plain(index: PrimExpr) -> bool:
    return isinstance(index, (Var, IntImm)) or not variables(index)


def _has_loads(index: PrimExpr) -> bool:
    return isinstance(index, (BufferLoad, Call)) or any(_has_loads(c) for c in children(index) if isinstance(c, PrimExpr))


def _size(index: PrimExpr) -> int:
    return 1 + sum(_size(inner) for inner in children(index) if isinstance(inner, PrimExpr))


def _indices(block: Block) -> list[PrimExpr]:
    """The indices of the loads in a block, in the order of the text."""
    found: list[PrimExpr] = []
    stack: list[TreeNode] = [block.body]
    while stack:
        node = stack.pop()
        if isinstance(node, BufferLoad):
            found.extend(node.indices)
        stack.extend(reversed(children(node)))  # a stack: what comes first in the text is popped first
    return found


def _nest(cached: _Cached, name: str) -> Stmt:
    dtypes = [axis.var.dtype for axis in cached.axes]
    loops = [Var(f"ax{place}", dtype) for place, dtype in enumerate(dtypes)]
    own = [IterVar(axis.dom, Var(f"v{place}", axis.var.dtype)) for place, axis in enumerate(cached.axes)]
    point = tuple(axis.var for axis in own)
    value = substitute(cached.index, dict(zip((axis.var for axis in cached.axes), point, strict=True)))
    writes = (BufferRegion.from_point(cached.buffer, point),)
    block = Block(tuple(own), (), writes, name, BufferStore(cached.buffer, value, point))
    return looped(loops, cached.buffer.shape, BlockRealize(tuple(loops), TRUE, block))


def _with_loads(stmt: Stmt, found: Sequence[_Cached]) -> Stmt:
    """A block that loads its indices; it reads the buffers that have them."""
    assert isinstance(stmt, BlockRealize)
    loads: dict[PrimExpr, PrimExpr] = {c.index: BufferLoad(c.buffer, tuple(axis.var for axis in c.axes)) for c in found}
    body = _rewritten(stmt.block.body, loads, False)
    assert isinstance(body, Stmt)
    regions = tuple(BufferRegion(c.buffer, tuple(Range.from_min_extent(a.var, const(1, a.var.dtype)) for a in c.axes)) for c in found)
    return replace(stmt, block=replace(stmt.block, body=body, reads=(*stmt.block.reads, *regions)))


def _rewritten(node: TreeNode, loads: dict[PrimExpr, PrimExpr], in_index: bool) -> TreeNode:
    if in_index and isinstance(node, PrimExpr) and node in loads:
        return loads[node]
    if isinstance(node, BufferLoad):
        return replace(node, indices=tuple(_as_expr(_rewritten(index, loads, True)) for index in node.indices))
    return map_children(node, lambda child: _rewritten(child, loads, in_index))


def _as_expr(node: TreeNode) -> PrimExpr:
    assert isinstance(node, PrimExpr)
    return node


class CacheIndex(BlockPrimitive):
    """The instruction."""

    kind, method, output, attrs = "CacheIndex", "cache_index", "block", ("storage_scope", "cse_thresh")
    change = staticmethod(cache_index)
