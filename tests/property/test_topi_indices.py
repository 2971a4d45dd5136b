"""topi's operators that read and write where tensors or masks say, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import topi
from tensorexpr.topi.rows import in_loops

from .operator_draws import ALL, FLOATS, NUMBERS, SIGNED, Values
from .topi_cases import Array, Case, Table, check, check_table, index, into

CASES: Table = {}
case = into(CASES)
JOINED: dict[str, Any] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": min,
    "max": max,
    "mean": lambda old, new: (old + new) / 2 if isinstance(old, np.floating) else int((int(old) + int(new)) / 2),
}


@case("gather_nd")
def _gather_nd(d: Values) -> Case:
    shape = d.shape(1, least=1)
    batch = d.number(0, len(shape) - 1)
    count = d.number(0, len(shape) - batch)
    points = (*shape[:batch], *d.shape(0, 2))
    x, dtype = d.values(shape, d.of(ALL), special=False), d.of(SIGNED)
    own = [d.rng.integers(-n, n, points) for n in shape[batch : batch + count]]
    places = np.array(own, dtype).reshape(count, *points)
    wanted = np.empty((*points, *shape[batch + count :]), x.dtype)
    for at in np.ndindex(*points):
        wanted[at] = x[index(*at[:batch], *places[index(slice(None), *at)])]
    return Case(lambda a, i: topi.gather_nd(a, i, batch), (x, places), wanted)


@case("one_hot")
def _one_hot(d: Values) -> Case:
    shape, depth, dtype = d.shape(), d.number(0, 4), d.of(NUMBERS)
    axis, on, off = d.axis(len(shape) + 1), d.number(0, 3), d.number(0, 3)
    places = d.values(shape, d.of(SIGNED), -2, 4)
    wanted = np.where(np.expand_dims(places, axis) == np.moveaxis(np.arange(depth).reshape(-1, *[1] * len(shape)), 0, axis), on, off)
    return Case(lambda i: topi.one_hot(i, on, off, depth, axis, dtype), (places,), wanted)


@case("reverse_sequence")
def _reverse(d: Values) -> Case:
    shape = d.shape(2)
    along = d.number(0, len(shape) - 1)
    batch = d.of([n for n in range(len(shape)) if n != along])
    x, lengths = d.values(shape, d.of(ALL), special=False), d.values((shape[batch],), d.of(SIGNED), 0, shape[along])
    wanted = x.copy()
    for b, n in enumerate(lengths):
        own = np.moveaxis(wanted, (batch, along), (0, 1))[b]
        own[:n] = own[:n][::-1].copy()
    negative = [n - len(shape) if d.coin() else n for n in (along, batch)]
    return Case(lambda a, n: topi.reverse_sequence(a, n, *negative), (x, lengths), wanted)


@case("sequence_mask")
def _mask(d: Values) -> Case:
    shape, axis, value = d.shape(2), d.number(0, 1), d.number(0, 5)
    x, lengths = d.values(shape, d.of(NUMBERS), special=False), d.values((shape[1 - axis],), d.of(SIGNED), -1, 5)
    steps = np.arange(shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
    valid = steps < (lengths[None, :] if axis == 0 else lengths[:, None])
    wanted = np.where(valid.reshape(*shape[:2], *[1] * (len(shape) - 2)), x, np.array(value).astype(x.dtype))
    return Case(lambda a, n: topi.sequence_mask(a, n, value, axis), (x, lengths), wanted)


@case("scatter_elements")
def _scatter_elements(d: Values) -> Case:
    shape, kind, dtype = d.shape(1), d.of(list(JOINED)), d.of((*FLOATS[:2], *SIGNED))
    axis, points = d.axis(len(shape)), tuple(d.number(0, n) for n in shape)
    x, updates = (d.values(one, dtype, special=False) for one in (shape, points))
    extent = shape[axis]
    places = d.rng.integers(-extent - 1, extent + 2, points).astype(d.of(SIGNED))
    wanted = x.copy()
    for at in np.ndindex(*points):
        to = list(at)
        to[axis] = int(places[at])
        if -extent <= to[axis] < extent:
            wanted[tuple(to)] = JOINED[kind](wanted[tuple(to)], updates[at])
    return Case(lambda a, i, u: topi.scatter_elements(a, i, u, axis, kind), (x, places, updates), wanted)


@case("scatter_nd")
def _scatter_nd(d: Values) -> Case:
    shape, kind, dtype = d.shape(1), d.of(list(JOINED)), d.of((*FLOATS[:2], *SIGNED))
    count, points = d.number(0, len(shape)), d.shape(0, 2)
    x, updates = d.values(shape, dtype, special=False), d.values((*points, *shape[count:]), dtype, special=False)
    own = [d.rng.integers(-n - 1, n + 2, points) for n in shape[:count]]
    places = np.array(own, d.of(SIGNED)).reshape(count, *points)
    wanted = x.copy()
    for at in np.ndindex(*points):
        to = tuple(int(n) for n in places[index(slice(None), *at)])
        if all(-n <= one < n for one, n in zip(to, shape, strict=False)):
            for rest in np.ndindex(*shape[count:]):
                wanted[index(*to, *rest)] = JOINED[kind](wanted[index(*to, *rest)], updates[index(*at, *rest)])
    return Case(lambda a, i, u: topi.scatter_nd(a, i, u, kind), (x, places, updates), wanted)


@case("strided_set")
def _strided_set(d: Values) -> Case:
    shape, dtype, index = d.shape(1), d.of(NUMBERS), d.of(("int32", "int64"))
    count = d.number(1, len(shape))
    begin, end, step = (
        np.array([d.of(choice) for _ in range(count)], index) for choice in ((0, 1, -2, 7, -9), (9, 2, -1, 0, -9), (1, 2, -1, -2))
    )
    has_steps = d.coin()
    parts = tuple(
        slice(b, None if s < 0 and e < -8 else e, s) for b, e, s in zip(begin, end, step if has_steps else [1] * count, strict=True)
    )
    x = d.values(shape, dtype, special=False)
    part = x[parts].shape
    if 0 in part:
        new = d.values(tuple(max(1, n) for n in part), dtype, special=False)
        return Case(topi.strided_set, (x, new, begin, end, *[step] * has_steps), x)
    new, wanted = d.values(part, dtype, special=False), x.copy()
    wanted[parts] = new
    return Case(topi.strided_set, (x, new, begin, end, *[step] * has_steps), wanted)


@case("sparse_to_dense")
def _sparse_to_dense(d: Values) -> Case:
    rank, dtype = d.number(0, 3), d.of(NUMBERS)
    shape = d.shape(max(rank, 1), max(rank, 1), 1)
    points = () if rank == 0 else (d.number(0, 4),)
    own = np.stack([d.rng.integers(0, n, points) for n in shape], -1).astype("int32")
    places = own[..., 0] if rank == 0 or (len(shape) == 1 and d.coin()) else own
    values = d.values(points if d.coin() else (), dtype, special=False)
    default = d.values((), dtype, special=False)
    wanted = np.full(shape, default)
    for n in np.ndindex(*points):
        wanted[tuple(own[n])] = values[n if values.ndim else ()]
    if d.coin():
        return Case(lambda i, v, e: topi.sparse_to_dense(i, shape, v, e), (places, values, default), wanted)
    return Case(lambda i, v: topi.sparse_to_dense(i, shape, v, default.item()), (places, values), wanted)


@case("invert_permutation")
def _invert(d: Values) -> Case:
    order = d.rng.permutation(d.number(0, 6)).astype(d.of(SIGNED))
    return Case(topi.invert_permutation, (order,), np.argsort(order))


@case("adv_index")
def _adv_index(d: Values) -> Case:
    shape, common = d.shape(1, 3, 1), d.shape(0, 2)
    x = d.values(shape, d.of(ALL), special=False)
    own = tuple(d.rng.integers(-n, n, d.pair(common)).astype(d.of(SIGNED)) for n in shape[: d.number(1, len(shape))])
    return Case(lambda a, *i: topi.adv_index(a, i), (x, *own), x[own])


@case("matrix_set_diag")
def _set_diag(d: Values) -> Case:
    batch, rows, columns = d.shape(0, 1), d.number(1, 4), d.number(1, 4)
    low = d.number(1 - rows, columns - 1)
    high = d.number(low, columns - 1)
    align, dtype = d.of(("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")), d.of(NUMBERS)
    x = d.values((*batch, rows, columns), dtype, special=False)
    lengths = {k: min(columns - k, rows) if k >= 0 else min(rows + k, columns) for k in range(low, high + 1)}
    longest = max(lengths.values())
    is_one = low == high and d.coin()
    diagonal = d.values((*batch, *[high - low + 1] * (not is_one), longest), dtype, special=False)
    wanted = x.copy()
    for k, length in lengths.items():
        right = align.split("_")[0 if k >= 0 else 1] == "RIGHT"
        for n in range(length):
            place = n + (longest - length if right else 0)
            wanted[..., n - min(k, 0), n + max(k, 0)] = diagonal[..., place] if is_one else diagonal[..., high - k, place]
    return Case(lambda a, b: topi.matrix_set_diag(a, b, low if is_one else (low, high), align), (x, diagonal), wanted)


@case("trilu")
def _trilu(d: Values) -> Case:
    x, k, upper = d.values(d.shape(2), d.of(ALL), special=False), d.number(-4, 4), d.coin()
    return Case(lambda a: topi.trilu(a, k, upper), (x,), np.triu(x, k) if upper else np.tril(x, k))


@case("sliding_window")
def _sliding(d: Values) -> Case:
    shape = d.shape(1, 3, 1)
    axis = d.axis(len(shape))
    rolled = shape[axis:]
    window, steps = tuple(d.number(1, n) for n in rolled), tuple(d.number(1, 3) for _ in rolled)
    x = d.values(shape, d.of(ALL), special=False)
    seen = np.lib.stride_tricks.sliding_window_view(x, window, tuple(range(len(shape) - len(rolled), len(shape))))
    parts = (*[slice(None)] * (len(shape) - len(rolled)), *(slice(None, None, s) for s in steps))
    return Case(lambda a: topi.sliding_window(a, axis, window, steps), (x,), seen[parts])


@case("ndarray_size")
def _size(d: Values) -> Case:
    x, dtype = d.values(d.shape(), d.of(ALL)), d.of(("int32", "int64", "float32"))
    return Case(lambda a: topi.ndarray_size(a, dtype), (x,), np.array(x.size))


@case("expand_like")
def _expand_like(d: Values) -> Case:
    like = d.values(d.shape(1), "float32")
    places = sorted({d.number(0, like.ndim - 1) for _ in range(d.number(0, 2))})
    x = d.values(tuple(n for k, n in enumerate(like.shape) if k not in places), d.of(ALL), special=False)
    axes = [n - like.ndim if d.coin() else n for n in places]
    return Case(lambda a, b: topi.expand_like(a, b, axes), (x, like), np.broadcast_to(np.expand_dims(x, places), like.shape))


@case("hybrid_argwhere")
def _argwhere(d: Values) -> Case:
    rank = d.number(1, 5)
    shape = tuple(d.number(1, 3) for _ in range(rank))
    x = d.values(shape, d.of(("int32", "float32", "bool")), -1, 1, special=False)
    found = np.argwhere(x)
    room = len(found) + d.number(0, 2)
    wanted = np.full((room, rank), -1)
    wanted[: len(found)] = found
    return Case(lambda c: getattr(topi, f"hybrid_argwhere_{rank}d")((room, rank), c), (x,), wanted)


@case("binary_search")
def _binary_search(d: Values) -> Case:
    row, right = np.sort(d.values((d.number(0, 6),), "int32", -3, 3)), d.coin()
    wanted = d.values((d.number(0, 5),), "int32", -4, 4)

    def make(sequence: Any, values: Any) -> Any:
        def body(ib: Any, ins: Any, outs: Any) -> None:
            value, out = ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, values.shape[0], "i") as i:
                out[i] = topi.binary_search(ib, 0, sequence.shape[0], ins[0], value[i], right, "int32")

        return in_loops([values.shape], [sequence, values], body, "search", ["int32"])[0]

    return Case(make, (row, wanted), np.searchsorted(row, wanted, "right" if right else "left"))


@pytest.mark.parametrize("name", CASES)
def test_indices(name: str) -> None:
    check_table(CASES, name)


def updated(data: Array, at: Array, new: Array) -> Array:
    made = np.array(data)
    made[at] = new
    return made


LONG = np.arange(300, dtype="float32")
NARROW = np.array([5, 100, -1, 0, 127, -128], "int8")
NAMED: dict[str, Case] = {
    # Indices of a narrow dtype were compared with extents cut to it: 300 is 44 in int8.
    "take": Case(topi.take, (LONG, NARROW), LONG[np.maximum(NARROW, 0)]),
    "gather": Case(lambda a, i: topi.gather(a, 0, i), (LONG, NARROW), LONG[NARROW]),
    "gather_nd": Case(topi.gather_nd, (LONG, NARROW[None]), LONG[NARROW]),
    "adv_index": Case(lambda a, i: topi.adv_index(a, [i]), (LONG, NARROW), LONG[NARROW]),
    "one_hot": Case(lambda i: topi.one_hot(i, 1, 0, 300, -1, "int32"), (NARROW,), NARROW[:, None] == np.arange(300)),
    "sequence_mask": Case(
        topi.sequence_mask, (LONG[:, None], np.array([100], "int8")), np.where(np.arange(300) < 100, LONG, 0).astype("float32")[:, None]
    ),
    "scatter_elements": Case(topi.scatter_elements, (LONG, NARROW, -LONG[:6]), updated(LONG, NARROW, -LONG[:6])),
    # Nothing is divided by the extents of an empty tensor.
    "scatter_nd of nothing": Case(
        lambda a, i, u: topi.scatter_nd(a, i, u, "add"),
        (np.zeros((3, 0), "float32"), np.zeros((1, 2), "int32"), np.zeros((2, 0), "float32")),
        np.zeros((3, 0)),
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_cases(name: str) -> None:
    check(NAMED[name])
