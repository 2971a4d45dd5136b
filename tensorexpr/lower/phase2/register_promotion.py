"""Keep values in registers: small local buffers, and elements that a loop reads and writes over and over.

A local buffer all of whose indices are constants becomes a buffer of scope "register". So do the elements of any buffer
that a run of neighbouring statements, one of them a loop, accesses only around one fixed base: they are loaded before
the run, unless its first act is to store them, and stored after it. A loop that may not run at all, or a guard, keeps
its elements out of reach unless the same condition admits them. Runs are sought from the outside in, so that values
stay in registers as long as possible. Threads have registers of their own: nothing is kept in one around a launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...dataclass import dataclass, field
from ...tir.arithmetic import all as all_of
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, For, IfThenElse, SeqStmt, Stmt, seq
from ..context import PassContext
from ..device.launches import launched_tag
from ..rebuild import FreeVars, map_expr, map_stmt, pointer_like, pointer_scope, sub_statements
from ..register_file import RegisterFile
from .access_groups import AccessGroups, Group, Slot, SlotKey, merge

_TRUE = IntImm("bool", 1)


def register_promotion(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with accumulators and small buffers in registers; itself if there are none."""
    shared = frozenset() if func.attrs.get("tir.noalias", True) else frozenset(b.data for b in func.buffer_map.values())
    promoter = _Promoter(RegisterFile.of(func), shared, _around_launches(func.body))
    return func.with_body(promoter.stmt(func.body, _NOTHING))


def _around_launches(stmt: Stmt) -> frozenset[int]:
    """The identities of launches, and of what stands around them."""
    found: set[int] = set()

    def look(inner: Stmt) -> bool:
        # All parts are looked at, also behind the first that launches.
        launches = [look(part) for part in sub_statements(inner)]
        if any(launches) or launched_tag(inner) is not None:
            found.add(id(inner))
        return id(inner) in found

    look(stmt)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Home:
    """The registers of one buffer: for each slot a register buffer and its number in it."""

    slots: dict[SlotKey, tuple[Buffer, int]]
    masks: dict[SlotKey, PrimExpr | None]

    def buffers(self) -> Iterator[tuple[Buffer, int]]:
        """The register buffers and their sizes."""
        sizes: dict[Buffer, int] = {}
        for buffer, _ in self.slots.values():
            sizes[buffer] = sizes.get(buffer, 0) + 1
        yield from sizes.items()


@dataclass(frozen=True, slots=True)
class _Active:
    """The buffers in registers here, and how many registers they take."""

    homes: dict[Var, _Home]
    used: int
    exprs: dict[PrimExpr, PrimExpr] = field(default_factory=dict)


_NOTHING = _Active({}, 0)


@dataclass(frozen=True, slots=True)
class _Run:
    """Statements `first` to `last` of a sequence, around which the slots of `group` are in registers."""

    first: int
    last: int
    group: Group


