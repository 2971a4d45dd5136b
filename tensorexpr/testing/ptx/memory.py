"""The memory that a block sees: arrays of the launch by their addresses, shared memory that is watched, and local memory.

Shared memory starts as poison. Each of its cells (of the kernel's narrowest access) knows who wrote and who read it since the last
barrier, so that two accesses without a barrier between them are a race, whatever order this interpreter ran them in.
"""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from .between_blocks import BetweenBlocks
from .faults import DataRace, MisalignedAccess, MissingFence, OutOfBounds, UnfinishedCopy, UninitialisedRead
from .units import Product, UnitsView

Array = np.ndarray[Any, np.dtype[Any]]
SHARED, LOCAL, CONSTANT = 1 << 60, 1 << 61, 1 << 62
"""Where the windows of shared, local and constant memory lie among generic addresses, beyond those of any host."""
PARAMETER, PARAMETER_STEP = 1 << 59, 1 << 12
"""Where the parameters of a kernel lie that are passed by value, one after the other."""
ENGINES = 64  # mbarriers of a block whose copies are told apart
_NOBODY = -1
_EVER = 2**31 - 1
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SECTOR, BANKS = 32, 32


@dataclass
class Counters:
    """What a launch did.

    Args:
        instructions: of warps.
        global_transactions: sectors of 32 bytes that were read or written.
        global_requests: accesses of warps to global memory.
        shared_requests: accesses of warps to shared memory.
        bank_conflicts: further passes that accesses to shared memory took because lanes wanted different words of one bank.
        barriers: of blocks.
        by_name: instructions of warps by their name.
    """

    instructions: int = 0
    global_transactions: int = 0
    global_requests: int = 0
    shared_requests: int = 0
    bank_conflicts: int = 0
    barriers: int = 0
    by_name: dict[str, int] = field(default_factory=dict)


