"""Calls of operators whose shapes are values, those of sparse tensors, and marks; they join those of `operator_cases`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operator_cases import CASES, Case, case, plain

_FIRST = len(CASES)
_BOXES = np.array([[[0, 0, 1, 1], [0, 0, 2, 2], [4, 4, 5, 5]]], "float32")
case("dyn.reshape", "f:2x3x4 [4,0,2]", lambda r, x, s: r.reshape(x, s), lambda x, s: x.reshape(4, 3, 2))
case("dyn.reshape", "f:2x3x4 [-3,-1]", lambda r, x, s: r.reshape(x, s), lambda x, s: x.reshape(6, 4))
case("dyn.broadcast_to", "f:3x1 [2,3,4]", lambda r, x, s: r.broadcast_to(x, s), lambda x, s: np.broadcast_to(x, s))
case("dyn.tile", "f:2x3 [2,1,3]", lambda r, x, n: r.tile(x, n), np.tile)
case("dyn.tile", "f:2x3 [3]", lambda r, x, n: r.tile(x, n), np.tile)
case("dyn.zeros", "[2,3]", lambda r, s: r.zeros(s, "float32"), np.zeros)
case("dyn.ones", "[2,3]", lambda r, s: r.ones(s, "int32"), np.ones)
case("dyn.full", "[2,3]", lambda r, s: r.full(r.const(2.5), s), lambda s: np.full(s, 2.5))
case("dyn.arange", "f:1", lambda r, x: r.arange(r.squeeze(x, [0]), r.const(4.0), r.const(1.5)), lambda x: np.arange(x[0], 4, 1.5))
case("dyn.arange", "[7]", lambda r, x: r.arange(r.const(1), r.squeeze(x, [0]), r.const(-1), dtype="int32"), lambda x: np.zeros(0))
case(
    "dyn.one_hot",
    "i<3:2x2 [3]",
    lambda r, i, n: r.one_hot(i, r.const(2.0), r.const(-1.0), n, 1, "float32"),
    lambda i, n: np.moveaxis(np.eye(3)[i] * 3 - 1, -1, 1),
)
case("dyn.expand_dims", "f:2x3 [1]", lambda r, x, n: r.expand_dims(x, r.squeeze(n, [0]), 2), lambda x, n: x[:, None, None])
case("dyn.expand_dims", "f:2x3 [-1]", lambda r, x, n: r.expand_dims(x, n), lambda x, n: x[:, :, None])
case("dyn.squeeze", "f:1x3x1x2 [0,-2]", lambda r, x, n: r.squeeze(x, n), lambda x, n: x[0, :, 0])
case("dyn.strided_slice", "f:5x4 [1,0] [4,2]", lambda r, x, b, e: r.strided_slice(x, b, e), lambda x, b, e: x[1:4, 0:2])
case("dyn.strided_slice", "f:5x4 [4] [0] [-2]", lambda r, x, b, e, s: r.strided_slice(x, b, e, s), lambda x, b, e, s: x[4:0:-2])
case("dyn.strided_slice", "f:5x4 [1,2] [3,-1]", lambda r, x, b, e: r.strided_slice(x, b, e, slice_mode="size"), lambda x, b, e: x[1:4, 2:])
case("dyn.topk", "f:2x5 [2]", lambda r, x, k: r.topk(x, k)[0], lambda x, k: np.sort(x)[:, :-3:-1])
case("dyn.topk", "f:2x5 [0]", lambda r, x, k: r.topk(x, k, 0, "indices", True), lambda x, k: np.argsort(x, 0))
case(
    "dyn.sparse_to_dense",
    "[[0,1],[2,0]] f:2 [3,2]",
    lambda r, i, v, s: r.sparse_to_dense(i, s, v, r.const(0.5)),
    lambda i, v, s: np.array([[0.5, v[0]], [0.5, 0.5], [v[1], 0.5]]),
)
case("dyn.nn.pad", "f:2x3 [[1,0],[2,1]]", lambda r, x, w: r.nn.pad(x, w, 1.5), lambda x, w: np.pad(x, w, constant_values=1.5))
case(
    "dyn.image.resize2d",
    "f:1x2x2x3 [4,6]",
    lambda r, x, s: r.image.resize2d(x, s, None, "NCHW", "nearest_neighbor", "asymmetric"),
    lambda x, s: _twice(x),
)
case(
    "dyn.nn.upsampling",
    "f:1x2x2x3 f:1",
    lambda r, x, s: r.nn.upsampling(x, r.squeeze(s, [0]) * r.const(0.0) + r.const(2.0), 2.0),
    lambda x, s: _twice(x),
)
case(
    "dyn.nn.upsampling3d",
    "f:1x2x2x2x3 f:1",
    lambda r, x, s: r.nn.upsampling3d(
        x, 1.0, r.squeeze(s, [0]) * r.const(0.0) + r.const(2.0), 2.0, coordinate_transformation_mode="asymmetric"
    ),
    lambda x, s: _twice(x),
)


def _twice(x: Any) -> Any:
    return x.repeat(2, -1).repeat(2, -2)


DYNAMIC: list[Case] = CASES[_FIRST:]

PLACES = "[[0,1],[0,3],[2,0]] f:3 [4,5] f:1"
case(
    "sparse_fill_empty_rows",
    PLACES,
    lambda r, i, v, s, d: r.sparse_fill_empty_rows(i, v, s, d)[0],
    lambda i, v, s, d: np.array([[0, 1], [0, 3], [1, 0], [2, 0], [3, 0]]),
)
case(
    "sparse_fill_empty_rows",
    PLACES,
    lambda r, i, v, s, d: r.sparse_fill_empty_rows(i, v, s, d)[1],
    lambda i, v, s, d: np.r_[v[:2], d, v[2], d],
)
case(
    "sparse_fill_empty_rows",
    PLACES,
    lambda r, i, v, s, d: r.sparse_fill_empty_rows(i, v, s, d)[2],
    lambda i, v, s, d: np.array([0, 1, 0, 1], bool),
)
case(
    "sparse_reshape",
    "[[0,1],[1,2]] [2,3] [3,-1]",
    lambda r, i, old, new: r.sparse_reshape(i, old, new)[0],
    lambda i, old, new: np.array([[0, 1], [2, 1]]),
)
case("sparse_reshape", "[[0,1]] [2,3] [3,-1]", lambda r, i, old, new: r.sparse_reshape(i, old, new)[1], lambda *given: np.array([3, 2]))
case(
    "sparse_reshape",
    "[[0,4],[1,2]] [2,3] [6]",
    lambda r, i, old, new: r.sparse_reshape(i, old, new)[0],
    lambda *given: np.array([[4], [5]]),
)
case("unravel_index", "i<6:4x2 [2,3]", lambda r, i, s: r.unravel_index(i, s), lambda i, s: np.stack(np.unravel_index(i, tuple(s))))
case("trilu", "f:3x3 [1]", lambda r, x, k: r.trilu(x, k, upper=True), lambda x, k: np.triu(x, 1))
case("unique", "[3,1,3,2]", lambda r, x: r.unique(x, is_sorted=False)[0], lambda x: np.array([3, 1, 2, 0]))
case("meshgrid", "f:2 f:1", lambda r, x, y: r.meshgrid((x, r.squeeze(y, [0])), "ij")[1], lambda x, y: np.broadcast_to(y, (2, 1)))
case("reverse_sequence", "f:2x3 [2,5]", lambda r, x, n: r.reverse_sequence(x, n), lambda x, n: np.stack([x[0, [1, 0, 2]], x[1, ::-1]]))
case("memory.kill", "f:2", lambda r, x: r.TupleGetItem(r.Tuple([x, r.Call(r.op.get("memory.kill"), [x])]), 0), lambda x: x)
for mark in ("stop_fusion", "checkpoint"):
    plain(f"annotation.{mark}", "f:2x3", np.copy)
plain("on_device", "f:2x3", np.copy, "cpu")
plain("device_copy", "f:2x3", np.copy, "cpu", "cuda")
plain("vision.multibox_prior", "f:1x2x1x2", None, sizes=(0.5,), ratios=(1.0, 2.0))
case(
    "vision.multibox_transform_loc",
    "f:1x2x3 f:1x12 f:1x3x4",
    lambda r, p, b, a: r.vision.multibox_transform_loc(p, b, a, threshold=0.0)[1],
    lambda p, b, a: np.array([3]),
)
case(
    "vision.all_class_non_max_suppression",
    "f:1x2x3",
    lambda r, s: r.vision.all_class_non_max_suppression(r.const(_BOXES), s, 1)[0],
    lambda s: np.stack([[0, c, int(s[0, c].argmax())] for c in range(2)] + [[0, 0, 0]] * 4),
)
case(
    "vision.proposal",
    "f:1x2x2x2 f:1x4x2x2",
    lambda r, p, b: r.vision.proposal(p, b, r.const(np.array([[32, 32, 1]], "float32")), [4.0], [1.0], 16, 0.7, 4, 2, 1, False),
)
plain(
    "annotation.simulated_quantize",
    "f:2x3 f:1 f:1 f:1",
    lambda x, scale, low, high: np.minimum(np.maximum(np.round(x / scale), low), high) * scale,
    kind=1,
)
