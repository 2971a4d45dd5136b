"""Turning bindings and conditions into facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..errors import DeclarationError, TypeMismatchError
from ..tir.arithmetic import is_const_int
from ..tir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CmpExpr, FloorMod, IntImm, Mod, Not, Or, PrimExpr, Range, Var
from ..tir.rewriting import variables
from .bounds import ConstIntBound, form_limits, limits_of
from .exact import exact_deep, exact_form
from .facts import Facts, Limits, fresh_memos
from .linear import Linear, is_scalar_int
from .modular import ModularSet, meet

_NEGATED: dict[type[CmpExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT, EQ: NE, NE: EQ}
# Bounds of one atom follow from those of the others; a second round lets what was found act on the earlier ones.
_PROPAGATION_ROUNDS = 2


def bind_range(facts: Facts, var: Var, dom: Range) -> Facts:
    """More facts: `var` lies in `dom`. An empty domain leaves the variable at its minimum: the code is dead there."""
    low = limits_of(facts, dom.min)
    extent = limits_of(facts, dom.extent)
    # Minimum and extent as one form: of [k, n) the extent is n - k, and k cancels.
    last = form_limits(facts, exact_form(facts, dom.min).add(exact_form(facts, dom.extent)).shift(-1))
    facts = _forget(facts, var)
    limits = {**facts.limits, var: (low[0], max(min(last[1], low[1] + extent[1] - 1), low[0]))}
    symbols = facts.symbols
    if not (isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)):
        symbols |= {var} | variables(dom.min) | variables(dom.extent)
    values = facts.values
    if is_const_int(dom.extent, 1) and dom.min.dtype == var.dtype:
        values = {**values, var: dom.min}
    return replace(facts, ranges={**facts.ranges, var: dom}, values=values, limits=limits, symbols=symbols, **fresh_memos())


def facts_of(ranges: Mapping[Var, Range]) -> Facts:
    """The facts that variables lie in ranges; those of constant ones at once, as most are."""
    constant = {var: dom for var, dom in ranges.items() if isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)}
    limits: dict[PrimExpr, Limits] = {}
    values: dict[Var, PrimExpr] = {}
    for var, dom in constant.items():
        low, extent = dom.min.value, dom.extent.value  # type: ignore[attr-defined]
        limits[var] = (low, max(low + extent - 1, low))
        if extent == 1 and dom.min.dtype == var.dtype:
            values[var] = dom.min
    facts = Facts(ranges=constant, limits=limits, values=values)
    for var, dom in ranges.items():
        if var not in constant:
            facts = bind_range(facts, var, dom)
    return facts


def bind_value(facts: Facts, var: Var, value: PrimExpr) -> Facts:
    """More facts: `var` equals `value`."""
    limits = limits_of(facts, value)
    facts = _forget(facts, var)
    return replace(facts, values={**facts.values, var: value}, limits={**facts.limits, var: limits}, **fresh_memos())


def with_symbols(facts: Facts, found: set[Var]) -> Facts:
    """More facts: arithmetic on these variables doesn't overflow."""
    return replace(facts, symbols=facts.symbols | found, **fresh_memos())


def told(facts: Facts, var: PrimExpr, info: ConstIntBound | ModularSet, override: bool = False) -> Facts:
    """More facts: the constant bounds or the congruence of a variable.

    Raises:
        DeclarationError: if that contradicts what is known and `override` is False.
        TypeMismatchError: if the information is of another kind.
    """
    if isinstance(info, ModularSet):
        return replace(facts, congruences={**facts.congruences, var: (info.coeff, info.base)}, **fresh_memos())
    if not isinstance(info, ConstIntBound):
        raise TypeMismatchError(f"a variable is told a ConstIntBound or a ModularSet, not {info!r}; bind ranges and values with bind()")
    limits = info.min_value, info.max_value
    if facts.limits.get(var, limits) != limits and not override:
        raise DeclarationError(f"{var} is known to lie in {list(facts.limits[var])}; pass override=True to replace it by {list(limits)}")
    return replace(facts, limits={**facts.limits, var: limits}, **fresh_memos())


def _forget(facts: Facts, var: Var) -> Facts:
    """The facts without what is known of a variable, if anything is: it gets a new meaning."""
    # Loops bind variables by the thousand, and of nearly all nothing is known before.
    if var not in facts.limits and var not in facts.constrained:
        return facts

    def keep(expr: PrimExpr) -> bool:
        return var not in variables(expr)

    return replace(
        facts,
        ranges={v: dom for v, dom in facts.ranges.items() if v is not var},
        values={v: value for v, value in facts.values.items() if v is not var and keep(value)},
        limits={atom: limits for atom, limits in facts.limits.items() if keep(atom)},
        congruences={atom: found for atom, found in facts.congruences.items() if keep(atom)},
        nonnegative=tuple(form for form in facts.nonnegative if all(map(keep, form.terms))),
        truths={condition: holds for condition, holds in facts.truths.items() if keep(condition)},
        constrained=facts.constrained - {var},
        **fresh_memos(),
    )


