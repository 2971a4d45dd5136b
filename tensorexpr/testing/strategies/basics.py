"""Hypothesis strategies for extents, shapes and dtypes."""

from __future__ import annotations

from hypothesis import strategies as st

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int32", "int8", "uint8", "int64", "int16")
# 1, primes, powers of two and one less or more: the extents at which splits and tails differ.
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17)


def extents(max_value: int = 17, allow_empty: bool = False) -> st.SearchStrategy[int]:
    """One extent; 0 too if `allow_empty`."""
    chosen = [extent for extent in EXTENTS if extent <= max_value]
    return st.sampled_from([0, *chosen] if allow_empty else chosen)


@st.composite
def shapes(draw: st.DrawFn, min_dims: int = 0, max_dims: int = 4, max_elements: int = 2048, allow_empty: bool = False) -> tuple[int, ...]:
    """A shape of at most `max_elements` elements."""
    result: list[int] = []
    room = max_elements
    for _ in range(draw(st.integers(min_dims, max_dims))):
        extent = draw(extents(max(1, room), allow_empty))
        room //= max(1, extent)
        result.append(extent)
    return tuple(result)


def float_dtypes() -> st.SearchStrategy[str]:
    """A float dtype, float32 first."""
    return st.sampled_from(FLOATS)


def int_dtypes() -> st.SearchStrategy[str]:
    """An integer dtype, int32 first."""
    return st.sampled_from(INTS)


def dtypes() -> st.SearchStrategy[str]:
    """A numeric dtype."""
    return st.sampled_from(FLOATS + INTS)
