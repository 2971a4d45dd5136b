"""`MultiLevelTilingTensorCore`: tiles of products whose innermost part the tensor cores of a GPU compute.

blocks of the grid, warps:
    for each part of the sum:
        the threads copy parts of both operands into shared memory
        for each step: operands into fragments (load_a, load_b), then products of fragments (compute)
    sums from fragments into shared memory (store), from there to the result by all threads

Groups of `mma_sync` intrinsics are tiled by `tiles_of_mma`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...arith import Analyzer, IndexMap
from ...errors import ScheduleError, TuningError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.tensorize_mapping import AutoTensorizeMappingInfo, get_auto_tensorize_mapping_info
from ...schedule.blocks.thread_binding import TILED, is_root
from ...tir.arithmetic import as_int
from ...tir.block import Block
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr, Var
from ...tir.rewriting import substitute, variables
from ...tir.tensor_intrin import TensorIntrin
from ..tune_context import TuneContext
from .analysis import SPATIAL, needs_tiling
from .cooperative import WARP_EXECUTION, load_together
from .multi_level_tiling import MultiLevelTiling, ReuseType, Tiled
from .multi_level_tiling_with_intrin import AUTO_TENSORIZE, AUTO_TENSORIZE_INIT, extents_of, split_off
from .schedule_rule import PyScheduleRule
from .tiles_of_mma import MULTIPLES, tiles_of_mma

_PARTS = ("init", "load_a", "load_b", "compute", "store")
_FRAGMENTS = ("wmma.matrix_a", "wmma.matrix_b")
_ACCUMULATOR = "wmma.accumulator"
# Rows in shared memory are 64 bytes and a fourth apart from multiples of that, so that fragments are read from all banks.
_ALIGNED, _APART = 512, 128  # bits


class MultiLevelTilingTensorCore(PyScheduleRule):
    """Tiles blocks that an intrinsic of tensor cores computes a part of, padded to multiples of it; others stay for the rules after it.

    Args:
        intrin_groups: for each kind of fragments the names of intrinsics: "init", "load_a", "load_b", "compute", "store". Each group that
            fits a block makes a design space.
        structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write: as for MultiLevelTiling.
        use_software_pipeline: loads run ahead of what is computed.

    Raises:
        TuningError: for a group that lacks a name or has another one, and without shared memory for what is read and, of fragments,
            written: threads meet fragments there.
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        use_software_pipeline: bool = False,
    ) -> None:
        for group in intrin_groups:
            if set(group) != set(_PARTS):
                raise TuningError(f"a group of intrinsics names {', '.join(_PARTS)}, not {', '.join(group)}")
        # Sums of `mma` go from registers to the result.
        writes = [("reuse_write", reuse_write)] if any(not _is_mma(group) for group in intrin_groups) else []
        for name, reuse in (("reuse_read", reuse_read), *writes):
            if reuse is None or reuse.req != "must" or not reuse.scope.startswith("shared"):
                raise TuningError(f'{name} is {reuse!r}; tensor cores want ReuseType(req="must", levels=[...], scope="shared.dyn")')
        self.intrin_groups = [dict(group) for group in intrin_groups]
        self.use_software_pipeline = use_software_pipeline
        self._tiling = MultiLevelTiling(structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take what tiling needs to know of the task's target."""
        self._tiling.initialize_with_tune_context(context)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """A schedule for each group of intrinsics that fits; the schedule as it is where none does."""
        if is_root(sch, block) or TILED in sch.get(block).annotations or not needs_tiling(sch, block):
            return [sch]
        made: list[Schedule] = []
        for group in self.intrin_groups:
            mapping = get_auto_tensorize_mapping_info(sch, block, TensorIntrin.get(group["compute"]).desc)
            if mapping is None:
                continue
            trial = sch.copy()
            try:
                made.append(self._tensorized(trial, block, group, mapping))
            except ScheduleError:  # zeros would change what it computes, say
                continue
        return made or [sch]

    def _tensorized(self, sch: Schedule, block: BlockRV, group: Mapping[str, str], mapping: AutoTensorizeMappingInfo) -> Schedule:
        sch.annotate(block, TILED, self._tiling.structure)
        copy = _padded(sch, block, _as_product(sch, block, mapping), extents_of(group["compute"]))
        outer = sch.blockize(split_off(sch, block, extents_of(group["compute"])))
        sch.annotate(outer, AUTO_TENSORIZE, group["compute"])
        sch.annotate(outer, AUTO_TENSORIZE_INIT, group["init"])
        sch.annotate(outer, WARP_EXECUTION, 1)
        write, read = self._tiling.reuse_write, self._tiling.reuse_read
        if _is_mma(group) and read is not None:
            if len(sch.get(outer).iter_vars) != 3:
                raise ScheduleError("tiles of mma have rows, columns and products")
            tiles_of_mma(self._tiling.tile(sch, outer, MULTIPLES), self._tiling, read, group, copy, self.use_software_pipeline)
            return sch
        state = self._tiling.tile(sch, outer)
        assert write is not None and read is not None
        _in_tiles(state, self._tiling, group)
        self._written(state, write, group, copy)
        shared = [self._fetched(state, place, read) for place in range(2)]
        for place, name in enumerate(("load_a", "load_b")):
            self._loaded(state, place, group[name])
        for cache in shared:
            (producer,) = sch.get_producers(cache)
            sch.compute_inline(producer)
            bits = parse_dtype(str(sch.get(cache).writes[0].buffer.dtype)).bits
            sch.storage_align(cache, 0, -2, _ALIGNED // bits, _APART // bits)
        if self.use_software_pipeline:
            _pipelined(state, self._tiling.structure, shared)
        return sch

    def _written(self, state: Tiled, reuse: ReuseType, group: Mapping[str, str], copy: BlockRV) -> None:
        """Sums leave fragments for shared memory a row of tiles at a time, and all threads write them to the result."""
        sch, level = state.sch, reuse.levels[0]
        place = state.tiles[level - 1][-1]
        shared = sch.cache_write(state.block, 0, reuse.scope)
        sch.reverse_compute_at(shared, place, preserve_unit_loops=True)
        fragments = sch.cache_write(state.block, 0, _ACCUMULATOR)
        # the last six: tiles of warps, tiles of fragments, and elements of a fragment, each along rows and columns
        warps_of_rows, warps_of_columns, row, column = sch.get_loops(shared)[-6:-2]
        sch.reorder(row, warps_of_rows, warps_of_columns, column)
        sch.compute_at(fragments, row, preserve_unit_loops=True)
        loops = sch.get_loops(fragments)[-6:]
        threads = sch.fuse(*loops[:2])
        sch.bind(threads, self._tiling.tile_binds[level])
        sch.reverse_compute_inline(copy)
        stored = sch.blockize(sch.get_loops(fragments)[-2])
        sch.annotate(stored, AUTO_TENSORIZE, group["store"])
        load_together(sch, shared, self._tiling.vector_load_lens, loops=5)

    def _fetched(self, state: Tiled, place: int, reuse: ReuseType) -> BlockRV:
        """The threads copy a part of an operand into shared memory."""
        sch = state.sch
        cache = sch.cache_read(state.block, place, reuse.scope, [state.block])
        around = [loop for tiles in state.tiles[: reuse.levels[0]] for loop in tiles]
        sch.compute_at(cache, around[-1], preserve_unit_loops=True)
        load_together(sch, cache, self._tiling.vector_load_lens)
        return cache

    def _loaded(self, state: Tiled, place: int, intrin_name: str) -> None:
        """A part of an operand from shared memory into fragments."""
        sch = state.sch
        cache = sch.cache_read(state.block, place, _FRAGMENTS[place])
        steps = [tiles for tiles, kind in zip(state.tiles, self._tiling.structure, strict=True) if kind != SPATIAL]
        sch.compute_at(cache, steps[min(1, len(steps) - 1)][-1], preserve_unit_loops=True)
        sizes = [extent for _, extent in extents_of(intrin_name)]
        parts = [sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(cache)[-len(sizes) :], sizes, strict=True)]
        sch.reorder(*(outer for outer, _ in parts), *(inner for _, inner in parts))
        sch.annotate(sch.blockize(parts[0][1]), AUTO_TENSORIZE, intrin_name)


def _is_mma(group: Mapping[str, str]) -> bool:
    """Whether intrinsics are those of `mma`, whose operands are registers, not fragments."""
    return group["compute"].startswith("mma_sync")


def _as_product(sch: Schedule, block: BlockRV, mapping: AutoTensorizeMappingInfo) -> list[BlockRV]:
    """Give a block the axes of the intrinsic's product, and its buffers the indices; the copies of result and operands that this takes."""
    stmt: Block = sch.get(block)
    (fused,) = mapping.mappings
    facts = Analyzer()
    axes = IndexMap(fused.initial_indices, tuple(facts.simplify(index) for index in fused.final_indices))
    loose = list(axes.final_indices)[: len(axes.final_indices) - len(mapping.rhs_iters)]
    meant = dict(zip((axis.var for axis in mapping.rhs_iters), list(axes.final_indices)[len(loose) :], strict=True))
    own = {region.buffer for region in stmt.writes}
    operands = [region.buffer for region in stmt.reads if region.buffer not in own]
    sides = [("write", 0, stmt.writes[0].buffer), *(("read", place, buffer) for place, buffer in enumerate(operands))]
    copies = [sch.reindex(block, (side, place)) for side, place, _ in sides]
    maps = [
        _map_of(axes, _used(sch.get(block), side, place), loose, meant, mapping.rhs_buffer_indices[mapping.lhs_buffer_map[buffer]])
        for side, place, buffer in sides
    ]
    for (side, place, _), index_map in [*zip(sides[1:], maps[1:], strict=True), (sides[0], maps[0])]:
        sch.transform_layout(block, (side, place), index_map, assume_injective_transform=True)
    for copy, index_map in zip(copies, maps, strict=True):
        sch.transform_block_layout(copy, index_map)
    sch.transform_block_layout(block, axes)
    return copies


def _padded(sch: Schedule, block: BlockRV, copies: Sequence[BlockRV], extents: Sequence[tuple[str, int]]) -> BlockRV:
    """Pad the last axes of a block to multiples of an intrinsic's, if they aren't; the copy of its result into what was there before."""
    sizes = [as_int(axis.dom.extent) or 1 for axis in sch.get(block).iter_vars if axis.dom is not None]
    wanted = [1] * (len(sizes) - len(extents)) + [extent for _, extent in extents]
    if all(size % many == 0 for size, many in zip(sizes, wanted, strict=True)):
        return copies[0]
    sch.pad_einsum(block, wanted)
    stmt = sch.get(block)
    for copy in copies[1:]:  # where an operand is padded, the block that pads it reads its copy
        if sch.get(sch.get_consumers(copy)[0]) is not stmt:
            sch.compute_inline(copy)
    cropped = sch.get_consumers(block)[0]
    if sch.get(cropped) is not sch.get(copies[0]):
        sch.reverse_compute_inline(copies[0])
    return cropped


def _used(stmt: Block, side: str, place: int) -> set[int]:
    """The places of the axes that a block accesses a copy at."""
    own = {region.buffer for region in stmt.writes}
    regions = list(stmt.writes) if side == "write" else [region for region in stmt.reads if region.buffer not in own]
    used = set().union(*(variables(part.min) for part in regions[place].region))
    return {number for number, axis in enumerate(stmt.iter_vars) if axis.var in used}


def _map_of(
    axes: IndexMap, places: set[int], loose: Sequence[PrimExpr], meant: Mapping[Var, PrimExpr], indices: Sequence[PrimExpr]
) -> IndexMap:
    """From the axes that an access moves with to those of the intrinsic, in the order in which it accesses the buffer."""
    initial = tuple(axis for place, axis in enumerate(axes.initial_indices) if place in places)
    final = [index for index in loose if variables(index) & set(initial)]
    return IndexMap(initial, (*final, *(substitute(index, dict(meant)) for index in indices)))


def _in_tiles(state: Tiled, tiling: MultiLevelTiling, group: Mapping[str, str]) -> None:
    """Let the results of a warp, and in it those of a fragment, lie side by side.

    (i, j) -> (i // 16 // rows, j // 16 // columns, i // 16 % rows, j // 16 % columns, i % 16, j % 16)
    """
    sch = state.sch
    sizes = [extent for kind, extent in extents_of(group["compute"]) if kind == SPATIAL]
    count = len(sch.get(state.block).writes[0].buffer.shape)
    spatial = [tuple(parts) for kind, parts in state.factors if kind == SPATIAL][-len(sizes) :]
    bound = len(tiling.tile_binds)

    def index_map(*indices: PrimExpr) -> list[PrimExpr]:
        inner = list(zip(indices[count - len(sizes) :], sizes, spatial, strict=True))
        of_warp = [prod(parts[bound + 1 :], start=parts[bound]) for _, _, parts in inner]
        first = [index // size // many for (index, size, _), many in zip(inner, of_warp, strict=True)]
        then = [index // size % many for (index, size, _), many in zip(inner, of_warp, strict=True)]
        return [*indices[: count - len(sizes)], *first, *then, *(index % size for index, size, _ in inner)]

    names = [Var(f"i{number}", "int32") for number in range(count)]
    sch.transform_layout(state.block, ("write", 0), IndexMap(tuple(names), tuple(index_map(*names))), assume_injective_transform=True)


def _pipelined(state: Tiled, structure: str, shared: Sequence[BlockRV]) -> None:
    """Loads of shared memory run ahead of the loop over parts of the sum, loads of fragments ahead of that over steps."""
    sch = state.sch
    outer, inner = [tiles[-1] for tiles, kind in zip(state.tiles, structure, strict=True) if kind != SPATIAL][:2]
    for cache in shared:
        sch.annotate(cache, "tir.manifest_shared_memory_local_stage", 1)
        sch.annotate(cache, "double_buffer_scope", 0)
    sch.annotate(inner, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(inner, "software_pipeline_order", [0, 1, 2])
    # Of what the outer loop holds once the inner one's pipeline and the local stage of the loads are written out: two loads, each from
    # memory and on to shared memory, the fragments of the first step, the steps, and the last one.
    sch.annotate(outer, "software_pipeline_stage", [0, 0, 0, 0, 0, 1, 1])
    sch.annotate(outer, "software_pipeline_order", [0, 3, 1, 4, 5, 2, 6])
