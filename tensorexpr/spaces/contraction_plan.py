"""Which register tile a contraction gets, which copies of its operands, and which loops: decided before the first step.

The shape is that of Goto and van de Geijn (2008): tiles of accumulators stay in registers over a sum, panels of the operand in the
lanes stay in the nearest cache while tiles go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from math import prod

from ..dataclass import dataclass, replace
from ..schedule.layout_rewrite import layout_free_inputs
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from ..target.machine import Machine
from .access import bytes_of, lanes_of_terms, panel_along
from .contractions import Contraction, contractions_of
from .dot_products import DotProduct, dot_product_of
from .machine import STREAMS
from .sizes import tile_vectors
from .tile_cycles import LOAD, PLANES, RegisterTile, Shape, packing_cycles, ranked_tiles, waits_for_rows

# Vectors of multiply-adds below which one core is done before another one has begun: about 2 microseconds.
_PARALLEL_STEPS = 1 << 13
# Rows that make up for packing: a vector of the panel costs 2 cycles to copy and half a cycle for each row.
_WORTH_A_COPY = 64
# ... and for computing it once: 256 x 1024 x 1024 of W * scale takes as long either way with 16 rows, 1.4 times without with 32 (Zen 3).
WORTH_ONE_COMPUTATION = 16
# ... and, of bytes, for all panels before everything: 128 x 768 x 768 0.95 times as fast so, 400 x 3072 x 768 as fast, 1024^3 1.06 times.
_WORTH_ALL_PANELS = 192
# Rows of the product up to which prefetchers decide: 4 x 2048 x 2048 1.46 ms with a panel after the other, 1.2 in blocks of 64, 0.37 of 8;
# 24 rows 2.4 of 2.7, 48 rows as long (two cores of Zen 3).
_FOLLOWED = 32
# Lanes that have less than half their places filled lose more than packing another axis costs.
_FULL_LANES = 4
_ROWS = 0.2  # cycles that a vector of a plane, far from that of the next step, delays the multiply-adds beside it
_OVER_LINES = 0.5  # ... and where it lies across two lines of the cache
# The widths of panels that the search may have: those that leave the least of the last panel empty.
_WIDTHS = 2
_MORE_IN_ROWS = 4  # times as many bytes in rows as in panels, from which on rows are met once and panels again and again
_OF_LAST_CACHE = 8  # the part of the last cache that panels may take, as other cores have their share of it
_SHARED = 2  # panels that use a byte of the left operand, from which on it is converted once for all of them


class Pack(Enum):
    """Where the right operand is copied into panels."""

    NONE = ""
    PANEL = ",panel"  # its own panel, by the thread that uses it
    ROOT = ",packed"  # all panels, before everything
    GIVEN = ",given"  # all panels, by the caller


class Order(Enum):
    """The loops outside of the tiles, outermost first: what a core goes through once while it goes through the others again and again."""

    CHUNKS = "batches, chunks of rows, panels: the left operand is the larger one"
    BATCHES = "batches, panels, chunks of rows"
    PANELS = "panels, chunks of rows, batches: the right operand is the larger one"
    ROWS = "batches, tiles of rows, all panels for each: the right operand stays in a cache"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before the first step.

    Args:
        contraction: the axes and what they are for; with an instruction the last summed one is summed in groups.
        tile: rows and vectors of the accumulators.
        lanes: of a vector of results.
        pack: where the right operand is copied into panels.
        parallel: on all cores.
        order: of the loops around the tiles.
        dot: the instruction that sums groups of small numbers.
        widened: the left operand is copied as 16-bit words first, where the instruction multiplies such and else has bytes of it
            converted for each panel again.
        block: how many terms of the sum a panel holds, or all columns of a part meet before the next ones; 0 for all.
        parts: of the columns, each of which keeps the sums of all rows while it goes through blocks that aren't packed.
        blocks: the axis of panels, where the right operand lies in panels as wide as a vector.
        written: so many rows of the plane are written out, tile after tile and tap after tap; 0 if tiles are steps of loops.
        taps_inside: the taps of a row of the window are inside the sum over channels, so that pixels are met while they are near.
        peeled: border tiles have bodies of their own; else there is a copy of the data with its border.
        prefetched: each iteration of the parallel loop fetches the pixels of the next one.
    """

    contraction: Contraction
    tile: RegisterTile
    lanes: int
    pack: Pack
    parallel: bool
    order: Order = Order.CHUNKS
    dot: DotProduct | None = None
    block: int = 0
    parts: int = 0
    blocks: int | None = None
    written: int = 0
    taps_inside: bool = False
    peeled: bool = False
    prefetched: bool = False
    widened: bool = False

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.tile.vectors * self.lanes

    @property
    def row_groups(self) -> list[tuple[int, ...]]:
        """The axes of rows, those together that are one loop: they are one in memory, or tiles run on over row ends."""
        rows = self.contraction.rows
        merged = rows[-2:] if self.written else self.contraction.merged_rows()
        return [*((row,) for row in rows if row not in merged), *([merged] if merged else [])]

    def cycles(self, target: Target) -> float:
        """Cycles of the busiest core, with those to start threads; of a copy of the whole right operand, also those to store and load it.

        Example:
            4 x 4 x 512 x 256 weights, 8 MB of panels, each of which its thread packs and uses: 9.1 ms; all of them before: 15.4 (Zen 3).
        """
        machine, cores = target.machine, target.num_cores if self.parallel else 1
        copied, kept = bytes_of(self.contraction.right.tensor) if self.pack is Pack.ROOT else 0, machine.caches[1]
        stored = 2 * copied / kept.fill_bytes / cores if copied > kept.size else 0.0
        return self.tile.cycles + stored + machine.fork_join_cycles * (self.parallel + (self.parallel and self.pack is Pack.ROOT))

    @property
    def is_transposed(self) -> bool:
        """True if the columns of the right operand are no neighbours in memory."""
        return not self.contraction.right.lies_along(self.contraction.column)

    @property
    def words(self) -> str:
        """The plan in a sketch's name."""
        names, found = self.contraction.names, self.contraction
        order = (*found.rows, found.column) if self.order is Order.ROWS else (found.column, *found.rows)
        width = f" x{self.tile.vectors}" if self.pack is not Pack.NONE else ""
        streamed = ",streamed" if self.parts else ""
        return f"{names(found.column)} in lanes,{names(*order).replace(', ', '>')}{self.pack.value}{width}{streamed}"


