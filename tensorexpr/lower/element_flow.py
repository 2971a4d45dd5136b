"""What is known of the elements of buffers at every statement: which value was stored last, and whether anybody reads it.

Forwards, a store says what its elements hold until something else is stored there; backwards, it says that what they held
before is never read, back to where it is. Both are one walk: an access ends what an earlier one said, and may say something
itself. A loop says what its iterations say, as far as no iteration ends what another one said.

Nothing is known where a program does what can't be seen through: blocks, calls with effects, other buffers in one memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..arith.index_analyzer import Analyzer
from ..dataclass import dataclass, replace
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import logical_and
from ..tir.block import BlockRealize
from ..tir.dtype import parse_dtype
from ..tir.expr import EQ, And, BufferLoad, Call, IntImm, Not, Or, PrimExpr, Var
from ..tir.intrin import intrinsic_of
from ..tir.rewriting import substitute, variables, walk
from ..tir.stmt import BufferStore, Evaluate, For, IfThenElse, LetStmt, SeqStmt, Stmt, While
from .elements import Elements, has, lacks, unproved
from .rebuild import map_expr, own_expressions, sub_statements, walk_statements
from .scopes import inside_loop, under_conditions

Access = BufferStore | BufferLoad


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """An access that ends facts about what it touches."""

    access: Access
    elements: Elements


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """That `elements` but those in `except_for` hold `value`; backwards, with no value, that what they hold is never read.

    `source` is the access that said so.
    """

    elements: Elements
    value: PrimExpr | None
    source: Access
    except_for: tuple[Elements, ...] = ()

    def without(self, ends: list[_End]) -> Fact:
        """The fact after accesses that end it."""
        # By memory, not by buffer: two buffers may be views of one allocation.
        met = tuple(end.elements for end in ends if end.access.buffer.data is self.source.buffer.data)
        return replace(self, except_for=(*self.except_for, *met)) if met else self

    def is_valid_at(self, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> bool:
        """True if it is proved that nothing ended the fact for an element."""
        # Another buffer in the same memory numbers the elements in its own way: nothing is proved of it.
        return all(one.buffer is self.source.buffer and lacks(one, indices, analyzer) for one in self.except_for)

    def holds_at(self, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> bool:
        """True if the fact is proved to be about an element, and valid."""
        return has(self.elements, indices, analyzer) and self.is_valid_at(indices, analyzer)

    def over(self, loop: For, ends: list[_End], local: set[Var]) -> Fact | None:
        """What the fact of one iteration says after the loop. `local`: variables that have no meaning there."""
        var, value, filled = loop.loop_var, self.value, self
        if self.elements.mentions(var):
            found = self.elements.solved(loop)
            if found is None:
                return None
            elements, iteration = found
            except_for = tuple(one.filled({var: iteration}) for one in self.except_for)
            filled = replace(self, elements=elements, except_for=except_for)
            value = None if value is None else substitute(value, {var: iteration})
        elif not (isinstance(loop.extent, IntImm) and loop.extent.value > 0):
            return None  # it may never be said
        if any(map(filled.elements.mentions, local)) or (value is not None and not variables(value).isdisjoint(local)):
            return None
        other = [replace(end, elements=end.elements.widened(local).over(loop)) for end in ends if not self._spares(end, var)]
        after = replace(filled, value=value, except_for=tuple(one.widened(local) for one in filled.except_for))
        return after.without(other)

    def _spares(self, end: _End, var: Var) -> bool:
        """True if an access ends in no iteration of the loop over `var` what the fact says of another one."""
        if end.access is self.source:
            return True  # the same again, or about another element
        same = end.access.buffer is self.source.buffer and all(a is b for a, b in zip(end.access.indices, self.source.indices, strict=True))
        return same and self.elements.mentions(var)


class ElementFlow:
    """One walk over a function. `known` gives what is known in front of a statement, or backwards, behind it.

    Args:
        body: what to look at.
        backwards: look for what is never read, instead of for what is stored.
    """

    def __init__(self, body: Stmt, backwards: bool = False) -> None:
        self._backwards = backwards
        self._axes: dict[tuple[Var, tuple[str, ...]], tuple[Var, ...]] = {}
        self._conditions: list[PrimExpr] = []
        self._analyzer = Analyzer()
        self._facts: list[Fact] = []
        self._known: dict[int, tuple[Fact, ...]] = {}
        self._ends: dict[int, list[_End]] = {}  # what one iteration of a loop ends
        self._body = body  # keeps the statements, and so their identities
        self._stmt(body)

    def known(self, stmt: Stmt) -> tuple[Fact, ...]:
        """The facts at a statement of the body."""
        return self._known.get(id(stmt), ())

    def _stmt(self, stmt: Stmt) -> list[_End]:
        """Walk over a statement. Returns what it ends."""
        self._known[id(stmt)] = tuple(self._facts)
        match stmt:
            case SeqStmt():
                return [end for inner in (reversed(stmt.seq) if self._backwards else stmt.seq) for end in self._stmt(inner)]
            case For():
                return self._loop(stmt)
            case While() | BlockRealize():
                # Neither is looked into: what they read and write is unknown.
                self._facts = []
                return []
            case IfThenElse():
                # Facts carry the conditions under which they were said, so those of one case may stay while the other is walked.
                ends = [end for case, condition in _cases(stmt) for end in self._case(case, condition)]
                return ends + self._read(stmt)
            case BufferStore():
                return self._store(stmt)
        return self._other(stmt)

    def _case(self, case: Stmt, condition: PrimExpr) -> list[_End]:
        self._conditions.append(condition)
        with under_conditions(self._analyzer, [condition]):
            ends = self._stmt(case)
        self._conditions.pop()
        return ends

    def _other(self, stmt: Stmt) -> list[_End]:
        if not self._backwards:
            self._assume(stmt)
        if not _is_clear(stmt):
            self._facts = []
        ends = [end for inner in sub_statements(stmt) for end in self._stmt(inner)]
        return ends + self._read(stmt)

    def _assume(self, stmt: Stmt) -> None:
        """`T.assume(c or A[i] == value)`: the value where not `c`."""
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.assume":
            *unless, equation = _alternatives(stmt.value.args[0])
            if isinstance(equation, EQ) and isinstance(equation.a, BufferLoad):
                self._say(equation.a, equation.b, [*self._conditions, *map(Not, unless)])

    def _store(self, stmt: BufferStore) -> list[_End]:
        value = None if self._backwards else with_stored_values(stmt.value, tuple(self._facts), self._analyzer)
        ends = [] if self._backwards else self._ended([stmt])
        # Under a mask it isn't sure which elements were stored.
        if stmt.predicate is None:
            self._say(stmt, value, self._conditions)
        return ends + self._read(stmt)

    def _say(self, access: Access, value: PrimExpr | None, conditions: list[PrimExpr]) -> None:
        elements = self._elements(access, conditions)
        # An end may name more elements than it touches, a fact must not: what couldn't be said exactly is no fact.
        exact = len(elements.conditions) == len(conditions) and len(elements.equal) == len(access.buffer.shape)
        if exact and (value is None or _is_fixed(value)):
            self._facts.append(Fact(elements, value, access))

    def _read(self, stmt: Stmt) -> list[_End]:
        return self._ended(list(_loads(stmt))) if self._backwards else []

    def _ended(self, accesses: list[Access]) -> list[_End]:
        ends = [_End(access, self._elements(access, self._conditions)) for access in accesses]
        if ends:
            self._facts = [fact.without(ends) for fact in self._facts]
        return ends

    def _elements(self, access: Access, conditions: list[PrimExpr]) -> Elements:
        """What an access names under conditions; more where that can't be said exactly."""
        key = access.buffer.data, tuple(index.dtype for index in access.indices)
        axes = self._axes.setdefault(key, tuple(Var(f"a{place}", index.dtype) for place, index in enumerate(access.indices)))
        named = zip(axes, access.indices, strict=True)
        equal = tuple((axis, index) for axis, index in named if _is_fixed(index) and parse_dtype(index.dtype).lanes == 1)
        return Elements(access.buffer, axes, equal, (), tuple(filter(_is_fixed, conditions)))

    def _loop(self, loop: For) -> list[_End]:
        if not all(map(_is_clear, walk_statements(loop.body))):
            self._facts = []
            self._stmt(loop.body)
            self._facts = []
            return []
        local = {loop.loop_var, *(inner.var for inner in walk_statements(loop.body) if isinstance(inner, LetStmt))}
        before, outer = self._known, self._facts
        # The body is walked twice: once for what an iteration leaves behind, then with the facts from before that it spares.
        if id(loop) not in self._ends:
            self._known, self._facts = {}, []
            with inside_loop(self._analyzer, loop):
                self._ends[id(loop)] = self._stmt(loop.body)
        ends = self._ends[id(loop)]
        named = [replace(end, elements=end.elements.widened(local - {loop.loop_var})) for end in ends]
        total = [replace(end, elements=end.elements.over(loop)) for end in named]
        kept = [fact.without(total) for fact in outer]
        # In an iteration only what the other iterations don't overwrite still holds.
        others = [replace(end, elements=end.elements.of_others(loop)) for end in named]
        self._known, self._facts = before, [fact.without(others) for fact in outer]
        with inside_loop(self._analyzer, loop):
            self._stmt(loop.body)
        # Facts from before the loop come out of the second walk too; `kept` has them with all that the loop ends.
        sources = {id(fact.source) for fact in kept}
        new = [fact.over(loop, ends, local) for fact in self._facts if id(fact.source) not in sources]
        self._facts = kept + [fact for fact in new if fact is not None]
        return total


