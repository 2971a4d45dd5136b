"""Rewriting by the table of laws: the form that TVM's `rewrite_simplify` gives, local and in the order of the operands.

Operands first, then the first law that applies, until none does. Arms of a selection are rewritten under its condition.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ..dataclass import dataclass, replace
from ..tir.arithmetic import fold
from ..tir.dtype import parse_dtype, wrap_int
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    CmpExpr,
    FloatImm,
    FloorMod,
    IntImm,
    Let,
    Mod,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
)  # fmt: skip
from ..tir.rewriting import children, map_children, substitute, walk
from .bounds import limits_of, plain_form
from .branches import is_branch, is_scoped
from .common_factor import common_factor, divided
from .constraints import under
from .facts import Facts, fresh_memos
from .laws import factoring_laws, general_laws, index_laws
from .laws.pattern import Term, operands_of
from .linear import is_scalar_int
from .modular import congruence_of
from .origin import INDEX_DTYPES
from .queries import OPPOSITE, holds
from .rules.vector import ELEMENTWISE, rewrite_vector

FACTORED, BRANCHES = 2, 4  # flags of `Facts.extensions`: as TVM numbers them
_STEP_LIMIT = 64  # a node settles within a few steps; the cap only guards against laws that undo each other
_TERMS = 128  # a sum of so many nodes is long


@dataclass(frozen=True, slots=True)
class Form:
    """A way to rewrite: the memo of `Facts` that it fills, and what it makes of a node whose operands are done.

    With `whole_sums` the operands of a sum of indices are its terms: where each of n partial sums were brought into order
    on its own, and the order of each then anew, a sum would take n**3 steps.
    """

    memo: str
    apply: Callable[[Facts, PrimExpr], PrimExpr]
    whole_sums: bool = False


def settle(facts: Facts, expr: PrimExpr, form: Form, depth: int = 0) -> PrimExpr:
    """The form of `expr` that doesn't change any more; operands first, without recursion."""
    memo: dict[PrimExpr, PrimExpr] = getattr(facts, form.memo)
    # What was asked for, what it has become, and after how many steps.
    stack: list[tuple[PrimExpr, PrimExpr, int]] = [(expr, expr, 0)]
    while stack:
        node, current, steps = stack[-1]
        done = memo.get(current)
        if done is not None:
            memo[node] = done
            stack.pop()
            continue
        missing = [x for x in _operands(facts, current, form, depth) if x not in memo]
        if missing:
            # Operands inherit the count, so laws that make ever new operands come to an end too.
            stack.extend((x, x, steps) for x in missing)
            continue
        after = _step(facts, current, form, depth)
        if after is current or steps >= _STEP_LIMIT:
            memo[current] = memo[node] = current
            stack.pop()
        else:
            stack[-1] = (node, after, steps + 1)
    return memo[expr]


def rewrite(facts: Facts, expr: PrimExpr) -> PrimExpr:
    """The form of `expr` to which no law applies any more."""
    return settle(facts, expr, LOCAL)


def _operands(facts: Facts, node: PrimExpr, form: Form, depth: int) -> tuple[PrimExpr, ...]:
    """What is settled before the node."""
    if form.whole_sums and _is_sum(node):
        return tuple(plain_form(facts, node).terms)
    inner: tuple[PrimExpr, ...] = children(node)  # type: ignore[assignment]
    # Arms wait until their facts hold, and the body of an inlined Let until its variable is gone.
    return inner[:1] if _is_scoped(facts, node, depth) or (isinstance(node, Let) and _is_inlined(node.value)) else inner


def _is_inlined(value: PrimExpr) -> bool:
    """True for what a `Let` binds only for its name: constants, variables, and indices, whose bounds are worth more."""
    return value.dtype in INDEX_DTYPES or value.dtype == "bool" or isinstance(value, (Var, FloatImm))


def _is_sum(node: PrimExpr) -> bool:
    return isinstance(node, (Add, Sub)) and node.dtype in INDEX_DTYPES


def _step(facts: Facts, node: PrimExpr, form: Form, depth: int) -> PrimExpr:
    if isinstance(node, Var):
        return IntImm("bool", int(facts.truths[node])) if node in facts.truths else facts.values.get(node, node)
    if isinstance(node, Let) and _is_inlined(node.value):
        return substitute(node.body, {node.var: node.value})
    if form.whole_sums and _is_sum(node):
        return form.apply(facts, node)
    memo: dict[PrimExpr, PrimExpr] = getattr(facts, form.memo)
    rebuilt = _branches(facts, node, form, depth) if is_branch(node) else map_children(node, lambda child: memo[child])  # type: ignore[index]
    if rebuilt is not node:
        folded = _folded(rebuilt)
        return rebuilt if folded is None else folded
    return form.apply(facts, node)


