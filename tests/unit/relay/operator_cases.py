"""A call of each operator of Relay: operands, the call, and what it computes where the operator of graphs behind it isn't that itself.

An operand is "dtype:extents", as in "f:2x3" (float32 in [0.1, 0.9)), "i<4:5" (int32 in [0, 4)), "i8:2x2", "b:3", or a list of numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[str, str, Callable[..., Any], Callable[..., Any] | None]
CASES: list[Case] = []


def case(name: str, operands: str, call: Callable[..., Any], meaning: Callable[..., Any] | None = None) -> None:
    CASES.append((name, operands, call, meaning))


DTYPES = {"f": "float32", "i": "int32", "i8": "int8", "u8": "uint8", "b": "bool"}


def operands(text: str) -> list[Any]:
    """The arrays that a specification says."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for word in text.split():
        if word.startswith("["):
            made.append(np.array(json.loads(word), "int32"))
            continue
        kind, _, extents = word.partition(":")
        kind, _, top = kind.partition("<")
        shape = tuple(map(int, extents.split("x")))
        if kind == "f":
            made.append((rng.random(shape) * 0.8 + 0.1).astype("float32"))
        else:
            low, high = (-20 if kind == "i8" else 0), (int(top) if top else 2 if kind == "b" else 60)
            made.append(rng.integers(low, high, shape).astype(DTYPES[kind]))
    return made


def named(relay: Any, name: str) -> Callable[..., Any]:
    """`relay.nn.relu` for "nn.relu"."""
    found = relay.qnn.op if name.startswith("qnn.") else relay.op
    for part in name.removeprefix("qnn.").split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def plain(name: str, operands: str, meaning: Callable[..., Any] | None = None, *args: Any, **attrs: Any) -> None:
    case(name, operands, lambda r, *x: named(r, name)(*x, *args, **attrs), meaning)


def windows(x: Any, size: int, step: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::step, ::step]


WAVES = """abs acos asin atan ceil cos cosh erf exp floor isfinite isinf isnan log negative rsqrt sigmoid sign sin sinh sqrt tan tanh asinh
    atanh"""
PAIRS = "add divide equal greater greater_equal less less_equal maximum minimum multiply not_equal power subtract"
for one in WAVES.split():
    plain(one, "f:2x3")
case("acosh", "f:2x3", lambda r, x: r.acosh(x + r.const(1.0)), lambda x: np.arccosh(x + 1))
case("round", "f:7", lambda r, x: r.round(x * r.const(10.0)), lambda x: np.round(x * 10))
case("trunc", "f:7", lambda r, x: r.trunc(x * r.const(10.0) - r.const(5.0)), lambda x: np.trunc(x * 10 - 5))
plain("log10", "f:2x3", np.log10)
plain("log2", "f:2x3", np.log2)
plain("bitwise_not", "i<9:4", np.invert)
plain("logical_not", "b:4", np.logical_not)
plain("copy", "f:2x3", np.copy)
plain("nn.relu", "f:2x3")
plain("zeros_like", "f:2x3", np.zeros_like)
plain("ones_like", "f:2x3", np.ones_like)
case("fast_exp", "f:2x3", lambda r, x: r.Call(r.op.get("fast_exp"), [x]), np.exp)
case("fast_tanh", "f:2x3", lambda r, x: r.Call(r.op.get("fast_tanh"), [x]), np.tanh)
case("fast_erf", "f:2x3", lambda r, x: r.Call(r.op.get("fast_erf"), [x]), lambda x: np.vectorize(math.erf)(x))

for one in PAIRS.split():
    plain(one, "f:2x3 f:3")
