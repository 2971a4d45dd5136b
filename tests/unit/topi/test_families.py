"""Elementwise, broadcast, reduction and transform operators against NumPy, through the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.te.tensor import Tensor
from tests.operators import RNG, assert_same, run, values

UNARY: dict[str, Any] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "floor": np.floor,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "negative": np.negative,
    "identity": lambda x: x,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_element(name: str) -> None:
    x = values(3, 4, low=-0.9, high=0.9)
    assert_same(run(getattr(topi, name), x), UNARY[name](x))


@pytest.mark.parametrize("name", ["log", "log2", "log10", "sqrt"])
def test_function_of_one_positive_element(name: str) -> None:
    x = values(7, low=0.1, high=9)
    assert_same(run(getattr(topi, name), x), getattr(np, name)(x))


def test_rsqrt_round_cast_clip_and_full() -> None:
    x = values(5, low=0.1, high=9)
    assert_same(run(topi.rsqrt, x), 1 / np.sqrt(x))
    assert_same(run(topi.round, np.array([-1.5, -0.5, 0.5, 2.5], "float32")), np.array([-2, -1, 1, 3]))
    assert run(lambda t: topi.cast(t, "int32"), x).dtype == np.int32
    assert_same(run(lambda t: topi.clip(t, 1, 3.5), x), np.clip(x, 1, 3.5))
    assert_same(run(lambda t: topi.full_like(t, 4), x), np.full(5, 4.0))
    assert_same(run(lambda t: topi.elemwise_sum([t, t, t]), x), 3 * x)


def test_ceil_log2_of_integers_is_exact() -> None:
    x = np.arange(1, 70, dtype="int32")
    assert_same(run(topi.ceil_log2, x), np.array([(int(v) - 1).bit_length() for v in x]))


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less": np.less,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "less_equal": np.less_equal,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "mod": np.fmod,
}
SHAPES = [((2, 3), (2, 3)), ((4, 1, 3), (2, 1)), ((3,), (5, 3)), ((1,), (2, 2))]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_function_of_two_elements(name: str, dtype: str) -> None:
    for first, second in SHAPES:
        a, b = values(*first, dtype=dtype, low=-7, high=7), values(*second, dtype=dtype, low=1, high=5)
        assert_same(run(getattr(topi, name), a, b), BINARY[name](a, b))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_bits(name: str) -> None:
    a, b = values(3, 4, dtype="int32", low=0, high=100), values(4, dtype="int32", low=0, high=5)
    assert_same(run(getattr(topi, name), a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(name: str) -> None:
    a, b = values(3, 4, dtype="int32", low=0, high=1) > 0, values(4, dtype="int32", low=0, high=1) > 0
    assert_same(run(getattr(topi, name), a, b), getattr(np, name)(a, b))


def test_power_divide_where_and_broadcast_to() -> None:
    a, b = values(2, 3, low=0.5), values(3, low=-2, high=2)
    assert_same(run(topi.power, a, b), np.power(a, b))
    assert_same(run(topi.divide, b, a), b / a)
    assert_same(run(topi.where, a > 1, a, b), np.where(a > 1, a, b))
    assert_same(run(lambda t: topi.broadcast_to(t, (4, 2, 3)), b), np.broadcast_to(b, (4, 2, 3)))
    with pytest.raises(DeclarationError, match=r"can't be broadcast to \(4, 2\)"):
        topi.broadcast_to(te.placeholder((3,)), (4, 2))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(name: str, axis: Any, keepdims: bool) -> None:
    x = values(2, 3, 4)
    assert_same(run(lambda t: getattr(topi, name)(t, axis, keepdims), x), getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["all", "any"])
def test_reduction_of_booleans(name: str) -> None:
    x = values(4, 3) > 0
    assert_same(run(lambda t: getattr(topi, name)(t, 1), x), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_index_of_the_extreme_element(name: str) -> None:
    x = np.array([[1, 3, 3, 0, 0], [-np.inf] * 5, [np.inf] * 5, [2, 2, 2, 2, 1]], "float32")
    first = getattr(np, name)(x, axis=1)
    last = 4 - getattr(np, name)(x[:, ::-1], axis=1)
    assert_same(run(lambda t: getattr(topi, name)(t, 1), x), first)
    assert_same(run(lambda t: getattr(topi, name)(t, 1, False, True), x), last)
    assert_same(run(lambda t: getattr(topi, name)(t), x), np.asarray(getattr(np, name)(x)))
    assert run(lambda t: getattr(topi, name)(t, 0, True), x).shape == (1, 5)


def test_shapes() -> None:
    x = values(2, 3, 4)
    assert_same(run(lambda t: topi.transpose(t), x), x.T)
    assert_same(run(lambda t: topi.transpose(t, (1, 0, 2)), x), x.transpose(1, 0, 2))
    assert_same(run(lambda t: topi.reshape(t, (4, -1)), x), x.reshape(4, -1))
    assert_same(run(lambda t: topi.reshape(t, (24,)), x), x.reshape(24))
    assert_same(run(lambda t: topi.expand_dims(t, 1, 2), x), x[:, None, None])
    assert_same(run(lambda t: topi.squeeze(topi.expand_dims(t, 1)), x), x)
    assert_same(run(lambda t: topi.flip(t, 1), x), x[:, ::-1])
    assert_same(run(lambda t: topi.tile(t, (2, 1, 3)), x), np.tile(x, (2, 1, 3)))
    assert_same(run(lambda t: topi.repeat(t, 3, 1), x), np.repeat(x, 3, 1))
    assert_same(run(lambda t: topi.shape(t), x), np.array([2, 3, 4]))
    assert_same(run(lambda t: topi.ndarray_size(t), x), np.array(24))
    with pytest.raises(DeclarationError, match="must be equal, but they are 24 and 25"):
        topi.reshape(te.placeholder((2, 3, 4)), (5, 5))


def test_joins_and_cuts() -> None:
    a, b = values(2, 3), values(2, 5)
    assert_same(run(lambda s, t: topi.concatenate([s, t], 1), a, b), np.concatenate([a, b], 1))
    assert_same(run(lambda s: topi.stack([s, s], 1), a), np.stack([a, a], 1))
    for found, wanted in zip(run(lambda t: topi.split(t, [1, 3], 1), b), np.split(b, [1, 3], 1), strict=True):
        assert_same(found, wanted)
    for found, wanted in zip(run(lambda t: topi.split(t, 5, 1), b), np.split(b, 5, 1), strict=True):
        assert_same(found, wanted)
    assert_same(run(lambda t: topi.strided_slice(t, [0, 4], [2, 0], [1, -2]), b), b[0:2, 4:0:-2])
    assert_same(run(lambda t: topi.strided_slice(t, [1], [3], axes=[1]), b), b[:, 1:3])
    assert_same(run(lambda t: topi.strided_slice(t, [0, 2], [-1, 2], slice_mode="size"), b), b[:, 2:4])


def test_layouts_and_windows() -> None:
    x = values(1, 8, 3, 4)
    blocked = x.reshape(1, 2, 4, 3, 4).transpose(0, 1, 3, 4, 2)
    assert_same(run(lambda t: topi.layout_transform(t, "NCHW", "NCHW4c"), x), blocked)
    assert_same(run(lambda t: topi.layout_transform(t, "NCHW4c", "NCHW"), blocked), x)
    assert_same(run(lambda t: topi.layout_transform(t, "NCHW", "NHWC"), x), x.transpose(0, 2, 3, 1))
    # Channels that are no multiple of the block are followed by zeros, and one block size may become another.
    few = x[:, :6]
    padded = np.concatenate([few, np.zeros_like(few[:, :2])], 1)
    in_fours = padded.reshape(x.shape[0], 2, 4, *x.shape[2:]).transpose(0, 1, 3, 4, 2)
    assert_same(run(lambda t: topi.layout_transform(t, "NCHW", "NCHW4c"), few), in_fours)
    in_sixteens = np.concatenate([padded, np.zeros_like(padded)], 1).reshape(x.shape[0], 1, 16, *x.shape[2:]).transpose(0, 1, 3, 4, 2)
    assert_same(run(lambda t: topi.layout_transform(t, "NCHW4c", "NCHW16c"), in_fours), in_sixteens)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))[:, :, ::1, ::1]
    assert_same(run(lambda t: topi.sliding_window(t, 2, (2, 3), (1, 1)), x), windows)
    with pytest.raises(DeclarationError, match="expected letters"):
        topi.layout_transform(te.placeholder((1, 8, 3, 4)), "NCHW", "NCHWc")


def test_grids_ranges_and_triangles() -> None:
    a, b = values(3), values(4)
    for indexing in ("ij", "xy"):
        for found, wanted in zip(
            run(lambda s, t, i=indexing: topi.meshgrid([s, t], i), a, b),
            np.meshgrid(a, b, indexing=indexing),
            strict=True,
        ):
            assert_same(found, wanted)
    assert_same(run(lambda t: topi.add(t, topi.arange(1, 4, 1)), a), a + np.arange(1, 4))
    square = values(4, 4)
    for k in (-1, 0, 2):
        assert_same(run(lambda t, k=k: topi.trilu(t, k, True), square), np.triu(square, k))
        assert_same(run(lambda t, k=k: topi.trilu(t, k, False), square), np.tril(square, k))
    positions = np.array([0, 5, 11], "int32")
    assert_same(run(lambda t: topi.unravel_index(t, (3, 4)), positions), np.array(np.unravel_index(positions, (3, 4))))


def test_indexing() -> None:
    x = values(4, 5, 3)
    at = np.array([[0, 3], [2, 9]], "int32")
    assert_same(run(lambda s, t: topi.take(s, t, 1), x, at), np.take(x, at, 1, mode="clip"))
    assert_same(run(lambda s, t: topi.take(s, t, 1, mode="wrap"), x, at), np.take(x, at, 1, mode="wrap"))
    assert_same(run(topi.take, x, at), np.take(x, at))
    rows = RNG.integers(-5, 5, (4, 2, 3)).astype("int32")
    assert_same(run(lambda s, t: topi.gather(s, 1, t), x, rows), np.take_along_axis(x, rows, 1))
    points = np.array([[0, 3], [4, 1]], "int32")
    assert_same(run(topi.gather_nd, x, points), x[points[0], points[1]])
    labels = np.array([0, 2, 7], "int32")
    assert_same(run(lambda t: topi.one_hot(t, 1, 0, 4, -1, "float32"), labels), np.eye(8)[labels][:, :4])
    lengths = np.array([1, 3, 0, 5], "int32")
    masked = np.where(np.arange(5)[None, :, None] < lengths[:, None, None], x, -1)
    assert_same(run(lambda s, t: topi.sequence_mask(s, t, -1, 1), x, lengths), masked)
    backwards = x.copy()
    for b, n in enumerate(lengths):
        backwards[b, :n] = x[b, :n][::-1]
    assert_same(run(lambda s, t: topi.reverse_sequence(s, t), x, lengths), backwards)


def test_products_of_tensors() -> None:
    a, b = values(2, 3, 4), values(4, 3, 5)
    assert_same(run(lambda s, t: topi.tensordot(s, t, [[1, 2], [1, 0]]), a, b), np.tensordot(a, b, ([1, 2], [1, 0])))
    assert_same(run(lambda s, t: topi.tensordot(s, t, 1), a, b), np.tensordot(a, b, 1))
    for text in ("bij,jik->bk", "bij,jik->kb", "bij,jik", "bij,jik->bijk"):
        assert_same(run(lambda s, t, text=text: topi.einsum(text, s, t), a, b), np.einsum(text, a, b))
    m, n = values(3, 4), values(5, 4)
    assert_same(run(lambda s, t: topi.matmul(s, t, False, True), m, n), m @ n.T)
    with pytest.raises(DeclarationError, match="must be equal, but they are 4 and 5"):
        topi.matmul(te.placeholder((3, 4)), te.placeholder((5, 4)))


def test_tags_say_what_an_operator_is() -> None:
    x = te.placeholder((3, 4))
    tags: dict[str, Tensor] = {
        topi.tag.ELEMWISE: topi.exp(x),
        topi.tag.BROADCAST: topi.add(x, x),
        topi.tag.INJECTIVE: topi.transpose(x),
        topi.tag.COMM_REDUCE: topi.sum(x, 1),
        topi.tag.COMM_REDUCE_IDX: topi.argmax(x, 1),
        "softmax_output": topi.nn.softmax(x),
        "einsum": topi.einsum("ij->ji", x),
    }
    for tag, tensor in tags.items():
        assert tensor.op.tag == tag
    assert topi.tile(x, (2, 1)).op.tag == topi.expand_dims(x, 0).op.tag == topi.tag.BROADCAST
    row = topi.nn.softmax(x)
    stages = [row.op, *(tensor.op for tensor in row.op.input_tensors)]
    assert [op.tag for op in stages] == ["softmax_output"] * 3
    assert topi.tag.is_injective(topi.tag.ELEMWISE) and topi.tag.is_broadcast(topi.tag.BROADCAST)
    assert not topi.tag.is_injective(topi.tag.COMM_REDUCE) and not topi.tag.is_broadcast(topi.tag.INJECTIVE)


def test_axes_that_are_not_there_are_named() -> None:
    x = te.placeholder((3, 4))
    with pytest.raises(DeclarationError, match="there is no axis 2; a tensor of 2 dimensions has axes -2 to 1"):
        topi.sum(x, 2)
    with pytest.raises(DeclarationError, match="names an axis twice"):
        topi.sum(x, (0, -2))


def test_schedules_and_references_are_found_from_topi() -> None:
    assert topi.schedules.default_schedule([topi.exp(te.placeholder((4,)))]).outputs
    assert topi.testing.softmax_python(np.zeros((1, 2))).sum() == 1
    with pytest.raises(AttributeError, match="no attribute 'schedule'"):
        topi.schedule  # noqa: B018


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_ceil_log2_of_integers_of_any_width(dtype: str) -> None:
    given = np.array([1, 2, 3, 4, 5, 9, 64, 65], dtype)
    np.testing.assert_array_equal(run(topi.ceil_log2, given), [0, 1, 2, 2, 3, 4, 6, 7])
