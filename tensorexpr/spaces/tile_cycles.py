"""Cycles of register tiles, counted: the one count that contractions and convolutions choose their tiles by.

A tile of m rows and v vectors takes, for each step of the sum, m*v multiply-adds, m broadcasts and v vectors. So many of
either start in a cycle as the machine has pipes, and a multiply-add waits for the one before it on the same accumulator:

    6 x 2 with AVX2: 12 multiply-adds and 8 loads by two pipes of each, 6 cycles, and what the loads delay

It is the inner part of what `tune.features.cycles` counts of whole programs, by the same `Machine.step_cycles`: a rule looks at hundreds
of tiles before there is a program whose features could be taken. The constants are what such a step doesn't say; they matter where
tiles are within a tenth of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ..dataclass import dataclass, field, replace
from ..target import Target
from ..target.machine import Machine

LOAD = 0.1  # cycles that a load from the nearest cache delays the multiply-adds beside it, on most cores
_TILE = 20.0  # cycles to start a tile, and to end it apart from its stores: a mispredicted branch out of the loop over the sum
_STORE = 1.0  # cycles for each vector of a tile that is stored: one pipe
PLANES = 2.0  # ... times as many of both, where what a tile reads and writes lies in many planes, each on a page of its own
_ADDRESSES = 10  # registers for addresses of rows, of the 16 of x86-64
_PACKING = 2.0  # cycles to load and store a vector, from wherever it is
_TRANSPOSING = 5.0  # ... with log2(lanes) shuffles on the way
LONG = 16  # lines of a part of a row, of which the two at its ends don't count: 700 x 700 x 700 is as fast by columns as by rows
_GROUPING = 10.0  # ... with a store for each group of small numbers


@dataclass(frozen=True, slots=True)
class Shape:
    """What the choice depends on: extents, and how the operands lie in memory.

    Args:
        batch, rows, columns, depth: the extents of the product; `rows` that tiles are cut from.
        repeats: how often the tiles of `rows` are run through with the same panel.
        lanes: of a vector of results.
        row_bytes: bytes from one row of the left operand to the next.
        packing: cycles that packing a vector of the panel costs; 0 where the panel isn't packed.
        aligned: whether every vector of the right operand, as read, starts at a multiple of its size.
        widest: the most vectors that a tile may have for other reasons than registers.
        load: cycles that loading a vector of the right operand, from where it lies, delays the multiply-adds beside it.
        ends: times as many cycles as where a tile lies in rows of one matrix that starting and storing it takes.
        panel: rows of the left operand that lie at one distance, where it lies in panels of them; 0 if all do.
        products: registers for products that another instruction adds to the accumulators.
        passing: bytes of a row of the result, if the result passes a core's own caches; 0 if it stays in them.
    """

    batch: int
    rows: int
    columns: int
    depth: int
    repeats: int
    lanes: int
    row_bytes: int
    packing: float
    aligned: bool
    widest: int = 4
    load: float = LOAD
    ends: float = 1.0
    panel: int = 0
    products: int = 0
    passing: int = 0


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Accumulators: `sizes` along the last axes of rows by `vectors`. The first of these axes is cut into `chunks` for different cores.

    The busiest core takes `cycles`.
    """

    sizes: tuple[int, ...]
    vectors: int
    chunks: int = 1
    cycles: float = field(default=0.0, compare=False)

    @property
    def rows(self) -> int:
        """Rows of accumulators along all axes."""
        return prod(self.sizes)


def ranked_tiles(shape: Shape, target: Target, cores: int) -> list[RegisterTile]:
    """The best tile of each number of vectors and chunks, the best of all first."""
    chunks = range(1, cores + 1) if cores > 1 else (1,)
    fitting = [
        RegisterTile((rows,), vectors, parts) for rows, vectors in _fitting(shape, target) for parts in chunks if parts <= shape.rows
    ]
    candidates = [replace(tile, cycles=_cycles(tile, shape, target.machine, cores)) for tile in fitting]
    # Of equal cycles the tile with fewer loads in a step, rows + vectors. Sorted, so the first of each kind is its best.
    candidates.sort(key=lambda tile: (tile.cycles, tile.rows + tile.vectors))
    # A search changes rows; vectors and chunks are structure, so that each pair of them is a program of its own.
    best: dict[tuple[int, int], RegisterTile] = {}
    for tile in candidates:
        best.setdefault((tile.vectors, tile.chunks), tile)
    return list(best.values())


def packing_cycles(transposed: bool, grouped: bool = False) -> float:
    """What packing costs for each vector."""
    return _GROUPING if grouped else _TRANSPOSING if transposed else _PACKING


