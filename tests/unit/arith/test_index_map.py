"""Index maps: what they make of indices, ranges, shapes and arrays, how they invert, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.errors import DeclarationError
from tensorexpr.tir import IndexMap, SizeVar, Var
from tensorexpr.tir.expr import Range

PACK = IndexMap.from_func(lambda k, n: [n // 32, k, n % 32])


def test_parameters_name_the_indices() -> None:
    assert str(PACK) == "(k, n) -> (n // 32, k, n % 32)"
    assert PACK.names() == ["n.o", "k", "n.i"]


def test_many_indices() -> None:
    reverse = IndexMap.from_func(lambda first, *rest: [*reversed(rest), first], ndim=3)
    assert str(reverse) == "(first, rest_0, rest_1) -> (rest_1, rest_0, first)"


def test_map_indices_takes_numbers_and_expressions() -> None:
    i = Var("i", "int32")
    assert [str(e) for e in PACK.map_indices([3, 70])] == ["2", "3", "6"]
    simplified = [str(Analyzer({i: Range.from_min_extent(0, 32)}).simplify(e)) for e in PACK.map_indices([0, i + 64])]
    assert simplified == ["2", "0", "i"]


def test_shapes_hold_padding() -> None:
    assert [int(e) for e in PACK.map_shape([64, 1009])] == [32, 64, 32]  # type: ignore[call-overload]
    n = SizeVar("n", "int32")
    assert [str(e) for e in PACK.map_shape([n, n])] == ["(n - n % -32) // 32", "n", "32"]


def test_ranges() -> None:
    found = PACK.map_ranges([Range.from_min_extent(2, 3), Range.from_min_extent(64, 8)])
    assert [(str(r.min), str(r.extent)) for r in found] == [("2", "1"), ("2", "3"), ("0", "8")]


def test_arrays() -> None:
    array = np.arange(12, dtype="int16").reshape(2, 6)
    packed = IndexMap.from_func(lambda k, n: [n // 4, k, n % 4]).map_ndarray(array)
    assert packed.dtype == np.int16
    assert np.array_equal(packed[0], array[:, :4])
    assert np.array_equal(packed[1], np.pad(array[:, 4:], ((0, 0), (0, 2))))


def test_inverse_of_a_map_that_fills_its_layout() -> None:
    inverse = PACK.inverse([64, 96])
    assert str(inverse) == "(n_o, k, n_i) -> (k, n_o * 32 + n_i)"
    assert inverse.is_equivalent_to(IndexMap.from_func(lambda a, b, c: [b, a * 32 + c]))


def test_padding() -> None:
    inverse, padding = PACK.non_surjective_inverse([64, 1009])
    assert str(inverse) == "(n_o, k, n_i) -> (k, n_o * 32 + n_i)"
    assert str(padding) == "n_o == 31 and 17 <= n_i"


def test_padding_of_symbolic_extents() -> None:
    n = SizeVar("n", "int32")
    _, padding = PACK.non_surjective_inverse([64, n])
    assert str(padding) == "n % -32 < 0 and n_o == n // 32 and n % 32 <= n_i"


def test_large_factors_of_symbolic_extents() -> None:
    n = SizeVar("n", "int32")
    halves = IndexMap.from_func(lambda i: [i // (1 << 22), i // 2 % (1 << 21), i % 2])
    inverse, _ = halves.non_surjective_inverse([n])
    assert [str(e) for e in inverse.final_indices] == ["i_o * 4194304 + i_i * 2 + i_i_2"]


def test_sums_that_are_divided() -> None:
    flat = IndexMap.from_func(lambda i, j: [(i * 5 + j) // 4, (i * 5 + j) % 4])
    inverse, padding = flat.non_surjective_inverse([3, 5])
    assert str(inverse) == "(ax0, ax1) -> ((ax0 * 4 + ax1) // 5, (ax0 * 4 + ax1) % 5)"
    assert str(padding) == "ax0 == 3 and ax1 == 3"


def test_equivalence_is_proved_only_where_it_holds() -> None:
    assert PACK.is_equivalent_to(IndexMap.from_func(lambda a, b: [b // 16 // 2, a, b - b // 32 * 32]))
    assert not PACK.is_equivalent_to(IndexMap.from_func(lambda a, b: [b // 32, a, b % 16]))
    assert not PACK.is_equivalent_to(IndexMap.from_func(lambda a, b: [b // 32, a]))
    assert not PACK.is_equivalent_to(IndexMap.from_func(lambda a, b, c: [b // 32, a, b % 32]))


def test_separators() -> None:
    index_map, separators = IndexMap.from_func_with_separators(lambda i, j: [j, te.AXIS_SEPARATOR, i])
    assert (str(index_map), separators) == ("(i, j) -> (j, i)", [1])
    assert repr(te.AXIS_SEPARATOR) == "AXIS_SEPARATOR"
    assert tir.IndexMap is IndexMap


_OUTSIDE = Var("outside", "int32")
_TABLE = te.placeholder((8,), "int32", name="table")

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no function": (lambda: IndexMap.from_func(3), "made of a function of indices, not of 3"),  # type: ignore[arg-type]
    "rank": (lambda: IndexMap.from_func(lambda i: [i], ndim=2), "takes 1 indices, but there are 2 dimensions"),
    "no rank": (lambda: IndexMap.from_func(lambda *i: i), "takes *i; give ndim, at least 0"),
    "keywords": (lambda: IndexMap.from_func(lambda i, *, j: [i, j], 3), "takes 2 indices, but there are 3 dimensions"),
    "floats": (lambda: IndexMap.from_func(lambda i: [i * 0.5]), "returns integer expressions of its indices"),
    "separator": (lambda: IndexMap.from_func(lambda i: [i, IndexMap.AXIS_SEPARATOR]), "use IndexMap.from_func_with_separators"),
    "variable": (
        lambda: IndexMap.from_func(lambda i: [i + _OUTSIDE]).check_closed(),
        "depends on its own indices (i) alone here, but i + outside uses outside",
    ),
    "load": (lambda: IndexMap.from_func(lambda i: [_TABLE[i]]), "depends on its own indices (i) and sizes alone"),
    "indices": (lambda: PACK.map_indices([1]), "takes 2 indices, not 1"),
    "negative": (lambda: IndexMap.from_func(lambda i: [i - 3]).map_shape([8]), "the index i - 3, which starts at -3"),
    "range": (lambda: PACK.inverse([Range.from_min_extent(1, 3), 32]), "ranges that start at 0, not at 1"),
    "padding": (lambda: PACK.inverse([64, 33]), "leaves padding where n_o == 1 and 1 <= n_i"),
    "twice": (lambda: IndexMap.from_func(lambda i, j: [i, j, i % 2]).inverse([4, 4]), "can't be inverted: the splits of i overlap"),
    "sum": (lambda: IndexMap.from_func(lambda i, j: [i + j]).inverse([4, 4]), "can't be inverted"),
    "lost": (lambda: IndexMap.from_func(lambda i, j: [i]).inverse([4, 4]), "j isn't used"),
    "remainder": (lambda: IndexMap.from_func(lambda i: [i % 4]).inverse([6]), "the splits of i cover 4 of 8 values"),
    "square": (lambda: IndexMap.from_func(lambda i: [i * i]).inverse([6]), "i * i is neither an iterator nor its quotient"),
    "symbolic remainder": (
        lambda: IndexMap.from_func(lambda i: [i % (1 << 22)]).non_surjective_inverse([SizeVar("n", "int32")]),
        "can't be inverted: the splits of i cover 4194304 of 8388608 values",
    ),
    "symbolic stride": (
        lambda: IndexMap.from_func(lambda i, j: [i * 8 + j]).non_surjective_inverse([4, SizeVar("n", "int32")]),
        "the extent of j is no constant, but another index is multiplied by it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    request, message = REFUSED[name]
    with pytest.raises(DeclarationError) as caught:
        request()
    assert message in str(caught.value)


def test_sums_of_other_order_and_arrays_of_the_runtime() -> None:
    from tensorexpr import nd

    one = IndexMap.from_func(lambda i, j, k: [i * 4 + j * 32 + k])
    assert one.is_equivalent_to(IndexMap.from_func(lambda j, i, k: [i * 32 + j * 4 + k]))
    assert not one.is_equivalent_to(IndexMap.from_func(lambda i, j, k: [i + j + k]))
    array = nd.array(np.arange(16, dtype="int8"))
    assert (IndexMap.from_func(lambda i: [i // 4, i % 4]).map_ndarray(array).numpy() == np.arange(16).reshape(4, 4)).all()


def test_padding_is_said_digit_by_digit() -> None:
    """A bound that one value of the slowest digit decides becomes that value and a bound of the rest."""
    _, ends = IndexMap.from_func(lambda i: [(i + 1) // 4, (i + 1) % 4]).non_surjective_inverse([14])
    assert str(ends) == "i_o == 0 and i_i < 1 or i_o == 3 and i_i == 3"
    _, last = IndexMap.from_func(lambda i: [i // 32, i // 4 % 8, i % 4]).non_surjective_inverse([116])
    assert str(last) == "i_o == 3 and 20 <= i_i * 4 + i_i_2"
    _, only = IndexMap.from_func(lambda i: [i // 4, i % 4]).non_surjective_inverse([3])
    assert str(only) == "i_i == 3"
    n = SizeVar("n", "int32")
    _, shifted = IndexMap.from_func(lambda i: [(i + 1) // 4, (i + 1) % 4]).non_surjective_inverse([n])
    assert str(shifted) == "i_o == 0 and i_i < 1 or 0 < (3 - n) % 4 and i_o == (n + 1) // 4 and (n + 1) % 4 <= i_i"


def test_inverses_are_those_of_the_whole_layout() -> None:
    """Indices that are always 0 for a shape stay in its inverse."""
    for size in (1, 3, 4):
        inverse, _ = IndexMap.from_func(lambda i: [i // 4, i % 4]).non_surjective_inverse([size])
        assert str(inverse) == "(i_o, i_i) -> (i_o * 4 + i_i)"


def test_wider_indices_and_shapes_are_mapped_in_their_own_type() -> None:
    blocked = IndexMap.from_func(lambda i: [i // 4, i % 4])
    assert [index.dtype for index in blocked.map_indices([tir.const(42, "int64")])] == ["int64", "int64"]
    assert [str(extent) for extent in blocked.map_shape([tir.const(14, "int64")])] == ["T.int64(4)", "T.int64(4)"]
    assert [extent.dtype for extent in blocked.map_shape([tir.const(14, "int64")])] == ["int64", "int64"]
    assert [index.dtype for index in blocked.map_indices([42])] == ["int32", "int32"]


def test_a_stated_way_back_is_checked_however_it_is_given() -> None:
    i, o, r = (tir.Var(name) for name in "ior")
    back = IndexMap((o, r), (o * 4 + r,))
    assert IndexMap((i,), (i // 4, i % 4), inverse_index_map=back).is_equivalent_to(other_map=IndexMap((i,), (i // 4, i % 4)))
    with pytest.raises(DeclarationError, match="is not the inverse"):
        IndexMap((i,), (i // 8, i % 8), back)
    with pytest.raises(DeclarationError, match="is not the inverse"):
        IndexMap.from_func_with_separators(lambda i: [i // 8, IndexMap.AXIS_SEPARATOR, i % 8], inverse_index_map=back)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_arrays_are_mapped_part_by_part(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("tensorexpr.arith.index_map._PLACES_AT_ONCE", at_once)
    given = np.random.default_rng(0).random((9, 4, 5))
    layout = IndexMap.from_func(lambda i, j, k: [j // 3, i, k, j % 3])
    mapped = layout.map_ndarray(given)
    wanted = np.zeros((2, 9, 5, 3))
    for i, j, k in np.ndindex(9, 4, 5):
        wanted[j // 3, i, k, j % 3] = given[i, j, k]
    np.testing.assert_array_equal(mapped, wanted)
    out = np.zeros_like(wanted)
    assert layout.map_ndarray(given, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    turned = np.zeros(wanted.shape[::-1]).T  # not in rows: flattened it is a copy
    assert layout.map_ndarray(given, out=turned) is turned
    np.testing.assert_array_equal(turned, wanted)


@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_an_array_whose_elements_share_places_is_refused(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("tensorexpr.arith.index_map._PLACES_AT_ONCE", at_once)
    for layout in (lambda i, j: [i % 2, j], lambda i, j: [i + j], lambda i, j: [i]):
        with pytest.raises(DeclarationError, match=r"has \d+ places for the 12 elements of an array of shape \(4, 3\)"):
            IndexMap.from_func(layout).map_ndarray(np.arange(12).reshape(4, 3))
    assert IndexMap.from_func(lambda i, j: [i + 4 * j]).map_ndarray(np.ones((4, 3))).tolist() == [1] * 12


def test_arrays_of_no_elements_and_maps_that_say_too_little() -> None:
    assert [str(n) for n in IndexMap.from_func(lambda i, j: [j, i // 4, i % 4]).map_shape([0, 3])] == ["3", "0", "4"]
    assert IndexMap.from_func(lambda i: [i]).map_ndarray(np.zeros(0)).shape == (0,)
    n = tir.Var("n", "int32")
    with pytest.raises(DeclarationError, match="uses n"):
        IndexMap.from_func(lambda i: [i + n]).map_ndarray(np.zeros(3), shape=[9])