def under(facts: Facts, condition: PrimExpr, holds: bool = True) -> Facts:
    """More facts: `condition` holds (or doesn't)."""
    key = condition if holds else Not(condition)
    # Memoised: the arms of a selection are entered once for each form that asks.
    known = facts.scopes.get(key)
    if known is None:
        known = facts.scopes[key] = _derive(facts, list(conjuncts(condition, holds)))
    return known


def conjuncts(condition: PrimExpr, holds: bool = True) -> Iterator[tuple[PrimExpr, bool]]:
    """The conditions that all hold (True) or all fail (False) when `condition` holds, hints stripped."""
    stack = [(condition, holds)]
    while stack:
        node, positive = stack.pop()
        match node:
            case Call(_, "tir.likely", (inner,)):
                stack.append((inner, positive))
            case Not(a):
                stack.append((a, not positive))
            case And(a, b) if positive:
                # A stack pops the last, so the left one comes first.
                stack += [(b, True), (a, True)]
            case Or(a, b) if not positive:
                stack += [(b, False), (a, False)]
            case _:
                yield node, positive


def _derive(facts: Facts, conditions: list[tuple[PrimExpr, bool]]) -> Facts:
    truths = dict(facts.truths)
    congruences = dict(facts.congruences)
    forms: list[Linear] = []
    for condition, positive in conditions:
        truths[condition] = positive
        if isinstance(condition, CmpExpr) and is_scalar_int(condition.a.dtype):
            kind = type(condition) if positive else _NEGATED[type(condition)]
            truths[kind(condition.a, condition.b)] = True  # not a < b is looked up as a >= b too
            forms += _forms(facts, kind, condition.a, condition.b)
            _note_congruence(kind, condition.a, condition.b, congruences)
    limits = _propagate(facts, forms)
    # Forms of one term are limits already.
    nonnegative = facts.nonnegative + tuple(form for form in forms if len(form.terms) > 1)
    found = facts.constrained.union(*(variables(condition) for condition, _ in conditions))
    return replace(
        facts, limits=limits, congruences=congruences, nonnegative=nonnegative, truths=truths, constrained=found, **fresh_memos()
    )


def comparison_forms(facts: Facts, condition: PrimExpr, holds: bool) -> list[Linear]:
    """The affine forms that are >= 0 when an integer comparison holds (or doesn't); none for other conditions."""
    if not isinstance(condition, CmpExpr) or not is_scalar_int(condition.a.dtype):
        return []
    return _forms(facts, type(condition) if holds else _NEGATED[type(condition)], condition.a, condition.b)


def _forms(facts: Facts, kind: type[CmpExpr], a: PrimExpr, b: PrimExpr) -> list[Linear]:
    """The affine forms that are >= 0 when the comparison holds."""
    difference = exact_deep(facts, b).sub(exact_deep(facts, a))
    if kind is LT:
        return [difference.shift(-1)]
    if kind is LE:
        return [difference]
    if kind is GT:
        return [difference.scale(-1).shift(-1)]
    if kind is GE:
        return [difference.scale(-1)]
    if kind is EQ:
        return [difference, difference.scale(-1)]
    # d != 0 says something only at an end of the values of d: with d >= 0 it is d >= 1.
    low, high = form_limits(facts, difference)
    if low == 0:
        return [difference.shift(-1)]
    return [difference.scale(-1).shift(-1)] if high == 0 else []


def _note_congruence(kind: type[CmpExpr], a: PrimExpr, b: PrimExpr, congruences: dict[PrimExpr, tuple[int, int]]) -> None:
    if kind is EQ and isinstance(b, IntImm) and isinstance(a, (FloorMod, Mod)) and isinstance(a.b, IntImm):
        # A truncated remainder r of x by m also says x = m*q + r; a remainder out of range makes the scope dead.
        modulus = abs(a.b.value)
        if modulus:
            found = modulus, b.value % modulus
            congruences[a.a] = meet(congruences[a.a], found) if a.a in congruences else found


def _propagate(facts: Facts, forms: list[Linear]) -> Mapping[PrimExpr, Limits]:
    """Tighter constant bounds of the atoms of forms that are >= 0."""
    limits: dict[PrimExpr, Limits] = dict(facts.limits)
    for _ in range(_PROPAGATION_ROUNDS):
        for form in forms:
            spans = {atom: limits.get(atom) or limits_of(facts, atom) for atom in form.terms}
            highest = form.constant + sum(max(k * spans[a][0], k * spans[a][1]) for a, k in form.terms.items())
            for atom, k in form.terms.items():
                low, high = spans[atom]
                rest = highest - max(k * low, k * high)  # k * atom >= -rest
                if k > 0:
                    low = max(low, -(rest // k))
                else:
                    high = min(high, rest // -k)
                # Conditions that contradict each other make the code dead; what was known stays.
                if low <= high:
                    limits[atom] = (low, high)
    return limits
