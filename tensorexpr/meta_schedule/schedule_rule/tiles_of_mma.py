"""Tiles of products by `mma`: what `MultiLevelTilingTensorCore` makes of a block for intrinsics of m16n8k8.

blocks of the grid, warps (threadIdx.y):
    for each part of the sum:
        read_at: parts of both operands into shared memory, in permuted rows, copied asynchronously ahead
        for each step: operands into registers (load_a, load_b), then products of registers (compute)
    write_at: sums from registers to the result
"""

from __future__ import annotations

from collections.abc import Mapping

from ...schedule.blocks import BlockRV, LoopRV
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from .analysis import REDUCE
from .multi_level_tiling import MultiLevelTiling, ReuseType, Tiled
from .multi_level_tiling_with_intrin import AUTO_TENSORIZE, extents_of

MULTIPLES = (2, 4)
"""Rows and columns of products whose operands are fetched together: 32 of 16 and of 8."""
VECTOR_BYTES, PERMUTED = "vector_bytes", "permuted_layout"
# Rows in shared memory are 64 bytes and a fourth apart from multiples of that, where they aren't permuted.
_ALIGNED, _APART = 512, 128  # bits


def tiles_of_mma(state: Tiled, tiling: MultiLevelTiling, read: ReuseType, group: Mapping[str, str], copy: BlockRV, pipelined: bool) -> None:
    """Operands and sums of a block in tiles, which is marked for its intrinsics.

    Args:
        state: the block in tiles.
        tiling: how it was tiled.
        read: where parts of operands are fetched, and into which memory.
        group: the names of intrinsics.
        copy: the block that copies the result to where it was wanted.
        pipelined: operands are fetched ahead.

    Raises:
        ScheduleError: for what isn't a product of two matrices.
    """
    sch, block = state.sch, state.block
    sch.write_at(state.tiles[len(tiling.tile_binds) - 1][-1], block, 0, "m16n8k8.matrixC")
    sch.reverse_compute_inline(copy)
    shared = [sch.read_at(state.tiles[read.levels[0] - 1][-1], block, place, read.scope) for place in range(2)]
    for cache, side in zip(shared, "AB", strict=True):
        sch.annotate(cache, PERMUTED, f"g2s_{side}")
    sums = [tiles for tiles, kind in zip(state.tiles, tiling.structure, strict=True) if kind == REDUCE]
    for place, side in enumerate("AB"):
        _in_registers(state, place, side, group[f"load_{side.lower()}"], sums)
    for cache in shared:
        (producer,) = sch.get_producers(cache)
        sch.compute_inline(producer)
        bits = parse_dtype(str(sch.get(cache).writes[0].buffer.dtype)).bits
        sch.storage_align(cache, 0, -2, _ALIGNED // bits, _APART // bits)
    if pipelined and len(sums) > 1 and any((as_int(sch.get(tiles[-1]).extent) or 1) > 1 for tiles in sums):
        _ahead(state, tiling, shared, sums)


def _in_registers(state: Tiled, place: int, side: str, intrin_name: str, sums: list[list[LoopRV]]) -> None:
    sch = state.sch
    cache = sch.cache_read(state.block, place, f"m16n8k8.matrix{side}")
    sch.compute_at(cache, sums[min(1, len(sums) - 1)][-1], preserve_unit_loops=True)
    sizes = [extent for _, extent in extents_of(intrin_name)]
    parts = [sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(cache)[-len(sizes) :], sizes, strict=True)]
    sch.reorder(*(outer for outer, _ in parts), *(inner for _, inner in parts))
    tile = sch.blockize(parts[0][1])
    sch.annotate(tile, AUTO_TENSORIZE, intrin_name)
    sch.annotate(tile, PERMUTED, f"s2l_{side}")


def _ahead(state: Tiled, tiling: MultiLevelTiling, shared: list[BlockRV], sums: list[list[LoopRV]]) -> None:
    """Shared memory is filled parts ahead, registers a step; of the outer loop's five statements three are the inner one's pipeline."""
    sch = state.sch
    for cache in shared:
        sch.annotate(cache, VECTOR_BYTES, 16)
    outer, inner = sums[0][-1], sums[1][-1]
    sch.annotate(inner, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(inner, "software_pipeline_order", [0, 1, 2])
    if tiling.copies_asynchronously:
        sch.annotate(outer, "software_pipeline_async_stages", [0])
        sch.annotate(outer, "software_pipeline_stage", [0, 0, 1, 2, 2])
    else:
        sch.annotate(outer, "software_pipeline_stage", [0, 0, 0, 1, 1])
    sch.annotate(outer, "software_pipeline_order", [0, 1, 3, 2, 4])
