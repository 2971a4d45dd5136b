"""Running sums along rows on GPUs: the threads of a block go along a row together, blocks share rows of which there are few.

    totals   what each part of a row but the last adds up to
    before   from these, what comes before each part
    scan     each part from there on

Each thread joins four neighbours; what the threads before it have made comes by doubling distances in shared memory (Hillis, Steele 1986).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dataclass import dataclass
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const, floordiv, floormod
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .launches import ceildiv, launched, power_of_two
from .rows import Rows

_THREADS, _EACH, _WARP = 256, 4, 32
_BLOCKS = 216  # two for each multiprocessor of an A100
_COLUMNS = 2048  # rows beside each other in memory, from which on a thread for each is enough
Join = Callable[[PrimExpr, PrimExpr], PrimExpr]


def is_by_columns(rows: Rows) -> bool:
    """Whether neighbouring threads go along neighbouring rows, and there are enough of them."""
    inner, count = arithmetic.as_int(rows.inner), arithmetic.as_int(rows.count)
    return inner is not None and count is not None and inner >= _WARP and count >= _COLUMNS


def scan_rows(ib: IRBuilder, rows: Rows, out: Rows, join: Join, first: Any, made: str, exclusive: bool) -> None:
    """The kernels of `scan.scanop`.

    Args:
        ib: where they are built.
        rows, out: what is read and written.
        join: associative, of what is there and the next element.
        first: what an exclusive scan begins with.
        made: the dtype of the sums.
        exclusive: leave out the element itself.
    """
    size, count = arithmetic.as_int(rows.length), arithmetic.as_int(rows.count)
    threads = _THREADS if size is None else max(_WARP, min(_THREADS, power_of_two(-(-size // _EACH))))
    tile, parts, length = threads * _EACH, 1, rows.length
    if size is not None and count is not None:
        parts = max(1, min(-(-size // tile), _BLOCKS // max(1, count)))
        each = max(tile, -(-size // parts // tile) * tile)
        parts, length = max(1, -(-size // each)), const(each, rows.length.dtype)
    scan = _Scan(ib, join, made, threads)

    def part_of(block: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
        begin = floormod(block, parts) * length
        return floordiv(block, parts), begin, arithmetic.minimum(begin + length, rows.length)

    def value(r: PrimExpr, i: PrimExpr) -> PrimExpr:
        return rows.load(r, i).astype(made)

    before: BufferVar | None = None
    if parts > 1:
        before = ib.allocate(made, (rows.count, parts), "before")
        with launched(ib, rows.count * parts, threads) as (block, thread):
            r, begin, end = part_of(block)
            carry = scan.along(thread, begin, end, lambda i: value(r, i), None, None)
            with ib.if_scope(thread == 0):
                before[r, floormod(block, parts)] = carry[0]
        _in_front(ib, before, join, rows.count, parts, made)
    with launched(ib, rows.count * parts, threads) as (block, thread):
        r, begin, end = part_of(block)

        def store(i: PrimExpr, prefix: PrimExpr, has_prefix: PrimExpr, own: PrimExpr | None, last: PrimExpr) -> None:
            found = last if not exclusive else own
            if found is None:
                out.store(r, i, intrin.select(has_prefix, prefix, const(first, made)))
            else:
                out.store(r, i, intrin.select(has_prefix, join(prefix, found), found))

        start = None if before is None else (before, r, floormod(block, parts))
        scan.along(thread, begin, end, lambda i: value(r, i), start, store)


def _in_front(ib: IRBuilder, sums: BufferVar, join: Join, count: PrimExpr, parts: int, made: str) -> None:
    """Sums of parts become sums of all parts in front of each; the first has none, and its place isn't read."""
    with ib.for_range(0, count, "row", kind="parallel") as r:
        state = ib.allocate(made, (2,), "state", scope="local")
        state[0] = sums[r, 0]
        with ib.for_range(1, parts, "part") as part:
            state[1] = sums[r, part]
            sums[r, part] = state[0]
            state[0] = join(state[0], state[1])


@dataclass(frozen=True)
class _Scan:
    """What the threads of a block do with a part of a row."""

    ib: IRBuilder
    join: Join
    made: str
    threads: int

    def along(self, thread: PrimExpr, begin: PrimExpr, end: PrimExpr, load: Any, start: Any, store: Any) -> BufferVar:
        """Go along a part, tile by tile; in each thread the result holds the sum of all of it, where all tiles are full.

        Args:
            thread: its number.
            begin, end: of the part, which isn't empty.
            load: an element.
            start: what comes before the part: the buffer, the row and the number of the part; nothing if it is None or the number 0.
            store: called with each place, the sum of what threads and tiles before have made, whether there is such, the sum of the
                thread's own elements before this one (or None) and that with this one.
        """
        ib, threads = self.ib, self.threads
        sums = ib.allocate(self.made, (2 * threads,), "sums", scope="shared")
        carry, mine, prefix = (
            ib.allocate(self.made, (n,), name, scope="local") for n, name in ((1, "carry"), (_EACH, "mine"), (1, "prefix"))
        )
        carry[0] = const(0, self.made)
        if start is not None:
            with ib.if_scope(start[2] > 0):
                carry[0] = start[0][start[1], start[2]]
        with ib.for_range(0, ceildiv(end - begin, threads * _EACH), "turn") as turn:
            first = ib.let("first", begin + turn * (threads * _EACH) + thread * _EACH)
            for n in range(_EACH):
                with ib.if_scope(first + n < end):
                    mine[n] = load(first + n) if n == 0 else self.join(mine[n - 1], load(first + n))
                with ib.else_scope():  # nobody behind the end is asked
                    mine[n] = const(0, self.made) if n == 0 else mine[n - 1]
            half = self._doubled(sums, mine[_EACH - 1], thread)
            has_carry = arithmetic.convert(turn > 0) if start is None else arithmetic.any(turn > 0, start[2] > 0)
            has_prefix = ib.let("has_prefix", arithmetic.any(has_carry, thread > 0))
            prefix[0] = carry[0]
            with ib.if_scope(thread > 0):
                prefix[0] = sums[half + thread - 1]
                with ib.if_scope(has_carry):
                    prefix[0] = self.join(carry[0], prefix[0])
            for n in range(_EACH if store is not None else 0):
                with ib.if_scope(first + n < end):
                    store(first + n, prefix[0], has_prefix, mine[n - 1] if n else None, mine[n])
            whole = ib.let("whole", sums[half + threads - 1])
            carry[0] = intrin.select(has_carry, self.join(carry[0], whole), whole)
        return carry

    def _doubled(self, sums: BufferVar, own: PrimExpr, thread: PrimExpr) -> int:
        """Each thread's sum joined with those of all threads before it; gives where they begin."""
        ib, threads, half = self.ib, self.threads, 0
        sums[thread] = own
        distance = 1
        while distance < threads:
            other = threads - half
            with ib.if_scope(thread >= distance):
                sums[other + thread] = self.join(sums[half + thread - distance], sums[half + thread])
            with ib.else_scope():
                sums[other + thread] = sums[half + thread]
            half, distance = other, distance * 2
        return half
