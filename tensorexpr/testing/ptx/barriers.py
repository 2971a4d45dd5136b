"""mbarriers: objects in shared memory that threads arrive at and copies report their bytes to, and what they order.

A phase ends when all arrivals and all bytes that were announced have come; then the next one begins. Who has waited for a phase sees what
those that arrived did before, and what was copied for it. Source: PTX ISA, "Parallel Synchronization and Communication: mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass, field
from .access import Step, address_of
from .compute import operand
from .faults import BarrierMisuse, Deadlock
from .memory import ENGINES, check_alignment
from .parser import Instruction, Kernel

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
_BYTES = 8
_WARP = 32


@dataclass
class _Barrier:
    """One: arrivals of a phase, those that are missing, bytes that are missing, phases that have ended."""

    count: int
    line: int
    engine: int  # which copies in bulk are its
    seen: Array  # what those that have arrived in this phase have seen
    shown: Array  # what who waited for the last phase sees
    pending: int = 0
    bytes: int = 0
    announced: int = 0
    phase: int = 0

    def __post_init__(self) -> None:
        self.pending = self.count

    def settle(self) -> None:
        """End the phase if nothing is missing."""
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending, self.announced = self.phase + 1, self.count, 0
            self.shown = np.maximum(self.shown, self.seen)
            self.seen = np.zeros_like(self.seen)


@dataclass
class Barriers:
    """The mbarriers of a block by their places, with the bulk copies that report to them, oldest first."""

    block: Block
    by_place: dict[int, _Barrier] = field(default_factory=dict)
    under_way: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)  # barrier, bytes, what lets them land

    def at(self, place: int) -> _Barrier:
        """The barrier at a place of shared memory.

        Raises:
            BarrierMisuse: if nobody has made one there.
        """
        if place not in self.by_place:
            raise BarrierMisuse(
                f"{self.block.where()}: there is no mbarrier at byte {place} of shared memory; one thread has to make it with "
                "T.ptx_init_barrier_thread_count, and all threads to meet at a barrier of the block behind that"
            )
        return self.by_place[place]

    def init(self, place: int, count: int, line: int) -> None:
        """Make a barrier.

        Raises:
            BarrierMisuse: for a number of arrivals that none has, and for a barrier in use.
        """
        had = self.by_place.get(place)
        if not 1 <= count < 1 << 20:
            raise BarrierMisuse(f"{self.block.where()}: an mbarrier waits for 1 to {(1 << 20) - 1} arrivals, not for {count}")
        if had is not None and (had.pending != had.count or had.bytes or any(at == place for at, _, _ in self.under_way)):
            raise BarrierMisuse(f"{self.block.where()}: the mbarrier at byte {place}, made at line {had.line}, is in use, and made again")
        warps = len(self.block.shared.order.clock)
        self.by_place[place] = _Barrier(
            count, line, (had.engine if had else len(self.by_place)) % ENGINES, np.zeros(warps, np.int32), np.zeros(warps, np.int32)
        )

    def arrive(self, places: Array, threads: Array, announced: Array | None = None) -> None:
        """Threads arrive, and say how many bytes will be copied.

        Raises:
            BarrierMisuse: for more arrivals than the barrier has.
        """
        order = self.block.shared.order
        for place, thread, more in zip(
            places.tolist(), threads.tolist(), [0] * len(places) if announced is None else announced.tolist(), strict=True
        ):
            one, warp = self.at(place), thread // _WARP
            if one.pending == 0:
                raise BarrierMisuse(
                    f"{self.block.where()}: thread {thread} arrives at the mbarrier at byte {place} of shared memory, at which all of its "
                    f"{one.count} arrivals are, and {one.bytes} bytes are missing"
                )
            one.pending -= 1
            one.bytes += more
            one.announced += more
            one.seen = np.maximum(one.seen, order.seen[warp])
            one.seen[warp] = max(one.seen[warp], order.clock[warp])
            order.clock[warp] += 1
            one.settle()

    def begin(self, place: int, size: int, land: Callable[[], None]) -> None:
        """A copy of bytes that are reported to a barrier begins."""
        self.at(place)
        self.under_way.append((place, size, land))

    def land_one(self, wanted: set[int]) -> bool:
        """Let the oldest copy arrive that somebody waits for, or that anybody may; whether there was one."""
        if not self.under_way:
            return False
        chosen = next((number for number, (place, _, _) in enumerate(self.under_way) if place in wanted), 0)
        place, size, land = self.under_way.pop(chosen)
        land()
        one, order = self.at(place), self.block.shared.order
        one.bytes -= size
        own = order.warps + one.engine
        one.seen[own] = max(one.seen[own], order.clock[own])
        order.clock[own] += 1
        one.settle()
        return True

    def passed(self, places: Array, parities: Array, threads: Array) -> Array:
        """Which threads need not wait any longer for the phase of a parity; they see what was done before its end."""
        done = np.zeros(len(threads), np.bool_)
        order = self.block.shared.order
        for place in np.unique(places).tolist():
            one = self.at(place)
            here = (places == place) & ((one.phase & 1) != (parities & 1))
            done |= here
            for warp in np.unique(threads[here] // _WARP).tolist():
                order.seen[warp] = np.maximum(order.seen[warp], one.shown)
        return done

    def stuck(self, places: Array, threads: Array) -> Deadlock:
        """What is missing at the barriers that threads wait at for ever."""
        place = int(places[0])
        one = self.at(place)
        shown = f"threads {threads[0]} to {threads[-1]} wait" if len(threads) > 1 else f"thread {threads[0]} waits"
        missing = []
        if one.pending:
            missing.append(f"{one.pending} of {one.count} arrivals are missing")
        if one.bytes:
            side = f"{one.bytes} are missing" if one.bytes > 0 else f"{-one.bytes} came beyond those"
            missing.append(
                f"{one.announced} bytes were announced, of which {side}"
                if one.bytes > 0
                else f"{one.announced} bytes were announced, and {side}"
            )
        if one.pending == one.count and not one.bytes:
            missing.append(f"{one.phase} phases have ended before: a wait for the wrong parity, or a copy that nobody began")
        return Deadlock(f"{self.block.where()}: {shown} for ever at the mbarrier at byte {place} of shared memory: {'; '.join(missing)}")


def waiting_places(kernel: Kernel, one: Instruction) -> Callable[[Block, Array | None], tuple[Array, Array]]:
    """What reads the place and the parity of a wait."""
    address, parity = address_of(kernel, one.operands[1]), operand(kernel, one.operands[2], "u32")

    def get(block: Block, lanes: Array | None) -> tuple[Array, Array]:
        return _places(block, lanes, address), parity(block, lanes).astype(np.int64)

    return get


def _places(block: Block, lanes: Array | None, address: Callable[[Block, Array | None], Array]) -> Array:
    places = address(block, lanes).astype(np.int64)
    check_alignment(places, _BYTES, block.where(), block.threads if lanes is None else lanes)
    return places


def _made(kernel: Kernel, one: Instruction) -> Step | None:
    """mbarrier: make one, arrive at it, wait for it."""
    match one.words[1]:
        case "init":
            return _init(kernel, one)
        case "arrive":
            return _arrive(kernel, one)
        case "try_wait" | "test_wait" if "parity" in one.words:
            into = one.operands[0]
            return lambda block, lanes: block.write(into, lanes, np.ones(block.count(lanes), np.bool_))  # those that may go on come here
    return None


def _init(kernel: Kernel, one: Instruction) -> Step:
    address, count = address_of(kernel, one.operands[0]), operand(kernel, one.operands[1], "u32")

    def run(block: Block, lanes: Array | None) -> None:
        for place, number in zip(_places(block, lanes, address).tolist(), count(block, lanes).tolist(), strict=True):
            block.barriers.init(place, number, one.line)

    return run


def _arrive(kernel: Kernel, one: Instruction) -> Step | None:
    if one.operands[0] not in ("_",) and not one.operands[0].startswith("%"):
        return None
    expects = "expect_tx" in one.words
    if not expects and len(one.operands) > 2:
        return None  # several arrivals at once
    address = address_of(kernel, one.operands[1])
    announced = operand(kernel, one.operands[2], "u32") if expects else None

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        sizes = None if announced is None else announced(block, lanes).astype(np.int64)
        block.barriers.arrive(_places(block, lanes, address), threads, sizes)

    return run


def arrive_behind_copies(kernel: Kernel, one: Instruction) -> Step:
    """cp.async.mbarrier.arrive: each thread arrives when its copies so far have landed; without `noinc` that arrival is one more."""
    address, more = address_of(kernel, one.operands[0]), "noinc" not in one.words

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        groups = block.copies.committed[threads].copy()
        block.copies.committed[threads] += 1
        for place in np.unique(places := _places(block, lanes, address)).tolist():
            who, own = threads[places == place], groups[places == place]
            block.barriers.at(place).pending += len(who) if more else 0

            def land(place: int = place, who: Array = who, own: Array = own) -> None:
                block.copies.land(block, who, block.copies.committed[who] - own - 1)
                block.barriers.arrive(np.full(len(who), place), who)

            block.barriers.begin(place, 0, land)

    return run


MAKERS = {"mbarrier": _made}