def _cases(stmt: IfThenElse) -> Iterator[tuple[Stmt, PrimExpr]]:
    yield stmt.then_case, stmt.condition
    if stmt.else_case is not None:
        yield stmt.else_case, Not(stmt.condition)


def _alternatives(condition: PrimExpr) -> list[PrimExpr]:
    return [*_alternatives(condition.a), *_alternatives(condition.b)] if isinstance(condition, Or) else [condition]


def _loads(stmt: Stmt) -> Iterator[Access]:
    for expr in own_expressions(stmt):
        yield from (node for node in walk(expr) if isinstance(node, BufferLoad))


def _calls(stmt: Stmt) -> Iterator[Call]:
    for expr in own_expressions(stmt):
        yield from (node for node in walk(expr) if isinstance(node, Call))


def _is_clear(stmt: Stmt) -> bool:
    """True if a statement accesses no memory but by its own loads and stores."""
    if isinstance(stmt, (While, BlockRealize)):
        return False
    return all(call.op == "tir.assume" or intrinsic_of(call).pure for call in _calls(stmt))


def _is_fixed(expr: PrimExpr) -> bool:
    """True for what depends on variables alone."""
    return not any(isinstance(node, BufferLoad) or (isinstance(node, Call) and not intrinsic_of(node).pure) for node in walk(expr))