class _Promoter:
    def __init__(self, registers: RegisterFile, shared: frozenset[Var], launching: frozenset[int]) -> None:
        self._registers = registers
        self._shared = shared
        self._launching = launching
        self._free = FreeVars()
        self._groups = AccessGroups(self._free)

    def stmt(self, stmt: Stmt, active: _Active) -> Stmt:
        """The statement with what is worth it in registers."""
        match stmt:
            # A thread's own memory is one for all that the thread runs, wherever it is allocated.
            case _ if id(stmt) in self._launching and not (isinstance(stmt, Allocate) and pointer_scope(stmt.buffer_var) == "local"):
                pass
            case SeqStmt():
                return self._sequence(stmt, stmt.seq, active)
            case For():
                return self._sequence(stmt, (stmt,), active)
            case Allocate():
                return self._allocate(stmt, active)
            case BufferStore() if stmt.buffer.data in active.homes:
                buffer, index, mask = self._place(active, stmt)
                return BufferStore(buffer, self._expr(stmt.value, active), (index,), mask)
        return map_stmt(stmt, lambda s: self.stmt(s, active), lambda e: self._expr(e, active))

    def _expr(self, expr: PrimExpr, active: _Active) -> PrimExpr:
        if not active.homes:
            return expr
        known = active.exprs.get(expr)
        if known is None:
            known = expr
            if any(data in active.homes for data in self._free(expr)):
                known = map_expr(expr, lambda e: self._expr(e, active))
                if isinstance(expr, BufferLoad) and expr.buffer.data in active.homes:
                    buffer, index, mask = self._place(active, expr)
                    known = BufferLoad(buffer, (index,), mask)
            # The memo belongs to these homes: with one more in registers the same expression becomes another.
            active.exprs[expr] = known
        return known

    def _place(self, active: _Active, access: BufferLoad | BufferStore) -> tuple[Buffer, PrimExpr, PrimExpr | None]:
        """The register of an access, and its mask unless the whole slot has it."""
        home = active.homes[access.buffer.data]
        key = self._groups.key(access.indices[0])
        buffer, number = home.slots[key]
        mask = access.predicate
        if mask is not None:
            # A mask that all accesses share is applied once, by the loads before the run and the stores after it.
            mask = None if mask is home.masks[key] else self._expr(mask, active)
        return buffer, IntImm("int32", number), mask

    def _allocate(self, stmt: Allocate, active: _Active) -> Stmt:
        """A buffer whose every index is a constant needs no memory at all."""
        group = self._groups.of(stmt.body).get(stmt.buffer_var)
        # An empty base: every index is a constant.
        home = None if group is None or group.base else self._home(group, active)
        if group is None or home is None:
            return map_stmt(stmt, lambda s: self.stmt(s, active), lambda e: self._expr(e, active))
        inner = self._with(active, group, home)
        return _allocated(home, self.stmt(stmt.body, inner))

    def _with(self, active: _Active, group: Group, home: _Home) -> _Active:
        return _Active({**active.homes, group.buffer.data: home}, active.used + self._cost(group))

    def _cost(self, group: Group) -> int:
        return sum(self._registers.needed(group.buffer.access_dtype((slot.index,))) for slot in group.slots.values())

    def _home(self, group: Group, active: _Active) -> _Home | None:
        """Registers for a group; None if there are not enough, or slots overlap."""
        # Before overlaps are looked for, which takes a step for each element.
        if active.used + self._cost(group) > self._registers.promotable:
            return None
        owner: dict[int, SlotKey] = {}
        for key in group.slots:
            offset, stride, lanes = key
            for element in range(offset, offset + stride * lanes, stride) if stride else (offset,):
                # X[0:8] and X[4:12] would be two registers, neither of which sees what is stored to the other.
                if owner.setdefault(element, key) != key:
                    return None
        buffers: dict[str, tuple[Var, list[SlotKey]]] = {}
        for key, slot in group.slots.items():
            # A register buffer for each width, as all elements of a buffer have one dtype.
            dtype = group.buffer.access_dtype((slot.index,))
            if dtype not in buffers:
                buffers[dtype] = (pointer_like(group.buffer.data, "register", dtype), [])
            buffers[dtype][1].append(key)
        slots: dict[SlotKey, tuple[Buffer, int]] = {}
        for dtype, (data, keys) in buffers.items():
            buffer = Buffer(data, dtype, (IntImm("int32", len(keys)),), name=group.buffer.name)
            slots.update((key, (buffer, number)) for number, key in enumerate(sorted(keys)))
        return _Home(slots, {key: slot.predicate for key, slot in group.slots.items()})

    def _sequence(self, whole: Stmt, parts: Sequence[Stmt], active: _Active) -> Stmt:
        """A sequence, or a loop alone, with the runs in it promoted."""
        runs = [(run, home) for run in self._runs(parts, active) if (home := self._home(run.group, active)) is not None]
        if not runs:
            if len(parts) == 1:
                return map_stmt(whole, lambda s: self.stmt(s, active), lambda e: self._expr(e, active))
            return map_stmt(whole, lambda s: self.stmt(s, active))
        before: list[list[Stmt]] = [[] for _ in parts]
        after: list[list[Stmt]] = [[] for _ in parts]
        inside: list[_Active] = [active] * len(parts)
        taken: list[_Home] = []
        for run, home in runs:
            touched = range(run.first, run.last + 1)
            # Registers that aren't there become memory again, with the loads and stores of a spill in the innermost loop.
            if max(inside[i].used for i in touched) + self._cost(run.group) > self._registers.promotable:
                continue
            taken.append(home)
            # Loads before the first statement that touches the buffer, stores after the last: between them nothing else may see it.
            before[run.first] += self._loads(run.group, home)
            after[run.last] += self._stores(run.group, home)
            for i in touched:
                inside[i] = self._with(inside[i], run.group, home)
        result: list[Stmt] = []
        for i, part in enumerate(parts):
            # For a loop alone `stmt` would look for the same runs again.
            moved = self._inner(part, inside[i]) if len(parts) == 1 else self.stmt(part, inside[i])
            result += [*before[i], moved, *after[i]]
        body = seq(*result)
        for home in reversed(taken):
            body = _allocated(home, body)
        return body

    def _inner(self, loop: Stmt, active: _Active) -> Stmt:
        return map_stmt(loop, lambda s: self.stmt(s, active), lambda e: self._expr(e, active))

    def _runs(self, parts: Sequence[Stmt], active: _Active) -> Iterator[_Run]:
        """For each buffer, the longest stretches of statements that form one group, write it, and contain a loop with it."""
        groups = [self._groups.of(part) for part in parts]
        candidates = {data for g in groups for data, group in g.items() if group is not None and group.in_loop}
        # By name: the order decides who gets the last registers, and a set's would change from run to run.
        for data in sorted(candidates - active.homes.keys() - self._shared, key=lambda var: var.name):
            current: _Run | None = None
            for number, found in enumerate(groups):
                if data not in found:
                    continue
                group = found[data]
                if current is not None and group is not None:
                    joined = {data: current.group.copy()}
                    merge(joined, {data: group})  # type: ignore[arg-type]
                    if (grown := joined[data]) is not None:
                        current = _Run(current.first, number, grown)
                        continue
                if current is not None and self._worth(current):
                    yield current
                # The statement doesn't fit: the run ended before it, and it may be the first of another one.
                current = None if group is None else _Run(number, number, group)
            if current is not None and self._worth(current):
                yield current

    def _worth(self, run: _Run) -> bool:
        slots = run.group.slots.values()
        # A slot without a known guard may never be accessed: then loading it before the run could be out of bounds.
        return run.group.in_loop and any(s.stored for s in slots) and all(s.guard is not None for s in slots)

    def _loads(self, group: Group, home: _Home) -> Iterator[Stmt]:
        for key, slot in group.slots.items():
            if not slot.defined:
                register, number = home.slots[key]
                value = BufferLoad(group.buffer, (slot.index,), slot.predicate)
                yield _guarded(BufferStore(register, value, (IntImm("int32", number),)), slot)

    def _stores(self, group: Group, home: _Home) -> Iterator[Stmt]:
        for key, slot in group.slots.items():
            if slot.stored:
                register, number = home.slots[key]
                value = BufferLoad(register, (IntImm("int32", number),))
                yield _guarded(BufferStore(group.buffer, value, (slot.index,), slot.predicate), slot)


def _guarded(stmt: Stmt, slot: Slot) -> Stmt:
    return IfThenElse(all_of(*slot.guard), stmt) if slot.guard else stmt


def _allocated(home: _Home, body: Stmt) -> Stmt:
    for buffer, size in home.buffers():
        body = Allocate(buffer.data, buffer.dtype, (IntImm("int32", size),), _TRUE, body)
    return body
