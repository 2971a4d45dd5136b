"""Index maps against brute force: forth and back is the identity, and padding is exactly what nothing maps to."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.arith import IndexMap
from tensorexpr.errors import DeclarationError
from tensorexpr.te.evaluation import compile_program
from tensorexpr.tir.expr import PrimExpr, Var
from tests.effort import share_of

Points = np.ndarray[Any, Any]


def values(exprs: tuple[PrimExpr, ...], variables: tuple[Var, ...], points: Points) -> Points:
    """The expressions at each point, one row a point."""
    env: dict[Var, Any] = {var: points[:, n].astype("int32") for n, var in enumerate(variables)}
    columns = [np.broadcast_to(column, len(points)) for column in compile_program(exprs).run(env)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0), int)


def box(extents: list[int]) -> Points:
    return np.asarray(list(product(*map(range, extents))), int).reshape(-1, len(extents))


@st.composite
def layouts(draw: st.DrawFn) -> tuple[IndexMap, list[int]]:
    """Splits by random factors of random indices and of their fusion, in random order, shifted or spread out now and then."""
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    fuse = draw(st.booleans())
    cuts = [draw(st.lists(st.integers(1, 5), max_size=2)) for _ in shape]
    order = draw(st.randoms(use_true_random=False))
    shift, spread = draw(st.sampled_from(((0, 1), (0, 1), (0, 1), (2, 1), (0, 3))))

    def mapping(*indices: Any) -> list[Any]:
        flat: list[Any] = list(indices)
        if fuse:
            total = flat[0]
            for index, extent in zip(flat[1:], shape[1:], strict=True):
                total = total * extent + index
            flat = [total]
        pieces: list[Any] = []
        for index, factors in zip(flat, cuts, strict=False):
            for factor in factors:
                pieces.append(index % factor)
                index = index // factor
            pieces.append(index)
        order.shuffle(pieces)
        pieces[0] = pieces[0] * spread + shift
        return pieces

    return IndexMap.from_func(mapping, len(shape)), shape


@settings(max_examples=share_of(150), deadline=None, derandomize=True)
@given(layouts())
def test_inverse_and_padding(case: tuple[IndexMap, list[int]]) -> None:
    index_map, shape = case
    inverse, padding = index_map.non_surjective_inverse(shape)
    new_shape = [int(extent.value) for extent in index_map.map_shape(shape)]  # type: ignore[attr-defined]
    old = box(shape)
    new = values(index_map.final_indices, index_map.initial_indices, old)
    assert (new >= 0).all() and (new < new_shape).all()
    assert len(np.unique(new, axis=0)) == len(old)
    assert np.array_equal(values(inverse.final_indices, inverse.initial_indices, new), old)
    everything = box(new_shape)
    reached = set(map(tuple, new))
    is_padding = values((padding,), inverse.initial_indices, everything)[:, 0].astype(bool)
    assert [tuple(point) not in reached for point in everything] == list(is_padding)


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(layouts(), st.data())
def test_refusals_are_no_guesses(case: tuple[IndexMap, list[int]], data: st.DataObject) -> None:
    """What loses an index can't be inverted; if it can be, nothing was lost."""
    index_map, shape = case
    kept = data.draw(st.lists(st.sampled_from(range(len(index_map.final_indices))), min_size=1, unique=True))
    fewer = IndexMap(index_map.initial_indices, tuple(index_map.final_indices[n] for n in kept))
    new = values(fewer.final_indices, fewer.initial_indices, box(shape))
    try:
        inverse, _ = fewer.non_surjective_inverse(shape)
    except DeclarationError:
        return
    assert len(np.unique(new, axis=0)) == len(new)
    assert np.array_equal(values(inverse.final_indices, inverse.initial_indices, new), box(shape))


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(layouts())
def test_arrays_and_equivalence(case: tuple[IndexMap, list[int]]) -> None:
    index_map, shape = case
    array = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    moved = index_map.map_ndarray(array)
    new = values(index_map.final_indices, index_map.initial_indices, box(shape))
    assert np.array_equal(moved[tuple(new.T)], array.ravel())
    assert np.count_nonzero(moved) == array.size
    assert index_map.is_equivalent_to(index_map)
    swapped = IndexMap(index_map.initial_indices, index_map.final_indices[::-1])
    if index_map.is_equivalent_to(swapped):
        assert np.array_equal(new, new[:, ::-1])
