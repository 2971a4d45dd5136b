"""3 x 3 convolutions by minimal filtering, with weights of tiles: as their definition, of bytes to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi.nn.winograd_tiles import conv2d_winograd_tiles, weights_of_tiles
from tensorexpr.topi.utils import get_const_int
from tests.effort import share_of

Array = Any


def _weights(dtype: str, inputs: int, outputs: int, rng: np.random.Generator) -> Array:
    if dtype == "float32":
        return rng.standard_normal((3, 3, inputs, outputs)).astype(dtype)
    return rng.integers(-128, 128, (3, 3, inputs, outputs)).astype("int8")


def _data(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if dtype == "float32":
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def _expected(data: Array, weight: Array, padding: tuple[int, int, int, int]) -> Array:
    top, left, bottom, right = padding
    wide = data.astype("float64" if data.dtype.kind == "f" else "int64")
    wide = np.pad(wide, ((0, 0), (top, bottom), (left, right), (0, 0)))
    rows, columns = wide.shape[1] - 2, wide.shape[2] - 2
    return sum(wide[:, r : r + rows, s : s + columns] @ weight[r, s].astype(wide.dtype) for r in range(3) for s in range(3))


def _found(data: Array, weight: Array, padding: tuple[int, int, int, int], target: str = "llvm") -> Array:
    made = weights_of_tiles(weight)
    x, w = (te.placeholder(one.shape, str(one.dtype), name) for one, name in ((data, "x"), (made, "w")))
    y = conv2d_winograd_tiles(x, w, padding)
    out = tvm.nd.array(np.zeros([get_const_int(n) for n in y.shape], y.dtype))
    tvm.build([x, w, y], target=target, schedule="auto")(tvm.nd.array(data), tvm.nd.array(made), out)
    return out.numpy()


SIDES = st.integers(1, 9)


@settings(max_examples=share_of(20), deadline=None, derandomize=True)
@given(
    st.sampled_from(["uint8", "int8", "float32"]), st.integers(1, 2), SIDES, SIDES, st.integers(1, 20), st.integers(1, 37),
    st.tuples(*[st.integers(0, 2)] * 4), st.sampled_from(["llvm", "llvm -num-cores 7"]), st.integers(0, 9),
)  # fmt: skip
@example("uint8", 1, 14, 14, 32, 48, (1, 1, 1, 1), "llvm -num-cores 2", 0)  # by rows of tiles
@example("float32", 2, 13, 7, 16, 24, (1, 1, 1, 1), "llvm -num-cores 2", 0)
@example("float32", 1, 6, 6, 16, 32, (1, 1, 1, 1), "llvm -num-cores 16", 0)  # panels outside
def test_results_are_those_of_the_definition(
    dtype: str, n: int, height: int, width: int, inputs: int, outputs: int, padding: tuple[int, int, int, int], target: str, seed: int
) -> None:
    top, left, bottom, right = padding
    if height + top + bottom < 3 or width + left + right < 3:
        return
    rng = np.random.default_rng(seed)
    data, weight = _data(dtype, (n, height, width, inputs), rng), _weights(dtype, inputs, outputs, rng)
    expected, found = _expected(data, weight, padding), _found(data, weight, padding, target)
    if dtype == "float32":
        assert np.abs(found - expected).max() <= 2e-6 * max(1.0, np.abs(weight).max()) * np.abs(data).max() * 9 * inputs**0.5
    else:
        assert (found == expected).all()


@pytest.mark.parametrize(("pixel", "tap"), [(255, -128), (255, 127), (0, -128)])
def test_sums_of_extremes_are_exact(pixel: int, tap: int) -> None:
    data, weight = np.full((1, 6, 6, 64), pixel, "uint8"), np.full((3, 3, 64, 16), tap, "int8")
    assert (_found(data, weight, (1, 1, 1, 1)) == _expected(data, weight, (1, 1, 1, 1))).all()


def test_what_does_not_fit_is_refused() -> None:
    x, w = te.placeholder((1, 8, 8, 4), "uint8", "x"), te.placeholder((4, 4, 4, 8), "int8", "w")
    with pytest.raises(DeclarationError, match="weights of int16 for data of bytes"):
        conv2d_winograd_tiles(x, w, 1)
    with pytest.raises(DeclarationError, match="input channels"):
        conv2d_winograd_tiles(x, te.placeholder((4, 4, 5, 8), "int16", "w"), 1)
    with pytest.raises(DeclarationError, match="extent 0 of the weights"):
        conv2d_winograd_tiles(x, te.placeholder((3, 3, 4, 8), "int16", "w"), 1)
    with pytest.raises(DeclarationError, match="extents are constants; use conv2d for open ones"):
        conv2d_winograd_tiles(te.placeholder((te.var("n"), 8, 8, 4), "uint8", "x"), te.placeholder((4, 4, 4, 8), "int16", "w"), 1)


def test_other_operators_around_are_part_of_the_kernel() -> None:
    """What follows a tile's results is computed from them, and what isn't by rows of tiles has a schedule of its own."""
    rng = np.random.default_rng(3)
    data, weight = _data("float32", (1, 12, 12, 16), rng), _weights("float32", 16, 32, rng)
    made, expected = weights_of_tiles(weight), _expected(data, weight, (1, 1, 1, 1))
    x, w, b = (te.placeholder(shape, "float32", name) for shape, name in ((data.shape, "x"), (made.shape, "w"), ((32,), "b")))
    y = conv2d_winograd_tiles(x, w, 1)
    for result, wanted in (
        (topi.nn.relu(topi.add(y, b)), np.maximum(expected + 1, 0)),
        (topi.transpose(topi.nn.relu(topi.add(y, b)), (0, 3, 1, 2)), np.maximum(expected + 1, 0).transpose(0, 3, 1, 2)),
        (topi.sum(topi.add(y, b), [1, 2]), (expected + 1).sum((1, 2))),
    ):
        out = tvm.nd.array(np.zeros([get_const_int(n) for n in result.shape], "float32"))
        run = tvm.build([x, w, b, result], target="llvm", schedule="auto")
        run(tvm.nd.array(data), tvm.nd.array(made), tvm.nd.array(np.ones(32, "float32")), out)
        assert np.allclose(out.numpy(), wanted, rtol=1e-4, atol=2e-3)
