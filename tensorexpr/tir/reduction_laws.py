"""The laws of reductions: combinations that are known to be associative and commutative, with the values that change nothing.

Stages have combiners (`operator_of`, `law_of`); what a block or a store combines by is recognised by its update:

C[vi] = C[vi] + x                                               sum; likewise product, minimum, maximum, and, or
v0 = Select(V[vi] >= y, I[vi], x); v1 = Select(V[vi] >= y, V[vi], y); I[vi] = v0; V[vi] = v1       argmax, and its kind
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf, nan
from typing import Any

from ..dataclass import dataclass, fields, replace
from .arithmetic import all as all_of
from .arithmetic import any as any_of
from .arithmetic import const, maximum, minimum
from .block import Block
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import EQ, Add, And, BinaryExpr, BufferLoad, CommReducer, FloatImm, Max, Min, Mul, Not, Or, PrimExpr, Select, Var
from .intrin import infinity, isnan, max_value, min_value
from .rewriting import substitute, walk
from .stmt import BufferStore, LetStmt, SeqStmt, Stmt

Values = tuple[PrimExpr, ...]
Combine = Callable[[Sequence[PrimExpr], Sequence[PrimExpr]], Values]
_Compare = Callable[[Any, Any], PrimExpr]


@dataclass(frozen=True)
class Law:
    """A way to combine: of two tuples of values one, and the value that changes nothing (None where any does) by dtype."""

    name: str
    combine: Combine
    neutral: tuple[Callable[[str], PrimExpr] | None, ...]
    of_truth: bool = False
    of_floats: bool = False

    def takes(self, dtypes: Sequence[str]) -> bool:
        """True if values of these types can be combined so."""
        if len(dtypes) != len(self.neutral) or any((dtype == "bool") is not self.of_truth for dtype in dtypes):
            return False
        # the last value is what is compared; places before it are integers
        return not self.of_floats or parse_dtype(dtypes[-1]).is_float


def _pick(better: _Compare) -> Combine:
    """Places and values: those whose value is better."""
    return lambda a, b: (Select(better(a[1], b[1]), a[0], b[0]), Select(better(a[1], b[1]), a[1], b[1]))


def _pick_first(strictly: _Compare, together: bool = False, precedes: _Compare = lambda a, b: a < b) -> Combine:
    """Places and values: those whose value is better, or of equal ones the one whose place precedes; `together` if that selects both."""

    def combine(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> Values:
        better = strictly(a[1], b[1])
        earlier = any_of(better, all_of(EQ(a[1], b[1]), precedes(a[0], b[0])))
        return Select(earlier, a[0], b[0]), Select(earlier if together else better, a[1], b[1])

    return combine


def _pick_first_or_nan(strictly: _Compare) -> Combine:
    """As `_pick_first`, with NaN better than all numbers and equal to itself: the places that NumPy gives."""

    def combine(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> Values:
        odd, other = isnan(a[1]), isnan(b[1])
        equal = any_of(EQ(a[1], b[1]), all_of(odd, other))
        earlier = any_of(strictly(a[1], b[1]), all_of(odd, Not(other)), all_of(equal, a[0] < b[0]))
        return Select(earlier, a[0], b[0]), Select(earlier, a[1], b[1])

    return combine


def _zero(dtype: str) -> PrimExpr:
    return const(0, dtype)


def _one(dtype: str) -> PrimExpr:
    return const(1, dtype)


OPERATORS: dict[type[Any], Law] = {
    Add: Law("sum", lambda a, b: (a[0] + b[0],), (_zero,)),
    Mul: Law("product", lambda a, b: (a[0] * b[0],), (_one,)),
    Min: Law("minimum", lambda a, b: (minimum(a[0], b[0]),), (max_value,)),
    Max: Law("maximum", lambda a, b: (maximum(a[0], b[0]),), (min_value,)),
    And: Law("and", lambda a, b: (all_of(a[0], b[0]),), (_one,), of_truth=True),
    Or: Law("or", lambda a, b: (any_of(a[0], b[0]),), (_zero,), of_truth=True),
}
_PLAIN: tuple[type[Any], ...] = tuple(OPERATORS)


def _unless_nan(extreme: Callable[[Any, Any], PrimExpr]) -> Combine:
    """NaN where the new value is, else an extreme of both, which is its second operand, the running value, where one of them is NaN."""
    # x86's vmaxps(x, running) keeps a NaN that runs, and a move under a mask lets a new one in. The test is of x alone, so that the chain
    # from one running value to the next has two short instructions. `x` in place of the constant would make LLVM fold both choices
    # into one of `isnan(x) or x > running`: two comparisons and no vmaxps, 8 cycles of that chain instead of 5.
    return lambda a, b: (Select(isnan(b[0]), const(nan, b[0].dtype), extreme(b[0], a[0])),)


GREATEST = Law("greatest", _unless_nan(maximum), (lambda dtype: -infinity(dtype),), of_floats=True)
LEAST = Law("least", _unless_nan(minimum), (infinity,), of_floats=True)
FIRST_GREATEST = Law("argmax", _pick_first_or_nan(lambda a, b: a > b), (None, lambda dtype: -infinity(dtype)), of_floats=True)
FIRST_LEAST = Law("argmin", _pick_first_or_nan(lambda a, b: a < b), (None, infinity), of_floats=True)
LAWS: tuple[Law, ...] = (
    *OPERATORS.values(),
    GREATEST,
    LEAST,
    FIRST_GREATEST,
    FIRST_LEAST,
    Law("sums", lambda a, b: (a[0] + b[0], a[1] + b[1]), (_zero, _zero)),
    Law("argmax", _pick(lambda a, b: a >= b), (None, min_value)),  # programs differ in which of equal values wins
    Law("argmax", _pick(lambda a, b: a > b), (None, min_value)),
    Law("argmax", _pick_first(lambda a, b: a > b), (None, min_value)),
    Law("argmax", _pick_first(lambda a, b: a > b, together=True), (None, min_value)),
    Law("argmax", _pick_first(lambda a, b: a > b, together=True, precedes=lambda a, b: a > b), (None, min_value)),
    Law("argmin", _pick(lambda a, b: a <= b), (None, max_value)),
    Law("argmin", _pick(lambda a, b: a < b), (None, max_value)),
    Law("argmin", _pick_first(lambda a, b: a < b), (None, max_value)),
    Law("argmin", _pick_first(lambda a, b: a < b, together=True), (None, max_value)),
    Law("argmin", _pick_first(lambda a, b: a < b, together=True, precedes=lambda a, b: a > b), (None, max_value)),
)


def operator_of(combiner: CommReducer, index: int = 0) -> type[BinaryExpr] | None:
    """The operator by which a combiner combines one of its values, where that is just `lhs op rhs`: `Add` for a sum."""
    # a set, so that lhs + lhs, which has one operand twice, is no match
    result, pair = combiner.result[index], {combiner.lhs[index], combiner.rhs[index]}
    return type(result) if isinstance(result, _PLAIN) and {result.a, result.b} == pair else None


def law_of_one(combiner: CommReducer, index: int = 0) -> Law | None:
    """The law by which a combiner combines one of its values, whatever it starts at, if that is a law of single values."""
    operator = operator_of(combiner, index)
    if operator is not None:
        return OPERATORS[operator]
    pair = (combiner.lhs[index],), (combiner.rhs[index],)
    return next(
        (
            law
            for law in (GREATEST, LEAST)
            if law.takes([pair[0][0].dtype]) and _same(law.combine(*pair), combiner.result[index : index + 1])
        ),
        None,
    )


def law_of(combiner: CommReducer) -> Law | None:
    """The law of a combiner, if it and its identity are known."""
    for law in LAWS:
        # `takes` comes first: a law for pairs would index past the one value of a sum.
        if law.takes([var.dtype for var in combiner.lhs]) and _same(law.combine(combiner.lhs, combiner.rhs), combiner.result):
            return law if _starts_neutral(law, combiner.identity_element) else None
    return None


def accumulation(stmt: BufferStore) -> tuple[Law, PrimExpr] | None:
    """The law and the term of `C[i] = C[i] op term`, if the statement has that form and the term doesn't read C."""
    value = stmt.value
    if isinstance(value, Select):
        # C[i] = select(isnan(x), nan, max(x, C[i]))
        current = (BufferLoad(stmt.buffer, stmt.indices),)
        found = ((law, _terms(law, current, (value,))) for law in (GREATEST, LEAST))
        return next(((law, terms[0]) for law, terms in found if terms and not _reads(terms[0], (stmt.buffer,))), None)
    if not isinstance(value, _PLAIN):
        return None
    # C[i] = C[i] + x and C[i] = x + C[i] are one.
    for old, term in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, BufferLoad) and old.buffer is stmt.buffer and old.indices == stmt.indices and old.predicate is None:
            return None if _reads(term, (stmt.buffer,)) else (OPERATORS[type(value)], term)
    return None


