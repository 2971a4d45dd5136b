"""Affine forms: sums of integer multiples of atoms, the fast path of everything in `arith`.

An atom is whatever is not affine: a variable, a floor division, a load, a product of symbols. Collecting the form is
exact modulo 2**bits whatever overflows; whether it also holds for the integers themselves is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import gcd

from ..dataclass import dataclass
from ..tir.dtype import int_limits, parse_dtype, wrap_int
from ..tir.expr import Add, Cast, IntImm, Mul, PrimExpr, Sub, Var

# Above this many visited nodes shared subexpressions could make the plain walk exponential.
_PLAIN_WALK_LIMIT = 200


@cache
def is_scalar_int(dtype: str) -> bool:
    """True for signed and unsigned integers of one lane, not for bool."""
    parsed = parse_dtype(dtype)
    return parsed.is_int and parsed.lanes == 1


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """`sum(coefficient * atom) + constant`; `terms` keeps the order of first appearance and holds no zeros."""

    terms: Mapping[PrimExpr, int]
    constant: int = 0

    @property
    def is_constant(self) -> bool:
        """True if no atom is left."""
        return not self.terms

    def coefficient_of(self, atom: PrimExpr) -> int:
        """The coefficient of an atom; 0 if it doesn't occur."""
        return self.terms.get(atom, 0)

    def without(self, atom: PrimExpr) -> Linear:
        """The form with one atom's term left out."""
        return Linear({a: k for a, k in self.terms.items() if a is not atom}, self.constant)

    def add(self, other: Linear, factor: int = 1) -> Linear:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for atom, k in other.terms.items():
            total = terms.get(atom, 0) + k * factor
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return Linear(terms, self.constant + other.constant * factor)

    def sub(self, other: Linear) -> Linear:
        """`self - other`."""
        return self.add(other, -1)

    def scale(self, factor: int) -> Linear:
        """`factor * self`."""
        if factor == 1:
            return self
        return Linear({a: k * factor for a, k in self.terms.items()} if factor else {}, self.constant * factor)

    def shift(self, constant: int) -> Linear:
        """`self + constant`."""
        return Linear(self.terms, self.constant + constant) if constant else self

    def content(self) -> int:
        """The greatest common divisor of the coefficients, without the constant; 0 if there are none."""
        return gcd(*self.terms.values())

    def same(self, other: Linear) -> bool:
        """True if both forms have the same terms, in whatever order, and the same constant."""
        return self.constant == other.constant and len(self.terms) == len(other.terms) and all(
            other.terms.get(a) == k for a, k in self.terms.items()
        )  # fmt: skip

    def to_expr(self, dtype: str) -> PrimExpr:
        """The expression of this form: terms in order, the first positive one in front, the constant last.

        Coefficients and the constant are reduced to the dtype, which keeps the value modulo 2**bits.
        """
        # Atoms have another dtype where the form saw through a conversion.
        terms = [(a if a.dtype == dtype else Cast(dtype, a), w) for a, k in self.terms.items() if (w := _signed(k, dtype))]
        constant = wrap_int(self.constant, dtype)
        # A negative term in front would take a product by -1 where a subtraction will do.
        first = next((i for i, (_, k) in enumerate(terms) if k > 0), None)
        total: PrimExpr
        if first is not None:
            total = _times(*terms.pop(first), dtype)
        elif constant or not terms:
            total, constant = IntImm(dtype, constant), 0
        else:
            total = _times(*terms.pop(0), dtype)
        for atom, k in terms:
            total = _plus(total, atom, k, dtype)
        if constant == 0:
            return total
        if constant < 0 and -constant <= int_limits(dtype)[1]:  # the least integer has no opposite
            return Sub(total, IntImm(dtype, -constant))
        return Add(total, IntImm(dtype, constant))


def _signed(k: int, dtype: str) -> int:
    """A coefficient reduced to the dtype's width, negative above the middle: x * 255 is -x in eight bits."""
    bits = parse_dtype(dtype).bits
    half = 1 << (bits - 1)
    return k if -half <= k < half else (k + half) % (1 << bits) - half