def contraction_plans(contraction: Contraction, target: Target) -> list[Plan]:
    """The ways to compute a contraction, the one of the fewest cycles first; none if it is better seen as many sums than as tiles.

    The others pack where that one doesn't, or the other way round, and have tiles of another number of vectors or chunks. How
    many rows a tile has is left to the search.
    """
    base = _base(contraction, target)
    if base is None:
        return []
    plan, shape = base
    if contraction.opened:
        return _of_open_sizes(plan, shape, target)
    # Fewer rows don't pay for a transposed panel: a vector of it costs as much as the products of 4 rows.
    # Example: 1 x 512 times 512 x 512 is one row. It is a matrix and a vector, bound by memory, and a reduction over lanes reads the matrix
    # once.
    if shape.rows * shape.repeats < (4 if plan.is_transposed and plan.blocks is None else 2):
        return []
    # Without a copy, and with one: the count of cycles is right to a fifth, and where pages are short a copy decides more than that.
    shapes = [shape]
    if not plan.is_transposed and plan.dot is None and contraction.can_be_packed:
        shapes.append(replace(shape, packing=0.0 if shape.packing else packing_cycles(False)))
    ranked = [ranked_tiles(one, target, target.num_cores if plan.parallel else 1) for one in shapes]
    # The first plan is the schedule without trials, and the second one differs in whether it packs.
    chosen = [(one, tiles[0]) for one, tiles in zip(shapes, ranked, strict=True)] + [(shape, tile) for tile in ranked[0][1:]]
    found = []
    for one, tile in chosen:
        block = _block_of(plan, tile.vectors * plan.lanes, target)
        packed = one.packing > 0 or block > 0
        found.append(replace(plan, tile=tile, pack=Pack.PANEL if packed else Pack.NONE, block=block))
    better = (way for one in found[:1] for way in (_streamed(one, target), _by_rows(one, target), _of_own_rows(one)) if way is not None)
    return [*better, *found]


