"""`MultiLevelTiling`: spatial and reduction loops of a product in levels, with a cache for what is written.

SSRSRS    i0 j0 | i1 j1 | k0 | i2 j2 | k1 | i3 j3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...errors import ScheduleError, TuningError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.thread_binding import TILED, is_root
from ...tir.block import Block
from ..tune_context import TuneContext
from .analysis import REDUCE, SPATIAL, bound_loops, extents_by_kind, is_elementwise, needs_tiling
from .cooperative import has_two_loads, load_together, pipelined, stages_of
from .schedule_rule import PyScheduleRule

FEWEST_THREADS = "meta_schedule.thread_extent_low_inclusive"
MOST_THREADS = "meta_schedule.thread_extent_high_inclusive"
_REQUESTS = ("no", "may", "must")


@dataclass(frozen=True)
class ReuseType:
    """Whether a cache is made, at which levels of tiles it may stand (from 1), and in which memory.

    Raises:
        TuningError: for another request than "no", "may" or "must".
    """

    req: str
    levels: Sequence[int]
    scope: str

    def __post_init__(self) -> None:
        if self.req not in _REQUESTS:
            raise TuningError(f"a ReuseType's req is one of {', '.join(_REQUESTS)}, not {self.req!r}")

    def as_dict(self) -> dict[str, Any]:
        """Its fields, as older programs pass them."""
        return {"req": self.req, "levels": list(self.levels), "scope": self.scope}


@dataclass
class Tiled:
    """A schedule whose block is tiled: the loops of each level, and of each loop that was, its kind and the sizes of its parts."""

    sch: Schedule
    block: BlockRV
    tiles: list[list[LoopRV]]
    factors: list[tuple[str, list[Any]]] = field(default_factory=list)


class MultiLevelTiling(PyScheduleRule):
    """Tiles blocks that reuse data, in levels of spatial (S) and reduction (R) loops.

    Args:
        structure: the levels, outermost first.
        tile_binds: thread axes of the first levels, for GPUs.
        max_innermost_factor: the largest innermost tile.
        vector_load_lens: lengths of cooperative loads, for GPUs.
        reuse_read: a cache for what is read.
        reuse_write: a cache for what is written; an elementwise consumer stands in for it.
        filter_fn: which blocks to tile, besides those that need it.

    Raises:
        TuningError: for another structure than levels of S and R.
    """

    def __init__(
        self,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        if not structure or set(structure) - {SPATIAL, REDUCE}:
            raise TuningError(f"a structure of tiles is made of S and R, such as SSRSRS, not {structure!r}")
        self.structure = structure
        self.tile_binds = list(tile_binds or ())
        self.vector_load_lens = list(vector_load_lens or ())
        self.max_innermost_factor = max_innermost_factor
        self.reuse_read = reuse_read
        self.reuse_write = reuse_write
        self.filter_fn = filter_fn
        self._threads: tuple[int, int] | None = None
        self._stages: tuple[int, ...] = ()
        self._is_known = False  # whether a task has said what its target is

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the threads of a warp and of a block of the task's target, and whether it loads asynchronously."""
        attrs = context.target.attrs
        if "max_threads_per_block" in attrs and "thread_warp_size" in attrs:
            self._threads = int(attrs["thread_warp_size"]), int(attrs["max_threads_per_block"])
        self._stages, self._is_known = stages_of(str(attrs.get("arch", ""))), "arch" in attrs

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that tiling makes: with caches at each of their levels, and without where they may be left out."""
        if is_root(sch, block) or TILED in sch.get(block).annotations:
            return [sch]
        wanted = needs_tiling(sch, block) and (self.filter_fn is None or self.filter_fn(sch, block))
        if not wanted:
            return [sch]
        # marked first: the rule sees the block again in each schedule that is made of this one
        sch.annotate(block, TILED, self.structure)
        return self.tiled(sch, block)

    def tiled(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that tiling makes of a block, whatever it is."""
        tiled = self.tile(sch, block)
        return [made.sch for wrote in self._write_reused(tiled) for read in self._read_reused(wrote) for made in self._pipelined(read)]

    @property
    def copies_asynchronously(self) -> bool:
        """Whether the task's target fills shared memory while it computes; where no task says otherwise, it does."""
        return bool(self._stages) or not self._is_known

    def tile(self, sch: Schedule, block: BlockRV, multiples: Sequence[int] = ()) -> Tiled:
        """Split the loops of a block into levels, and bind the first of them.

        Args:
            multiples: of spatial loops in their order what the levels inside of threads multiply to a multiple of.
        """
        sizes: list[tuple[str, list[Any]]] = []
        levels: list[list[LoopRV]] = [[] for _ in self.structure]
        loops = bound_loops(sch, block) or []
        extent = extents_by_kind(loops)[0]
        for loop in loops:
            if not loop.kind:  # it is neither spatial nor of the reduction, and stays where it is
                continue
            places = [place for place, kind in enumerate(self.structure) if kind == loop.kind]
            if not places:
                raise TuningError(f"the structure {self.structure} has no level for a loop of kind {loop.kind}")
            parts = [loop.loop]
            if len(places) > 1:
                if loop.kind == SPATIAL and multiples:
                    done = sum(kind == SPATIAL for kind, _ in sizes)
                    within = self.structure[: len(self.tile_binds)].count(SPATIAL)
                    factors = sch.sample_partitioned_tile(loop.loop, len(places), within, multiples[done])
                else:
                    factors = sch.sample_perfect_tile(loop.loop, n=len(places), max_innermost_factor=self.max_innermost_factor or -1)
                parts = sch.split(loop.loop, factors)
                sizes.append((loop.kind, list(factors)))
            for place, part in zip(places, parts, strict=True):
                levels[place].append(part)
        sch.reorder(*(part for level in levels for part in level))
        for place, axis in enumerate(self.tile_binds[: len(levels)]):
            levels[place] = [sch.fuse(*levels[place])]
            sch.bind(levels[place][0], axis)
        if self._threads is not None:
            self._bound_threads(sch, block, extent)
        return Tiled(sch, block, levels, sizes)

    def _bound_threads(self, sch: Schedule, block: BlockRV, elements: int) -> None:
        """Say how many threads there may be: a warp at least, where there are elements for two."""
        warp, most = self._threads or (1, 1)
        sch.annotate(block, FEWEST_THREADS, warp if elements > 2 * warp else 1)
        sch.annotate(block, MOST_THREADS, most)

    def _write_reused(self, state: Tiled) -> list[Tiled]:
        reuse = self.reuse_write
        if reuse is None or reuse.req == "no":
            return [state]
        # random variables mean the same in a copy, so the tiles are good for it too
        plain = [Tiled(state.sch.copy(), state.block, state.tiles)] if reuse.req == "may" else []
        consumers = state.sch.get_consumers(state.block)
        # relu(conv): the consumer itself, moved into the tiles, reads each tile as soon as it is made
        fits = reuse.req == "may" and len(consumers) == 1 and _stands_for_a_cache(state.sch, consumers[0])
        moved = consumers[0] if fits else state.sch.cache_write(state.block, 0, reuse.scope)
        cached: list[Tiled] = []
        for level in reuse.levels:
            sch = state.sch.copy()
            around = [loop for tiles in state.tiles[:level] for loop in tiles]
            try:
                sch.reverse_compute_at(moved, around[-1], preserve_unit_loops=True)
            # IndexError: no loops stand around that level
            except (ScheduleError, IndexError):
                continue
            cached.append(Tiled(sch, state.block, state.tiles))
        # where the consumer fits, req is "may", so that `plain` isn't empty
        return [*cached, *plain] if fits else [*plain, *cached] or [state]

    def _read_reused(self, state: Tiled) -> list[Tiled]:
        reuse = self.reuse_read
        if reuse is None or reuse.req == "no":
            return [state]
        found = [Tiled(state.sch.copy(), state.block, state.tiles)] if reuse.req == "may" else []
        block: Block = state.sch.get(state.block)
        own = {region.buffer for region in block.writes}
        operands = [place for place, region in enumerate(block.reads) if region.buffer not in own]
        for level in reuse.levels:
            sch = state.sch.copy()
            around = [loop for tiles in state.tiles[:level] for loop in tiles]
            try:
                for place in operands:
                    cache = sch.cache_read(state.block, place, reuse.scope, [state.block])
                    sch.compute_at(cache, around[-1], preserve_unit_loops=True)
                    load_together(sch, cache, self.vector_load_lens)
            # IndexError: no loops stand around that level
            except (ScheduleError, IndexError):
                continue
            found.append(Tiled(sch, state.block, state.tiles))
        return found or [state]

    def _pipelined(self, state: Tiled) -> list[Tiled]:
        """The state, and with its loads ahead of what is computed, where the target has such loads."""
        outer = next((tiles for tiles, kind in zip(state.tiles, self.structure, strict=True) if kind == REDUCE), [])
        if not outer or not self._stages or not has_two_loads(state.sch, outer[-1]):
            return [state]
        found = [state]
        for stages in self._stages:
            sch = state.sch.copy()
            pipelined(sch, outer, stages)
            found.append(Tiled(sch, state.block, state.tiles))
        return found


def _stands_for_a_cache(sch: Schedule, consumer: BlockRV) -> bool:
    """Whether a block only maps elements, in the order in which they are made."""
    return is_elementwise(sch.get(consumer))
