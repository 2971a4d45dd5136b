"""Constant bounds of integer expressions: of the machine value, which wraps, and of forms over the integers."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from ..arith.facts import derive
from ..dataclass import dataclass
from ..tir.dtype import int_limits, parse_dtype, scalar_dtype
from ..tir.expr import Cast, IntImm, Mul, PrimExpr, SizeVar, Var
from .facts import Facts, Limits
from .linear import Linear, is_scalar_int, linear_form
from .node_limits import multiply, operands, rule_of
from .origin import DATA, FREE, INDEX_DTYPES, SYMBOL, form_origin

POS_INF = (1 << 63) - 1  # TVM's ConstIntBound.kPosInf, which says that there is no bound
NEG_INF = -POS_INF
_WIDEST: Limits = (-(1 << 64), 1 << 64)


@dataclass(frozen=True, slots=True)
class ConstIntBound:
    """Inclusive bounds; `POS_INF` and `NEG_INF` stand for "unbounded"."""

    min_value: int
    max_value: int
    POS_INF: ClassVar[int] = POS_INF
    NEG_INF: ClassVar[int] = NEG_INF


@cache
def dtype_limits(dtype: str) -> Limits:
    """The values of one lane of a dtype; for floats and handles an interval that no proof can use."""
    parsed = parse_dtype(dtype)
    return int_limits(scalar_dtype(dtype)) if parsed.is_int or parsed.code == "bool" else _WIDEST


def limits_of(facts: Facts, expr: PrimExpr) -> Limits:
    """Inclusive bounds of the machine value of `expr` (of every lane of a vector)."""
    # Nearly always known: the walk over operands is for the first time.
    found = facts.bounds.get(expr)
    if found is not None:
        return found
    return derive(facts.bounds, expr, lambda node: _operands(facts, node), lambda node: _with_facts(facts, node, _derived(facts, node)))


def form_limits(facts: Facts, form: Linear) -> Limits:
    """Inclusive bounds of an affine form over the integers."""
    low = high = form.constant
    for atom, k in form.terms.items():
        below, above = limits_of(facts, atom)
        if k > 0:
            low, high = low + k * below, high + k * above
        else:
            low, high = low + k * above, high + k * below
    return low, high


def plain_form(facts: Facts, expr: PrimExpr) -> Linear:
    """The affine form of `expr`, equal to it modulo 2**bits only; memoised."""
    form = facts.forms.get(expr)
    if form is None:
        form = facts.forms[expr] = linear_form(expr)
    return form


def fits(facts: Facts, form: Linear, dtype: str, free: bool = False) -> bool:
    """True if the form's integer value is the machine value: it is within the dtype, or it is made of symbols.

    `free` accepts variables of which nothing is known as well.
    """
    if len(form.terms) == 1 and form.constant == 0 and 1 in form.terms.values():  # an atom alone is its machine value
        return True
    return _contains(dtype, form_limits(facts, form)) or _is_index(facts, form, dtype, free)


def product_fits(facts: Facts, node: Mul, free: bool = False) -> bool:
    """True if the product of two operands' values is the machine value."""
    known = {side: limits_of(facts, side) for side in (node.a, node.b)}
    return _contains(node.dtype, multiply(node, known)) or _is_index(facts, Linear({node.a: 1, node.b: 1}), node.dtype, free)


def _contains(dtype: str, limits: Limits) -> bool:
    least, most = dtype_limits(dtype)
    return least <= limits[0] and limits[1] <= most


def _is_index(facts: Facts, form: Linear, dtype: str, free: bool) -> bool:
    """True for arithmetic on index variables, which is taken not to overflow."""
    if dtype not in INDEX_DTYPES:
        return False
    if facts.index:
        return True
    flags = form_origin(facts, form)
    if flags & DATA:
        return False
    return bool(flags & (SYMBOL | FREE)) if free else flags == SYMBOL


def _operands(facts: Facts, node: PrimExpr) -> tuple[PrimExpr, ...]:
    if isinstance(node, (Var, IntImm)):
        return ()
    if is_scalar_int(node.dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return tuple(form.terms)
    return operands(node)


def _with_facts(facts: Facts, node: PrimExpr, found: Limits) -> Limits:
    known = facts.limits.get(node)
    if known is None:
        return found
    low, high = max(found[0], known[0]), min(found[1], known[1])
    return (low, high) if low <= high else found  # contradictory facts: the code is dead


def _derived(facts: Facts, node: PrimExpr) -> Limits:
    """The bounds of a node whose operands' bounds are in the memo."""
    dtype = node.dtype
    whole = dtype_limits(dtype)
    if isinstance(node, IntImm):
        return node.value, node.value
    if isinstance(node, Var):
        return (max(whole[0], 0), whole[1]) if isinstance(node, SizeVar) else whole
    if is_scalar_int(dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return _machine(facts, form_limits(facts, form), form, dtype)
    rule = rule_of(node)
    if rule is None or whole is _WIDEST:
        return whole
    found = rule(node, facts.bounds)
    if isinstance(node, Mul) and is_scalar_int(dtype):
        return _machine(facts, found, Linear({node.a: 1, node.b: 1}), dtype)
    # Beyond the dtype the value wraps, and anything may come of that.
    fits_dtype = whole[0] <= found[0] and found[1] <= whole[1]
    return found if fits_dtype or (facts.index and dtype in INDEX_DTYPES and not isinstance(node, Cast)) else whole


def _machine(facts: Facts, found: Limits, form: Linear, dtype: str) -> Limits:
    """Bounds of the machine value, given those of the integer value."""
    least, most = dtype_limits(dtype)
    if (least <= found[0] and found[1] <= most) or (facts.index and dtype in INDEX_DTYPES):
        return found
    # Where nothing overflows, there are no values beyond the dtype.
    low, high = max(found[0], least), min(found[1], most)
    return (low, high) if low <= high and _is_index(facts, form, dtype, free=False) else (least, most)
