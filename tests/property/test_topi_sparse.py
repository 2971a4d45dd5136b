"""topi's sparse products, sparse tensors and random words against NumPy and Python's integers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tensorexpr import topi

from .operator_draws import FLOATS, Values
from .topi_cases import Array, Case, Table, check_table, into

CASES: Table = {}
case = into(CASES)
WORD = 2**64


class Parts(NamedTuple):
    """What the operators read of a `contrib.sparse.placeholder`."""

    data: Any
    indices: Any
    indptr: Any


def compressed(d: Values, rows: int, columns: int, dtype: str, block: tuple[int, int] = ()) -> tuple[Array, tuple[Array, Array, Array]]:  # type: ignore[assignment]
    """A dense matrix of rows x columns elements or blocks, some rows without any, and its parts."""
    kept = d.rng.random((rows, columns)) < d.of((0.0, 0.4, 1.0))
    counts = kept.sum(1)
    data = d.values((int(kept.sum()), *block), dtype, special=False)
    at = np.argwhere(kept)
    height, width = block or (1, 1)
    dense = np.zeros((rows * height, columns * width), data.dtype)
    for n, (i, j) in enumerate(at):
        dense[i * height : (i + 1) * height, j * width : (j + 1) * width] = data[n]
    return dense, (data, at[:, 1].astype("int32"), np.concatenate([[0], np.cumsum(counts)]).astype("int32"))


@case("csrmm")
@case("csrmv")
def _csrmm(d: Values) -> Case:
    rows, inner, is_vector, has_bias, dtype = d.number(1, 5), d.number(1, 5), d.coin(), d.coin(), d.of(FLOATS[:2])
    columns = 1 if is_vector else d.number(1, 4)
    dense, parts = compressed(d, rows, inner, dtype)
    b, c = d.values((inner, columns), dtype, special=False), d.values((columns,), dtype, special=False)
    product = topi.sparse.csrmv if is_vector else topi.sparse.csrmm
    wanted = dense @ b + (c if has_bias else 0)
    return Case(lambda v, i, p, x, *y: product(Parts(v, i, p), x, *y), (*parts, b, *[c] * has_bias), wanted)


@case("csr_product")
@case("sparse_dense_sp_rhs")
@case("sparse_dense_sp_lhs")
@case("sparse_dense")
def _sparse_dense(d: Values) -> Case:
    m, rows, inner, dtype = d.number(1, 4), d.number(1, 4), d.number(1, 4), d.of((*FLOATS[:2], "int32"))
    block: Any = d.of(((), (), (2, 1), (1, 3), (2, 2)))
    weight, parts = compressed(d, rows, inner, dtype, block)
    x = d.values((m, weight.shape[1]), dtype, special=False)
    if not block and d.coin():
        return Case(topi.sparse.csr_product, (*parts, np.ascontiguousarray(x.T)), weight @ x.T)
    if d.coin():
        return Case(topi.nn.sparse_dense_sp_rhs, (x, *parts), x @ weight.T)
    if d.coin():
        return Case(topi.nn.sparse_dense_sp_lhs, (*parts, x), weight @ x.T)
    left = d.coin()
    return Case(lambda x, *t: topi.nn.sparse_dense(x, t[0], t[1], t[2], left), (x, *parts), weight @ x.T if left else x @ weight.T)


@case("sparse_transpose")
def _transpose(d: Values) -> Case:
    n = d.number(1, 5)
    _, (data, indices, indptr) = compressed(d, n, n, d.of((*FLOATS[:2], "int32")))
    at = np.lexsort((np.repeat(np.arange(n), np.diff(indptr)), indices))
    begins = np.concatenate([[0], np.bincount(indices, minlength=n).cumsum()])
    wanted = [data[at], np.repeat(np.arange(n), np.diff(indptr))[at], begins]
    return Case(topi.nn.sparse_transpose, (data, indices, indptr), wanted)


@case("sparse_add")
def _add(d: Values) -> Case:
    rows, columns, dtype = d.number(1, 4), d.number(1, 4), d.of((*FLOATS[:2], "int32"))
    sparse, parts = compressed(d, rows, columns, dtype)
    dense = d.values((rows, columns), dtype, special=False)
    return Case(topi.nn.sparse_add, (dense, *parts), dense + sparse)


@case("sparse_conv2d")
def _sparse_conv(d: Values) -> Case:
    layout, k, dtype = d.of(("NHWC", "NCHW")), d.of((1, 3)), d.of(FLOATS[:2])
    batch, channels, height, width = d.number(1, 2), d.of((1, 2, 4)), d.number(k, 5), d.number(k, 5)
    block: Any = d.of(((), (2, 1), (3, channels)))
    inner = k * k * channels // (block[1] if block else 1)
    weight, parts = compressed(d, d.number(1, 3), inner, dtype, block)
    x = d.values((batch, height, width, channels), dtype, special=False)
    seen = np.lib.stride_tricks.sliding_window_view(x, (k, k), (1, 2))
    wanted = np.einsum("nyxcab,oabc->nyxo", seen, weight.reshape(-1, k, k, channels))
    order = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)
    data = np.ascontiguousarray(x.transpose(order))
    return Case(lambda x, *t: topi.nn.sparse_conv2d(x, t[0], t[1], t[2], layout, k), (data, *parts), wanted.transpose(order))


@case("sparse_reshape")
def _reshape(d: Values) -> Case:
    old, dtype = d.shape(1, 3, 1), d.of(("int32", "int64"))
    total = int(np.prod(old))
    divisors = [n for n in range(1, total + 1) if total % n == 0]
    first = d.of(divisors)
    second = d.of([n for n in divisors if total // first % n == 0])
    new = [first, second, total // first // second][: d.of((3, 3, 1))] if d.coin() else [first, total // first]
    new = [total] if int(np.prod(new)) != total else new
    flat = np.sort(d.rng.choice(total, d.number(0, min(4, total)), replace=False))
    places = np.stack(np.unravel_index(flat, old), 1).astype(dtype).reshape(-1, len(old))
    asked = list(new)
    if d.coin():
        asked[d.number(0, len(new) - 1)] = -1
    wanted = [np.stack(np.unravel_index(flat, new), 1), np.array(new)]
    arrays = places, np.array(old, dtype), np.array(asked, dtype)
    return Case(lambda i, a, b: topi.sparse_reshape(i, a, b, (len(flat), len(new)), (len(new),)), arrays, wanted)


@case("sparse_fill_empty_rows")
def _fill(d: Values) -> Case:
    rows, columns, rank, dtype = d.number(0, 4), d.number(1, 3), d.of((1, 2)), d.of(("int32", "int64"))
    kept = np.argwhere(d.rng.random((rows, *[columns] * (rank - 1))) < d.of((0.0, 0.4, 1.0))).reshape(-1, rank)
    values, default = d.values((len(kept),), "float32", special=False), d.values((1,), "float32", special=False)
    empty = [row for row in range(rows) if not (kept[:, 0] == row).any()]
    every = sorted(
        [(*at, v) for at, v in zip(kept.tolist(), values, strict=True)] + [(row, *[0] * (rank - 1), default[0]) for row in empty]
    )
    room = len(every) + d.number(0, 2)
    indices, filled = np.zeros((room, rank)), np.zeros(room)
    for n, row in enumerate(every):
        indices[n], filled[n] = row[:-1], row[-1]
    wanted = [indices, filled, np.isin(np.arange(rows), empty)]
    arrays = kept.astype(dtype), values, np.array([rows, *[columns] * (rank - 1)], dtype), default
    return Case(lambda i, v, s, e: topi.sparse_fill_empty_rows(i, v, s, e, (room, rank), (room,), (rows,)), arrays, wanted)


ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))  # Salmon et al. 2011, table 2


def threefry(key: list[int], counter: list[int]) -> list[int]:
    """Threefry-4x64-20, whose second words are xored with twice the sum, as TVM's are."""
    keys = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = list(counter)
    for turn in range(20):
        if turn % 4 == 0:
            x = [(x[n] + keys[(turn // 4 + n) % 5] + (turn // 4 if n == 3 else 0)) % WORD for n in range(4)]
        for (i, j), by in zip(((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1)), ROTATIONS[turn % 8], strict=True):
            x[i] = (x[i] + x[j]) % WORD
            x[j] = ((x[j] << by | x[j] >> 64 - by) % WORD) ^ ((x[i] + x[j]) % WORD)
    return x


def words_of(state: list[int], size: int) -> list[int]:
    """Blocks count up all words of the counter, a last one that isn't whole stands where the next call would begin: TVM's order."""
    key, counter, whole = state[:4], state[4:8], size // 4
    blocks = [[(word + n) % WORD for word in counter] for n in range(whole)]
    rest = [[*counter[:3], counter[3] + 4 * whole]] if size % 4 else []
    return [word for block in [*blocks, *rest] for word in threefry(key, block)][:size]


def a_state(d: Values) -> list[int]:
    place = d.number(0, 66)
    path = [0, 0]
    for n in range(place):
        path[n // 64] |= d.number(0, 1) << 63 - n % 64
    mark = [0, 0]
    mark[place // 64] = 1 << 63 - place % 64
    return [*(int(n) for n in d.rng.integers(0, WORD, 4, dtype="uint64")), *path, 0, d.of((0, 4, 2**40)), *mark]


@case("threefry_generate")
def _generate(d: Values) -> Case:
    state, shape = a_state(d), d.shape(1, 2, 1)
    size = int(np.prod(shape))
    after = [*state[:6], 0, state[7] + 4 * -(-size // 4), *state[8:]]
    wanted = [np.array(after, "uint64"), np.array(words_of(state, size), "uint64").reshape(shape)]
    return Case(lambda g: topi.random.threefry_generate(g, shape), (np.array(state, "uint64"),), wanted)


@case("threefry_split")
def _split(d: Values) -> Case:
    state = a_state(d)
    mark = (state[8] << 64 | state[9]) >> 1
    left = [*state[:8], mark >> 64, mark % WORD]
    right = [*state[:4], state[4] | state[8], state[5] | state[9], *state[6:8], mark >> 64, mark % WORD]
    if state[8] == 0:  # of no more than 65 places: the path becomes a key
        left = [*threefry(state[:4], state[4:8]), *[0] * 4, 1 << 62, 0]
        right = [*left[:4], 1 << 63, *left[5:]]
    wanted = [np.array(one, "uint64") for one in (left, right)]
    return Case(topi.random.threefry_split, (np.array(state, "uint64"),), wanted)


@case("multinomial")
def _multinomial(d: Values) -> Case:
    leading, classes, count = d.shape(0, 2, 1), d.number(1, 5), d.number(1, 5)
    state, probs = a_state(d), d.values((*leading, classes), "float32", -0.5, 1, special=False)
    probs[..., d.number(0, classes - 1)] = 1
    size = int(np.prod(leading)) * count
    drawn = np.array([((word % 2**32) >> 9) / 2**23 for word in words_of(state, size)]).reshape(-1, count)
    parts = np.maximum(probs, 0).reshape(-1, classes).astype(float)
    ends = np.cumsum(parts / parts.sum(1, keepdims=True), 1)
    wanted = np.array([[np.searchsorted(ends[r], u * ends[r, -1], "right") for u in row] for r, row in enumerate(drawn)], "int32")
    after = [*state[:6], 0, state[7] + 4 * -(-size // 4), *state[8:]]
    expected = [np.array(after, "uint64"), wanted.reshape(*leading, count)]
    return Case(lambda g, p: topi.random.multinomial(g, p, count), (np.array(state, "uint64"), probs), expected)


@pytest.mark.parametrize("name", CASES)
def test_sparse_and_random(name: str) -> None:
    check_table(CASES, name)