def _branches(facts: Facts, node: PrimExpr, form: Form, depth: int) -> PrimExpr:
    """A selection with its arms rewritten under its condition."""
    before: tuple[PrimExpr, ...] = children(node)  # type: ignore[assignment]
    condition = getattr(facts, form.memo)[before[0]]
    # Before any arm is entered: under a constant condition the facts of one arm would contradict one another.
    if isinstance(condition, IntImm):
        return before[1 if condition.value else 2]
    if _is_scoped(facts, node, depth):
        inner = [under(facts, condition, sense) for sense in (True, False)]
        after = (condition, *(settle(known, arm, form, depth + 1) for known, arm in zip(inner, before[1:], strict=True)))
    else:
        after = tuple(getattr(facts, form.memo)[part] for part in before)
    if after == before:
        return node
    return Select(*after) if isinstance(node, Select) else Call(node.dtype, "tir.if_then_else", after)


def _is_scoped(facts: Facts, node: PrimExpr, depth: int) -> bool:
    """True for a choice whose arms are rewritten under its condition.

    Both arms of a Select are evaluated: where one reads memory, its index has to stay within bounds whatever the condition is.
    """
    return is_scoped(facts, node, depth) and not (isinstance(node, Select) and any(isinstance(inner, BufferLoad) for inner in walk(node)))


def _folded(node: PrimExpr) -> PrimExpr | None:
    """The node as the builders make it; floats keep the order that they were written in."""
    folded = fold(node)
    swapped = isinstance(node, BinaryExpr) and isinstance(node.a, FloatImm) and type(folded) is type(node)
    return None if swapped else folded


def by_law(facts: Facts, node: PrimExpr) -> PrimExpr:
    """The node after the first law that applies to it; itself if none does."""
    folded = _folded(node)
    if folded is not None:
        return folded
    if isinstance(node, CmpExpr):
        return _comparison(facts, node)
    if node.dtype == "bool" and node in facts.truths:
        return IntImm("bool", int(facts.truths[node]))
    found = _first(facts, node)
    if found is None and facts.extensions and isinstance(node, (And, Or)):
        found = _extended(facts, node)
    return node if found is None else found


def _extended(facts: Facts, node: And | Or) -> PrimExpr | None:
    """The rewrites of connectives that have to be asked for."""
    kind = type(node)
    if facts.extensions & FACTORED and isinstance(node, Or):
        for law in factoring_laws():
            found = law.apply(facts, node, _prove)
            if found is not None:
                return found
    if facts.extensions & BRANCHES:
        # Without the flag further down: each level rewrites both sides, which would take 2**depth steps.
        plain = replace(facts, extensions=facts.extensions & ~BRANCHES, **fresh_memos())
        left = rewrite(under(plain, node.b, kind is And), node.a)
        # One side at a time: of x == y and y == x each would make the other true, and both would vanish.
        if left is not node.a:
            return kind(left, node.b)
        right = rewrite(under(plain, node.a, kind is And), node.b)
        if right is not node.b:
            return kind(node.a, right)
    return None


def _first(facts: Facts, node: PrimExpr) -> PrimExpr | None:
    """What the first law that applies makes of the node."""
    operand = operands_of(node)[0].dtype if isinstance(node, CmpExpr) else node.dtype
    kind: type = type(node)
    tables = [general_laws(kind)]
    if operand in INDEX_DTYPES:
        tables.append(index_laws(kind))
        if not isinstance(node, (CmpExpr, Var)):
            value = _only_value(facts, node)
            if value is not None:
                return IntImm(node.dtype, wrap_int(value, node.dtype))
    for table in tables:
        for law in table:
            if _fits_roughly(law.pattern, node):
                found = law.apply(facts, node, _prove)
                # A law may build the node that is there already; then the next one has its turn.
                if found is not None and found is not node:
                    return found
    if parse_dtype(operand).lanes > 1 and isinstance(node, ELEMENTWISE):
        found = rewrite_vector(facts, node, rewrite)
        return found if isinstance(found, (Ramp, Broadcast)) else None
    return None


def _only_value(facts: Facts, node: PrimExpr) -> int | None:
    """The one value that bounds or congruences leave of an index."""
    if _is_long_sum(node):
        return None
    low, high = limits_of(facts, node)
    if low == high:
        return low
    if isinstance(node, (FloorMod, Mod)) and isinstance(node.b, IntImm) and node.b.value > 0:
        # The node is coeff*q + base: fixed for coeff 0, and in [0, b) only q = 0 is left for coeff b.
        coeff, base = congruence_of(facts, node)
        if coeff == 0 or (coeff == node.b.value and isinstance(node, FloorMod)):
            return base
    return None