def stored_value(load: BufferLoad, facts: tuple[Fact, ...], analyzer: Analyzer) -> PrimExpr | None:
    """What an element is known to hold."""
    if load.predicate is None and all(parse_dtype(index.dtype).lanes == 1 for index in load.indices):
        # The latest first: it is the likeliest to be still valid.
        for fact in reversed(facts):
            if fact.value is not None and fact.source.buffer is load.buffer and fact.holds_at(load.indices, analyzer):
                return analyzer.simplify(substitute(fact.value, dict(zip(fact.elements.axes, load.indices, strict=True))))
    return None


def with_stored_values(expr: PrimExpr, facts: tuple[Fact, ...], analyzer: Analyzer) -> PrimExpr:
    """`expr` with loads of what is known to be stored as that."""

    def filled(node: PrimExpr) -> PrimExpr:
        if isinstance(node, And):
            left = filled(node.a)
            # The right side is evaluated only where the left one holds.
            with analyzer.constraint_scope(node.a):
                right = filled(node.b)
            return node if left is node.a and right is node.b else logical_and(left, right)
        value = stored_value(node, facts, analyzer) if isinstance(node, BufferLoad) else None
        return map_expr(node, filled) if value is None else value

    return filled(expr) if facts else expr


def is_never_read(store: BufferStore, facts: tuple[Fact, ...], analyzer: Analyzer) -> bool:
    """True if what a statement stores is proved to be overwritten before anybody reads it; by one fact, or one half by each of two."""
    about = [fact for fact in facts if fact.value is None and fact.source.buffer is store.buffer]
    if store.predicate is not None or any(parse_dtype(index.dtype).lanes != 1 for index in store.indices):
        return False
    for number, fact in enumerate(about):
        left = unproved(fact.elements, store.indices, analyzer)
        if left is None or not fact.is_valid_at(store.indices, analyzer):
            continue
        if not left:
            return True
        # The first fact doesn't hold exactly where what it leaves open fails; there another one has to.
        with analyzer.constraint_scope(Not(all_of(*left))):
            if any(other.holds_at(store.indices, analyzer) for other in about[:number] + about[number + 1 :]):
                return True
    return False