def _fitting(shape: Shape, target: Target) -> Iterator[tuple[int, int]]:
    """Tiles with MR*NV accumulators, NV vectors and one broadcast in the registers."""
    for vectors in range(1, max(1, min(-(-shape.columns // shape.lanes), shape.widest)) + 1):
        # a step reads one element of each row: no more rows than the first cache holds lines of at that distance
        most = min(target.machine.tile_rows(vectors, shape.products), shape.rows, target.machine.caches[0].rows(shape.row_bytes))
        if most >= 1:
            # Below half of the most, a tile of twice the rows fits as well, and loads each vector of the panel for both.
            yield from ((rows, vectors) for rows in range(max(1, most // 2), most + 1))


def _cycles(tile: RegisterTile, shape: Shape, machine: Machine, cores: int) -> float:
    """Cycles of the core that has most to do, all rounded up to whole tiles, panels and shares."""
    # Rounded up: the last panel takes as long as a whole one, whatever part of it is columns.
    panels = -(-shape.columns // (shape.lanes * tile.vectors))
    loads = 1 if shape.aligned else 2
    rows = -(-shape.rows // tile.chunks)
    sizes = dict(balanced_sizes(rows, tile.rows))
    # rows of two panels lie at no constant distance, so that each has an address of its own
    apart = shape.panel > 0 and any(shape.panel % size for size in sizes)
    steps = steps_cycles(sizes, tile.vectors, shape.load * loads, machine, loads, apart) * shape.depth
    steps += shape.ends * end_cycles(sum(sizes.values()), rows * tile.vectors)
    share = -(-shape.batch * panels * tile.chunks // cores)
    taken = _taken_lines(tile, shape, machine, cores) * machine.caches[1].wait_under_load
    return share * (steps * shape.repeats + shape.packing * tile.vectors * shape.depth) + taken


def _taken_lines(tile: RegisterTile, shape: Shape, machine: Machine, cores: int) -> float:
    """Lines of the result that a core has to take from another one, where they write parts of the same rows: what follows a core's
    stores fetches the next line, too, of which there is one at each end of a part. `tune.features.sharing` counts the same.

    Example: 64 columns of floats on two cores: all lines; two halves of the rows: none.
    """
    parts = min(-(-cores // tile.chunks), -(-shape.columns // (shape.lanes * tile.vectors)))
    if parts < 2 or shape.batch >= cores:
        return 0.0
    lines = shape.passing / machine.line_bytes / parts
    return shape.rows * shape.repeats * parts / cores * min(lines, 2.0) if lines < LONG else 0.0


def waits_for_rows(machine: Machine, rows: int, vectors: int, depth: int, row_bytes: int) -> bool:
    """True if each tile waits for the rows of a panel where it lies, at some distance: the second level loses them between two tiles.

    Rows a power of two apart share few sets: 256 of 1,536 at 2 KB stay in 512 KB of 8 ways. A row then takes the time of a line from
    the third level and of a walk to its page, which hides behind the steps that the core's window reaches ahead, or doesn't:
    window / (rows * vectors + rows + vectors) * cycles of a step < wait under load.
    """
    second = machine.caches[1]
    ahead = machine.window / (rows * vectors + rows + vectors) * machine.step_cycles(rows * vectors, rows + vectors)
    return depth > second.rows(row_bytes) and ahead < second.wait_under_load


def end_cycles(tiles: int, stored: int) -> float:
    """Cycles to start and end so many tiles, which store so many vectors."""
    return _TILE * tiles + _STORE * stored


def steps_cycles(sizes: Mapping[int, int], vectors: int, load: float, machine: Machine, loads: int = 1, apart: bool = False) -> float:
    """Cycles of a step of the sum on each of some tiles: its multiply-adds and loads, and what loads delay them.

    Args:
        sizes: of how many tiles so many rows have a term in the step.
        vectors: of the tiles.
        load: cycles that a vector of the panel delays what is beside it, where one from the nearest cache delays it `LOAD`.
        machine: that it is for.
        loads: of each vector, two if it lies across lines of the cache.
        apart: each row has an address of its own; those that there are no registers for are loaded, too.
    """
    delay = machine.load_delay
    of_vectors = (load + loads * (delay - LOAD)) * vectors
    return sum(
        count * (machine.step_cycles(rows * vectors, of_rows + loads * vectors) + delay * of_rows + of_vectors)
        for rows, count in sizes.items()
        for of_rows in (rows + (max(0, rows - _ADDRESSES) if apart else 0),)
        if rows
    )


def balanced_sizes(extent: int, most: int) -> list[tuple[int, int]]:
    """Sizes of balanced tiles, with how many there are of each."""
    tiles = -(-extent // most)
    return [(size, count) for size, count in ((extent // tiles + 1, extent % tiles), (extent // tiles, tiles - extent % tiles)) if count]
