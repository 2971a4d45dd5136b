"""Sorted rows on GPUs: bitonic networks in shared memory for tiles of a row, and passes that merge sorted runs of longer ones.

    tiles    a block sorts 2048 elements, several rows of them where rows are short
    merge    a block makes 2048 elements of two runs: where they begin in each is found by bisection, their order within the block too

An element is its key and the place where it came from: no two are equal, so that what is sorted here is sorted stably.
Of few elements that are wanted of long rows each tile keeps its first ones, which are sorted again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..dataclass import dataclass
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const, floordiv, floormod
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .launches import ceildiv, launched, power_of_two
from .row_sort import key_dtype, key_of
from .rows import Rows

_TILE = 2048  # elements of a block: with 12 bytes each, two blocks have room in the 48 KiB that every chip has
_LEAST = 64  # elements that a block of a warp sorts, however short rows are
_LONGEST = 31  # bits of an index
Emit = Callable[[PrimExpr, PrimExpr, PrimExpr, PrimExpr], None]


def sort_rows(
    ib: IRBuilder,
    rows: Rows,
    length: Callable[[PrimExpr], PrimExpr],
    is_ascend: bool,
    emit: Emit,
    wanted: PrimExpr | None = None,
) -> None:
    """Call `emit` with each row, each place in it, the value there, and where it came from.

    Args:
        ib: where the kernels are built.
        rows: the rows.
        length: how many elements of a row take part; the others stay in place, behind them.
        is_ascend: the smallest first.
        emit: makes what is done with an element, by a thread of its own.
        wanted: how many elements of a row, from the first one on; all by default.
    """
    size, most = arithmetic.as_int(rows.length), None if wanted is None else arithmetic.as_int(wanted)
    tile = _TILE if size is None else max(2, min(_TILE, power_of_two(size)))
    unsigned = f"uint{parse_dtype(key_dtype(rows.buffer.dtype)).bits}"
    sorter = _Sorter(ib, rows.count, tile, unsigned, rows.length.dtype)
    end = rows.length if wanted is None else wanted
    ones = const((1 << parse_dtype(unsigned).bits) - 1, unsigned)

    def first(r: PrimExpr, i: PrimExpr, take: Callable[[PrimExpr, PrimExpr], None]) -> None:
        # What takes no part has the last key, and a place behind all that do.
        with ib.if_scope(i < length(r).astype(rows.length.dtype)):
            take(key_of(rows.load(r, i), is_ascend), i)
        with ib.else_scope():
            take(ones, i)

    def last(r: PrimExpr, i: PrimExpr, origin: PrimExpr) -> None:
        with ib.if_scope(i < end):
            emit(r, i, rows.load(r, origin), origin)

    if size is not None and size <= tile:
        sorter.tiles(1, first, lambda r, i, key, origin: last(r, i, origin))
        return
    if size is not None and most is not None and 4 * power_of_two(most) <= tile:
        _tournament(ib, sorter, size, power_of_two(most), first, last)
        return
    tiles = ceildiv(rows.length, tile)
    runs = sorter.halves(tiles * tile)
    sorter.tiles(tiles, first, lambda r, i, key, origin: runs.store(0, r, i, key, origin))
    count = (_LONGEST - (tile - 1).bit_length()) if size is None else (-(-size // tile) - 1).bit_length()
    # By two, so that the result is always where the tiles were.
    with ib.for_range(0, (count + 1) // 2, "merge") as turn:
        width = const(tile, "int32") << (turn * 2)
        with ib.if_scope(width < runs.length):
            sorter.merge(runs, 0, width)
            sorter.merge(runs, 1, width * 2)
    with ib.for_range(0, rows.count * end, "element", kind="parallel") as element:
        r, i = floordiv(element, end), floormod(element, end)
        last(r, i, runs.origin[(0, r, i)])


def _tournament(ib: IRBuilder, sorter: _Sorter, size: int, each: int, first: Any, last: Any) -> None:
    """The first `each` elements of each tile, and of tiles of these, until there is one."""
    tile = sorter.tile
    while size > tile:
        tiles = -(-size // tile)
        kept = sorter.halves(const(tiles * each), 1)

        def keep(r: PrimExpr, i: PrimExpr, key: PrimExpr, origin: PrimExpr, kept: _Runs = kept) -> None:
            with ib.if_scope(floormod(i, tile) < each):
                kept.store(0, r, floordiv(i, tile) * each + floormod(i, tile), key, origin)

        sorter.tiles(tiles, first, keep)
        size = tiles * each
        first = sorter.of_kept(kept, size)
    sorter.tiles(1, first, lambda r, i, key, origin: last(r, i, origin))


@dataclass(frozen=True)
class _Runs:
    """Keys and places of rows of `length` elements in global memory, several times."""

    keys: BufferVar
    origin: BufferVar
    length: PrimExpr

    def store(self, half: int, r: PrimExpr, i: PrimExpr, key: PrimExpr, origin: PrimExpr) -> None:
        """Set an element."""
        self.keys[(half, r, i)] = key
        self.origin[(half, r, i)] = origin


@dataclass(frozen=True)
class _Sorter:
    """Kernels over tiles of `count` rows; keys and places of elements have the dtypes `unsigned` and `index`."""

    ib: IRBuilder
    count: PrimExpr
    tile: int
    unsigned: str
    index: str

    def halves(self, length: PrimExpr, number: int = 2) -> _Runs:
        """Room for all rows, as often as is said."""
        shape = (number, self.count, length)
        return _Runs(self.ib.allocate(self.unsigned, shape, "runs"), self.ib.allocate(self.index, shape, "origins"), length)

    def of_kept(self, kept: _Runs, size: int) -> Any:
        """What reads the elements of rows again that were kept; behind them is what no other follows."""
        ones, behind = const((1 << parse_dtype(self.unsigned).bits) - 1, self.unsigned), const((1 << _LONGEST) - 1, self.index)

        def first(r: PrimExpr, i: PrimExpr, take: Callable[[PrimExpr, PrimExpr], None]) -> None:
            with self.ib.if_scope(i < size):
                take(kept.keys[(0, r, i)], kept.origin[(0, r, i)])
            with self.ib.else_scope():
                take(ones, behind)

        return first

    def tiles(self, tiles: Any, load: Any, store: Any) -> None:
        """Sort each tile of each row, of which there are so many."""
        ib, tile = self.ib, self.tile
        held = max(tile, _LEAST)
        threads = held // 2
        total = self.count * tiles
        with launched(ib, ceildiv(total, held // tile), threads) as (block, thread):
            keys, origin = self._shared(held)

            def elements(do: Callable[[PrimExpr, PrimExpr, PrimExpr], None]) -> None:
                for half in range(2):
                    place = thread + half * threads
                    number = block * (held // tile) + floordiv(place, tile)
                    i = floormod(number, tiles) * tile + floormod(place, tile)
                    with ib.if_scope(number < total):
                        do(place, floordiv(number, tiles), i.astype(self.index))

            def fill(place: PrimExpr, r: PrimExpr, i: PrimExpr) -> None:
                def take(key: PrimExpr, where: PrimExpr) -> None:
                    keys[place], origin[place] = key, where

                load(r, i, take)

            for half in range(2 if held > tile else 0):  # of the last block, which may have room for more rows than there are
                keys[thread + half * threads] = const(0, self.unsigned)
                origin[thread + half * threads] = const(0, self.index)
            elements(fill)
            self._network(keys, origin, thread)
            elements(lambda place, r, i: store(r, i, keys[place], origin[place]))

    def _shared(self, size: int) -> tuple[BufferVar, BufferVar]:
        keys = self.ib.allocate(self.unsigned, (size,), "keys", scope="shared")
        return keys, self.ib.allocate(self.index, (size,), "origin", scope="shared")

    def _network(self, keys: BufferVar, origin: BufferVar, thread: PrimExpr) -> None:
        """A bitonic network (Batcher 1968), of which the first step of each merge is mirrored, so that all go upwards.

        Each thread stores its own two elements: one barrier is behind the loads of all, and one behind their stores.
        """
        ib, levels = self.ib, self.tile.bit_length() - 1
        places = [thread, thread + max(self.tile, _LEAST) // 2]
        with ib.for_range(0, levels, "level") as level, ib.for_range(0, level + 1, "step") as step:
            distance = ib.let("distance", const(1, "int32") << (level - step))
            crossed = ib.let("crossed", intrin.select(arithmetic.convert(step == 0), distance * 2 - 1, distance))
            better = []
            for place in places:
                other = ib.let("other", place ^ crossed)
                mine, its = (
                    (ib.let("mine", keys[place]), ib.let("from", origin[place])),
                    (ib.let("its", keys[other]), ib.let("at", origin[other])),
                )
                is_other = ib.let("is_other", arithmetic.convert(_less(*its, *mine) == (place < other)))
                better.append([intrin.select(is_other, b, a) for a, b in zip(mine, its, strict=True)])
            for place, (key, where) in zip(places, better, strict=True):
                keys[place], origin[place] = key, where

    def merge(self, runs: _Runs, half: int, width: PrimExpr) -> None:
        """Runs of `width` elements of one half become runs of twice as many in the other."""
        ib, tile = self.ib, self.tile
        threads = tile // 2
        tiles = floordiv(runs.length, tile)
        with launched(ib, self.count * tiles, threads) as (block, thread):
            r = ib.let("r", floordiv(block, tiles))
            begin = ib.let("begin", floormod(block, tiles) * tile)
            start = ib.let("start", floordiv(begin, width * 2) * (width * 2))
            middle = ib.let("middle", arithmetic.minimum(start + width, runs.length))
            stop = ib.let("stop", arithmetic.minimum(start + width * 2, runs.length))
            keys, origin = self._shared(tile)
            cuts = ib.allocate(begin.dtype, (2, 2), "cuts", scope="local")

            def is_left(diagonal: PrimExpr, at: PrimExpr) -> PrimExpr:
                left, right = (half, r, start + at), (half, r, middle + diagonal - 1 - at)
                return _less(runs.keys[left], runs.origin[left], runs.keys[right], runs.origin[right])

            for side in range(2):
                diagonal = begin - start + side * tile
                cuts[side, 0] = arithmetic.maximum(diagonal - (stop - middle), 0)
                cuts[side, 1] = arithmetic.minimum(diagonal, middle - start)
                self._bisect(cuts, side, partial(is_left, diagonal), None)
            left = ib.let("left", cuts[1, 0] - cuts[0, 0])
            for part in range(2):
                place = thread + part * threads
                behind = begin - start - cuts[0, 0] + place - left
                at = start + cuts[0, 0] + place
                source = (half, r, intrin.select(place < left, at, middle + behind))
                keys[place], origin[place] = runs.keys[source], runs.origin[source]

            def is_before(place: PrimExpr, at: PrimExpr) -> PrimExpr:
                return _less(keys[at], origin[at], keys[place], origin[place])

            for part in range(2):
                place = thread + part * threads
                # In the other part of the tile: how many stand before the element.
                cuts[part, 0] = intrin.select(place < left, left, const(0, begin.dtype))
                cuts[part, 1] = intrin.select(place < left, const(tile, begin.dtype), left)
                self._bisect(cuts, part, partial(is_before, place), tile)
                before = intrin.select(place < left, place + cuts[part, 0] - left, place - left + cuts[part, 0])
                runs.store(1 - half, r, begin + before, keys[place], origin[place])

    def _bisect(self, cuts: BufferVar, number: int, is_before: Callable[[PrimExpr], PrimExpr], most: int | None) -> None:
        """Move `cuts[number, 0]` to the first place up to `cuts[number, 1]` of which `is_before` doesn't hold."""
        ib = self.ib
        steps = _LONGEST if most is None else most.bit_length()
        with ib.for_range(0, steps, "bisection"), ib.if_scope(cuts[number, 0] < cuts[number, 1]):
            at = ib.let("at", floordiv(cuts[number, 0] + cuts[number, 1], 2))
            with ib.if_scope(is_before(at)):
                cuts[number, 0] = at + 1
            with ib.else_scope():
                cuts[number, 1] = at


def _less(key: PrimExpr, place: PrimExpr, other: PrimExpr, its: PrimExpr) -> PrimExpr:
    return arithmetic.any(key < other, arithmetic.all(key == other, place < its))
