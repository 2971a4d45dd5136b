"""Extents as products: divisors, and the ways to tile an extent."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt


@lru_cache(maxsize=4096)
def divisors(extent: int) -> tuple[int, ...]:
    """The divisors of a positive number, ascending."""
    small = [d for d in range(1, isqrt(extent) + 1) if extent % d == 0]
    # of a square the root would come twice
    return tuple(dict.fromkeys([*small, *(extent // d for d in reversed(small))]))


@lru_cache(maxsize=1024)
def factorizations(extent: int, parts: int, max_innermost: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write `extent` as an ordered product of `parts` factors with the last at most `max_innermost`; of 0 it is 0 * 1 * 1."""
    if not extent:
        return ((0, *[1] * (parts - 1)),)
    if parts == 1:
        return ((extent,),) if extent <= max_innermost else ()
    return tuple((first, *rest) for first in divisors(extent) for rest in factorizations(extent // first, parts - 1, max_innermost))


@lru_cache(maxsize=16384)
def count_tilings(extent: int, parts: int) -> int:
    """In how many ways an extent is an ordered product of so many factors."""
    return 1 if parts <= 1 else sum(count_tilings(extent // d, parts - 1) for d in divisors(extent))
