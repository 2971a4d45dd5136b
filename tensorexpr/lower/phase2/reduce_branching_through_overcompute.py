"""Compute a whole local tile instead of guarding its updates: what lies past the end is computed and never looked at.

    for i in 4: if t*4 + i < 9: L[i] = L[i] + P[t*4 + i]    ->    for i in 4: L[i] = L[i] + P[t*4 + i]
    for i in 4: if t*4 + i < 9: C[t*4 + i] = L[i]                 for i in 4: if t*4 + i < 9: C[t*4 + i] = L[i]

Removed are likely comparisons around stores into an allocation, if it is proved that

- the guard says which elements of the allocation exist: it depends on the element and on loops outside the allocation
  alone, no two iterations of its loops store to one element, and every store into the allocation is under the guard;
- all elements are inside the allocation, and whatever the value reads, there too, is inside a parameter, or inside an
  allocation that one unguarded nest fills;
- the value can't trap and calls nothing that has effects.

It is no part of the pipeline, since a thin tile would cost as much as a whole one: loop partition gives it a body of its
own size instead. It pays where sources are packed and padded, and a tile needs one body. (TVM has a pass of this name.)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.arithmetic import all as all_of
from ...tir.dtype import parse_dtype
from ...tir.expr import GE, GT, LE, LT, BufferLoad, Call, Div, FloorDiv, FloorMod, IntImm, Mod, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import intrinsic_of, likely
from ...tir.stmt import Allocate, BufferStore, For, IfThenElse, LetStmt, Stmt, While
from ..context import PassContext
from ..rebuild import FreeVars, loads_in, map_stmt, operands, own_expressions
from ..scopes import inside_loop
from .guard_bounds import conjuncts, excess

Shape = tuple[int, tuple[tuple[int, int], ...]]
"""Of an index: its constant, and stride and extent of each loop in it, smallest stride first."""
Meaning = tuple[frozenset[tuple[object, int]], int]
"""Of a guard: its affine form, with loops in the element's index named by their strides."""


@dataclass(frozen=True, eq=False, slots=True)
class _Store:
    """A store into an allocation, the guard right around it, and the loops around it, `inside` those inside the allocation.

    `plain`: no condition inside the allocation is around it.
    """

    guard: IfThenElse | None
    loops: tuple[For, ...]
    inside: tuple[For, ...]
    plain: bool
    shape: Shape | None
    meanings: dict[Meaning, PrimExpr]
    reads: tuple[tuple[BufferLoad, bool], ...]
    harmless: bool