def _of_open_sizes(plan: Plan, shape: Shape, target: Target) -> list[Plan]:
    """The plan of a product of open sizes: one that is good for some tens of each, and legal for all."""
    contraction = plan.contraction
    is_panel_open = any(axis in contraction.opened for axis in (*contraction.columns, *contraction.summed))
    if plan.dot is not None or (plan.is_transposed and is_panel_open):  # copies are laid out by sizes
        return []
    shape = replace(shape, packing=0.0) if is_panel_open else shape
    tiles = [tile for tile in ranked_tiles(replace(shape, repeats=1), target, 1) if tile.chunks == 1]
    return [replace(plan, tile=tile, pack=Pack.PANEL if shape.packing else Pack.NONE) for tile in tiles[:1]]


def searched_plans(tree: ScheduleTree, stage: StageNode, target: Target, caller_packs: bool) -> list[Plan]:
    """The structures that a search may choose from: the axis in the lanes, where panels are packed, their widths, which loops are outside.

    The axis in the lanes is the last one, and the longest other one if that one is short, or none, or slides over a window. Where an
    instruction sums groups, only plans of the one that sums most are worth trying.

    Args:
        caller_packs: whoever calls brings inputs of free layout into the one that the program wants.
    """
    lanes, contractions = lanes_of_terms(stage.compute.body, target), contractions_of(tree, stage)
    found = [list(_structures(one, target, caller_packs and _is_given(tree, stage, one))) for one in contractions]
    # An instruction that sums groups of two or four does as many multiply-adds where others do one: no plan without it is worth a trial.
    groups = [plans[0].dot.group if plans and plans[0].dot is not None else 0 for plans in found]
    if any(groups):
        return found[groups.index(max(groups))]
    chosen = list[Plan]()
    for one, plans in zip(contractions, found, strict=True):
        is_last, columns = one.column == len(one.op.axis) - 1, one.size(one.column)
        if plans and (is_last or columns >= lanes):
            chosen += plans
            if not is_last or (columns >= _FULL_LANES * lanes and not one.right.has_windows(one.column)):
                break
    return chosen


