"""The canonical form: sums of multiples of splits, equal terms joined, quotients met with their remainders, in one order.

A split is `source % upper // lower`. Two splits of one source that continue one another make one:
`(x // 4 % 2)*4 + x % 4` is `x % 8`. Sums are written with the larger scales first, what is subtracted last. What is no
arithmetic of an index is rewritten by the laws.
"""

from __future__ import annotations

from collections import defaultdict

from ..dataclass import dataclass
from ..tir.dtype import wrap_int
from ..tir.expr import EQ, LT, NE, Add, Cast, CmpExpr, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, PrimExpr, Sub
from .bounds import dtype_limits, form_limits, limits_of, plain_form
from .facts import Facts
from .linear import Linear, atom_form, constant_form, linear_form
from .origin import INDEX_DTYPES
from .polynomial import factors, is_product, product
from .rewrite import Form, by_law, settle


@dataclass(frozen=True, slots=True)
class _Split:
    """`source % upper // lower`; without `upper`, `source // lower`."""

    source: PrimExpr
    lower: int = 1
    upper: int | None = None
    floors: bool | None = None  # None: neither divided nor cut

    def to_expr(self) -> PrimExpr:
        """The expression of the split."""
        dtype = self.source.dtype
        divide, cut = (FloorDiv, FloorMod) if self.floors else (Div, Mod)
        value = self.source if self.upper is None else cut(self.source, IntImm(dtype, self.upper))
        return value if self.lower == 1 else divide(value, IntImm(dtype, self.lower))

    def divided(self, c: int, floors: bool) -> _Split | None:
        """The split divided by c; None if that is none."""
        lower = self.lower * c
        # `floors` of None suits both kinds. Of x % 12 // 8 no split is made: 8 would have to divide 12.
        if self.floors is not (not floors) and (self.upper is None or (self.upper > lower and self.upper % lower == 0)):
            return _Split(self.source, lower, self.upper, floors)
        return None

    def cut(self, c: int, floors: bool) -> _Split | None:
        """The split's remainder by c; None if that is none."""
        upper = self.lower * c  # x // 4 % 2 is x % 8 // 4
        if self.floors is not (not floors) and (self.upper is None or self.upper % upper == 0):
            return _Split(self.source, self.lower, upper, floors)
        return None


def canonical(facts: Facts, expr: PrimExpr) -> PrimExpr:
    """The canonical form of `expr`."""
    return settle(facts, expr, CANONICAL)


def _apply(facts: Facts, node: PrimExpr) -> PrimExpr:
    if isinstance(node, CmpExpr) and node.a.dtype in INDEX_DTYPES:
        less = _less(facts, plain_form(facts, node.a).sub(plain_form(facts, node.b)), node.a.dtype) if isinstance(node, LT) else None
        return _compared(facts, node) if less is None else less
    if node.dtype not in INDEX_DTYPES:
        return by_law(facts, node)
    match node:
        case Add() | Sub():
            return written(_merged(_with_settled_terms(facts, plain_form(facts, node))), node.dtype)
        case Mul():
            form = _multiple(node)
            if form is not None and form.constant == 0 and form.terms.keys() == {node.a}:
                return node
            return by_law(facts, node) if form is None else written(_merged(form), node.dtype)
        case FloorDiv(a, IntImm(_, c)) | Div(a, IntImm(_, c)) if c > 0:
            return _kept(facts, node, _quotient(facts, linear_form(a), c, node))
        case FloorMod(a, IntImm(_, c)) | Mod(a, IntImm(_, c)) if c > 0:
            return _kept(facts, node, _remainder(facts, linear_form(a), c, node))
        case Cast(dtype, value) if value.dtype in INDEX_DTYPES:
            return _converted(facts, node, linear_form(value), dtype)
    return by_law(facts, node)


CANONICAL = Form("canonical", _apply, whole_sums=True)


def _with_settled_terms(facts: Facts, form: Linear) -> Linear:
    """The sum of the canonical forms of a sum's terms."""
    if all(facts.canonical[atom] is atom for atom in form.terms):
        return form
    terms: dict[PrimExpr, int] = {}
    constant = form.constant
    for atom, scale in form.terms.items():
        inner = plain_form(facts, facts.canonical[atom])
        constant += scale * inner.constant
        for part, k in inner.terms.items():
            terms[part] = terms.get(part, 0) + scale * k
    return Linear({atom: k for atom, k in terms.items() if k}, constant)


