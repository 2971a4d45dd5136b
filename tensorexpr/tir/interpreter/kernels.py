"""Kernels whose threads meet: all threads of a block run, each up to the next barrier before any goes on.

A thread has cells of its own. What stands between two barriers runs for one thread after the other, under a watch for races;
loops, conditions and allocations around a barrier run for all at once, and threads that disagree about one never meet: an error.
Before barriers have been planned (a kernel that shares memory or reduces over threads, and has no barrier yet), every statement
waits for the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..arithmetic import as_int
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..expr import BufferLoad, Call, StringImm, Var
from ..pointers import pointer_scope
from ..reduce import CommReducer
from ..stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from ..thread import HARDWARE_TAGS
from ..warp_units import WARP, WarpUnits, alone, is_fragment, together
from .arithmetic import Thunk
from .launches import ALLREDUCE, SHUFFLES, SYNC, accesses, calls_in, inner_statements, launch_of, meets, runs_together, shared_memory
from .machine import Machine
from .storage import InterpreterError, RaceWatch, Storage
from .thread_watch import ThreadWatch

Boxes = dict[int, tuple[tuple[int, ...], tuple[int, ...]]]
Action = Callable[[Sequence[int]], None]  # for the threads of these numbers


class Kernel:
    """One kernel: made by `run_kernel` at its outermost launch."""

    def __init__(self, machine: Machine, stmt: Stmt) -> None:
        self._machine, self._units, self._lane = machine, WarpUnits(), Var("lane", "int32")
        stmt = alone(stmt, self._lane)
        self._slots: dict[str, list[int]] = {}
        self._extents: dict[str, Thunk] = {}
        for inner in inner_statements(stmt):
            launch = launch_of(inner)
            if launch is not None:
                self._slots.setdefault(launch[0], []).append(machine.slot(launch[1]))
                self._extents.setdefault(launch[0], machine.compile(launch[2]))
            if (call := together(inner)) is not None:
                self._units.note(call)
        self._tag_of = {slot: tag for tag, slots in self._slots.items() for slot in slots}
        self._planned = any(calls_in(inner, (SYNC,)) for inner in inner_statements(stmt))
        self._shared = shared_memory(stmt)
        self._reduces = any(calls_in(inner, (ALLREDUCE,)) for inner in inner_statements(stmt))
        self._reducer: CommReducer | None = None
        self._current = 0
        self._cells: list[list[Any]] = []  # of each thread
        self._places: list[tuple[int, ...]] = []
        self._numbers: list[int] = []  # of each thread in its block, x fastest
        self._tags = [tag for tag in HARDWARE_TAGS if tag in self._extents]
        self._watch = ThreadWatch(self._name)
        self._offers: dict[Call, dict[int, Any]] = {}
        machine.slot(self._lane)
        machine.kernel = self
        self._action = self._made(stmt)
        machine.kernel = None

    def _name(self, thread: int) -> str:
        pairs = zip(self._tags, self._places[thread], strict=True)
        return ", ".join(f"{tag} {place}" for tag, place in pairs if tag.startswith("threadIdx")) or "0"

    def run(self) -> None:
        """The blocks one after the other, the threads of each together."""
        machine = self._machine
        counts = [int(self._extents[tag]()) for tag in self._tags]
        blocks = [count if tag.startswith("blockIdx") else 1 for tag, count in zip(self._tags, counts, strict=True)]
        threads = [1 if tag.startswith("blockIdx") else count for tag, count in zip(self._tags, counts, strict=True)]
        guard, outside = RaceWatch("over the blocks of a grid"), list(machine.cells)
        machine.watch.append(guard)
        machine.watch.append(self._watch)
        try:
            for block in machine.order(int(np.prod(blocks))):
                guard.current = block
                first = np.unravel_index(block, blocks)
                self._places = [
                    tuple(int(b + t) for b, t in zip(first, np.unravel_index(thread, threads), strict=True))
                    for thread in range(int(np.prod(threads)))
                ]
                machine.charge(len(self._places), "over threads")
                self._cells = [list(outside) for _ in self._places]
                self._begin(outside)
                self._action(machine.order(len(self._places)))
                self._watch.barrier()
        finally:
            machine.watch.pop()
            machine.watch.pop()
        machine.cells[:] = outside

    def _begin(self, outside: list[Any]) -> None:
        """The cells of each thread of a block: its numbers, and memory that was allocated outside for what is inside."""
        sizes, lane = [max(place[n] for place in self._places) + 1 for n in range(len(self._tags))], self._machine.slot(self._lane)
        self._numbers = [self._number(thread, sizes) for thread in range(len(self._places))]
        for thread, place in enumerate(self._places):
            self._cells[thread][lane] = self._numbers[thread] % WARP
            for tag, number in zip(self._tags, place, strict=True):
                for slot in self._slots[tag]:
                    self._cells[thread][slot] = number
        for slot, storage in enumerate(outside):
            # What was stored there before is handed on to the kernel.
            if isinstance(storage, Storage) and storage.scope != "global" and not any(storage.written or b"\1"):
                elements = dict.fromkeys(range(len(self._places)), len(storage.array))
                self._provide(slot, elements, storage.name, storage.array.dtype, storage.scope)

    def _provide(self, slot: int, sizes: dict[int, int], name: str, dtype: Any, scope: str, boxes: Boxes | None = None) -> None:
        """Fresh memory of `sizes` elements for each thread, those that a scope joins having one piece of it.

        Args:
            boxes: of memory that is addressed by a box, its first indices and extents for each thread.
        """
        for_block, for_warp = scope.split(".")[0] in ("shared", "global"), scope == "warp"
        made: dict[Any, Storage] = {}
        for thread, size in sizes.items():
            key = None if for_block else self._others(thread, {"threadIdx.x"}) if for_warp else thread
            if is_fragment(scope):  # nobody watches it: only what all threads of a warp do together goes to it
                key = self._numbers[thread] // WARP
            if key not in made:
                mins, extents = ((), (size,)) if boxes is None else boxes[thread]
                made[key] = Storage(np.zeros(size, dtype), name, extents, mins)
                made[key].scope = scope
                # What several threads see is watched by the innermost watch, which is that of threads.
                made[key].depth = len(self._machine.watch) - int(for_block or for_warp)
            self._cells[thread][slot] = made[key]

    def _each(self, active: Sequence[int], thunk: Thunk) -> dict[int, Any]:
        """What `thunk` gives in each thread."""
        cells, found = self._machine.cells, {}
        for thread in active:
            self._current = self._watch.current = thread
            cells[:] = self._cells[thread]
            found[thread] = thunk()
            self._cells[thread] = list(cells)
        return found

    def _set(self, slot: int, values: dict[int, Any]) -> None:
        for thread, value in values.items():
            self._cells[thread][slot] = value

    # Statements

    def _made(self, stmt: Stmt) -> Action:
        """What a statement does, for any threads."""
        launch = launch_of(stmt)
        if launch is not None:
            return self._made(launch[3])
        if not (meets(stmt) or self._waits(stmt)):
            return self._piece(stmt)
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call):
            if stmt.value.op == SYNC:
                return self._barrier(stmt.value)
            if stmt.value.op == ALLREDUCE:
                return self._allreduce(stmt.value)
        match stmt:
            case SeqStmt():
                return self._sequence(stmt)
            case For() | While():
                return self._loop(stmt)
            case IfThenElse():
                return self._branch(stmt)
            case LetStmt():
                return self._let(stmt)
            case Allocate():
                return self._allocate(stmt)
            case BufferRealize():
                return self._realize(stmt)
            case AttrStmt():
                outer = self._reducer
                self._reducer = stmt.node if isinstance(stmt.node, CommReducer) else outer
                body = self._made(stmt.body)
                self._reducer = outer
                return body
            case DeclBuffer() | AssertStmt():
                return self._made(stmt.body)
            case BufferStore() | Evaluate():
                call = together(stmt)
                return self._exchange(stmt) if call is None else self._together(call)
        raise InterpreterError(f"threads meet inside a {type(stmt).__name__}, which has no order of threads yet; lower the function first")

    def _waits(self, stmt: Stmt) -> bool:
        """Whether statements in this one wait for each other, as no barriers are planned yet."""
        if self._planned or not any(isinstance(inner, SeqStmt) or launch_of(inner) is not None for inner in inner_statements(stmt)):
            return False
        return self._reduces or accesses(stmt, self._shared)

    def _piece(self, stmt: Stmt) -> Action:
        body = self._machine.run(stmt)

        def run(active: Sequence[int]) -> None:
            self._each(active, body)
            if not self._planned:
                self._watch.barrier()

        return run

    def _barrier(self, call: Call) -> Action:
        within = bool(call.args) and isinstance(call.args[0], StringImm) and call.args[0].value == "warp"

        def run(active: Sequence[int]) -> None:
            if len(active) != len(self._places) and not within:
                missing = next(thread for thread in range(len(self._places)) if thread not in set(active))
                raise InterpreterError(
                    f"{call}: {len(active)} of {len(self._places)} threads come to this barrier, not thread {self._name(missing)}; "
                    "they would wait for the others forever"
                )
            self._watch.barrier()

        return run

    def _sequence(self, stmt: SeqStmt) -> Action:
        actions = [self._made(part) for part in self._runs(stmt)]

        def run(active: Sequence[int]) -> None:
            for action in actions:
                action(active)

        return run

    def _runs(self, stmt: SeqStmt) -> Iterator[Stmt]:
        """The statements, those between two meetings as one."""
        run: list[Stmt] = []
        for part in stmt.seq:
            if self._planned and not meets(part):
                run.append(part)
                continue
            if run:
                yield run[0] if len(run) == 1 else SeqStmt(tuple(run))
            run = []
            yield part
        if run:
            yield run[0] if len(run) == 1 else SeqStmt(tuple(run))

    def _agreed(self, active: Sequence[int], thunk: Thunk, what: str) -> Any:
        values = self._each(active, thunk)
        first = next(iter(values.values()))
        other = next((thread for thread, value in values.items() if value != first), None)
        if other is not None:
            raise InterpreterError(
                f"threads meet in {what}, on which they disagree: it is {first} for thread {self._name(next(iter(values)))} and "
                f"{values[other]} for thread {self._name(other)}; they would wait for each other forever"
            )
        return first

    def _loop(self, stmt: For | While) -> Action:
        machine, body = self._machine, self._made(stmt.body)
        # No barrier is planned, and threads that disagree could pass none: each goes on for itself.
        alone = None if self._planned or meets(stmt) else self._piece(stmt)
        if isinstance(stmt, While):
            condition = machine.compile(stmt.condition)

            def rounds(active: Sequence[int]) -> None:
                while True:
                    if alone is not None and self._differs(active, condition):
                        return alone(active)
                    if not self._agreed(active, condition, f"a loop while {stmt.condition}"):
                        return None
                    machine.charge(1, "while")
                    body(active)

            return rounds
        low, extent, slot, name = machine.compile(stmt.min), machine.compile(stmt.extent), machine.slot(stmt.loop_var), stmt.loop_var.name

        def run(active: Sequence[int]) -> None:
            if alone is not None and (self._differs(active, low) or self._differs(active, extent)):
                return alone(active)
            first = self._agreed(active, low, f"the loop {name}, which starts at {stmt.min}")
            count = self._agreed(active, extent, f"the loop {name} of {stmt.extent} iterations")
            machine.charge(count * len(active), name)
            for value in range(first, first + count):
                self._set(slot, dict.fromkeys(active, value))
                body(active)
            return None

        return run

    def _differs(self, active: Sequence[int], thunk: Thunk) -> bool:
        return len(set(self._each(active, thunk).values())) > 1

    def _branch(self, stmt: IfThenElse) -> Action:
        condition, yes = self._machine.compile(stmt.condition), self._made(stmt.then_case)
        no = self._made(stmt.else_case) if stmt.else_case is not None else None

        def run(active: Sequence[int]) -> None:
            found = self._each(active, condition)
            for action, wanted in ((yes, True), (no, False)):
                chosen = [thread for thread in active if bool(found[thread]) is wanted]
                if chosen and action is not None:
                    action(chosen)

        return run

    def _let(self, stmt: LetStmt) -> Action:
        slot, value = self._machine.slot(stmt.var), self._machine.compile(stmt.value)
        body, offers = self._made(stmt.body), self._offering(stmt)

        def run(active: Sequence[int]) -> None:
            offers(active)
            self._set(slot, self._each(active, value))
            body(active)

        return run

    def _allocate(self, stmt: Allocate) -> Action:
        machine, slot, body = self._machine, self._machine.slot(stmt.buffer_var), self._made(stmt.body)
        extents = [machine.compile(extent) for extent in stmt.extents]
        lanes, dtype = parse_dtype(stmt.dtype).lanes, to_numpy(scalar_dtype(stmt.dtype))
        name, scope = stmt.buffer_var.name, pointer_scope(stmt.buffer_var)

        def run(active: Sequence[int]) -> None:
            sizes = self._each(active, lambda: int(np.prod([extent() for extent in extents])) * lanes)
            self._provide(slot, sizes, name, dtype, scope)
            body(active)

        return run

    def _realize(self, stmt: BufferRealize) -> Action:
        machine, buffer = self._machine, stmt.buffer
        if buffer in machine.parameters:
            return self._made(stmt.body)
        machine.boxed.add(buffer)
        slot, bounds = machine.slot(buffer.data), [(machine.compile(r.min), machine.compile(r.extent)) for r in stmt.bounds]
        body, lanes, dtype = self._made(stmt.body), parse_dtype(buffer.dtype).lanes, to_numpy(scalar_dtype(buffer.dtype))

        def run(active: Sequence[int]) -> None:
            boxes = self._each(active, lambda: (tuple(low() for low, _ in bounds), tuple(extent() for _, extent in bounds)))
            sizes = {thread: int(np.prod(extents, dtype=np.int64)) * lanes for thread, (_, extents) in boxes.items()}
            self._provide(slot, sizes, buffer.name, dtype, buffer.scope(), boxes)
            body(active)

        return run

    def _others(self, thread: int, tags: set[str]) -> tuple[int, ...]:
        """The place of a thread along all tags but these."""
        return tuple(place for tag, place in zip(self._tags, self._places[thread], strict=True) if tag not in tags)

    # Values of other threads

    def _offering(self, stmt: Stmt) -> Action:
        """The exchanges of a statement: every thread offers its value, and finds out what it gets."""
        offers = [(call, [self._machine.compile(arg) for arg in call.args[1:4]]) for call in calls_in(stmt, SHUFFLES)]

        def run(active: Sequence[int]) -> None:
            for call, operands in offers:
                self._offers[call] = self._offered(call, operands, active)

        return run

    def _offered(self, call: Call, operands: Sequence[Thunk], active: Sequence[int]) -> dict[int, Any]:
        """What each thread gets of the values that the threads offer, by the lane and width that it names."""
        values, lanes, widths = (self._each(active, thunk) for thunk in operands)
        numbers = {self._numbers[thread]: thread for thread in active}
        found = {}
        for thread in active:
            number, size, step = self._numbers[thread], int(widths[thread]), int(lanes[thread])
            here = number % size
            there = {SHUFFLES[0]: step % size, SHUFFLES[1]: here - step, SHUFFLES[2]: here + step}[call.op]
            source = numbers.get(number - here + (there if 0 <= there < size else here))
            # A lane that doesn't take part has nothing to give: its value is not to be used.
            found[thread] = values[thread] if source is None else values[source]
        return found

    def _number(self, thread: int, sizes: Sequence[int]) -> int:
        """The number of a thread in its block, x fastest."""
        # Threads are numbered in the order of the tags, in which x comes first, and so is slowest.
        number = 0
        for tag in ("threadIdx.z", "threadIdx.y", "threadIdx.x"):
            if tag in self._tags:
                at = self._tags.index(tag)
                number = number * sizes[at] + self._places[thread][at]
        return number

    def _together(self, call: Call) -> Action:
        """What the threads of warps do together: each step for all of them."""
        taken, machine = self._units.steps(call, self._lane), self._machine
        steps = [machine.run(step) for step in taken.steps]
        memory = [(machine.slot(buffer.data), int(as_int(buffer.shape[0]) or 0), buffer) for buffer in taken.memory]

        def run(active: Sequence[int]) -> None:
            here: dict[int, int] = {}
            for thread in active:
                warp = self._numbers[thread] // WARP
                here[warp] = here.get(warp, 0) + 1
            part = next((warp for warp, count in here.items() if count != WARP), None)
            if part is not None:
                raise InterpreterError(
                    f"{call.op}: {here[part]} of the {WARP} threads of warp {part} come to {call}, which all of them run together"
                )
            for slot, size, buffer in memory:
                self._provide(slot, dict.fromkeys(active, size), buffer.name, to_numpy(buffer.dtype), buffer.scope())
            for step in steps:
                self._each(active, step)
            if not self._planned:
                self._watch.barrier()

        return run

    def _exchange(self, stmt: Stmt) -> Action:
        offers, piece = self._offering(stmt), self._piece(stmt)

        def run(active: Sequence[int]) -> None:
            offers(active)
            piece(active)

        return run

    def taken(self, call: Call) -> Thunk:
        """What the current thread gets from an exchange that has happened."""
        return lambda: self._offers[call][self._current]

    def _allreduce(self, call: Call) -> Action:
        reducer, machine = self._reducer, self._machine
        if reducer is None:
            raise InterpreterError("tvm_thread_allreduce stands in no reduce_scope, which would say how values are combined")
        count = len(reducer.result)
        terms = [machine.compile(value) for value in call.args[1 : 1 + count]]
        takes_part, idle = machine.compile(call.args[1 + count]), [machine.compile(value) for value in reducer.identity_element]
        combined = [machine.compile(value) for value in reducer.result]
        left, right = ([machine.slot(var) for var in side] for side in (reducer.lhs, reducer.rhs))
        results = [load for load in call.args[2 + count : 2 + 2 * count] if isinstance(load, BufferLoad)]
        names = [Var("reduced", load.dtype) for load in results]
        slots = [machine.slot(var) for var in names]
        stores = [machine.run(BufferStore(load.buffer, var, load.indices)) for load, var in zip(results, names, strict=True)]
        over = {self._tag_of.get(machine.slot(var), "") for var in call.args[2 + 2 * count :] if isinstance(var, Var)}

        def add(total: list[Any], values: list[Any]) -> list[Any]:
            for slot, value in zip((*left, *right), (*total, *values), strict=True):
                machine.cells[slot] = value
            return [result() for result in combined]

        def run(active: Sequence[int]) -> None:
            values = self._each(active, lambda: [one() for one in (terms if takes_part() else idle)])
            totals: dict[tuple[int, ...], list[Any]] = {}
            for thread in sorted(active):
                group = self._others(thread, over)
                totals[group] = add(totals[group], values[thread]) if group in totals else values[thread]
            for number, (slot, store) in enumerate(zip(slots, stores, strict=True)):
                self._set(slot, {thread: totals[self._others(thread, over)][number] for thread in active})
                self._each(active, store)

        return run


def run_kernel(machine: Machine, stmt: Stmt) -> Thunk | None:
    """The action of a kernel whose threads meet or share memory; None for any other statement."""
    return Kernel(machine, stmt).run if machine.kernel is None and runs_together(stmt) else None


def shuffle(machine: Machine, node: Call) -> Thunk:
    """A value of another thread of the warp."""
    if machine.kernel is None:
        raise InterpreterError(f"{node.op} exchanges values between threads, but no threads are launched around it")
    taken: Thunk = machine.kernel.taken(node)
    return taken