def _structures(contraction: Contraction, target: Target, is_given: bool) -> Iterator[Plan]:
    """The plans with one axis in the lanes."""
    base = _base(contraction, target)
    if base is None:
        return
    plan, shape = base
    lanes, vectors = plan.lanes, -(-contraction.size(contraction.column) // plan.lanes)
    tiles = {tile.vectors: tile for tile in ranked_tiles(shape, target, 1)}
    if (not plan.is_transposed and plan.dot is None) or plan.blocks is not None:
        for order in (Order.CHUNKS, Order.ROWS):
            yield replace(plan, tile=next(iter(tiles.values())), pack=Pack.NONE, order=order)
        streamed = _streamed(replace(plan, tile=next(iter(tiles.values()))), target)
        if streamed is not None:
            yield streamed
    if not contraction.can_be_packed or plan.blocks is not None:
        return
    waste = {count: -(-vectors // count) * count for count in dict.fromkeys((min(vectors, 1 if plan.dot else 2), *tile_vectors(target)))}
    widths = sorted((count for count in waste if count in tiles), key=lambda count: (waste[count], -count * lanes))
    # What comes in the caller's layout isn't known to be zero past the end of a sum, so groups have to be whole.
    is_given = is_given and (plan.dot is None or contraction.size(plan.contraction.summed[-1]) % plan.dot.group == 0)
    before = Pack.GIVEN if is_given else Pack.ROOT
    # A matrix for each of a batch can't be packed before everything without memory for all of them, each of which is used once.
    shared = not any(contraction.right.moves_with(axis) for axis in contraction.batch)
    for count in widths[:_WIDTHS]:
        yield replace(plan, tile=tiles[count], pack=Pack.GIVEN if is_given else Pack.PANEL)
        if shared or is_given:
            yield replace(plan, tile=tiles[count], pack=before, order=Order.ROWS)


def _is_given(tree: ScheduleTree, stage: StageNode, contraction: Contraction) -> bool:
    """True if whoever calls may bring the right operand into the layout that the program wants."""
    producer = tree.producer(contraction.right.load)
    free = producer.is_placeholder and producer.origin.output(0) in layout_free_inputs(tree)
    return free and not contraction.reads_twice and [reader.id for reader in tree.consumers(producer)] == [stage.id]


def _base(contraction: Contraction, target: Target) -> tuple[Plan, Shape] | None:
    """What all plans have in common, the tile apart; None if there are too few columns for vectors."""
    most = lanes_of_terms(contraction.op.body, target)
    if not contraction.size(*range(len(contraction.sizes))):
        return None
    # The axis that an instruction sums in groups is the innermost step of the sum, whatever stood last in the definition.
    found = dot_product_of(contraction, target)
    dot, last = found if found is not None else (None, contraction.summed[-1])
    contraction = replace(contraction, summed=(*(axis for axis in contraction.summed if axis != last), last))
    blocks = None if dot is None else _panels_in_memory(contraction, dot)
    if blocks is not None:
        contraction = replace(contraction, batch=tuple(axis for axis in contraction.batch if axis != blocks))
    # A result narrower than a vector has vectors of the power of two that holds a row of it.
    # Example: 10 columns with 16 lanes: vectors of 16, of which 6 lanes are masked or padded; 4 columns: vectors of 4.
    lanes = most if dot is not None else min(most, 1 << (contraction.size(*contraction.columns) - 1).bit_length())
    plan = Plan(contraction, RegisterTile((1,), 1), lanes, Pack.NONE, False, dot=dot, blocks=blocks)
    shape = _shape_of(plan, target.machine)
    # A quarter of the lanes or less: sums over lanes, or the other axis in them, waste less than such a tile.
    if lanes < most // 4 or lanes == 1:
        return None
    steps = shape.batch * shape.repeats * shape.rows * shape.depth * -(-shape.columns // lanes)
    parallel = target.num_cores > 1 and steps >= _PARALLEL_STEPS
    return replace(plan, parallel=parallel, widened=dot is not None and _has_words(contraction, dot)), shape


def _has_words(contraction: Contraction, dot: DotProduct) -> bool:
    """True if each byte of the left operand is multiplied by several panels, or for several taps of a window.

    To convert a pair takes an instruction beside the two of each of its products with a vector, and a copy some for 16 pairs.
    """
    (left,) = contraction.left
    panels = -(-contraction.size(contraction.column) // (2 * dot.outputs))
    reads = prod(extent for axis, extent in enumerate(contraction.sizes) if axis != contraction.column) * panels
    return bool(dot.words) and reads >= _SHARED * bytes_of(left.tensor)


def _panels_in_memory(contraction: Contraction, dot: DotProduct) -> int | None:
    """The axis of panels, where the right operand lies as the instruction reads it: a vector of columns and one group innermost."""
    right, last = contraction.right, contraction.summed[-1]
    whole = contraction.size(contraction.column) == dot.outputs and contraction.size(last) == dot.group
    if not whole or right.forms[-2:] != ({contraction.column: 1}, {last: 1}):
        return None
    alone = (axis for axis in reversed(contraction.batch) if not contraction.left[0].moves_with(axis))
    return next(alone, None)


def _block_of(plan: Plan, width: int, target: Target) -> int:
    """How many terms a panel of so many columns may have: it fills half of the second cache at most, if it is used often; 0 for all."""
    contraction = plan.contraction
    depth, rows = contraction.size(*contraction.summed), contraction.size(*contraction.rows)
    # The other half is left to the rows and results that stream past.
    blocks = -(-2 * depth * width * contraction.right.bytes // target.l2_cache_size_bytes)
    has_panels = contraction.can_be_packed and plan.blocks is None and len(contraction.summed) == 1
    if blocks < 2 or rows < _WORTH_A_COPY or not has_panels:
        return 0
    # Parts of equal length to one step, as nothing needs them to divide the sum; groups of an instruction have to be whole in each.
    if plan.dot is None:
        return -(-depth // blocks)
    whole = (count for count in range(blocks, depth // plan.dot.group + 1) if depth % (count * plan.dot.group) == 0)
    count = next(whole, 0)
    return depth // count if count else 0


def _streamed(plan: Plan, target: Target) -> Plan | None:
    """The plan with a loop over blocks of the sum around all tiles, where few rows read an operand of many pages; None elsewhere.

    A panel of a wide matrix is a line or two on each of many pages: every tile asks for all their addresses, and no prefetcher follows.
    Of a block of as many rows as the TLB has pages a part of the columns reads all it needs, and keeps its sums in the second level:

        for parts of columns:  for blocks of k:  for panels:  for tiles of rows:  C[i, j] += A[i, k] * B[k, j]

    Loading and storing sums once more for each block takes less than copies of panels until some 64 rows share these. (Ice Lake server:
    24 x 2048 x 2048 in 1.6 ms instead of 4.6, 32 x 768 x 768 0.22 of 0.23, but 64 x 768 x 768 0.42 of 0.40.) Of fewer rows most of the
    time is what the operand takes to arrive, and blocks have as few of its rows as prefetchers follow side by side.
    """
    contraction, machine = plan.contraction, target.machine
    depth, rows, columns = (contraction.size(*axes) for axes in (contraction.summed, contraction.rows, contraction.columns))
    pages, stride = machine.translations, contraction.right.step(contraction.summed[-1])
    is_plain = plan.pack is Pack.NONE and plan.dot is None and contraction.can_be_packed and len(contraction.summed) == 1
    is_far = depth >= 2 * pages and depth * min(stride, machine.page_bytes) > pages * machine.page_bytes
    if not is_plain or not is_far or rows >= _WORTH_A_COPY:
        return None
    cores, row = target.num_cores if plan.parallel else 1, columns * contraction.right.bytes
    if rows <= _FOLLOWED:  # sums, as wide as a part, in the first cache: they are met again after few steps
        block, kept, room = STREAMS, rows * row, machine.caches[0].size
    else:  # rows of sums and of the operand in half of the second one; the rest is what passes through
        block, kept, room = pages, 2 * (rows + pages) * row, target.l2_cache_size_bytes
    parts = cores * -(-kept // (cores * room))
    return replace(plan, tile=replace(plan.tile, chunks=1), block=block, parts=parts)


def _by_rows(plan: Plan, target: Target) -> Plan | None:
    """The plan with all panels for each tile of rows, where the rows are much more than the panels and don't stay in the cores' caches.

    With panels outside, each of them reads all rows of a core again from where they lie, and writes a part of each row of the result:

        for tiles of rows in parallel:  for panels, packed before:  for k:  C[i, j] += A[i, k] * B[k, j]

    Example:
        39520 x 167 x 256: 40 MB of rows and 167 KB of panels, 41.6 -> 23.6 ms; 8192 x 768 x 768 77 -> 60 (two cores of Zen 3). With less
        than four times as much in rows as in panels either order is as fast, or panels outside are faster: 2048 x 2048 x 2048 124 and 318.
    """
    contraction, machine = plan.contraction, target.machine
    rows, result, right = _bytes_of_product(contraction)
    shared = plan.blocks is None and contraction.can_be_packed and contraction.size(*contraction.batch) == 1
    is_plain = plan.dot is None and contraction.is_column_last and not contraction.plane
    has_panels = contraction.size(*contraction.columns) > plan.width
    _, second, last = (cache.size for cache in machine.caches)
    # panels that a core keeps close by, or rows that come from memory again and again
    is_near = 2 * right <= second and rows + result > target.num_cores * second
    is_worth = is_near or (right <= last // _OF_LAST_CACHE and rows >= 2 * last // _OF_LAST_CACHE)
    if not (shared and is_plain and has_panels and plan.parallel and is_worth and rows + result > _MORE_IN_ROWS * right):
        return None
    return replace(plan, tile=replace(plan.tile, chunks=1), order=Order.ROWS, pack=Pack.ROOT, block=0)


def _of_own_rows(plan: Plan) -> Plan | None:
    """The plan with all panels for each tile of rows, where the rows are copied as words first: by the core that reads them then.

        in parallel:  words of rows = bytes of rows
        in parallel:  for tiles of rows:  for panels, packed before:  for k:  C[i, j] += words[i, k] * B[k, j]

    With panels outside each core reads all words, those that are in another one's cache among them.

    Example:
        27 x 27 x 256 to 32 channels, 0.19 -> 0.06 ms; 56 x 56 of 256 to 64 0.74 -> 0.44, of 64 to 256 0.49 -> 0.47; 14 x 14 of 1024 to 256
        0.51 -> 0.41; 3 x 3 of 128 to 128, stride 2, 1.04 -> 0.90 (two cores of Zen 4 without AVX-512, weights packed before).
    """
    contraction = plan.contraction
    many = contraction.size(*contraction.rows) >= _WORTH_ALL_PANELS
    if not (many and plan.widened and plan.parallel and plan.blocks is None and contraction.is_column_last and not contraction.plane):
        return None
    return replace(plan, tile=replace(plan.tile, chunks=1), order=Order.ROWS, pack=Pack.ROOT, block=0)


def _bytes_of_product(contraction: Contraction) -> tuple[int, int, int]:
    """Bytes of the left operands, of the result, and of the right operand."""
    rows, columns, depth = (contraction.size(*axes) for axes in (contraction.rows, contraction.columns, contraction.summed))
    left = sum(rows * depth * operand.bytes for operand in contraction.left)
    return left, rows * columns * contraction.bytes, depth * columns * contraction.right.bytes


def _is_far(contraction: Contraction, stride: int, machine: Machine) -> bool:
    """True if a copy of a panel, whose rows lie so many bytes apart, is worth its time: many rows use it, and wait for it where it lies."""
    users, depth = contraction.size(*contraction.rows), contraction.size(*contraction.summed)
    if not contraction.can_be_packed or users < _WORTH_A_COPY:
        return False
    # The next panel of a plane lies beside the last one, on the same pages, but lines that share sets are gone by the next tile. Of
    # planes of 64 x 64, 16 KB apart, four sets hold 32: 448 to 640 channels in 16.4 ms with a copy, 22.6 without (two cores of Zen 3).
    if contraction.plane:
        return depth > machine.caches[1].rows(stride)
    # A copy of a panel that lies on more pages than are translated at once is worth its time if many rows use it; three times
    # as many where a page serves several steps, and the second level keeps the rows of a panel from one tile to the next. 768 rows of
    # 3 KB share 64 sets of 1024: 128 x 768 x 768 in 1.20 ms with a copy and 1.43 without, 64 rows 0.54 of 0.75 (two cores of Zen 3).
    pages = depth * min(stride, machine.page_bytes) // machine.page_bytes
    is_late = stride >= machine.page_bytes or waits_for_rows(machine, machine.tile_rows(2), 2, depth, stride)
    return pages > machine.translations and (is_late or users >= 3 * _WORTH_A_COPY)


def _shape_of(plan: Plan, machine: Machine) -> Shape:
    """What the choice of a tile depends on."""
    contraction, dot, lanes = plan.contraction, plan.dot, plan.lanes
    rows, repeats = contraction.size(contraction.row), contraction.size(*contraction.rows[:-1])
    columns = contraction.size(*contraction.columns) * (1 if plan.blocks is None else contraction.size(plan.blocks))
    depth = contraction.size(*contraction.summed)
    # The innermost summed axis of more than one step is the one that each step of a tile moves along.
    stride = next((contraction.right.step(axis) for axis in reversed(contraction.summed) if contraction.sizes[axis] > 1), 0)
    # Where a row isn't a multiple of a vector, vectors lie across two lines of the cache, each of which takes two accesses.
    whole = stride % (lanes * contraction.right.bytes) == 0
    computed = contraction.right.is_computed and contraction.can_be_packed and rows * repeats >= WORTH_ONE_COMPUTATION
    packed = plan.blocks is None and (plan.is_transposed or dot is not None or computed or _is_far(contraction, stride, machine))
    return Shape(
        batch=contraction.size(*contraction.batch),
        rows=rows,
        columns=columns,
        depth=-(-depth // (1 if dot is None else dot.group)),
        repeats=repeats,
        lanes=lanes,
        row_bytes=contraction.left[0].step(contraction.row),
        packing=packing_cycles(plan.is_transposed, dot is not None) if packed else 0.0,
        aligned=packed or plan.blocks is not None or whole or bool(contraction.plane),
        # An instruction computes whole vectors: what is left of the last one has to be inside a panel, not the end of the only one.
        widest=4 if dot is None or columns % lanes == 0 else min(4, columns // lanes),
        load=LOAD if not contraction.plane else _ROWS if whole else _OVER_LINES,
        ends=PLANES if contraction.plane else 1.0,
        panel=panel_along(contraction.left[0].load, contraction.axis(contraction.row).var),
        # 4 x 3 with pmaddwd would have 17 registers of 16, and an accumulator on the stack in each step.
        products=int(dot is not None and dot.is_apart),
        passing=_passing(contraction, machine),
    )


def _passing(contraction: Contraction, machine: Machine) -> int:
    """Bytes of a row of the result, if what a product reads and writes is more than a core's own caches hold; 0 elsewhere."""
    if not contraction.is_column_last or contraction.plane:
        return 0
    size = sum(_bytes_of_product(contraction)) * contraction.size(*contraction.batch)
    row = contraction.size(*contraction.columns) * contraction.bytes
    return row if size > machine.caches[1].size else 0
