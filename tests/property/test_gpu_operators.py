"""Operators with kernels of their own on GPUs: on the emulator, which finds races, and as threads of a CPU they give what NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.spaces import default_schedule
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir import intrin
from tensorexpr.tir.arithmetic import convert
from tensorexpr.topi import gpu_scan, gpu_sort

Array = NDArray[Any]
TARGET = tvm.target.Target("cuda -arch=sm_80")
FEW = settings(deadline=None, derandomize=True, max_examples=2, phases=[Phase.generate, Phase.explicit])


def on_gpu(make: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    """What the operator computes on the emulator, after the same as threads on this machine."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(arrays)]
    with TARGET:
        made = make(*inputs)
    outputs = list(made) if isinstance(made, list) else [made]
    args = [*inputs, *outputs]
    found: list[list[Array]] = []
    for target, device in (("llvm", tvm.cpu()), (TARGET, emulator())):
        results = [tvm.nd.empty([int(extent) for extent in out.shape], out.dtype, device) for out in outputs]
        tvm.build(default_schedule(args, TARGET), args, target)(*(tvm.nd.array(a, device) for a in arrays), *results)
        found.append([result.numpy() for result in results])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    return found[-1]


def rows(draw: st.DrawFn, dtype: str) -> tuple[Array, int]:
    """Few different values, with NaN among floats, so that ties are common; and an axis."""
    shape = draw(st.sampled_from([(1, 70), (3, 5), (37, 2), (2, 3, 33), (9,), (2, 0)]))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 6, shape).astype(dtype)
    if dtype.startswith("float"):
        values[values == 5] = np.nan
        values[values == 4] = -0.0
    axis = draw(st.integers(0, len(shape) - 1))
    return values, axis


def ordered(x: Array, axis: int, is_ascend: bool) -> Array:
    """The stable order in which NaN is larger than every number."""
    ranks = np.searchsorted(np.unique(x), x) if x.size else np.zeros(x.shape, int)
    return np.argsort(ranks if is_ascend else -ranks, axis=axis, kind="stable")


@FEW
@given(st.sampled_from(["float32", "int8", "int64", "float16"]), st.booleans(), st.sampled_from((16, 2048)), st.integers(1, 4), st.data())
def test_orders(dtype: str, is_ascend: bool, tile: int, k: int, data: st.DataObject) -> None:
    x, axis = data.draw(st.composite(rows)(dtype))
    order = ordered(x, axis, is_ascend)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_sort, "_TILE", tile)  # rows of two tiles and more are as long as the emulator has time for
        (found,) = on_gpu(lambda a: topi.argsort(a, axis=axis, is_ascend=is_ascend, dtype="int32"), [x])
        np.testing.assert_array_equal(found, order)
        if x.shape[axis] >= k:
            values, places = on_gpu(lambda a: topi.topk(a, k, axis, "both", is_ascend, "int32"), [x])
            first = np.take(order, range(k), axis)
            np.testing.assert_array_equal(places, first)
            np.testing.assert_array_equal(values, np.take_along_axis(x, first, axis))


def test_elements_that_take_no_part_stay() -> None:
    shape, rng = (3, 40), np.random.default_rng(0)
    x, count = rng.integers(0, 4, shape).astype("float32"), rng.integers(0, shape[1] + 1, shape[0]).astype("int32")
    (found,) = on_gpu(lambda a, n: topi.argsort(a, n, 1, True, "int32"), [x, count])
    for row, values, n in zip(found, x, count, strict=True):
        np.testing.assert_array_equal(row, [*np.argsort(values[:n], kind="stable"), *range(n, shape[1])])


@FEW
@given(st.sampled_from([(1, 300), (2, 3, 150), (140, 2), (2, 0)]), st.booleans(), st.booleans(), st.data())
def test_scans(shape: tuple[int, ...], exclusive: bool, in_parts: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = np.random.default_rng(0).integers(-4, 5, shape).astype("int32")

    def last(a: Any) -> Any:  # joins what doesn't commute: the last element that isn't 0
        return topi.scan.scanop(a, lambda old, new: intrin.select(convert(new == 0), old, new), 0, "last", axis, None, exclusive)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_scan, "_THREADS", 32)
        patch.setattr(gpu_scan, "_BLOCKS", 216 if in_parts else 1)
        (sums,) = on_gpu(lambda a: topi.cumsum(a, axis, None, exclusive), [x])
        (found,) = on_gpu(last, [x])
    np.testing.assert_array_equal(sums, np.cumsum(x, axis) - (x if exclusive else 0))
    places = np.maximum.accumulate(np.where(np.moveaxis(x, axis, -1) != 0, np.arange(shape[axis]), -1), -1)
    values = np.where(places >= 0, np.take_along_axis(np.moveaxis(x, axis, -1), np.maximum(places, 0), -1), 0)
    if exclusive:
        values = np.concatenate([np.zeros_like(values[..., :1]), values[..., :-1]], -1)[..., : shape[axis]]
    np.testing.assert_array_equal(found, np.moveaxis(values, -1, axis))


def test_updates_of_one_place_come_in_order() -> None:
    rng = np.random.default_rng(3)
    data, at = rng.standard_normal((5, 2)).astype("float32"), rng.integers(-6, 6, (1, 40)).astype("int32")
    new = rng.standard_normal((40, 2)).astype("float32")
    added, last = data.copy(), data[:, :1].copy()
    for place, update in zip(at[0], new, strict=True):
        if -5 <= place < 5:
            added[place] += update
            last[place] = update[:1]
    (found,) = on_gpu(lambda a, i, u: topi.scatter_nd(a, i, u, "add"), [data, at, new])
    np.testing.assert_array_equal(found, added)
    given = [data[:, :1].copy(), at.T.copy(), new[:, :1].copy()]
    (found,) = on_gpu(lambda a, i, u: topi.scatter_elements(a, i, u, 0, "update"), given)
    np.testing.assert_array_equal(found, last)


def test_places_where_it_holds() -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 15)).astype("bool")
    wanted = np.argwhere(x)
    (found,) = on_gpu(lambda a: topi.argwhere((x.size + 1, x.ndim), a), [x])
    np.testing.assert_array_equal(found[: len(wanted)], wanted)
    assert (found[len(wanted) :] == -1).all()