def _is_long_sum(node: PrimExpr) -> bool:
    """True where bounds of every partial sum would take quadratic time; what cancels far apart there, the canonical form finds."""
    left = [node]
    for _ in range(_TERMS):
        if not left:
            return False
        last = left.pop()
        if isinstance(last, (Add, Sub)):
            left += (last.a, last.b)
    return last.dtype in INDEX_DTYPES


def _fits_roughly(pattern: Term, node: PrimExpr) -> bool:
    """A quick look at the kinds of the operands."""
    if pattern[0] == "call":
        return isinstance(node, Call)
    for term, operand in zip(pattern[2], operands_of(node), strict=True):
        if term[0] == "node" and type(operand) is not term[1]:
            return False
        if term[0] in ("const", "value") and not isinstance(operand, IntImm):
            return False
    return True


def _prove(facts: Facts, condition: PrimExpr) -> bool:
    return holds(facts, condition)


def _comparison(facts: Facts, node: CmpExpr) -> PrimExpr:
    """Every comparison is asked as `==` or `<` and answered in its own terms."""
    if node in facts.truths:
        return IntImm("bool", int(facts.truths[node]))
    # A fact is kept as it was written, so its negation has to be looked up as well.
    if (opposite := OPPOSITE[type(node)](node.a, node.b)) in facts.truths:
        return IntImm("bool", int(not facts.truths[opposite]))
    match node:
        case GT(a, b):
            return LT(b, a)
        case GE(a, b):
            return LE(b, a)
        # At an end of its range a value differs from that end by lying beyond it, which bounds can use and != can't.
        case NE(a, IntImm() as b) if is_scalar_int(a.dtype) and holds(facts, GE(a, b)):
            return LT(b, a)
        case NE(a, IntImm() as b) if is_scalar_int(a.dtype) and holds(facts, LE(a, b)):
            return LT(a, b)
        case NE(a, b):
            return _opposite(by_law(facts, EQ(a, b)), node)
        case LE():
            return _at_most(facts, node)
    if is_scalar_int(node.a.dtype):
        if holds(facts, node):
            return IntImm("bool", 1)
        if holds(facts, Not(node)):
            return IntImm("bool", 0)
    found = _first(facts, node)
    return _without_common_factor(node) if found is None else found


def _at_most(facts: Facts, node: LE) -> PrimExpr:
    """a <= b as not b < a, as a == b at an end of a range, and as a < b of what is known to differ."""
    a, b = node.a, node.b
    at_end = is_scalar_int(a.dtype) and (isinstance(a, IntImm) or isinstance(b, IntImm))
    # x <= 0 of an x >= 0 is x == 0.
    if at_end and holds(facts, LE(b, a)):
        return EQ(a, b)
    answer = _opposite(by_law(facts, LT(b, a)), node)
    return LT(a, b) if answer is node and _differ(facts, a, b) else answer


def _without_common_factor(node: CmpExpr) -> PrimExpr:
    """4*x < 8*y as x < 2*y: indices are taken not to overflow; wrapped multiples would compare otherwise."""
    if not isinstance(node, LT) or node.a.dtype not in INDEX_DTYPES:
        return node
    factor = gcd(common_factor(node.a), common_factor(node.b))
    return LT(divided(node.a, factor), divided(node.b, factor)) if factor > 1 else node


def _differ(facts: Facts, a: PrimExpr, b: PrimExpr) -> bool:
    """Whether congruences tell two indices apart, as an even and an odd one."""
    if a.dtype not in INDEX_DTYPES or isinstance(a, Var) or isinstance(b, Var) or _is_long_sum(a) or _is_long_sum(b):
        return False
    coeff, base = congruence_of(facts, Sub(a, b))
    # a - b is coeff*q + base, which is 0 for some q only if coeff divides base.
    return base % coeff != 0 if coeff else base != 0


def _opposite(answer: PrimExpr, node: PrimExpr) -> PrimExpr:
    """The negation of an answer; the node itself if that is what it says."""
    match answer:
        case IntImm(_, value):
            return IntImm("bool", 1 - value)
        case EQ(a, b):
            return NE(a, b)
        case NE(a, b):
            return EQ(a, b)
        case LT(a, b):
            return LE(b, a)
        case LE(a, b):
            return LT(b, a)
    return Not(answer)


LOCAL = Form("rewritten", by_law)
