"""Schedules of operators without a reduction: a thread for each vector of neighbours, so that a warp's accesses are contiguous.

What reads across memory, as a transpose does, goes through shared memory: a block's threads fetch a tile by vectors along the memory that
is read, and store it by vectors along the result. Rows of the tile are an odd number of words apart, so that neither meets a bank twice.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ...schedule.te_schedule import Schedule
from ...schedule.tree import Inline, StageNode
from ...target import Target
from ...te.affine_access import Access
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.arithmetic import as_int
from ...tir.expr import Var
from ..access import element_bytes, stage_reads
from ..stages import compute_of, constant_extents
from .block import WIDEST, limits_of, over_blocks, preferred_threads

_TILE = 32  # rows and, in words, columns of a tile
_WORD = 4  # bytes of a bank


def schedule_injective(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule one stage that stays at the root."""
    across = _read_across(s, tensor)
    if across is not None:
        _by_tiles(s, tensor, across, target)
        return
    over_blocks(s, tensor, compute_of(s, tensor).axis, target)


@dataclass(frozen=True)
class _Across:
    """A read of which neighbours lie along another axis of the result than the last: its tensor, who reads it, and where its axes are.

    Args:
        source: the tensor.
        readers: the stage, or those inlined into it, that read it.
        along: the number of the axis of the result along which neighbours lie in memory.
        row: the dimension of the tensor that the last axis of the result moves.
        width: elements of one access on both sides.
    """

    source: Tensor
    readers: tuple[StageNode, ...]
    along: int
    row: int
    width: int


def _read_across(s: Schedule, tensor: Tensor) -> _Across | None:
    """The one read across memory of a stage, if a tile of it is worth keeping."""
    op, stage = compute_of(s, tensor), s.tree[s[tensor].id]
    extents = constant_extents(op.axis)
    if extents is None or len(extents) < 2 or op.num_outputs != 1:
        return None
    last = op.axis[-1].var
    reads = [access for access in stage_reads(s.tree, stage).accesses if access.stride(last) not in (0, 1)]
    if len(reads) != 1 or not reads[0].is_affine or extents[-1] < _TILE:
        return None
    access = reads[0]
    source, row = access.load.producer, access.index_of(last)
    along = next((n for n, axis in enumerate(op.axis[:-1]) if access.stride(axis.var) == 1 and extents[n] >= _TILE), None)
    if not isinstance(source, Tensor) or along is None or row is None or access.index_of(op.axis[along].var) != len(source.shape) - 1:
        return None
    readers = tuple(s.tree.consumers(s.tree[s[source].id]))
    if not all(reader.id == stage.id or _is_part_of(s, reader, stage) for reader in readers):
        return None
    return _Across(source, readers, along, row, _width(access, op.output_dtype(0), extents[-1]))


def _is_part_of(s: Schedule, reader: StageNode, stage: StageNode) -> bool:
    """Whether a stage is inlined into another one alone, by itself or through others."""
    users = s.tree.consumers(reader)
    return isinstance(reader.attach, Inline) and all(other.id == stage.id or _is_part_of(s, other, stage) for other in users)


def _width(access: Access[Var], dtype: str, extent: int) -> int:
    width = max(1, WIDEST // max(element_bytes(access.load.dtype), element_bytes(dtype)))
    length = as_int(access.load.producer.shape[-1]) or 1
    while extent % width or length % width:
        width //= 2
    return width


def _by_tiles(s: Schedule, tensor: Tensor, across: _Across, target: Target) -> None:
    """Blocks of tiles: fetched by rows of the source, stored by rows of the result."""
    stage, axes = s[tensor], list(compute_of(s, tensor).axis)
    size = element_bytes(across.source.dtype)
    columns = _TILE * max(1, _WORD // size)
    copy = s.cache_read(across.source, "shared", [reader.origin.output(0) for reader in across.readers])
    along, last = axes.pop(across.along), axes.pop()
    rows, row = stage.split(along, factor=columns)
    outer, inner = stage.split(last, factor=_TILE)
    inner, lane = stage.split(inner, factor=across.width)
    stage.reorder(*axes, rows, outer, row, inner, lane)
    block = stage.fuse(*axes, rows, outer)
    stage.bind(block, thread_axis("blockIdx.x"))
    threads = min(preferred_threads(limits_of(target), None), columns * _TILE // across.width)
    thread = thread_axis((0, threads), "threadIdx.x")
    turn, mine = stage.split(stage.fuse(row, inner), factor=threads)
    stage.bind(mine, thread)
    stage.unroll(turn)
    stage.vectorize(lane)
    s[copy].compute_at(stage, block)
    dims = list(compute_of(s, copy).axis)
    s[copy].storage_align(dims[across.row], _TILE * max(1, _WORD // size), max(1, _WORD // size))
    last, lane = s[copy].split(dims.pop(), factor=across.width)
    turn, mine = s[copy].split(s[copy].fuse(*dims, last), factor=threads)
    s[copy].bind(mine, thread)
    s[copy].unroll(turn)
    s[copy].vectorize(lane)
