"""Which register tile a matrix product gets: counted cycles of every tile that fits, over the shares of all cores.

A tile of m rows and v vectors takes, for each step of the reduction, m*v multiply-adds, m broadcasts and v vectors. So many of
either start in a cycle as the machine has pipes, and a multiply-add waits for the one before it on the same accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..target import Target
from ..target.machine import Machine

_LOAD = 0.1  # cycles that a load delays the multiply-adds beside it
_TILE = 20.0  # cycles to start and store a tile, apart from its stores
_PACKING = 2.0  # cycles to load and store a vector, from wherever it is
_TRANSPOSING = 5.0  # ... with log2(lanes) shuffles on the way
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


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """`rows` by `vectors` accumulators; the rows are cut into `chunks` parts for different cores."""

    rows: int
    vectors: int
    chunks: int = 1


def ranked_tiles(shape: Shape, target: Target, cores: int) -> list[RegisterTile]:
    """The best tile of each number of vectors and chunks, the best of all first."""
    chunks = range(1, cores + 1) if cores > 1 else (1,)
    candidates = [
        RegisterTile(rows, vectors, parts) for rows, vectors in _fitting(shape, target) for parts in chunks if parts <= shape.rows
    ]
    candidates.sort(key=lambda tile: (_cycles(tile, shape, target.machine, cores), tile.rows + tile.vectors))
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
        most = min(target.machine.tile_rows(vectors), shape.rows, target.machine.caches[0].rows(shape.row_bytes))
        if most >= 1:
            yield from ((rows, vectors) for rows in range(max(1, most // 2), most + 1))


def _cycles(tile: RegisterTile, shape: Shape, machine: Machine, cores: int) -> float:
    """Cycles of the core that has most to do, all rounded up to whole tiles, panels and shares."""
    vectors = -(-shape.columns // shape.lanes)
    panels = -(-vectors // tile.vectors)
    chunk = -(-shape.rows // tile.chunks)
    tiles = -(-chunk // tile.rows)
    loads = tile.vectors * (1 if shape.aligned else 2)
    steps = 0.0
    for rows, count in ((chunk // tiles + 1, chunk % tiles), (chunk // tiles, tiles - chunk % tiles)):
        step = machine.step_cycles(rows * tile.vectors, rows + loads) + _LOAD * (rows + loads)
        steps += count * (step * shape.depth + _TILE + rows * tile.vectors)
    share = -(-shape.batch * panels * tile.chunks // cores)
    return share * (steps * shape.repeats + shape.packing * tile.vectors * shape.depth)