def _reads(value: PrimExpr, buffers: Sequence[Buffer]) -> bool:
    """Whether an expression reads the memory of buffers, be it through a view."""
    memory = {buffer.data for buffer in buffers}
    return any(isinstance(node, BufferLoad) and node.buffer.data in memory for node in walk(value))


@dataclass(frozen=True)
class Reduction:
    """A reduction block: where it stores, what from, and what each of its instances adds (`terms`), by a law."""

    law: Law
    buffers: tuple[Buffer, ...]
    indices: tuple[PrimExpr, ...]
    initial: Values
    terms: Values

    def combined(self, left: Sequence[PrimExpr], right: Sequence[PrimExpr]) -> Values:
        """Two values of the reduction in one."""
        return self.law.combine(left, right)


def recognised(block: Block) -> Reduction | str:
    """The reduction that a block does, or why it is none that is known."""
    starts, updates = stores_at_once(block.init), stores_at_once(block.body)
    if starts is None or updates is None:
        return "its init and its body aren't one store for each buffer that it reduces into"
    buffers = tuple(store.buffer for store in updates)
    initial = {store.buffer: store for store in starts}
    if set(initial) != set(buffers) or len(starts) != len(updates):
        return "its init and its body store to different buffers"
    indices = updates[0].indices
    if any(not _same(store.indices, indices) for store in (*updates, *starts)):
        return "it stores to different elements"
    current = tuple(BufferLoad(buffer, indices) for buffer in buffers)
    first = tuple(initial[buffer].value for buffer in buffers)
    shown = tuple(store.value for store in updates)
    # Programs store value and place in either order; the laws have the place first.
    for order in (range(len(buffers)), range(len(buffers) - 1, -1, -1)):
        for law in LAWS:
            terms = _terms(law, _by(order, current), _by(order, shown))
            # C[vi] + A[vi, vk] * C[vi] is no sum: each term depends on the terms before it.
            if terms is not None and _starts_neutral(law, _by(order, first)) and not any(_reads(term, buffers) for term in terms):
                return Reduction(law, _by(order, buffers), indices, _by(order, first), terms)
    return (
        "its update isn't known to be associative and commutative with its init as the neutral value (sum, product, min, max, argmax ...)"
    )