def _kept(facts: Facts, node: PrimExpr, form: Linear) -> PrimExpr:
    """The form as an expression; the node, and what laws say of it, if the form is the node itself."""
    found = written(_merged(form), node.dtype)
    if found is node or _split(found) == _split(node):
        low, high = limits_of(facts, node)
        return _constant(low, node.dtype) if low == high else node
    return found


def _split(expr: PrimExpr) -> _Split:
    """The split that an expression is: of itself, if it is no quotient or remainder."""
    lower, floors = 1, None
    inner = expr
    if isinstance(expr, (FloorDiv, Div)) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        lower, inner, floors = expr.b.value, expr.a, isinstance(expr, FloorDiv)
    if isinstance(inner, (FloorMod, Mod)) and isinstance(inner.b, IntImm) and floors in (None, isinstance(inner, FloorMod)):
        upper = inner.b.value
        if upper > lower and upper % lower == 0:
            return _Split(inner.a, lower, upper, isinstance(inner, FloorMod))
    return _Split(inner, lower, None, floors)


def _multiple(node: Mul) -> Linear | None:
    """A product with its constant factors in front of it; None if there is no constant."""
    if not is_product(node):
        return linear_form(node)
    scale = 1
    found: list[PrimExpr] = []
    for factor in factors(node):
        form = linear_form(factor)
        if len(form.terms) == 1 and form.constant == 0:
            ((atom, k),) = form.terms.items()
            scale, found = scale * k, [*found, atom]
        else:
            found.append(factor)
    return None if scale == 1 else Linear({product(found): scale})


