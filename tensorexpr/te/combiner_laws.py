"""Whether a combiner may be regrouped: laws that a reduction must obey before its points may be reduced in parts.

`te.comm_reducer` takes the user's word that a combiner is associative and commutative. Where a wrong word would give
wrong results, the laws are tried on sample values first. Samples refute, they don't prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import CommReducer, Var
from ..tir.reduction_laws import law_of
from ..tir.rewriting import variables
from .evaluation import Array, compile_program

Values = Sequence[Array]
_POINTS = 32
_MAGNITUDES = np.arange(1, 10)  # sums and products of three of them are exact in float16
_ROUNDING = {16: 5e-2, 32: 1e-4, 64: 1e-9}


@lru_cache(maxsize=256)
def refuted_law(combiner: CommReducer, any_start: bool = False) -> str | None:
    """The first law that a combiner breaks, with the values that show it; None if the samples break none.

    The laws are tried on accumulators, that is on what combining the identity with a value gives: a combiner such as
    `x + abs(y)` is a sum of magnitudes there, whatever it does elsewhere. Combiners that use other variables or
    can't be evaluated are taken at their word.

    Args:
        combiner: to try.
        any_start: the reduction may start at any value in place of the identity, which must leave every value alone then.
    """
    # sums, products, maxima and the like are known to obey; only combiners of the user's own are tried
    if law_of(combiner) is not None:
        return None
    try:
        return _first_broken(combiner, any_start)
    except DeclarationError:
        return None


def is_componentwise(combiner: CommReducer) -> bool:
    """True if each of the values that are reduced together is combined for itself, as a sum beside a sum of squares is.

    The index of a maximum isn't: it depends on the maximum.
    """
    used = (*combiner.lhs, *combiner.rhs)
    pairs = zip(combiner.result, combiner.lhs, combiner.rhs, strict=True)
    return all(variables(result).isdisjoint({*used} - {left, right}) for result, left, right in pairs)


@lru_cache(maxsize=256)
def depends_on_order(combiner: CommReducer) -> str | None:
    """The first law of `refuted_law` that a combiner breaks where values repeat; None if the samples break none.

    An index of a maximum may be that of whichever of equal values came first: regrouped, it would be another one. A combiner that
    compares indices then, as `topi.argmax` has it, doesn't care. One that can't be evaluated may.
    """
    try:
        return _first_broken(combiner, False, _repeating_samples(combiner.rhs))
    except DeclarationError:
        return "it can't be evaluated"


def _repeating_samples(variables: Sequence[Var]) -> list[list[Array]]:
    """Three values for each variable at each point, of which many are equal."""
    rng = np.random.default_rng(1)
    return [[_typed(rng.integers(0, 3, _POINTS), var.dtype) for var in variables] for _ in range(3)]


def _first_broken(combiner: CommReducer, any_start: bool, samples: list[list[Array]] | None = None) -> str | None:
    program = compile_program((*combiner.identity_element, *combiner.result))
    count = len(combiner.lhs)

    def run(a: Values, b: Values) -> list[Array]:
        env = {**dict(zip(combiner.lhs, a, strict=True)), **dict(zip(combiner.rhs, b, strict=True))}
        return [np.broadcast_to(value, _POINTS) for value in program.run(env)]

    def combine(a: Values, b: Values) -> list[Array]:
        return run(a, b)[count:]

    x, y, z = samples or _samples(combiner.rhs)
    identity = run(x, y)[:count]
    # what an accumulator may hold, see above
    a, b, c = (combine(identity, value) for value in (x, y, z))
    laws: tuple[tuple[str, Values, Values], ...] = (
        # compares a with itself unless it is asked for
        ("it starts at an init, but its identity element changes values", a, x if any_start else a),
        ("it is not commutative", combine(a, b), combine(b, a)),
        ("it is not associative", combine(combine(a, b), c), combine(a, combine(b, c))),
        ("combining its identity with itself gives something else", combine(identity, identity), identity),
        ("its identity element changes what it is combined with", combine(identity, a), a),
        ("it takes a value and a combination of one value differently", combine(a, y), combine(a, b)),
    )
    return next((found for law, left, right in laws if (found := _difference(law, combiner, left, right, (x, y, z)))), None)


def _samples(variables: Sequence[Var]) -> list[list[Array]]:
    """Three values for each variable at each point, of different magnitudes: which of two equal values wins is no law."""
    rng = np.random.default_rng(0)
    drawn = [[_three(rng) for _ in range(_POINTS)] for _ in variables]
    return [
        [_typed(np.array([point[n] for point in points]), var.dtype) for points, var in zip(drawn, variables, strict=True)]
        for n in range(3)
    ]


def _three(rng: Any) -> Array:
    return rng.permutation(_MAGNITUDES)[:3] * rng.choice([-1, 1], 3)


def _typed(values: Array, dtype: str) -> Array:
    kind = parse_dtype(dtype)
    if kind.code == "bool":
        return values > 0
    return (np.abs(values) if kind.code == "uint" else values).astype(to_numpy(dtype))


def _difference(law: str, combiner: CommReducer, left: Values, right: Values, samples: Sequence[Values]) -> str | None:
    with np.errstate(all="ignore"):
        for a, b, var in zip(left, right, combiner.lhs, strict=True):
            wrong = np.flatnonzero(~_same(a, b, var.dtype))
            if len(wrong):
                at = int(wrong[0])
                return f"{law}: for the values {' and '.join(_shown(value, at) for value in samples)} it gives {a[at]} in place of {b[at]}"
    return None


def _shown(values: Values, at: int) -> str:
    text = ", ".join(str(value[at]) for value in values)
    return f"({text})" if len(values) > 1 else text


def _same(a: Array, b: Array, dtype: str) -> Array:
    kind = parse_dtype(dtype)
    if not kind.is_float:
        return np.asarray(a == b)
    wide, other = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    return np.asarray(np.isclose(wide, other, rtol=_ROUNDING.get(kind.bits, 1e-4), atol=1e-6, equal_nan=False))