def reduce_branching_through_overcompute(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with whole local tiles computed where that is proved to be safe; itself if there are none."""
    search = _Search(func)
    search.visit(func.body)
    dropped = search.dropped()
    return func.with_body(_without(func.body, dropped)) if dropped else func


class _Search:
    def __init__(self, func: PrimFunc) -> None:
        self._analyzer = Analyzer()
        self._free = FreeVars()
        self._params = {b.data: b.dtype for b in func.buffer_map.values()}
        self._depths: dict[Var, tuple[int, int]] = {}
        self._lengths: dict[Var, tuple[int, str]] = {}
        self._loops: tuple[For, ...] = ()
        self._conditions = 0
        self._unknown: set[Var] = set()
        self._stores: dict[Var, list[_Store]] = {}

    def visit(self, stmt: Stmt) -> None:
        """Note every store into an allocation."""
        self._unknown.update(_escaped(stmt))
        match stmt:
            case For():
                outer, self._loops = self._loops, (*self._loops, stmt)
                with inside_loop(self._analyzer, stmt):
                    self.visit(stmt.body)
                self._loops = outer
                return
            case Allocate():
                size = stmt.constant_size()
                if size is not None and parse_dtype(stmt.dtype).lanes == 1:
                    self._lengths[stmt.buffer_var] = size, stmt.dtype
                self._depths[stmt.buffer_var] = len(self._loops), self._conditions
            case LetStmt():
                self._unknown.add(stmt.var)
            # Only a guard right around one store: dropping it touches nothing else.
            case IfThenElse(then_case=BufferStore() as store, else_case=None):
                self._note(store, stmt)
                return
            case BufferStore():
                self._note(stmt, None)
                return
        # What these contain may not run at all, so it fills nothing for sure.
        depends = isinstance(stmt, (IfThenElse, While))
        self._conditions += depends
        map_stmt(stmt, self._visited)
        self._conditions -= depends

    def _visited(self, stmt: Stmt) -> Stmt:
        self.visit(stmt)
        return stmt

    def _note(self, store: BufferStore, guard: IfThenElse | None) -> None:
        data = store.buffer.data
        if data not in self._depths:
            return
        loops, conditions = self._depths[data]
        inside = self._loops[loops:]
        shape = self._shape(store, inside) if data in self._lengths else None
        meanings = self._meanings(guard, store, inside) if guard is not None and shape is not None else {}
        plain = guard is None and conditions == self._conditions
        reads = tuple((load, self._is_inside(load)) for load in loads_in([store.value]))
        self._stores.setdefault(data, []).append(
            _Store(guard, self._loops, inside, plain, shape, meanings, reads, _is_harmless(store.value))
        )

    def _shape(self, store: BufferStore, loops: tuple[For, ...]) -> Shape | None:
        """The shape of the index if it is inside the allocation and different in all iterations of the loops in it."""
        form = linear_form(store.indices[0])
        inner = {loop.loop_var: loop for loop in loops}
        digits: list[tuple[int, int]] = []
        for atom, stride in form.terms.items():
            loop = inner.get(atom) if isinstance(atom, Var) else None
            if loop is None or stride <= 0:
                return None
            if not isinstance(loop.extent, IntImm) or not isinstance(loop.min, IntImm) or loop.min.value:
                return None
            digits.append((stride, loop.extent.value))
        digits.sort()
        # Smallest stride first: a stride beyond all that smaller digits reach keeps iterations apart (i + 4 * j with i < 4: 3 < 4).
        reach = 0
        for stride, extent in digits:
            if stride <= reach or extent < 1:
                return None
            reach += stride * (extent - 1)
        length, dtype = self._lengths[store.buffer.data]
        whole = form.constant >= 0 and form.constant + reach < length and store.buffer.dtype == dtype
        return (form.constant, tuple(digits)) if whole and store.predicate is None else None

    def _meanings(self, guard: IfThenElse, store: BufferStore, loops: tuple[For, ...]) -> dict[Meaning, PrimExpr]:
        """The likely comparisons of a guard that depend on the element and on what is fixed while the allocation lives."""
        strides = linear_form(store.indices[0]).terms
        inner = {loop.loop_var for loop in loops} | self._unknown
        found: dict[Meaning, PrimExpr] = {}
        for part, hinted in conjuncts(guard.condition):
            if not hinted or not isinstance(part, (LT, LE, GT, GE)) or self._free.touches_memory(part):
                continue
            form = excess(part)
            # Two nests over one tile have loops of their own; the strides in the index tell which is which.
            atoms = {atom: ("stride", strides[atom]) if atom in strides else atom for atom in form.terms}
            if all(atom in strides or self._free(atom).isdisjoint(inner) for atom in form.terms):
                found[frozenset((atoms[atom], factor) for atom, factor in form.terms.items()), form.constant] = part
        return found

    def _is_inside(self, load: BufferLoad) -> bool:
        """True if a load is inside its buffer in every iteration, guards or not."""
        data = load.buffer.data
        size, dtype = self._lengths.get(data, (None, ""))
        if data in self._params:
            extents = [e.value if isinstance(e, IntImm) else None for e in load.buffer.shape]
            size, dtype = extents[0] if len(extents) == 1 else None, self._params[data]
        if size is None or dtype != load.buffer.dtype or load.predicate is not None or len(load.indices) != 1:
            return False
        bound = self._analyzer.const_int_bound(load.indices[0])
        return bound.min_value >= 0 and bound.max_value < size

    def dropped(self) -> dict[int, frozenset[PrimExpr]]:
        """By guard, the comparisons that are not needed."""
        result: dict[int, frozenset[PrimExpr]] = {}
        for data, stores in self._stores.items():
            shapes = {one.shape for one in stores}
            # Only with one shape do equal strides in two guards name the same element.
            if data in self._unknown or len(shapes) != 1 or None in shapes or not all(self._may_run(data, one) for one in stores):
                continue
            # What only some stores ask doesn't say which elements exist, but which of them change.
            shared = set.intersection(*(set(one.meanings) for one in stores))
            for one in stores:
                if shared and one.guard is not None:
                    result[id(one.guard)] = frozenset(one.meanings[meaning] for meaning in shared)
        return result

    def _may_run(self, data: Var, one: _Store) -> bool:
        """True if running a store for elements that don't exist does no harm."""
        return one.harmless and all(
            inside and (load.buffer.data in self._params or load.buffer.data is data or self._is_filled(load.buffer.data, one))
            for load, inside in one.reads
        )

    def _is_filled(self, data: Var, reader: _Store) -> bool:
        """True if one unguarded nest that the reader is no part of writes all elements of an allocation."""
        stores = self._stores.get(data, [])
        if len(stores) != 1 or stores[0].shape is None or not stores[0].plain:
            return False
        (start, digits), inside = stores[0].shape, stores[0].inside
        elements = prod(extent for _, extent in digits)
        around = set(map(id, reader.loops))
        # From 0 on, all inside and all different, and as many as there are: that is every element, before any is read.
        return start == 0 and elements == self._lengths[data][0] and len(inside) == len(digits) and around.isdisjoint(map(id, inside))


def _escaped(stmt: Stmt) -> Iterator[Var]:
    """Allocations that are given away as pointers, and then may be written anywhere."""
    stack = [(expr, False) for expr in own_expressions(stmt)]
    seen: set[tuple[PrimExpr, bool]] = set()
    while stack:
        expr, given = stack.pop()
        if (expr, given) in seen:
            continue
        seen.add((expr, given))
        if isinstance(expr, Var) and expr.dtype == "handle":
            yield expr
        if isinstance(expr, BufferLoad) and given:
            yield expr.buffer.data
        given = isinstance(expr, Call) and not intrinsic_of(expr).pure
        stack.extend((operand, given) for operand in operands(expr))


def _is_harmless(expr: PrimExpr) -> bool:
    """True if computing `expr` can't trap and has no effects, loads apart."""
    if isinstance(expr, Call) and not intrinsic_of(expr).pure:
        return False
    if isinstance(expr, (Div, Mod, FloorDiv, FloorMod)) and parse_dtype(expr.dtype).is_int:
        divisor = expr.b
        # The least integer divided by -1 overflows, which traps on x86 as a division by 0 does.
        if not isinstance(divisor, IntImm) or divisor.value in (0, -1):
            return False
    return all(map(_is_harmless, operands(expr)))


def _without(stmt: Stmt, dropped: dict[int, frozenset[PrimExpr]]) -> Stmt:
    """The statement without the comparisons that are not needed."""
    if not isinstance(stmt, IfThenElse) or id(stmt) not in dropped:
        return map_stmt(stmt, lambda inner: _without(inner, dropped))
    unneeded = dropped[id(stmt)]
    kept = [likely(part) if hinted else part for part, hinted in conjuncts(stmt.condition) if part not in unneeded]
    return IfThenElse(all_of(*kept), stmt.then_case) if kept else stmt.then_case