def _bytes_at(address: int, size: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class GlobalMemory:
    """The arrays that a launch may touch."""

    def __init__(self, parts: Sequence[tuple[int, int]]) -> None:
        merged: dict[int, int] = {}
        for at, size in parts:
            if size:
                merged[at] = max(size, merged.get(at, 0))
        self._starts = sorted(merged)
        self._sizes = [merged[at] for at in self._starts]
        self._views = [_bytes_at(at, size) for at, size in zip(self._starts, self._sizes, strict=True)]
        self._typed: dict[tuple[int, int], Array] = {}
        self.watch: BetweenBlocks | None = None

    def saved(self) -> list[Array]:
        """A copy of what all arrays hold."""
        return [view.copy() for view in self._views]

    def restore(self, saved: list[Array]) -> None:
        """Bring back what arrays held."""
        for view, had in zip(self._views, saved, strict=True):
            view[:] = had

    @property
    def sizes(self) -> Sequence[int]:
        """Bytes of each array."""
        return self._sizes

    def locate(self, addresses: Array, size: int, where: object, threads: Array) -> list[tuple[int, Array | None]]:
        """The arrays that addresses lie in, as (number, lanes); None for all lanes.

        Raises:
            OutOfBounds: for the first address that lies in none.
        """
        low, high = int(addresses.min()), int(addresses.max())
        number = bisect.bisect_right(self._starts, low) - 1
        if number >= 0 and high + size <= self._starts[number] + self._sizes[number]:
            return [(number, None)]
        numbers = np.searchsorted(np.array(self._starts, np.uint64), addresses, side="right").astype(np.int64) - 1
        found: list[tuple[int, Array | None]] = []
        for each in np.unique(numbers):
            lanes = np.nonzero(numbers == each)[0]
            end = self._starts[each] + self._sizes[each] if each >= 0 else 0
            outside = lanes if each < 0 else lanes[addresses[lanes] + np.uint64(size) > end]
            if len(outside):
                self._outside(int(addresses[outside[0]]), size, where, int(threads[outside[0]]))
            found.append((int(each), lanes))
        return found

    def _outside(self, address: int, size: int, where: object, thread: int) -> None:
        distances = [
            (max(at - address, address + size - at - length), at, length) for at, length in zip(self._starts, self._sizes, strict=True)
        ]
        nearest = min(distances, default=None)
        hint = "there are none"
        if nearest is not None:
            at, length = nearest[1:]
            hint = f"the nearest has {length} bytes, and the access is at byte {address - at} of it"
        raise OutOfBounds(f"{where}: thread {thread} accesses {size} bytes of global memory outside all arrays of the launch; {hint}")

    def view(self, number: int, size: int) -> tuple[Array, int]:
        """An array as unsigned integers of some bytes, and its address."""
        key = number, size
        if key not in self._typed:
            whole = self._views[number]
            self._typed[key] = whole[: len(whole) // size * size].view(_UNSIGNED[size])
        return self._typed[key], self._starts[number]

    def run_of_bytes(self, address: int, size: int, where: object, thread: int, line: int = 0) -> Array:
        """Bytes that follow each other in one array, all of which are read where a line reads them.

        Raises:
            OutOfBounds: if some lie in none.
        """
        ((number, _),) = self.locate(np.array([address], np.uint64), size, where, np.array([thread]))
        begin = address - self._starts[number]
        if line and self.watch is not None:
            self.watch.note(number, np.array([begin], np.int64), size, line, where, np.array([thread]), np.array([self.watch.block]))
        return np.asarray(self._views[number][begin : begin + size])

    def note_reads(self, addresses: Array, size: int, line: int, where: object, thread: int) -> None:
        """A thread reads elements of one array, which are known to be there."""
        if self.watch is not None:
            number = bisect.bisect_right(self._starts, int(addresses.min())) - 1
            threads, blocks = np.full(len(addresses), thread), np.full(len(addresses), self.watch.block)
            self.watch.note(number, addresses - self._starts[number], size, line, where, threads, blocks)

    def beyond(self, number: int, size: int, places: Array) -> Array:
        """Elements of some bytes of an array, whose bytes behind its end are all ones."""
        whole = self._views[number]
        at = places.astype(np.int64)[:, None] * size + np.arange(size)
        found: Array = np.where(at < len(whole), whole[np.minimum(at, len(whole) - 1)], np.uint8(0xFF)).view(_UNSIGNED[size])
        return found.reshape(-1)


@dataclass(frozen=True)
class _Cells:
    """The cells of an access with the thread and the warp of each, and whether no cell is there twice."""

    cells: Array
    threads: Array
    warps: Array
    distinct: bool


@lru_cache(maxsize=1024)
def _cells(offsets: bytes, size: int, threads: bytes, cell: int) -> _Cells:
    """The cells of an access; loops come back to the same ones, and so do blocks."""
    first, who = np.frombuffer(offsets, np.int64) // cell, np.frombuffer(threads, np.int32)
    count = max(1, size // cell)
    if count > 1:
        first, who = (first[:, None] + np.arange(count)).ravel(), np.repeat(who, count)
    return _Cells(first, who, who // 32, len(np.unique(first)) == len(first))


@dataclass
class Order:
    """What mbarriers put in order: how far each warp is, and how far it has seen others. Behind the warps are the copies in bulk that tell
    an mbarrier, for each of them, as copies for one say nothing of those for another.

    A warp counts on whenever one of its threads arrives. It has seen all that another one did while that one's count was at most what is
    known of it.
    """

    warps: int

    def __post_init__(self) -> None:
        self.clock = np.ones(self.warps + ENGINES, np.int32)
        self.seen = np.zeros((self.warps + ENGINES, self.warps + ENGINES), np.int32)


class SharedMemory:
    """The shared memory of one block, and who touched it; `units` if matrix units read it past the threads, `ordered` if mbarriers put
    accesses in order."""

    def __init__(self, size: int, cell: int, threads: int, units: bool = False, ordered: bool = False) -> None:
        self._cell = cell
        cells = max(1, -(-size // cell))
        self.size = size
        self.data = np.full(cells * cell + 16, 0xFF, np.uint8)  # NaN in every type of float
        self._typed = {width: self.data[: cells * cell].view(_UNSIGNED[width]) for width in (1, 2, 4, 8) if (cells * cell) % width == 0}
        self._known = np.zeros(cells, np.bool_)
        self._pending = np.zeros(cells, np.int32)
        self._copying = 0  # copies under way
        self._writer, self._reader = np.full(cells, _NOBODY, np.int32), np.full(cells, _NOBODY, np.int32)
        self._shared_readers = np.zeros(cells, np.bool_)
        self._write_epoch, self._read_epoch = np.full(cells, -1, np.int32), np.full(cells, -1, np.int32)
        self._write_turn, self._read_turn = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
        self._write_line, self._read_line = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
        self._units = UnitsView(cells, threads) if units else None
        self.order = Order(-(-threads // 32))
        self._ordered = ordered
        self._write_clock = np.zeros(cells if ordered else 0, np.int32)
        self._read_clocks = np.zeros((cells if ordered else 0, self.order.warps), np.int32)  # of each warp, since the last barrier
        self.epoch = 0
        self.turns = np.zeros(-(-threads // 32), np.int32)  # how often each warp waited for itself

    def _cells(self, offsets: Array, size: int, where: object, threads: Array) -> _Cells:
        """The cells of an access, and the thread of each."""
        if len(offsets) and (int(offsets.max()) + size > self.size or int(offsets.min()) < 0):
            lane = int(np.nonzero((offsets + size > self.size) | (offsets < 0))[0][0])
            raise OutOfBounds(
                f"{where}: thread {threads[lane]} accesses bytes {offsets[lane]} to {offsets[lane] + size} of shared memory, "
                f"and the block has {self.size}"
            )
        return _cells(offsets.tobytes(), size, threads.tobytes(), self._cell)

    def meet(self) -> None:
        """All threads have come to a barrier of the block."""
        self.epoch += 1
        if self._ordered:
            self._read_clocks[:] = 0

    def _foreign(self, found: _Cells, who: Array, epoch: Array, turn: Array) -> Array:
        """Whether another thread was there in this epoch, and no wait of the warp is between."""
        cells = found.cells
        others = epoch[cells] == self.epoch
        if not others.any():
            return np.asarray(others)
        others &= who[cells] != found.threads
        same_warp = who[cells] // 32 == found.warps
        return np.asarray(others & ~(same_warp & (turn[cells] < self.turns[found.warps])))

    def _written_by_others(self, found: _Cells) -> Array:
        """Whether another thread, or the engine, wrote there, and neither a barrier nor a wait for an mbarrier is between."""
        racing = self._foreign(found, self._writer, self._write_epoch, self._write_turn)
        if self._ordered and racing.any():
            racing &= self.order.seen[found.warps, self._writer[found.cells] // 32] < self._write_clock[found.cells]
        return racing

    def _read_by_others(self, found: _Cells) -> Array:
        """The same of what others read."""
        cells, epoch, turn = found.cells, self._read_epoch, self._read_turn
        racing = self._foreign(found, self._reader, epoch, turn)
        racing = racing | ((epoch[cells] == self.epoch) & self._shared_readers[cells] & (turn[cells] >= self.turns[found.warps]))
        if self._ordered and racing.any():
            own = self._reader[cells] // 32 == found.warps
            unseen = self._read_clocks[cells] > self.order.seen[found.warps, : self.order.warps]
            unseen[np.arange(len(cells)), found.warps] = False
            racing &= unseen.any(axis=1) | (own & (self._reader[cells] != found.threads))
        return np.asarray(racing)

    def note_read(self, offsets: Array, size: int, where: object, threads: Array, line: int, early: bool = False) -> Array | None:
        """Watch a read; where it is `early`, as compilers read before they know whether it is needed, the threads that read what nothing
        has written, or None.

        Raises:
            DataRace, UninitialisedRead, UnfinishedCopy: see there.
        """
        found = self._cells(offsets, size, where, threads)
        cells, who = found.cells, found.threads
        self._check_landed(found, where, "reads")
        racing = self._written_by_others(found)
        if racing.any():
            self._race(where, "reads", cells, who, racing, self._writer, self._write_line, "wrote")
        unknown = None
        if not early:
            self._check_known(found, where)
        elif not self._known[cells].all():
            unknown = np.unique(who[~self._known[cells]])
        foreign = self._shared_readers[cells] | (self._reader[cells] != who)
        self._shared_readers[cells] = foreign & (self._read_epoch[cells] == self.epoch)
        self._reader[cells] = who
        if not found.distinct:
            self._shared_readers[cells[self._reader[cells] != who]] = True  # several lanes of this access
        self._read_epoch[cells], self._read_turn[cells], self._read_line[cells] = self.epoch, self.turns[found.warps], line
        if self._ordered:
            self._read_clocks[cells, found.warps] = self.order.clock[found.warps]
        return unknown

    def _check_landed(self, found: _Cells, where: object, verb: str) -> None:
        """Refuse an access to cells for which copies are under way."""
        cells = found.cells
        if self._copying and self._pending[cells].any():
            at = int(np.nonzero(self._pending[cells])[0][0])
            raise UnfinishedCopy(
                f"{where}: thread {found.threads[at]} {verb} byte {cells[at] * self._cell} of shared memory, for which an asynchronous "
                f"copy of thread {self._writer[cells[at]]} at line {self._write_line[cells[at]]} is under way; wait for its group "
                "(ptx_wait_group with a smaller number), then a barrier"
            )

    def _check_known(self, found: _Cells, where: object) -> None:
        if not self._known[found.cells].all():
            at = int(np.nonzero(~self._known[found.cells])[0][0])
            raise UninitialisedRead(
                f"{where}: thread {found.threads[at]} reads byte {found.cells[at] * self._cell} of shared memory, which nothing has written"
            )

    def note_write(self, offsets: Array, size: int, where: object, threads: Array, line: int, values: Array | None = None) -> None:
        """Watch a write; lanes that write equal values to one place don't race.

        Raises:
            DataRace, UnfinishedCopy, UnfinishedProduct: see there.
        """
        found = self._cells(offsets, size, where, threads)
        cells, who = found.cells, found.threads
        self._check_landed(found, where, "writes")
        if self._units is not None:
            self._units.note_write(cells, who, where, self._cell)
        for others, lines, verb in ((self._reader, self._read_line, "read"), (self._writer, self._write_line, "wrote")):
            racing = self._read_by_others(found) if verb == "read" else self._written_by_others(found)
            if racing.any() and not (verb == "wrote" and values is not None and self._same(offsets, size, values)):
                self._race(where, "writes", cells, who, racing, others, lines, verb)
        self._writer[cells] = who
        if (self._writer[cells] != who).any() and values is not None and not self._agree(offsets, values):
            racing = self._writer[cells] != who
            self._race(where, "writes", cells, who, racing, self._writer, np.full_like(self._write_line, line), "writes")
        self._known[cells] = True
        self._write_epoch[cells], self._write_turn[cells], self._write_line[cells] = self.epoch, self.turns[found.warps], line
        if self._ordered:
            self._write_clock[cells] = self.order.clock[found.warps]

    def _same(self, offsets: Array, size: int, values: Array) -> bool:
        """Whether a write changes nothing: threads that compute the same don't disturb each other."""
        rows = self.data[offsets[:, None] + np.arange(size)]
        return bool((rows == np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), -1)).all())

    def _agree(self, offsets: Array, values: Array) -> bool:
        order = np.argsort(offsets, kind="stable")
        places, kept = offsets[order], np.ascontiguousarray(values).reshape(len(offsets), -1)[order]
        same = places[1:] == places[:-1]
        return bool((kept[1:][same] == kept[:-1][same]).all())

    def _race(
        self, where: object, verb: str, cells: Array, who: Array, racing: Array, others: Array, lines: Array, other_verb: str
    ) -> None:
        at = int(np.nonzero(racing)[0][0])
        cell = int(cells[at])
        other = int(others[cell])
        if other >= 32 * self.order.warps:
            raise DataRace(
                f"{where}: thread {who[at]} {verb} byte {cell * self._cell} of shared memory, which the copy in bulk at line {lines[cell]} "
                "wrote; the thread has to wait for its mbarrier (T.ptx_wait_barrier), or to meet one that has waited at a barrier"
            )
        raise DataRace(
            f"{where}: thread {who[at]} {verb} byte {cell * self._cell} of shared memory, which thread {other} {other_verb} at line "
            f'{lines[cell]} with no barrier between; put T.tvm_storage_sync("shared") there'
        )

    def read(self, offsets: Array, width: int, count: int) -> list[Array]:
        """`count` values of `width` bytes from each offset on."""
        typed, first = self._typed[width], offsets // width
        return [typed[first + number] for number in range(count)]

    def write(self, offsets: Array, width: int, values: Sequence[Array]) -> None:
        """Values of `width` bytes from each offset on."""
        typed, first = self._typed[width], offsets // width
        for number, value in enumerate(values):
            typed[first + number] = value

    def begin_copy(self, offsets: Array, size: int, where: object, threads: Array, line: int) -> None:
        """An asynchronous copy into shared memory begins."""
        self.note_write(offsets, size, where, threads, line)
        np.add.at(self._pending, self._cells(offsets, size, where, threads).cells, 1)
        self._copying += len(offsets)

    def land(self, offsets: Array, rows: Array, where: object, threads: Array, line: int, engine: int | None = None) -> None:
        """The bytes of a copy arrive; by `engine` of those that copy in bulk past the threads, which units see."""
        size = rows.shape[1]
        found = self._cells(offsets, size, where, threads)
        cells, who = found.cells, found.threads
        np.subtract.at(self._pending, cells, 1)
        self._copying -= len(offsets)
        self.data[offsets[:, None] + np.arange(size)] = rows
        by_engine = engine is not None
        self._writer[cells], self._write_epoch[cells] = 32 * (self.order.warps + (engine or 0)) if by_engine else who, self.epoch
        self._write_turn[cells], self._write_line[cells] = _EVER if by_engine else self.turns[found.warps], line
        if self._ordered:
            self._write_clock[cells] = self.order.clock[self._writer[cells] // 32]
        if self._units is not None:
            self._units.note_write(cells, who, where, self._cell)
            if by_engine:
                self._units.note_engine(cells)

    def fence(self, threads: Array) -> None:
        """Threads show matrix units what they have written."""
        if self._units is not None:
            self._units.fence(threads, self._writer, self.epoch)

    def check_product(self, offsets: Array, size: int, where: object, threads: Array) -> Array:
        """Watch units that read an operand for four warps together; the cells that they read.

        Raises:
            DataRace, MissingFence, UninitialisedRead, UnfinishedCopy: see there.
        """
        assert self._units is not None
        found = self._cells(offsets, size, where, np.resize(threads, len(offsets)))
        cells = found.cells
        self._check_landed(found, where, "reads")
        racing = self._write_epoch[cells] == self.epoch  # of their own threads too, as the other warps don't wait for these
        if self._ordered and racing.any():
            seen = self.order.seen[np.unique(threads // 32)].min(axis=0)
            racing &= seen[self._writer[cells] // 32] < self._write_clock[cells]
        if racing.any():
            self._race(where, "reads", cells, found.threads, racing, self._writer, self._write_line, "wrote")
        self._check_known(found, where)
        unseen = self._units.unseen(cells, threads, self._write_epoch[cells], self.epoch)
        if unseen.any():
            cell = int(cells[np.nonzero(unseen)[0][0]])
            raise MissingFence(
                f"{where}: the matrix units read byte {cell * self._cell} of shared memory, which thread {self._writer[cell]} wrote at "
                f"line {self._write_line[cell]} with no fence.proxy.async between; put T.ptx_fence_proxy_async() in front of the "
                "barrier, behind what is written (behind the wait for what is copied)"
            )
        return cells

    def begin_product(self, product: Product) -> None:
        """Units read cells until their product has been waited for."""
        assert self._units is not None
        self._units.begin(product)
        self._note_units(product)

    def end_product(self, product: Product) -> None:
        """Four warps have waited for a product, each for itself: who writes there needs a barrier."""
        assert self._units is not None
        self._units.end(product)
        self._note_units(product)

    def _note_units(self, product: Product) -> None:
        cells = product.cells
        self._reader[cells], self._shared_readers[cells] = product.threads[0], True
        self._read_epoch[cells], self._read_turn[cells], self._read_line[cells] = self.epoch, _EVER, product.line
        if self._ordered:
            for warp in np.unique(product.threads // 32):
                self._read_clocks[cells, warp] = self.order.clock[warp]


def check_alignment(addresses: Array, size: int, where: object, threads: Array) -> None:
    """Refuse addresses that aren't multiples of a size.

    Raises:
        MisalignedAccess: for the first of them.
    """
    rest = addresses & addresses.dtype.type(size - 1)
    if rest.any():
        lane = int(np.nonzero(rest)[0][0])
        raise MisalignedAccess(f"{where}: thread {threads[lane]} accesses {size} bytes at an address that is no multiple of {size}")


def count_sectors(addresses: Array, size: int, warps: Array) -> int:
    """The sectors of global memory that the warps' lanes touch, each counted once for a warp."""
    first = addresses // np.uint64(SECTOR)
    keys = first if size <= SECTOR else np.concatenate([first + np.uint64(number) for number in range(size // SECTOR)])
    owners = warps if size <= SECTOR else np.tile(warps, size // SECTOR)
    return len(np.unique(keys.astype(np.int64) * 64 + owners))


def count_conflicts(offsets: Array, size: int, threads: Array) -> tuple[int, int]:
    """Requests of warps, or of the parts of warps that are served together, and the further passes that banks make of them."""
    return _conflicts(offsets.tobytes(), size, threads.tobytes())


@lru_cache(maxsize=4096)
def _conflicts(at: bytes, size: int, who: bytes) -> tuple[int, int]:
    offsets, threads = np.frombuffer(at, np.int64), np.frombuffer(who, np.int32)
    together = 32 if size <= 4 else 16 if size == 8 else 8
    group = threads // together
    words = offsets // 4
    if size > 4:
        words = (words[:, None] + np.arange(size // 4)).ravel()
        group = np.repeat(group, size // 4)
    distinct = np.unique(group.astype(np.int64) << 32 | words.astype(np.int64))
    keys, counts = np.unique((distinct >> 32) * BANKS + (distinct & 0xFFFFFFFF) % BANKS, return_counts=True)
    groups = keys // BANKS
    starts = np.nonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))[0]
    passes = np.maximum.reduceat(counts, starts)
    return len(starts), int((passes - 1).sum())