def _times(atom: PrimExpr, k: int, dtype: str) -> PrimExpr:
    return atom if k == 1 else Mul(atom, IntImm(dtype, wrap_int(k, dtype)))


def _plus(total: PrimExpr, atom: PrimExpr, k: int, dtype: str) -> PrimExpr:
    if k < 0 and -k <= int_limits(dtype)[1]:
        return Sub(total, _times(atom, -k, dtype))
    return Add(total, _times(atom, k, dtype))


def gcd_of(values: Iterable[int]) -> int:
    """The greatest common divisor of integers; 0 of none and of zeros."""
    return gcd(*values)


def atom_form(atom: PrimExpr) -> Linear:
    """The form that takes an expression as it stands."""
    return Linear({atom: 1}, 0)


def constant_form(value: int) -> Linear:
    """The form of an integer."""
    return Linear({}, value)


def parts(node: PrimExpr, see_through: Callable[[Cast], bool] | None = None) -> tuple[tuple[PrimExpr, int], ...] | None:
    """The operands of an affine node with their factors; None for an atom or a constant."""
    kind = type(node)
    if kind is Add:
        return ((node.a, 1), (node.b, 1))  # type: ignore[attr-defined]
    if kind is Sub:
        return ((node.a, 1), (node.b, -1))  # type: ignore[attr-defined]
    if isinstance(node, Mul):
        if isinstance(node.b, IntImm):
            return ((node.a, node.b.value),)
        if isinstance(node.a, IntImm):
            return ((node.b, node.a.value),)
    elif isinstance(node, Cast) and see_through is not None and see_through(node):
        return ((node.value, 1),)
    return None


def linear_form(expr: PrimExpr, see_through: Callable[[Cast], bool] | None = None) -> Linear:
    """The affine form of an integer expression; `see_through` says which casts keep the value of their operand.

    Anything that is no scalar integer is an atom.
    """
    if not is_scalar_int(expr.dtype):
        return atom_form(expr)
    terms: dict[PrimExpr, int] = {}
    constant = 0
    visited = 0
    stack: list[tuple[PrimExpr, int]] = [(expr, 1)]
    while stack:
        node, k = stack.pop()
        visited += 1
        if isinstance(node, IntImm):
            constant += k * node.value
        elif isinstance(node, Var):
            terms[node] = terms.get(node, 0) + k
        elif (inner := parts(node, see_through)) is not None:
            for operand, factor in reversed(inner):
                stack.append((operand, k * factor))
        else:
            terms[node] = terms.get(node, 0) + k
        if visited > _PLAIN_WALK_LIMIT:
            return _shared_form(expr, see_through)
    if 0 in terms.values():
        terms = {a: k for a, k in terms.items() if k}
    return Linear(terms, constant)


def _shared_form(expr: PrimExpr, see_through: Callable[[Cast], bool] | None) -> Linear:
    """As `linear_form`, each distinct node once: factors flow from parents to children in topological order."""
    factors: dict[PrimExpr, int] = {expr: 1}
    order = list(_affine_nodes(expr, see_through))
    # Entered in the order of appearance, filled in another one below.
    terms: dict[PrimExpr, int] = {node: 0 for node in order if not isinstance(node, IntImm) and parts(node, see_through) is None}
    constant = 0
    # Users first, so that a node's factor is complete when it is passed on.
    for node in reversed(order):
        k = factors.get(node, 0)
        if isinstance(node, IntImm):
            constant += k * node.value
        elif (inner := parts(node, see_through)) is not None:
            for operand, factor in inner:
                factors[operand] = factors.get(operand, 0) + k * factor
        else:
            terms[node] = k
    return Linear({a: k for a, k in terms.items() if k}, constant)


def _affine_nodes(expr: PrimExpr, see_through: Callable[[Cast], bool] | None) -> Iterator[PrimExpr]:
    """The distinct nodes of the affine region under `expr`, operands before their users, left to right."""
    seen: set[PrimExpr] = set()
    stack: list[tuple[PrimExpr, bool]] = [(expr, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand, _ in reversed(parts(node, see_through) or ()))