def _less(facts: Facts, form: Linear, dtype: str) -> PrimExpr | None:
    """form < 0 divided by a scale, if the terms that it doesn't divide stay below it: x*8 + y - 16 < 0 with y in [0, 8) is x - 2 < 0."""
    scales = {abs(k) for k in form.terms.values()} | {form.content()}
    for scale in sorted(scales, reverse=True):
        if scale > 1 and form.constant % scale == 0:
            low, high = form_limits(facts, Linear({a: k for a, k in form.terms.items() if k % scale}))
            if low >= 0 and high < scale:
                whole = Linear({a: k // scale for a, k in form.terms.items() if k % scale == 0}, form.constant // scale)
                return LT(written(_merged(whole), dtype), IntImm(dtype, 0))
    return None


def _compared(facts: Facts, node: CmpExpr) -> PrimExpr:
    """What laws say of a comparison. They know constants as summands, where sums in canonical form subtract them."""
    keeps_sides = isinstance(node, (EQ, NE)) and not isinstance(node.b, IntImm)
    asked = node if keeps_sides else type(node)(_added(node.a), _added(node.b))
    found = by_law(facts, asked)
    return node if found is asked else found


def _added(expr: PrimExpr) -> PrimExpr:
    """a - c as a + -c."""
    if isinstance(expr, Sub) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        return Add(expr.a, IntImm(expr.dtype, -expr.b.value))
    return expr


def _quotient(facts: Facts, form: Linear, c: int, node: FloorDiv | Div) -> Linear:
    """form // c: what c divides comes out, the rest stays under the division. Truncation lets nothing out of sums of either sign."""
    floors, dtype = isinstance(node, FloorDiv), node.dtype
    whole = Linear({a: k // c for a, k in form.terms.items() if k % c == 0}, 0 if form.constant % c else form.constant // c)
    rest = form.sub(whole.scale(c))
    is_multiple = rest.is_constant and rest.constant == 0
    # (4*x + y) / 4 truncated is 0 at x = 1, y = -1, where x + y / 4 is 1.
    pulled = floors or is_multiple or min(form_limits(facts, form)[0], form_limits(facts, rest)[0]) >= 0
    if not pulled:
        whole, rest = constant_form(0), form
    low, high = form_limits(facts, rest)
    if pulled and low // c == high // c:
        return whole.shift(low // c)
    if rest.constant == 0 and len(rest.terms) == 1:
        ((atom, k),) = rest.terms.items()
        found = _split(atom).divided(c // k, floors) if k > 0 and c % k == 0 else None
        if found is not None:
            return whole.add(atom_form(found.to_expr()))
    return whole.add(atom_form(type(node)(written(rest, dtype), IntImm(dtype, c))))


def _remainder(facts: Facts, form: Linear, c: int, node: FloorMod | Mod) -> Linear:
    """form % c: multiples of c vanish, which a truncated remainder lets them do only where nothing is negative."""
    floors, dtype = isinstance(node, FloorMod), node.dtype
    rest = Linear({a: k for a, k in form.terms.items() if k % c}, form.constant % c)
    # (4*x + y) % 4 truncated is -3 at x = -1, y = 1, where y % 4 is 1.
    if not floors and (form_limits(facts, form)[0] < 0 or form_limits(facts, rest)[0] < 0):
        rest = form
    low, high = form_limits(facts, rest)
    if low // c == high // c and (floors or low >= 0):
        return rest.shift(-(low // c) * c)
    if rest.constant == 0 and len(rest.terms) == 1:
        ((atom, k),) = rest.terms.items()
        found = _split(atom).cut(c // k, floors) if k > 0 and c % k == 0 else None
        if found is not None:
            return Linear({found.to_expr(): k})
        if floors and k < 0 and c % k == 0:  # the sign moves to the divisor, as TVM has it
            return Linear({FloorMod(atom, IntImm(dtype, c // k)): k})
    return atom_form(type(node)(written(rest, dtype), IntImm(dtype, c)))


def _merged(form: Linear) -> Linear:
    """The form with splits of one source that continue one another joined, until none do."""
    # One joined split may continue the next: x % 2, x // 2 % 2 and x // 4 % 2 take two rounds.
    while (pair := _next_pair(form)) is not None:
        (upper, first), (lower, second) = pair
        joined = _Split(upper.source, lower.lower, upper.upper, lower.floors).to_expr()
        form = form.without(first).without(second).add(linear_form(joined), form.terms[second])
    return form


def _next_pair(form: Linear) -> tuple[tuple[_Split, PrimExpr], tuple[_Split, PrimExpr]] | None:
    """The first split of a form that continues another one: k * low + k' * high is one multiple of a split that spans both.

    Where a split is cut off is where the one that continues it begins, so that is looked up: sums have thousands of terms.
    """
    terms = [(_split(atom), atom) for atom in form.terms]
    cut = defaultdict(list)
    for low in terms:
        if low[0].upper is not None:
            cut[low[0].source, low[0].upper, low[0].floors].append(low)
    if not cut:
        return None
    for high in terms:
        split, atom = high
        for low in cut.get((split.source, split.lower, split.floors), ()):
            # The scales have to fit too: (x // 4 % 2)*4 + x % 4 is x % 8, while (x // 4 % 2)*8 + x % 4 is no split.
            if low[1] is not atom and form.terms[atom] * low[0].lower == form.terms[low[1]] * split.lower:
                return high, low
    return None


def _converted(facts: Facts, node: Cast, form: Linear, dtype: str) -> PrimExpr:
    """A conversion of a sum as the sum of conversions, if all of it fits the type."""
    least, most = dtype_limits(dtype)
    # The parts as well: each is converted on its own, and could wrap where the sum of all doesn't.
    parts = [form_limits(facts, Linear({a: k})) for a, k in form.terms.items()] + [form_limits(facts, form)]
    narrow = dtype_limits(node.value.dtype)[1] > most
    if node.value in form.terms or (narrow and not all(least <= low and high <= most for low, high in parts)):
        return by_law(facts, node)
    return written(Linear({Cast(dtype, a): k for a, k in form.terms.items()}, form.constant), dtype)


def written(form: Linear, dtype: str) -> PrimExpr:
    """The sum, larger scales and larger divisors first; what is added, the constant, what is subtracted."""
    keyed = [(_split(atom), atom, k) for atom, k in form.terms.items()]
    # Stable: terms of equal keys keep the order in which they were written.
    keyed.sort(key=lambda item: (-item[2], -item[0].lower, item[0].upper is not None, -(item[0].upper or 0)))
    terms = [(atom, k) for _, atom, k in keyed]
    if not terms:
        return _constant(form.constant, dtype)
    total: PrimExpr | None = None
    for atom, k in terms:
        if k > 0:
            total = _times(atom, k, dtype) if total is None else Add(total, _times(atom, k, dtype))
    if form.constant > 0 or total is None:
        # Without a positive term to start from it is 0 - x.
        constant = _constant(max(form.constant, 0), dtype)
        total = constant if total is None else Add(total, constant)
    for atom, k in terms:
        if k < 0:
            total = Sub(total, _times(atom, -k, dtype))
    return Sub(total, _constant(-form.constant, dtype)) if form.constant < 0 else total


def _times(atom: PrimExpr, k: int, dtype: str) -> PrimExpr:
    return atom if k == 1 else Mul(atom, _constant(k, dtype))


def _constant(value: int, dtype: str) -> IntImm:
    """A constant as the machine has it, should arithmetic on constants leave the dtype after all."""
    return IntImm(dtype, wrap_int(value, dtype))
