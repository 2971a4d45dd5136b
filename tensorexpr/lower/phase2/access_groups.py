"""What a statement does to each buffer, seen from outside: the analysis behind `register_promotion`.

The accesses to a buffer form a group if all their indices are one base plus constants, with a base that nothing inside
the statement changes. A buffer whose accesses are no group is blocked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...errors import InternalError
from ...tir.arithmetic import logical_not
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import And, BufferLoad, Call, IntImm, Let, Or, PrimExpr, Ramp, Var
from ...tir.intrin import intrinsic_of
from ...tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)  # fmt: skip
from ..rebuild import FreeVars, operands, own_expressions, walk_statements

Guard = tuple[PrimExpr, ...] | None
"""Conditions that hold at every access to an element, and under which it is surely accessed; None if none are known."""

SlotKey = tuple[int, int, int]
"""Where a slot lies relative to its group's base: offset, stride and lanes."""

_MOST_SLOTS = 512


@dataclass(frozen=True, slots=True)
class Slot:
    """One element or vector: how its first access looked, when it is surely accessed, and whether it is written.

    `predicate` is the mask that all accesses have in common, or None: then masked accesses keep their masks, and only
    the others say when the whole slot is surely accessed. `defined` means that the first access is a store under
    exactly the conditions `guard`: the old value is dead.
    """

    index: PrimExpr
    predicate: PrimExpr | None
    guard: Guard
    defined: bool
    stored: bool

    def then(self, later: Slot) -> Slot:
        """This access followed by a later one."""
        # Equal masks are one object, as expressions are hash-consed.
        first, second = (self, later) if self.predicate is later.predicate else (self.unmasked(), later.unmasked())
        guard = _weaker(first.guard, second.guard)
        # A later access under weaker conditions may see the old value: `if a: X[0] = 1` and then `Y[0] = X[0]`.
        defined = first.defined and _equal_guards(first.guard, guard)
        return Slot(self.index, first.predicate, guard, defined, self.stored or later.stored)

    @property
    def is_conditional(self) -> bool:
        """Whether variables say when it is accessed."""
        return self.predicate is not None or bool(self.guard)

    def unmasked(self) -> Slot:
        """The slot as part of one without a common mask."""
        return self if self.predicate is None else Slot(self.index, None, None, False, self.stored)


def _equal_guards(a: Guard, b: Guard) -> bool:
    return a is not None and b is not None and len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _weaker(a: Guard, b: Guard) -> Guard:
    """Conditions that hold at both accesses, and make one of them sure: none if either is sure anyway."""
    if a == () or b == ():
        return ()
    if a is None or b is None:
        return None
    # (c1,) and (c1, c2), nested conditions: under c1 the first access is sure, and it holds at both.
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    return short if _equal_guards(short, long[: len(short)]) else None


@dataclass(slots=True)
class Group:
    """The accesses to one buffer: the terms of their common base, the slots around it, and whether any access has a mask or conditions."""

    buffer: Buffer
    base: frozenset[tuple[PrimExpr, int]]
    base_vars: frozenset[Var]
    slots: dict[SlotKey, Slot] = field(default_factory=dict)
    in_loop: bool = False
    conditional: bool = False

    def add(self, key: SlotKey, slot: Slot) -> bool:
        """Take in a later access; False if it doesn't fit."""
        known = self.slots.get(key)
        if known is None and len(self.slots) >= _MOST_SLOTS:
            return False
        self.slots[key] = slot if known is None else known.then(slot)
        self.conditional = self.conditional or slot.is_conditional
        return True

    def join(self, later: Group) -> bool:
        """Take in the accesses of a later statement; False if they don't fit."""
        if self.buffer.dtype != later.buffer.dtype or self.base != later.base:
            return False
        self.in_loop = self.in_loop or later.in_loop
        return all(self.add(key, slot) for key, slot in later.slots.items())

    def copy(self) -> Group:
        """A group that can grow by itself."""
        return Group(self.buffer, self.base, self.base_vars, dict(self.slots), self.in_loop, self.conditional)

    def guarded(self, prefix: Guard) -> Group:
        """The group as seen from outside conditions; None stands for conditions that nobody outside can test."""
        if prefix == ():
            return self
        slots = {key: replace(s, guard=None if prefix is None or s.guard is None else prefix + s.guard) for key, s in self.slots.items()}
        return Group(self.buffer, self.base, self.base_vars, slots, self.in_loop, True)


Groups = dict[Var, Group | None]
"""By data variable; None is blocked."""