def _by(order: range, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(values[place] for place in order)


def _same(left: Sequence[PrimExpr], right: Sequence[PrimExpr]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def stores_at_once(stmt: Stmt | None) -> list[BufferStore] | None:
    """The stores that a statement does at once, its lets put in; None if it is something else."""
    values: dict[Var, PrimExpr] = {}
    while isinstance(stmt, LetStmt):
        values[stmt.var] = substitute(stmt.value, values)
        stmt = stmt.body
    listed = list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]
    stores = [one for one in listed if isinstance(one, BufferStore) and one.predicate is None]
    if len(stores) != len(listed) or len({store.buffer for store in stores}) != len(stores) or not _at_once(stores):
        return None
    return [replace(store, value=substitute(store.value, values)) for store in stores]


def _at_once(stores: Sequence[BufferStore]) -> bool:
    """True if no store's own value reads what a store before it wrote; what lets hold was read before."""
    done: set[Buffer] = set()
    for store in stores:
        if any(isinstance(node, BufferLoad) and node.buffer in done for node in walk(store.value)):
            return False
        done.add(store.buffer)
    return True


def _starts_neutral(law: Law, first: Values) -> bool:
    return all(want is None or _is_neutral(want(value.dtype), value) for want, value in zip(law.neutral, first, strict=True))


def _is_neutral(wanted: PrimExpr, value: PrimExpr) -> bool:
    """The value itself, or an infinity beyond it."""
    if wanted is value:
        return True
    if not isinstance(wanted, FloatImm) or not isinstance(value, FloatImm):
        return False
    # Above 1 in magnitude: the bounds of min and max, beyond which lie infinities. 0 of a sum and 1 of a product admit nothing else.
    return abs(wanted.value) > 1 and isinf(value.value) and (value.value > 0) == (wanted.value > 0)


def _terms(law: Law, current: Values, updates: Values) -> Values | None:
    """What is combined with the current values to give the updates; None if the law doesn't."""
    if not law.takes([load.dtype for load in current]):
        return None
    left = [Var(f"l{n}", load.dtype) for n, load in enumerate(current)]
    right = [Var(f"r{n}", load.dtype) for n, load in enumerate(current)]
    # The running value may be the left or the right operand: min(C, x), or min(x, C).
    for one, other in ((left, right), (right, left)):
        pattern = law.combine(one, other)
        found: dict[Var, PrimExpr] = dict(zip(left, current, strict=True))
        if all(_unify(want, have, found, set(right)) for want, have in zip(pattern, updates, strict=True)):
            return tuple(found[var] for var in right) if all(var in found for var in right) else None
    return None


def _unify(pattern: Any, expr: Any, found: dict[Var, PrimExpr], holes: set[Var]) -> bool:
    """True if the expression is the pattern, with what `found` has for its variables; holes are filled."""
    if isinstance(pattern, Var):
        if pattern in holes and pattern not in found and isinstance(expr, PrimExpr) and expr.dtype == pattern.dtype:
            found[pattern] = expr
        # Expressions are interned, so identity is equality of structure.
        return found.get(pattern) is expr
    if isinstance(pattern, PrimExpr):
        # Not only sooner: a NaN among the values below is one node, but equals nothing.
        if pattern is expr:
            return True
        if type(pattern) is not type(expr) or pattern.dtype != expr.dtype:
            return False
        return all(_unify(getattr(pattern, f.name), getattr(expr, f.name), found, holes) for f in fields(pattern))  # type: ignore[arg-type]
    if isinstance(pattern, tuple):
        same = isinstance(expr, tuple) and len(expr) == len(pattern)
        return same and all(_unify(a, b, found, holes) for a, b in zip(pattern, expr, strict=True))
    return bool(pattern == expr)
