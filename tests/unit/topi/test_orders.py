"""sort, argsort, topk, searchsorted, unique, argwhere and running sums, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.te import Tensor
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.ir_builder import IRBuilder
from tensorexpr.topi.radix_sort import sort_by_parts
from tensorexpr.topi.rows import in_loops
from tests.effort import share_of

Array = np.ndarray[Any, Any]


def run(inputs: list[Tensor], arrays: list[Array], outputs: Any) -> list[Array]:
    """Build with the plainest schedule, and call."""
    made = outputs if isinstance(outputs, list) else [outputs]
    results = [np.empty([int(extent) for extent in out.shape], out.dtype) for out in made]
    tvm.build(te.create_schedule([out.op for out in made]), [*inputs, *made])(*arrays, *results)
    return results


def few_values(shape: tuple[int, ...], seed: int) -> Array:
    """Numbers with ties and a NaN."""
    values = np.random.default_rng(seed).integers(0, 5, shape).astype("float32")
    values.flat[0] = np.nan
    return values


@settings(max_examples=share_of(12), deadline=None)
@given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=3), ascending=st.booleans(), data=st.data())
def test_sorted_rows_are_numpys_and_ties_keep_their_order(shape: list[int], ascending: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    values = few_values(tuple(shape), 1)
    A = te.placeholder(shape, name="A")
    wanted = np.sort(values, axis)
    [found] = run([A], [values], topi.sort(A, axis, ascending))
    np.testing.assert_array_equal(found, wanted if ascending else np.flip(wanted, axis))
    [places] = run([A], [values], topi.argsort(A, axis=axis, is_ascend=ascending, dtype="int32"))
    np.testing.assert_array_equal(np.take_along_axis(values, places, axis), found)
    equal = np.diff(found, axis=axis) == 0
    assert (np.diff(places, axis=axis)[equal] > 0).all()


DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
)


@settings(max_examples=3, deadline=None)
@given(size=st.integers(1, 400), ascending=st.booleans(), seed=st.integers(0, 99), part=st.sampled_from([1, 7, 90]))
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_by_their_digits(dtype: str, size: int, ascending: bool, seed: int, part: int) -> None:
    """Elements of any bits, so negative ones, subnormal ones, infinities and NaN, with ties; both zeros are equal."""
    kind = to_numpy(dtype)
    bits = np.random.default_rng(seed).integers(0, 256, (2, size, kind.itemsize), "uint8")
    values = (bits & 1).view(kind)[..., 0] if dtype == "bool" else bits.view(kind)[..., 0]
    values[:, ::5] = values[:, -1:]
    values[:, 1::9], values[:, 8::9] = 0, kind.type(0) if dtype == "bool" else -kind.type(0)
    with np.errstate(invalid="ignore"):  # NaN of a kind that signals
        exact = values if kind.kind in "iub" else values.astype("float64")
    order = np.argsort(exact, axis=-1, kind="stable")
    if not ascending:
        order = size - 1 - np.flip(np.argsort(np.flip(exact, -1), axis=-1, kind="stable"), -1)
    part = min(part, size)
    A = te.placeholder(values.shape, dtype, name="A")
    [places] = run([A], [values], topi.argsort(A, is_ascend=ascending, dtype="int32"))
    np.testing.assert_array_equal(places, order)
    [found] = run([A], [values], topi.sort(A, is_ascend=ascending))
    np.testing.assert_array_equal(found.astype(exact.dtype), np.take_along_axis(exact, order, -1))
    [first, where] = run([A], [values], topi.topk(A, part, is_ascend=ascending, dtype="int32"))
    np.testing.assert_array_equal(where, order[:, :part])
    np.testing.assert_array_equal(first.view("uint8"), np.take_along_axis(values, order, -1)[:, :part].copy().view("uint8"))


def test_argsort_leaves_what_is_not_valid_in_place() -> None:
    values = np.array([[3, 1, 2, 0], [5, 4, 7, 6]], "float32")
    A, C = te.placeholder((2, 4), name="A"), te.placeholder((2,), "int32", name="C")
    [places] = run([A, C], [values, np.array([3, 0], "int32")], topi.argsort(A, C, dtype="int32"))
    np.testing.assert_array_equal(places, [[1, 2, 0, 3], [0, 1, 2, 3]])


@pytest.mark.parametrize(("kind", "number"), [("both", 2), ("values", 1), ("indices", 1)])
def test_topk_gives_the_first_of_the_sorted(kind: str, number: int) -> None:
    values = np.array([[3, 1, 2], [5, 4, 7]], "float32")
    A = te.placeholder((2, 3), name="A")
    found = run([A], [values], topi.topk(A, 2, ret_type=kind))
    expected = {"values": [[3, 2], [7, 5]], "indices": [[0, 2], [2, 0]]}
    assert len(found) == number
    for result, name in zip(found, ("values", "indices") if kind == "both" else (kind,), strict=True):
        np.testing.assert_array_equal(result, expected[name])
    [everything] = run([A], [values], topi.topk(A, 0, ret_type="values", is_ascend=True))
    np.testing.assert_array_equal(everything, np.sort(values))


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("size", [1, 2, 17, 300])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_a_handful_of_each_row(dtype: str, size: int, ascending: bool) -> None:
    """Rows with many equal elements, in order and against it; of equal ones the first come first."""
    rng = np.random.default_rng(size)
    mixed = rng.integers(-3, 4, (3, size)).astype(dtype)
    values = np.concatenate([mixed, np.sort(mixed[:1], 1), np.sort(mixed[:1], 1)[:, ::-1]])
    if dtype != "int8" and size > 1:
        values[0, ::2], values[1, -1] = np.nan, -0.0
    A = te.placeholder(values.shape, dtype, name="A")
    order = np.argsort(values, axis=-1, kind="stable")
    if not ascending:
        order = size - 1 - np.flip(np.argsort(np.flip(values, -1), axis=-1, kind="stable"), -1)
    for count in sorted({1, min(size, 5), min(size, 16), size}):
        [places] = run([A], [values], topi.topk(A, count, ret_type="indices", is_ascend=ascending, dtype="int32"))
        np.testing.assert_array_equal(places, order[:, :count])


def test_topk_names_what_it_may_return() -> None:
    with pytest.raises(DeclarationError, match="ret_type is 'all'; it takes 'both', 'values', 'indices'"):
        topi.topk(te.placeholder((2, 3)), ret_type="all")


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_is_numpys(right: bool) -> None:
    rows = np.sort(np.random.default_rng(0).integers(0, 9, (3, 6)).astype("float32"))
    wanted = np.random.default_rng(1).integers(-1, 10, (3, 4)).astype("float32")
    S, V = te.placeholder(rows.shape, name="S"), te.placeholder(wanted.shape, name="V")
    [found] = run([S, V], [rows, wanted], topi.searchsorted(S, V, right))
    side: Any = "right" if right else "left"
    np.testing.assert_array_equal(found, [np.searchsorted(row, values, side) for row, values in zip(rows, wanted, strict=True)])
    one = te.placeholder((6,), name="one")
    [shared] = run([one, V], [rows[0], wanted], topi.searchsorted(one, V, right, "int32"))
    np.testing.assert_array_equal(shared, np.searchsorted(rows[0], wanted, side))


@pytest.mark.parametrize(("length", "shape"), [(33, (3, 70)), (33, (3, 64)), (1, (3, 2)), (0, (3, 5))])
def test_values_are_searched_many_at_once(length: int, shape: tuple[int, int]) -> None:
    # 70 values are two blocks of 64, which overlap; of an empty row every place is 0
    rows = np.sort(few_values((3, length), 2) if length else np.zeros((3, 0), "float32"), axis=1)
    wanted = np.random.default_rng(3).integers(-1, 7, shape).astype("float32")
    S, V = te.placeholder(rows.shape, name="S"), te.placeholder(shape, name="V")
    [found] = run([S, V], [rows, wanted], topi.searchsorted(S, V, True))
    places = [np.searchsorted(row, values, "right") for row, values in zip(rows, wanted, strict=True)]
    np.testing.assert_array_equal(found, places)


@pytest.mark.parametrize("ascending", [False, True])
def test_unique_elements_with_first_places_inverse_and_counts(ascending: bool) -> None:
    values = np.array([3, 1, 2, 3, 9, 7, 1, 3], "int32")
    A = te.placeholder((8,), "int32", name="A")
    unique, first, inverse, [number], counts = run([A], [values], topi.unique(A, ascending, return_counts=True))
    expected, places, many = np.unique(values, return_index=True, return_counts=True)
    order = np.arange(5) if ascending else np.argsort(places)
    assert number == 5
    np.testing.assert_array_equal(unique[:5], expected[order])
    np.testing.assert_array_equal(first, [*places[order], 8, 8, 8])
    np.testing.assert_array_equal(counts, [*many[order], 0, 0, 0])
    np.testing.assert_array_equal(unique[inverse], values)


@pytest.mark.parametrize("rows", [2, 5, 7])
def test_argwhere_fills_the_room_that_it_is_given(rows: int) -> None:
    values = np.array([[1, 0, 2, 0], [0, 0, 3, 4], [5, 0, 0, 0]], "float32")
    A = te.placeholder((3, 4), name="A")
    [found] = run([A], [values], topi.argwhere(te.placeholder((rows, 2), "int32"), A))
    wanted = np.full((rows, 2), -1)
    wanted[: min(rows, 5)] = np.argwhere(values)[:rows]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums_and_products(axis: int | None, exclusive: bool) -> None:
    values = np.random.default_rng(0).integers(1, 4, (3, 5)).astype("int32")
    A = te.placeholder((3, 5), "int32", name="A")
    for operator, reference, first in ((topi.cumsum, np.cumsum, 0), (topi.cumprod, np.cumprod, 1)):
        [found] = run([A], [values], operator(A, axis, "int64", exclusive))
        wanted = reference(values, axis)
        if exclusive:
            along = 0 if axis is None else axis
            wanted = np.delete(np.insert(wanted, 0, first, along), -1, along)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted)


def test_a_scan_of_any_operator() -> None:
    values = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32")
    A = te.placeholder((8,), "int32", name="A")
    [found] = run([A], [values], topi.scanop(A, te.max, te.min_value("int32"), "running_max", axis=0))
    np.testing.assert_array_equal(found, np.maximum.accumulate(values))


@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize("size", [5, 64, 1001])
def test_parts_are_sorted_and_merged(parts: int, size: int) -> None:
    # Few values, so that runs end in equal keys, the least and the greatest among them, which stand for the ends of runs.
    keys = np.random.default_rng(size).choice(np.array([0, 1, 7, 1 << 20, (1 << 32) - 1], "uint32"), size)
    many = np.random.default_rng(size).integers(0, 1 << 32, size, "uint32")

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        memory = ib.allocate("uint32", (2 * size + 2,), "keys")
        with ib.for_range(0, size, "i") as i:
            memory[i + 1] = source[i]
        sort_by_parts(ib, memory, size, parts, lambda i, key: out.__setitem__(i, key))

    A = te.placeholder((size,), "uint32")
    made = in_loops([A.shape], [A], body, "sorted", ["uint32"])
    for array in (keys, many):
        np.testing.assert_array_equal(run([A], [array], made)[0], np.sort(array))


@pytest.mark.parametrize("cores", [1, 3, 4])
def test_a_long_row_is_sorted_by_all_cores(cores: int) -> None:
    row = few_values((40_001,), 1) * np.random.default_rng(0).choice(np.array([-1, 1], "float32"), 40_001)
    A = te.placeholder(row.shape)
    with tvm.target.Target(f"llvm -num-cores={cores}"):
        [found] = run([A], [row], topi.sort(A, 0, False))
    np.testing.assert_array_equal(found, np.sort(row)[::-1])
