"""Layouts by the names of their axes."""

from __future__ import annotations

import itertools

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError


def ints(values: tuple[tir.PrimExpr, ...] | None) -> tuple[int, ...]:
    return tuple(value.value for value in values or () if isinstance(value, tir.IntImm))


def test_axes_and_their_parts() -> None:
    found = tir.layout("NCHW16c")
    assert found is not None and str(found) == "Layout(NCHW16c)"
    assert list(found) == ["N", "C", "H", "W", "c"] and found[-1] == "c" and "O" not in found
    assert (found.index_of("c"), found.index_of("O")) == (4, -1)
    assert [found.factor_of(axis) for axis in "NCc"] == [-1, 16, 16]
    wide = tir.layout("NC", "int64")
    assert wide is not None and wide.axes[0].dtype == "int64"
    assert tir.layout("") is None and tir.layout("__undef__") is None


@pytest.mark.parametrize("text", ["NCHW16x", "N16", "NC8H", "N-C", "NcC"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="layout"):
        tir.layout(text)
    with pytest.raises(TypeError, match="integers"):
        tir.layout("N", "float32")


@pytest.mark.parametrize(("source", "target"), [("NCHW", "NCHW16c"), ("NCHW8c", "NHWC4c"), ("CN", "NC4c2c"), ("NC4n", "C2cN")])
def test_every_element_has_its_place(source: str, target: str) -> None:
    """Forth and back is where one was, and no two elements share a place."""
    both = tir.bijective_layout(source, target)
    assert both is not None
    sizes = {"N": 8, "C": 32, "H": 2, "W": 3}
    parts = {name: both.src_layout.factor_of(name) for name in sizes}
    shape = tuple(parts[a.upper()] if a.islower() else sizes[a] // max(1, parts[a]) for a in both.src_layout)
    other = ints(both.forward_shape(shape))
    assert ints(both.backward_shape(other)) == shape
    seen = set()
    for index in itertools.product(*map(range, shape)):
        there = ints(both.forward_index(index))
        assert all(0 <= i < n for i, n in zip(there, other, strict=True))
        assert ints(both.backward_index(there)) == index
        seen.add(there)
    assert len(seen) == len(list(itertools.product(*map(range, shape))))


def test_what_does_not_convert() -> None:
    assert tir.bijective_layout("NCHW", "NC") is None and tir.bijective_layout("", "NC") is None
    both = tir.bijective_layout("NC", "NC16c")
    assert both is not None and ints(both.forward_shape((1, 33))) == (1, 3, 16)
    n = tir.Var("n")
    assert str(both.forward_shape((1, n))[1]) == "(n + 15) // 16"
    with pytest.raises(DeclarationError, match="has 2 axes, not 1"):
        both.forward_index([1])