def merge(into: Groups, later: Groups) -> None:
    """Extend `into` by what a later statement does. The groups of `into` are its own and grow in place."""
    for data, group in later.items():
        known = into.get(data)
        if data not in into:
            # A copy: the statement's own group is cached, and asked for again.
            into[data] = None if group is None else group.copy()
        elif known is not None and (group is None or not known.join(group)):
            into[data] = None


@dataclass(frozen=True, slots=True)
class _Loads:
    """The loads of an expression, each with whether it surely happens, and the pointers that escape."""

    loads: tuple[tuple[BufferLoad, bool], ...]
    escaped: tuple[Var, ...]


class AccessGroups:
    """Groups of statements, each computed once."""

    def __init__(self, free: FreeVars) -> None:
        self._free = free
        self._analyzer = Analyzer()
        self._known: dict[int, Groups] = {}
        self._kept: list[Stmt] = []
        self._places: dict[PrimExpr, tuple[frozenset[tuple[PrimExpr, int]], frozenset[Var], SlotKey] | None] = {}

    def of(self, stmt: Stmt) -> Groups:
        """What `stmt` does to each buffer that is defined outside it."""
        found = self._known.get(id(stmt))
        if found is None:
            found = self._known[id(stmt)] = self._compute(stmt)
            self._kept.append(stmt)  # its id stays its own
        return found

    def _compute(self, stmt: Stmt) -> Groups:
        match stmt:
            case SeqStmt():
                result: Groups = {}
                for part in stmt.seq:
                    merge(result, self.of(part))
                return result
            case BufferStore():
                return self._store(stmt)
            case For():
                return self._loop(stmt)
            case IfThenElse():
                return self._branch(stmt)
            case Allocate() | AllocateConst() | DeclBuffer() | AssertStmt() | AttrStmt() | LetStmt():
                result = self._of_exprs(stmt)
                merge(result, self.of(stmt.body))
                if isinstance(stmt, Allocate):
                    # Outside there is no such buffer.
                    result.pop(stmt.buffer_var, None)
                return self._outside(result, stmt.var) if isinstance(stmt, LetStmt) else result
            case Evaluate(value=Call(_, "tir.prefetch")):  # takes an address, so what is there stays in memory
                return {data: None for data in self._touched(stmt)}
            case Evaluate():
                return self._of_exprs(stmt)
        # What isn't looked into, as while loops: all that they touch stays in memory.
        return {data: None for inner in walk_statements(stmt) for data in self._touched(inner)}

    def _touched(self, stmt: Stmt) -> Iterator[Var]:
        if isinstance(stmt, BufferStore):
            yield stmt.buffer.data
        for expr in own_expressions(stmt):
            yield from (var for var in self._free(expr) if var.dtype == "handle")

    def _outside(self, groups: Groups, bound: Var) -> Groups:
        """Groups seen from outside a binding: a base that needs the variable is no base there."""
        result: Groups = {}
        for data, group in groups.items():
            if group is None or bound in group.base_vars:
                result[data] = None
                continue
            result[data] = group
            # Bindings stand in one another by thousands, and groups have hundreds of slots, most of which are always accessed.
            if group.conditional:
                slots = {key: self._slot_outside(slot, bound) for key, slot in group.slots.items()}
                if any(slots[key] is not slot for key, slot in group.slots.items()):
                    result[data] = replace(group, slots=slots)
        return result

    def _slot_outside(self, slot: Slot, bound: Var) -> Slot:
        if slot.predicate is not None and bound in self._free(slot.predicate):
            slot = slot.unmasked()
        if slot.guard and any(bound in self._free(condition) for condition in slot.guard):
            slot = replace(slot, guard=None)
        return slot

    def _store(self, stmt: BufferStore) -> Groups:
        result = self._of_exprs(stmt)
        # After the loads: X[0] = X[0] + 1 needs the old value, so its first access is no store.
        merge(result, self._single(stmt.buffer, stmt.indices[0], Slot(stmt.indices[0], stmt.predicate, (), True, True)))
        return result

    def _of_exprs(self, stmt: Stmt) -> Groups:
        mask = stmt.predicate if isinstance(stmt, BufferStore) else None
        result: Groups = {}
        for expr in own_expressions(stmt):
            found = self._loads(expr)
            for load, surely in found.loads:
                slot = Slot(load.indices[0], load.predicate, () if surely else None, False, False)
                # Lanes that a mask leaves out read as zero, but are anything in a register: that may not be seen elsewhere.
                merge(result, self._single(load.buffer, slot.index, slot if load.predicate is mask else slot.unmasked()))
            for var in found.escaped:
                result[var] = None
        return result

    def _single(self, buffer: Buffer, index: PrimExpr, slot: Slot) -> Groups:
        place = self._place(index)
        # What is in a register already gains nothing.
        if place is None or buffer.scope() == "register":
            return {buffer.data: None}
        base, base_vars, key = place
        if slot.predicate is not None and self._free.touches_memory(slot.predicate):
            slot = slot.unmasked()
        return {buffer.data: Group(buffer, base, base_vars, {key: slot}, conditional=slot.is_conditional)}

    def key(self, index: PrimExpr) -> SlotKey:
        """The slot of an index that was found to be part of a group."""
        place = self._place(index)
        if place is None:
            raise InternalError(f"the index {index} belongs to no group")
        return place[2]

    def _place(self, index: PrimExpr) -> tuple[frozenset[tuple[PrimExpr, int]], frozenset[Var], SlotKey] | None:
        if index not in self._places:
            self._places[index] = self._compute_place(index)
        return self._places[index]

    def _compute_place(self, index: PrimExpr) -> tuple[frozenset[tuple[PrimExpr, int]], frozenset[Var], SlotKey] | None:
        base, stride, lanes = (index.base, index.stride, index.lanes) if isinstance(index, Ramp) else (index, IntImm("int32", 1), 1)
        if parse_dtype(base.dtype).lanes > 1 or not isinstance(stride, IntImm) or self._free.touches_memory(base):
            return None
        # A base without loads is the same value at each access: all its variables are bound outside, or the group ends at their binding.
        form = linear_form(base)
        return frozenset(form.terms.items()), self._free(base), (form.constant, stride.value, lanes)

    def _loop(self, loop: For) -> Groups:
        result = self._of_exprs(loop)
        inner = self._outside(self.of(loop.body), loop.loop_var)
        # Iterations of other kinds may run at once, and a register belongs to one of them.
        if loop.kind is not ForKind.SERIAL:
            return {**result, **{data: None for data in inner}}
        trips = loop.extent > 0
        # A loop may have no iterations, and then it accesses nothing: to load before it could be out of bounds.
        certain = self._analyzer.known_true(trips)
        for data, group in inner.items():
            if group is not None:
                group = group.guarded(() if certain else None if self._free.touches_memory(trips) else (trips,)).copy()
                group.in_loop = True
            merge(result, {data: group})
        return result

    def _branch(self, stmt: IfThenElse) -> Groups:
        result = self._of_exprs(stmt)
        # A condition that reads memory may be another one when it is tested before the run, or after it.
        unstable = self._free.touches_memory(stmt.condition)
        cases = [(stmt.then_case, stmt.condition), (stmt.else_case, None if stmt.else_case is None else logical_not(stmt.condition))]
        for case, condition in cases:
            if case is not None and condition is not None:
                prefix = None if unstable else (condition,)
                merge(result, {data: None if group is None else group.guarded(prefix) for data, group in self.of(case).items()})
        return result

    def _loads(self, expr: PrimExpr) -> _Loads:
        loads: dict[BufferLoad, bool] = {}
        escaped: dict[Var, None] = {}
        bound: set[Var] = set()
        seen: set[tuple[PrimExpr, bool]] = set()
        stack = [(expr, True)]
        while stack:
            node, surely = stack.pop()
            # What was seen as sure needs no second look as possible; the other way round it does.
            if not self._free.touches_memory(node) or (node, surely) in seen or (node, True) in seen:
                continue
            seen.add((node, surely))
            if isinstance(node, BufferLoad):
                loads[node] = loads.get(node, False) or surely
            elif isinstance(node, Var) and node.dtype == "handle":
                escaped[node] = None
            elif isinstance(node, Let):
                bound.add(node.var)
            elif isinstance(node, Call) and (node.op == "tir.address_of" or not intrinsic_of(node).pure):  # may take the address of it
                escaped.update((arg.buffer.data, None) for arg in node.args if isinstance(arg, BufferLoad))
            # Only the first operand of these is evaluated whatever happens.
            lazy = isinstance(node, (And, Or)) or (isinstance(node, Call) and node.op == "tir.if_then_else")
            stack.extend((child, surely and (not lazy or number == 0)) for number, child in enumerate(operands(node)))
        # An index that a let inside the expression binds means nothing outside of it, where the register would be loaded.
        escaped.update((load.buffer.data, None) for load in loads if not self._free(load.indices[0]).isdisjoint(bound))
        return _Loads(tuple(loads.items()), tuple(escaped))
