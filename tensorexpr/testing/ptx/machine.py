"""Running a block of a kernel: a register is an array over the block's threads, and threads at one instruction run it together.

The threads with the least program counter go first, so that those that took a branch meet the others where the paths join. An
instruction of a whole warp waits until all of the warp's threads are there, a barrier until all of the block's are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...dataclass import dataclass
from . import access, barriers, compute, warpgroups, wmma
from .barriers import Barriers
from .between_blocks import OutOfStep, cell_of
from .faults import DivergentBarrier, OutOfBounds, Trapped, UnfinishedCopy, UninitialisedRead, UnknownInstruction
from .memory import PARAMETER, PARAMETER_STEP, Counters, GlobalMemory, SharedMemory
from .parser import Instruction, Kernel
from .poison import Poison
from .runs import Run, runs_of
from .units import Sums

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[["Block", "Array | None"], None]
_WARP = 32
_ROOM_ALIGNMENT = 1024  # of the shared memories of blocks that run side by side, so that all have the same banks
_ALONE = frozenset({"wgmma", "wmma", "mbarrier", "atom", "red"})  # what is told by places in shared memory, or has an order
_SHOWN = 100  # characters of an instruction in messages
_CONTROL = {"bra": "bra", "ret": "ret", "exit": "ret"}


@dataclass
class Program:
    """A kernel made ready: a step for each instruction, the branches, and the width of the narrowest access to shared memory."""

    kernel: Kernel
    steps: list[Step | None]
    targets: list[int]
    kinds: list[str]  # "", "bra", "ret", "bar", "warp", "phase"
    leaders: frozenset[int]
    cell: int
    sums: dict[str, int]  # the registers that products of four warps add to, numbered
    global_cell: int  # of global memory, between blocks
    runs: dict[int, Run]  # of instructions that are run together, by the first one
    waits: dict[int, Callable[[Block, Array | None], tuple[Array, Array]]]  # what reads place and parity of each wait for an mbarrier

    @cached_property
    def runs_side_by_side(self) -> bool:
        """Whether several blocks may run as one."""
        return not any(one.words[0] in _ALONE or "bulk" in one.words for one in self.kernel.instructions)


def prepare(kernel: Kernel) -> Program:
    """A kernel made ready to run.

    Raises:
        UnknownInstruction: for one that the interpreter doesn't know.
    """
    steps: list[Step | None] = []
    targets, kinds = [], []
    sums = warpgroups.sums_of(kernel)
    for one in kernel.instructions:
        op = one.words[0]
        kind = _CONTROL.get(op, "bar" if _is_barrier(one) else "warp" if _is_of_warp(one) else "phase" if _is_wait(one) else "")
        kinds.append(kind)
        targets.append(kernel.labels[one.operands[0]] if kind == "bra" else -1)
        steps.append(None if kind in ("bra", "ret", "bar") else warpgroups.watched(_step(kernel, one), one, sums))
    leaders = frozenset(kernel.labels.values())
    waits = {at: barriers.waiting_places(kernel, kernel.instructions[at]) for at, kind in enumerate(kinds) if kind == "phase"}
    return Program(
        kernel, steps, targets, kinds, leaders, access.narrowest(kernel), sums, cell_of(kernel), runs_of(kernel, leaders, sums), waits
    )


def _is_barrier(one: Instruction) -> bool:
    return one.words[0] in ("bar", "barrier") and "warp" not in one.words and "sync" in one.words


def _is_wait(one: Instruction) -> bool:
    return one.words[0] == "mbarrier" and one.words[1] in ("try_wait", "test_wait") and "parity" in one.words


def _is_of_warp(one: Instruction) -> bool:
    return one.words[0] in ("shfl", "mma", "ldmatrix", "vote", "redux", "wmma", "wgmma") or one.words[:2] == ("bar", "warp")


def _step(kernel: Kernel, one: Instruction) -> Step:
    for makers in (compute.MAKERS, access.MAKERS, warpgroups.MAKERS, wmma.MAKERS, barriers.MAKERS):
        maker = makers.get(one.words[0])
        if maker is not None:
            try:
                made: Step | None = maker(kernel, one)
            except (KeyError, IndexError, ValueError):
                made = None
            if made is not None:
                return made
    raise UnknownInstruction(f"{kernel.name}, line {one.line}: the interpreter knows no {one.text.strip()!r}")


@dataclass(frozen=True, slots=True)
class _Where:
    """A place that is being run, which is put in words when somebody asks: most accesses are right."""

    block: Block
    at: int

    def __str__(self) -> str:
        kernel, one = self.block.kernel, self.block.kernel.instructions[self.at]
        text = one.text.strip()
        return f"{kernel.name}, block {self.block.index}, line {one.line} ({text[:_SHOWN] + '...' if len(text) > _SHOWN else text})"


class Block:
    """One block while it runs, or several side by side, each with its threads and its own part of shared memory."""

    def __init__(
        self, program: Program, memory: GlobalMemory, arguments: Sequence[Any], counters: Counters,
        grid: tuple[int, int, int], block: tuple[int, int, int], indices: Sequence[tuple[int, int, int]], dynamic: int, first: int = 0,
    ) -> None:  # fmt: skip
        self.program, self.kernel, self.counters, self.memory = program, program.kernel, counters, memory
        x, y, z = block
        self.each = x * y * z
        self.size = self.each * len(indices)
        self.threads = np.arange(self.size, dtype=np.int32)
        self.blocks = first + self.threads // self.each  # by their numbers in the launch
        self.warps = self.threads // _WARP
        self.registers: dict[str, Array] = {}
        self.arguments = dict(zip((name for name, _ in self.kernel.params), arguments, strict=True))
        ids = (self.threads % self.each).astype(np.uint32)
        self.special = {
            **{"%tid.x": ids % x, "%tid.y": ids // x % y, "%tid.z": ids // (x * y), "%laneid": ids % _WARP, "%warpid": ids // _WARP},
            **{f"%ntid.{axis}": np.full(self.size, n, np.uint32) for axis, n in zip("xyz", block, strict=True)},
            **{f"%nctaid.{axis}": np.full(self.size, n, np.uint32) for axis, n in zip("xyz", grid, strict=True)},
            **{f"%ctaid.{axis}": np.repeat(np.array(indices, np.uint32)[:, number], self.each) for number, axis in enumerate("xyz")},
        }
        static = -(-self.kernel.static_bytes // self.kernel.dynamic_alignment) * self.kernel.dynamic_alignment
        self.dynamic_at = static
        self.room = static + dynamic if dynamic else self.kernel.static_bytes  # bytes of shared memory of a block
        apart = -(-self.room // _ROOM_ALIGNMENT) * _ROOM_ALIGNMENT
        self.shared_at = self.threads // self.each * np.int64(apart)  # where that of each thread begins
        size = self.room if len(indices) == 1 else apart * len(indices)
        self.shared = SharedMemory(size, program.cell, self.size, units=bool(program.sums), ordered=bool(program.waits))
        self.barriers = Barriers(self)
        self.local = np.full((self.size, max(1, self.kernel.local_bytes)), 0xFF, np.uint8)
        self.copies = access.Copies(self.size)
        self.sums = Sums(self.size, program.sums)
        self.poison = Poison(self.size)
        self.index = indices[0]
        self.at = 0

    # Values

    def shared_places(self, addresses: Array, size: int, threads: Array) -> Array:
        """Where in the shared memory of all blocks accesses of threads lie, by their places in that of each.

        Raises:
            OutOfStep: for one that lies beyond its block's.
        """
        offsets = addresses.astype(np.int64)
        if self.each == self.size:
            return offsets
        if len(offsets) and int(offsets.max()) + size > self.room:
            raise OutOfStep
        return np.asarray(offsets + self.shared_at[threads])

    def where(self) -> _Where:
        """The place that is being run, for messages."""
        return _Where(self, self.at)

    def read(self, name: str, lanes: Array | None, kind: Any = None) -> Array:
        """A register of the threads that run. One that nobody has written holds poison of the type `kind`, as compilers leave
        undefined what has no effect; one that decides or that an address is made of must have been written."""
        value = self.registers.get(name)
        if value is None:
            value = self.special.get(name)
            if value is None:
                if kind is None:
                    raise UninitialisedRead(f"{self.where()}: nothing has written the register {name}")
                value = poison(self.size, kind)
        return value if lanes is None else value[lanes]

    def write(self, name: str, lanes: Array | None, value: Array) -> None:
        """Set a register of the threads that run."""
        if name == "_":
            return
        if lanes is None:
            self.registers[name] = value
            return
        kept = self.registers.get(name)
        if kept is None or kept.dtype != value.dtype:
            kept = self.registers[name] = poison(self.size, value.dtype)
        kept[lanes] = value

    def count(self, lanes: Array | None) -> int:
        """How many threads run."""
        return self.size if lanes is None else len(lanes)

    def parameter_bytes(self, address: int) -> bytes:
        """The bytes of a parameter that is passed by value, such as a tensor map, by its address."""
        names = [name for name, _ in self.kernel.params]
        number = (address - PARAMETER) // PARAMETER_STEP
        if not 0 <= number < len(names):
            raise OutOfBounds(f"{self.where()}: {address:#x} is the address of no parameter; a tensor map is one (T.ptx_tensor_map)")
        return np.asarray(self.arguments[names[number]]).tobytes()

    # Control

    def run(self) -> None:
        """Run all threads to their end.

        Raises:
            PtxFault: for what is wrong with the program.
        """
        live = np.ones(self.size, np.bool_)
        waiting: dict[int, Array] = {}  # at a barrier, by instruction
        held: dict[int, Array] = {}  # for the rest of the warp
        self.parked: dict[int, Array] = {}  # at mbarriers
        ready: dict[int, Array] = {0: self.threads}
        while ready or held or waiting or self.parked:
            if not ready:
                ready = self._woken() or self._released(live, waiting, held)
            at = min(ready)
            lanes = ready.pop(at)
            if at in held:
                lanes = np.sort(np.concatenate([lanes, held.pop(at)]))
            self._advance(at, lanes, ready, waiting, held, live)
        if self.barriers.under_way:
            self.at = len(self.kernel.instructions) - 1
            count = len(self.barriers.under_way)
            raise UnfinishedCopy(
                f"{self.where()}: the block ends while {count} copies into its shared memory are under way; wait for their mbarriers"
            )

    def _woken(self) -> dict[int, Array]:
        """Threads whose phase of an mbarrier has ended, if need be by letting copies in bulk land, one after the other."""
        while self.parked:
            found: dict[int, Array] = {}
            wanted: set[int] = set()
            for at, lanes in list(self.parked.items()):
                self.at = at
                places, parities = self.program.waits[at](self, lanes)
                done = self.barriers.passed(places, parities, lanes)
                wanted.update(places[~done].tolist())
                if done.any():
                    found[at] = lanes[done]
                    if done.all():
                        del self.parked[at]
                    else:
                        self.parked[at] = lanes[~done]
            if found or not self.barriers.land_one(wanted):
                return found
        return {}

    def _advance(
        self, at: int, lanes: Array, ready: dict[int, Array], waiting: dict[int, Array], held: dict[int, Array], live: Array
    ) -> None:
        """Run threads from an instruction on until they part, wait, end, or reach the place of others."""
        program, counters, by_name = self.program, self.counters, self.counters.by_name
        whole, warps = self._extent(lanes)
        end, has_run = len(program.steps), False
        while at < end:
            if has_run and at in program.leaders and ready and min(ready) <= at:
                break
            self.at, has_run = at, True
            kind, one = program.kinds[at], self.kernel.instructions[at]
            several = program.runs.get(at) if not self.poison else None
            if several is not None and (kind == "" or (at not in held and self._complete(lanes, live).all())):
                counters.instructions += warps * several.count
                by_name[one.words[0]] = by_name.get(one.words[0], 0) + warps * several.count
                several.step(self, whole)
                at += several.count
                continue
            counters.instructions += warps
            by_name[one.words[0]] = by_name.get(one.words[0], 0) + warps
            if kind == "bar":
                _join(waiting, at, lanes)
                return
            if kind == "bra":
                target = self._branch(one, at, lanes, ready)
                if target is None:
                    return
                at = target
                continue
            if kind != "":
                going = self._going_on(kind, at, lanes, held, live)
                if len(going) == 0:
                    return
                if going is not lanes:
                    lanes = going
                    whole, warps = self._extent(lanes)
            if kind == "" and not (one.guard or self.poison):
                program.steps[at](self, whole)  # type: ignore[misc]  # what isn't "" may be no step
            elif kind != "ret":
                self._run_step(program.steps[at], one, whole)
            at += 1
        if at < end:
            _join(ready, at, lanes)
        else:
            live[lanes] = False

    def _extent(self, lanes: Array) -> tuple[Array | None, int]:
        """The threads as steps take them, None for all of the block, and the number of their warps."""
        return None if len(lanes) == self.size else lanes, len(np.unique(lanes // _WARP))

    def _branch(self, one: Instruction, at: int, lanes: Array, ready: dict[int, Array]) -> int | None:
        """Where all of the threads go on; None if they part."""
        target = self.program.targets[at]
        taken, rest = self._parted(one, lanes)
        if len(rest) == 0:
            return target
        if len(taken) == 0:
            return at + 1
        _join(ready, target, taken)
        _join(ready, at + 1, rest)
        return None

    def _going_on(self, kind: str, at: int, lanes: Array, held: dict[int, Array], live: Array) -> Array:
        """The threads that go on at an instruction that ends some, or that some wait at: for a phase, or for the others of their warp."""
        one = self.kernel.instructions[at]
        if kind == "ret":
            ending, rest = self._parted(one, lanes)
            live[ending] = False
            return rest
        if kind == "phase":
            places, parities = self.program.waits[at](self, None if len(lanes) == self.size else lanes)
            done, waiting = self.barriers.passed(places, parities, lanes), self.parked
        else:
            if at in held:  # others of the warp, which came another way
                lanes = np.sort(np.concatenate([lanes, held.pop(at)]))
            done, waiting = self._complete(lanes, live, 4 * _WARP if one.words[0] == "wgmma" else _WARP), held
        if done.all():
            return lanes
        _join(waiting, at, lanes[~done])
        return lanes[done]

    def _run_step(self, step: Step | None, one: Instruction, lanes: Array | None) -> None:
        assert step is not None
        if self.poison:
            self.poison.refuse(self, [one.guard], self.threads if lanes is None else lanes)
        if one.guard:
            guard = self.read(one.guard, lanes)
            chosen = guard if not one.negated else ~guard
            if not chosen.all():
                lanes = np.nonzero(chosen)[0] if lanes is None else lanes[chosen]
                if len(lanes) == 0:
                    return
        if self.poison:
            self.poison.pass_on(self, one, lanes)
        step(self, lanes)

    def _parted(self, one: Instruction, lanes: Array) -> tuple[Array, Array]:
        """The threads whose guard holds, and the others."""
        if not one.guard:
            return lanes, lanes[:0]
        if self.poison:
            self.poison.refuse(self, [one.guard], lanes)
        guard = self.read(one.guard, lanes)
        chosen = guard if not one.negated else ~guard
        return lanes[chosen], lanes[~chosen]

    def _complete(self, lanes: Array, live: Array, together: int = _WARP) -> Array:
        """Of each thread, whether all of its warp, or of its group of warps, that live are here."""
        here = np.bincount(lanes // together, minlength=len(self.shared.turns))
        alive = np.bincount(self.threads[live] // together, minlength=len(self.shared.turns))
        return np.asarray((here == alive)[lanes // together])

    def _released(self, live: Array, waiting: dict[int, Array], held: dict[int, Array]) -> dict[int, Array]:
        """Nobody can go on: the threads that a barrier lets go, if all have reached one.

        Raises:
            DivergentBarrier: if some never will.
            Deadlock: if they wait at mbarriers for what never comes.
        """
        if self.parked:
            self.at, lanes = next(iter(self.parked.items()))
            raise self.barriers.stuck(self.program.waits[self.at](self, lanes)[0], lanes)
        if held:
            at, lanes = next(iter(held.items()))
            self.at = at
            raise DivergentBarrier(
                f"{self.where()}: threads {_some(lanes)} wait for the rest of their warp, which never gets there; all threads of a warp "
                "have to take the same way to it"
            )
        arrived = np.sort(np.concatenate(list(waiting.values())))
        if self.each < self.size and (len(waiting) > 1 or len(arrived) < self.size):
            raise OutOfStep
        if len(waiting) > 1 or len(arrived) < self.size:
            self.at = next(iter(waiting))
            places = ", ".join(f"{len(lanes)} threads at line {self.kernel.instructions[at].line}" for at, lanes in waiting.items())
            ended = self.size - len(arrived)
            raise DivergentBarrier(
                f"{self.where()}: the threads of the block don't meet at one barrier: {places}, {ended} have ended; put the barrier "
                "outside the condition on which they disagree"
            )
        ((at, lanes),) = waiting.items()
        waiting.clear()
        self.shared.meet()
        self.counters.barriers += self.size // self.each
        return {at + 1: lanes}


def poison(count: int, kind: Any) -> Array:
    """What registers hold that nobody wrote: NaN in types of floats, false in predicates."""
    return np.frombuffer(b"\xff" * (count * np.dtype(kind).itemsize), kind).copy() if kind != np.bool_ else np.zeros(count, np.bool_)


def _join(places: dict[int, Array], at: int, lanes: Array) -> None:
    kept = places.get(at)
    places[at] = lanes if kept is None else np.sort(np.concatenate([kept, lanes]))


def _some(lanes: Array) -> str:
    shown = ", ".join(map(str, lanes[:4]))
    return f"{shown}, ... ({len(lanes)})" if len(lanes) > 4 else shown


def trap(kernel: Kernel, one: Instruction) -> Step:
    """The step of an instruction that stops the program."""

    def stop(block: Block, lanes: Array | None) -> None:
        raise Trapped(f"{block.where()}: an assertion failed in thread {0 if lanes is None else lanes[0]}")

    return stop


compute.MAKERS["trap"] = trap
