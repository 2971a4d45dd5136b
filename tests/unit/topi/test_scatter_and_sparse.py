"""Writing by index, sparse products, diagonals and indexing by tensors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.contrib import sparse as sparse_arrays
from tensorexpr.errors import DeclarationError
from tensorexpr.te.reference import evaluate
from tests.operators import run as evaluated
from tests.unit.topi.test_orders import Array, run

JOINED: dict[str, Any] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}


def randoms(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random(shape).astype("float32")


@pytest.mark.parametrize("reduction", JOINED)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scattered_elements_join_in_order(axis: int, reduction: str) -> None:
    data, updates = randoms(4, 5, 6), randoms(3, 2, 4, seed=1)
    extent = data.shape[axis]
    indices = np.random.default_rng(2).integers(-extent, extent + 1, updates.shape)  # some are out of range
    wanted = data.copy()
    for place in np.ndindex(*updates.shape):
        at = list(place)
        at[axis] = int(indices[place])
        if at[axis] < extent:
            wanted[tuple(at)] = JOINED[reduction](wanted[tuple(at)], updates[place])
    D, P, U = te.placeholder(data.shape), te.placeholder(indices.shape, "int64"), te.placeholder(updates.shape)
    [found] = run([D, P, U], [data, indices, updates], topi.scatter_elements(D, P, U, axis, reduction))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("mode", JOINED)
def test_scattered_slices(mode: str) -> None:
    data, updates = randoms(4, 5, 6), randoms(3, 6, seed=1)
    indices = np.array([[0, 3, 0], [1, -1, 1]], "int32")
    wanted = data.copy()
    for n in range(3):
        at = (indices[0, n], indices[1, n])
        wanted[at] = JOINED[mode](wanted[at], updates[n])
    D, P, U = te.placeholder(data.shape), te.placeholder(indices.shape, "int32"), te.placeholder(updates.shape)
    [found] = run([D, P, U], [data, indices, updates], topi.scatter_nd(D, P, U, mode))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_unknown_reduction_is_refused() -> None:
    tensors: list[Any] = [te.placeholder((4,)), te.placeholder((4,), "int32"), te.placeholder((4,))]
    with pytest.raises(DeclarationError, match="no reduction 'average'; it takes update, add, mul, min, max"):
        topi.scatter_elements(tensors[0], tensors[1], tensors[2], reduction="average")


def test_dense_tensors_out_of_sparse_ones() -> None:
    S, V = te.placeholder((3, 2), "int32", name="S"), te.placeholder((3,), name="V")
    indices, values = np.array([[0, 1], [1, 3], [2, 0]], "int32"), np.array([5, 6, 7], "float32")
    wanted = np.full((3, 4), -1, "float32")
    wanted[tuple(indices.T)] = values
    [found] = run([S, V], [indices, values], topi.sparse_to_dense(S, (3, 4), V, -1.0))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("begin", "end", "strides"), [((1, 0), (4, 6), (2, 3)), ((4, 5), (0, -7), (-1, -2)), ((0, -3), (5, -1), (1, 1))])
def test_strided_set_writes_what_a_slice_is(begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> None:
    data = randoms(5, 6)
    part = tuple(slice(b, None if e == -7 else e, s) for b, e, s in zip(begin, end, strides, strict=True))
    new = randoms(*data[part].shape, seed=1)
    wanted = data.copy()
    wanted[part] = new
    bounds = [te.placeholder((2,), "int64") for _ in range(3)]
    A, V = te.placeholder(data.shape), te.placeholder(new.shape)
    [found] = run([A, V, *bounds], [data, new, *map(np.array, (begin, end, strides))], topi.strided_set(A, V, *bounds))
    np.testing.assert_array_equal(found, wanted)


def test_strided_set_behind_the_end_writes_nothing() -> None:
    data, new, bounds = randoms(5, 6), randoms(2, 6, seed=1), [te.placeholder((2,), "int64") for _ in range(3)]
    A, V = te.placeholder(data.shape), te.placeholder(new.shape)
    places = map(np.array, ((5, 0), (10, 6), (1, 1)))
    [found] = run([A, V, *bounds], [data, new, *places], topi.strided_set(A, V, *bounds))
    np.testing.assert_array_equal(found, data)


def test_a_permutation_is_inverted() -> None:
    P = te.placeholder((4,), "int64", name="P")
    np.testing.assert_array_equal(run([P], [np.array([2, 0, 3, 1])], topi.invert_permutation(P))[0], [1, 3, 0, 2])


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_eye_and_diagonals(k: int) -> None:
    np.testing.assert_array_equal(run([], [], topi.eye(4, 6, k, "int32"))[0], np.eye(4, 6, k, "int32"))
    data = randoms(2, 4, 6)
    length = len(np.diagonal(data[0], k))
    diagonal = randoms(2, length, seed=1)
    wanted = data.copy()
    for n in range(2):
        rows = np.arange(length) + max(-k, 0)
        wanted[n, rows, rows + k] = diagonal[n]
    D, V = te.placeholder(data.shape), te.placeholder(diagonal.shape)
    np.testing.assert_array_equal(run([D, V], [data, diagonal], topi.matrix_set_diag(D, V, k))[0], wanted)


def test_indexing_by_tensors_broadcasts() -> None:
    data, rows, columns = randoms(4, 5, 6), np.array([[0], [3]], "int32"), np.array([1, 4, 2], "int32")
    D, R, C = te.placeholder(data.shape), te.placeholder(rows.shape, "int32"), te.placeholder(columns.shape, "int32")
    np.testing.assert_array_equal(run([D, R, C], [data, rows, columns], topi.adv_index(D, [R, C]))[0], data[rows, columns])
    with pytest.raises(DeclarationError, match="don't broadcast"):
        topi.adv_index(D, [R, te.placeholder((3, 3), "int32")])


def test_sums_back_to_a_smaller_shape() -> None:
    data = randoms(2, 3, 4)
    D = te.placeholder(data.shape)
    for target in ((4,), (3, 1), (1, 1, 4), (2, 3, 4)):
        axes = tuple(n for n, extent in enumerate((1,) * (3 - len(target)) + target) if extent == 1)
        [found] = run([D], [data], topi.collapse_sum(D, target))
        np.testing.assert_allclose(found, data.sum(axes, keepdims=True).reshape(target), rtol=1e-5)
    with pytest.raises(DeclarationError, match="doesn't broadcast"):
        topi.collapse_sum(D, (2, 4))


def csr(matrix: Array) -> list[Array]:
    """data, indices and indptr of a matrix."""
    rows, columns = np.nonzero(matrix)
    begins = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))])
    return [matrix[rows, columns], columns.astype("int32"), begins.astype("int32")]


def sparse(*shape: int, seed: int = 0) -> Array:
    values = randoms(*shape, seed=seed)
    return np.where(values < 0.3, values, 0).astype("float32")


def test_products_of_dense_and_sparse_matrices() -> None:
    dense, weight = randoms(5, 16), sparse(12, 16)
    arrays = [dense, *csr(weight)]
    tensors: list[Any] = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    D, data, indices, begins = tensors
    np.testing.assert_allclose(run(tensors, arrays, topi.nn.sparse_dense(D, data, indices, begins))[0], dense @ weight.T, rtol=1e-5)
    [found] = run(tensors, arrays, topi.nn.sparse_dense(D, data, indices, begins, sparse_lhs=True))
    np.testing.assert_allclose(found, weight @ dense.T, rtol=1e-5)


def test_products_of_dense_and_blocked_matrices() -> None:
    dense, blocks = randoms(5, 16), randoms(3, 2, 4, seed=1)
    indices, begins = np.array([1, 3, 0], "int32"), np.array([0, 2, 2, 3], "int32")
    weight = np.zeros((6, 16), "float32")
    for number, (row, column) in enumerate(zip((0, 0, 2), indices, strict=True)):
        weight[2 * row : 2 * row + 2, 4 * column : 4 * column + 4] = blocks[number]
    arrays = [dense, blocks, indices, begins]
    tensors: list[Any] = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    np.testing.assert_allclose(run(tensors, arrays, topi.nn.sparse_dense(*tensors))[0], dense @ weight.T, rtol=1e-5)


def test_sparse_transposes_and_sums() -> None:
    matrix = sparse(7, 7)
    arrays = csr(matrix)
    tensors: list[Any] = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    for found, wanted in zip(run(tensors, arrays, topi.nn.sparse_transpose(*tensors)), csr(np.ascontiguousarray(matrix.T)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    D, dense = te.placeholder((7, 7)), randoms(7, 7, seed=1)
    np.testing.assert_allclose(run([D, *tensors], [dense, *arrays], topi.nn.sparse_add(D, *tensors))[0], dense + matrix, rtol=1e-6)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_convolutions_with_sparse_weights(layout: str) -> None:
    images, weight = randoms(2, 6, 5, 4), sparse(8, 36)
    taps = weight.reshape(8, 3, 3, 4)
    wanted = sum(np.einsum("nhwi,oi->nhwo", images[:, y : y + 4, x : x + 3], taps[:, y, x]) for y in range(3) for x in range(3))
    order = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)
    arrays = [np.ascontiguousarray(images.transpose(order)), *csr(weight)]
    tensors: list[Any] = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    D, data, indices, begins = tensors
    [found] = run(tensors, arrays, topi.nn.sparse_conv2d(D, data, indices, begins, layout=layout, kernel_size=3))
    np.testing.assert_allclose(found, np.transpose(wanted, order), rtol=1e-4)


def test_random_matrices_of_blocks() -> None:
    pytest.importorskip("scipy", reason="SciPy makes the matrix")
    from tensorexpr.topi.sparse.utils import random_bsr_matrix

    np.random.seed(7)
    made = random_bsr_matrix(8, 12, 2, 3, density=0.3, dtype="float32")
    dense = made.toarray()
    assert dense.shape == (8, 12) and dense.dtype == "float32" and made.data.shape == (5, 2, 3) and made.indices.dtype == "int32"
    assert np.count_nonzero(dense) == 30, "of 16 blocks 4.8, rounded up"
    np.random.seed(7)
    assert (random_bsr_matrix(8, 12, 2, 3, density=0.3, dtype="float32").toarray() == dense).all()
    with pytest.raises(DeclarationError, match="have to divide it"):
        random_bsr_matrix(8, 12, 3, 3, density=0.3, dtype="float32")
    with pytest.raises(DeclarationError, match="a number in"):
        random_bsr_matrix(8, 12, 2, 3, density=3, dtype="float32")


def test_empty_rows_of_sparse_tensors_are_filled() -> None:
    indices, values_ = np.array([[0, 1], [0, 3], [2, 0], [3, 1]], "int64"), np.array([1, 2, 3, 4], "float32")
    found = evaluated(
        lambda i, v, s, d: topi.sparse_fill_empty_rows(i, v, s, d, (7, 2), (7,), (5,)),
        indices,
        values_,
        np.array([5, 6], "int64"),
        np.array([9], "float32"),
    )
    assert found[0].tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0], [0, 0]]
    assert found[1].tolist() == [1, 2, 9, 3, 4, 9, 0]
    assert found[2].tolist() == [0, 1, 0, 0, 1]


def test_sparse_tensors_in_other_shapes() -> None:
    indices = np.array([[0, 0, 0], [0, 1, 3], [1, 2, 5]], "int32")
    made = evaluated(
        lambda i, old, new: topi.sparse_reshape(i, old, new, (3, 2), (2,)),
        indices,
        np.array([2, 3, 6], "int32"),
        np.array([9, -1], "int32"),
    )
    assert made[1].tolist() == [9, 4]
    wanted = np.stack(np.unravel_index(np.ravel_multi_index(tuple(indices.T), (2, 3, 6)), (9, 4)), 1)
    assert made[0].tolist() == wanted.tolist()


def test_places_of_a_condition_by_its_rank() -> None:
    condition = np.array([[1, 0, 1], [0, 0, 1]], "int32")
    found = evaluated(lambda c: topi.hybrid_argwhere_2d((4, 2), c), condition)
    assert found.tolist() == [[0, 0], [0, 2], [1, 2], [-1, -1]]
    with pytest.raises(DeclarationError, match="hybrid_argwhere_1d: condition has the shape"):
        topi.hybrid_argwhere_1d((4, 2), te.placeholder((2, 3)))


def test_sparse_matrices_times_dense_ones() -> None:
    matrix = np.array([[0, 2, 0], [0, 0, 0], [1, 0, -3], [0, 4, 5]], "float32")
    held = sparse_arrays.array(matrix)
    np.testing.assert_array_equal(held.numpy(), matrix)
    assert held.indptr.numpy().tolist() == [0, 1, 1, 3, 5]
    A = sparse_arrays.placeholder((4, 3), nonzeros=5, name="A")
    B, C, W = te.placeholder((3, 2), name="B"), te.placeholder((2,), name="C"), te.placeholder((2, 3), name="W")
    b, c, w = (np.arange(1, n * m + 1, dtype="float32").reshape(shape) for n, m, shape in ((3, 2, (3, 2)), (2, 1, (2,)), (2, 3, (2, 3))))
    parts = dict(zip((A.data, A.indices, A.indptr), (held.data.numpy(), held.indices.numpy(), held.indptr.numpy()), strict=True))
    given = {**parts, B: b, C: c, W: w}
    for made, wanted in (
        (topi.sparse.csrmm(A, B, C), matrix @ b + c),
        (topi.sparse.dense(A, W, C), matrix @ w.T + c),
        (topi.sparse.dense(W, A), w @ matrix.T),
    ):
        np.testing.assert_allclose(evaluate([made], given)[0], wanted)
    with pytest.raises(DeclarationError, match="one of data and weight"):
        topi.sparse.dense(W, W)
    with pytest.raises(DeclarationError, match="no sparse matrices of stype 'bsr'"):
        sparse_arrays.array(matrix, stype="bsr")