for one in ["bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "floor_mod", "left_shift", "right_shift"]:
    case(
        one,
        "i<9:4 i<4:4",
        lambda r, x, y, one=one: getattr(r, one)(x, y + r.const(1)),
        lambda x, y, one=one: getattr(np, one.replace("floor_mod", "mod"))(x, y + 1),
    )
for one in ["logical_and", "logical_or", "logical_xor"]:
    plain(one, "b:4 b:4", getattr(np, one))
for one in ("divide", "trunc_divide"):  # of integers: towards zero
    case(
        one,
        "i<9:6 i<3:6",
        lambda r, x, y, one=one: getattr(r, one)(x - r.const(5), y + r.const(2)),
        lambda x, y: np.trunc((x - 5) / (y + 2)),
    )
for one in ("mod", "trunc_mod"):
    case(one, "i<9:6 i<3:6", lambda r, x, y, one=one: getattr(r, one)(x - r.const(5), y + r.const(2)), lambda x, y: np.fmod(x - 5, y + 2))
plain("cast", "f:4", lambda x: x.astype("int32"), dtype="int32")
plain("cast_like", "f:4 i<3:1", lambda x, y: x.astype("int32"))
plain("reinterpret", "f:4", lambda x: x.view("int32"), dtype="int32")
plain("clip", "f:2x3", lambda x: np.clip(x, 0.2, 0.5), 0.2, 0.5)
plain("where", "b:3 f:2x3 f:3", np.where)
case("nn.leaky_relu", "f:4", lambda r, x: r.nn.leaky_relu(x - r.const(0.5), alpha=0.1), lambda x: np.maximum(x - 0.5, 0.1 * (x - 0.5)))
case("nn.prelu", "f:2x3 f:3", lambda r, x, a: r.nn.prelu(x - r.const(0.5), a), lambda x, a: np.where(x > 0.5, x - 0.5, a * (x - 0.5)))
case("fixed_point_multiply", "i<99:4", lambda r, x: r.fixed_point_multiply(x, 1 << 30, 1), lambda x: x)  # 2**30 * 2**(1 - 31)

case("zeros", "", lambda r: r.zeros((2, 3), "float32"), lambda: np.zeros((2, 3)))
case("ones", "", lambda r: r.ones((2, 3), "int32"), lambda: np.ones((2, 3)))
case("full", "", lambda r: r.full(r.const(2.5), (2, 3)), lambda: np.full((2, 3), 2.5))
case("full_like", "f:2x3", lambda r, x: r.full_like(x, r.const(2.5)), lambda x: np.full((2, 3), 2.5))
case("arange", "", lambda r: r.arange(r.const(1), r.const(8), r.const(3), dtype="int32"), lambda: np.arange(1, 8, 3))
plain("shape_of", "f:2x3", lambda x: np.array(x.shape))
plain("ndarray_size", "f:2x3", lambda x: np.array(x.size))

case("reshape", "f:2x3x4", lambda r, x: r.reshape(x, (0, -1)), lambda x: x.reshape(2, 12))
case("reshape", "f:2x3x4", lambda r, x: r.reshape(x, (-4, 1, -1, -3)), lambda x: x.reshape(1, 2, 12))
case("reshape", "f:2x3x4", lambda r, x: r.reshape(x, (-3, -2)), lambda x: x.reshape(6, 4))
case(
    "contrib_reverse_reshape",
    "f:2x3x4",
    lambda r, x: r.contrib_reverse_reshape(x, (-1, 0)) if hasattr(r, "contrib_reverse_reshape") else r.op.reverse_reshape(x, (-1, 0)),
    lambda x: x.reshape(6, 4),
)
plain("reshape_like", "f:2x3 f:3x2", lambda x, y: x.reshape(y.shape))
plain("transpose", "f:2x3x4", lambda x: x.transpose(2, 0, 1), (2, 0, 1))
plain("transpose", "f:2x3x4", np.transpose)
plain("expand_dims", "f:2x3", lambda x: x.reshape(2, 1, 1, 3), 1, 2)
plain("squeeze", "f:1x3x1", lambda x: x.reshape(3, 1), [0])
plain("nn.batch_flatten", "f:2x3x4", lambda x: x.reshape(2, 12))
case("concatenate", "f:2x3 f:2x1", lambda r, x, y: r.concatenate((x, y), axis=1), lambda x, y: np.concatenate((x, y), 1))
case("stack", "f:2x3 f:2x3", lambda r, x, y: r.stack((x, y), axis=-1), lambda x, y: np.stack((x, y), -1))
case("split", "f:6x2", lambda r, x: r.split(x, 3)[1], lambda x: x[2:4])
case("split", "f:6x2", lambda r, x: r.split(x, (1, 4))[1], lambda x: x[1:4])
plain("broadcast_to", "f:3", lambda x: np.broadcast_to(x, (2, 3)), (2, 3))
plain("broadcast_to_like", "f:3 f:2x3", lambda x, y: np.broadcast_to(x, (2, 3)))
plain("collapse_sum_to", "f:2x3", lambda x: x.sum(0), (3,))
plain("collapse_sum_like", "f:2x3 f:2x1", lambda x, y: x.sum(1, keepdims=True))
plain("tile", "f:2x3", lambda x: np.tile(x, (2, 1)), (2, 1))
plain("repeat", "f:2x3", lambda x: np.repeat(x, 2, 1), 2, 1)
plain("reverse", "f:2x3", lambda x: x[:, ::-1], 1)
case(
    "reverse_sequence",
    "f:4x2 [2,3]",
    lambda r, x, n: r.reverse_sequence(x, n, 0, 1),
    lambda x, n: np.stack([np.r_[x[:2, 0][::-1], x[2:, 0]], np.r_[x[:3, 1][::-1], x[3:, 1]]], 1),
)
plain("layout_transform", "f:1x4x2x2", lambda x: x.reshape(1, 2, 2, 2, 2).transpose(0, 1, 3, 4, 2), "NCHW", "NCHW2c")
plain("strided_slice", "f:5x4", lambda x: x[1:4:2, ::-1], begin=[1, -1], end=[4, -99], strides=[2, -1])
plain("slice_like", "f:5x4 f:2x3", lambda x, y: x[:2, :3])
case(
    "strided_set",
    "f:5 f:2",
    lambda r, x, v: r.strided_set(x, v, r.const([1]), r.const([4]), r.const([2])),
    lambda x, v: np.r_[x[0], v[0], x[2], v[1], x[4]],
)
plain("take", "f:5x4 i<5:3", lambda x, i: x[i], axis=0)
plain("take", "f:5x4 i<20:3", lambda x, i: x.reshape(-1)[i])
case("gather", "f:4x3 i<3:4x2", lambda r, x, i: r.gather(x, 1, i), lambda x, i: np.take_along_axis(x, i, 1))
plain("gather_nd", "f:4x3 i<3:2x5", lambda x, i: x[i[0], i[1]])
case(
    "scatter_elements",
    "f:4x3 i<4:1x3 f:1x3",
    lambda r, x, i, u: r.scatter_elements(x, i, u, 0, "add"),
    lambda x, i, u: np.stack([x[:, c] + np.eye(4)[i[0, c]] * u[0, c] for c in range(3)], 1),
)
case("scatter_nd", "f:4 [[1,3]] f:2", lambda r, x, i, u: r.scatter_nd(x, i, u, "update"), lambda x, i, u: np.r_[x[0], u[0], x[2], u[1]])
case("one_hot", "i<3:4", lambda r, i: r.one_hot(i, r.const(2.0), r.const(-1.0), 3, -1, "float32"), lambda i: np.eye(3)[i] * 3 - 1)
plain("sequence_mask", "f:3x2 [1,3]", lambda x, n: np.where(np.arange(3)[:, None] < n, x, -1), mask_value=-1.0, axis=0)
case("unravel_index", "i<6:4", lambda r, i: r.unravel_index(i, r.const([2, 3])), lambda i: np.stack(np.unravel_index(i, (2, 3))))
case("meshgrid", "f:2 f:3", lambda r, x, y: r.meshgrid((x, y), "ij")[1], lambda x, y: np.broadcast_to(y, (2, 3)))
case("adv_index", "f:4x3 i<4:5 i<3:5", lambda r, x, i, j: r.adv_index((x, i, j)), lambda x, i, j: x[i, j])
plain("sliding_window", "f:1x5", lambda x: np.stack([x[0, 0:3], x[0, 2:5]])[None], 1, (3,), (2,))
plain("matrix_set_diag", "f:3x3 f:3", lambda x, d: x * (1 - np.eye(3)) + np.diag(d))
case("trilu", "f:3x3", lambda r, x: r.trilu(x, r.const(1), upper=True), lambda x: np.triu(x, 1))
plain("invert_permutation", "[2,0,1]", np.argsort)
case(
    "sparse_to_dense",
    "[0,3] f:2",
    lambda r, i, v: r.sparse_to_dense(i, (5,), v, r.const(0.5)),
    lambda i, v: np.r_[v[0], 0.5, 0.5, v[1], 0.5],
)
case("einsum", "f:2x3 f:3x4", lambda r, x, y: r.einsum((x, y), "ij,jk->ik"), lambda x, y: x @ y)

for one in ("all", "any"):
    plain(one, "b:2x3", lambda x, one=one: getattr(np, one)(x, 1), axis=1)
for one in ("max", "mean", "min", "prod", "sum"):
    plain(one, "f:2x3x4", lambda x, one=one: getattr(np, one)(x, (0, 2)), axis=1, exclude=True)
for one in ("argmax", "argmin"):
    plain(one, "f:2x3", lambda x, one=one: getattr(np, one)(x, 1, keepdims=True), axis=1, keepdims=True)
plain("variance", "f:2x3", lambda x: x.var(1, ddof=1), axis=1, unbiased=True)
plain("logsumexp", "f:2x3", lambda x: np.log(np.exp(x).sum(1)), axis=1)
plain("cumsum", "f:2x3", lambda x: np.cumsum(x, 1), 1)
plain("cumsum", "f:4", lambda x: np.r_[0, np.cumsum(x)[:-1]], exclusive=True)
plain("cumprod", "f:2x3", lambda x: np.cumprod(x, 0), 0)
plain("sort", "f:2x5", lambda x: np.sort(x)[:, ::-1], is_ascend=False)
plain("argsort", "f:2x5", np.argsort)
case("topk", "f:2x5", lambda r, x: r.topk(x, 2)[0], lambda x: np.sort(x)[:, :-3:-1])
plain("topk", "f:2x5", lambda x: np.argsort(-x)[:, :2], 2, ret_type="indices")
case("searchsorted", "[1,3,5,7] [0,3,8]", lambda r, s, v: r.searchsorted(s, v, right=True), lambda s, v: np.searchsorted(s, v, "right"))
case("unique", "[3,1,3,2]", lambda r, x: r.unique(x)[3], lambda x: np.array([3]))
plain("argwhere", "[0,2,0,1]", np.argwhere)
case("dft", "f:2x4 f:2x4", lambda r, x, y: r.op.dft(x, y)[0], lambda x, y: np.fft.fft(x + 1j * y).real)
case(
    "stft",
    "f:1x8",
    lambda r, x: r.stft(x, 4, 2),
    lambda x: np.stack([(f := np.fft.rfft(np.stack([x[0, i : i + 4] for i in (0, 2, 4)])).T[None]).real, f.imag], -1),
)


for mark in ("compiler_begin", "compiler_end"):
    case(f"annotation.{mark}", "f:2x3", lambda r, x, mark=mark: getattr(r.annotation, mark)(x, "mine"), np.copy)
