"""Small programs of all shapes that schedule rules tell apart, for tests of design spaces."""

from __future__ import annotations

from collections.abc import Callable

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir, topi
from tensorexpr.schedule.blocks import Schedule
from tensorexpr.te import Tensor


def matmul_of(a: Tensor, b: Tensor, name: str = "C", **attrs: object) -> Tensor:
    """a @ b."""
    k = te.reduce_axis((0, a.shape[1]), name="k")
    made: Tensor = te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=name, attrs=dict(attrs))
    return made


def _relu(x: Tensor) -> Tensor:
    made: Tensor = te.compute(x.shape, lambda *i: tir.max(x(*i), tir.const(0, "float32")), name="relu")
    return made


def _placed(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [te.placeholder(shape, "float32", name=f"P{n}") for n, shape in enumerate(shapes)]


def _matmul() -> list[Tensor]:
    a, b = _placed((12, 20), (20, 16))
    return [a, b, matmul_of(a, b)]


def _matmul_bias_relu() -> list[Tensor]:
    a, b, d = _placed((12, 8), (8, 18), (18,))
    c = matmul_of(a, b)
    return [a, b, d, _relu(te.compute(c.shape, lambda i, j: c[i, j] + d[j], name="add"))]


def _two_matmuls() -> list[Tensor]:
    a, b, e = _placed((8, 8), (8, 8), (8, 12))
    return [a, b, e, matmul_of(matmul_of(a, b), e, "D")]


def _weights() -> list[Tensor]:
    a, b = _placed((8, 24), (24, 16))
    return [a, b, matmul_of(a, b, layout_free_placeholders=[b])]


def _conv() -> list[Tensor]:
    x, f, b = _placed((1, 6, 6, 4), (3, 3, 4, 8), (8,))
    return [x, f, b, topi.nn.relu(topi.add(topi.nn.conv2d_nhwc(x, f, 1, 1, 1), b))]


def _depthwise() -> list[Tensor]:
    x, f = _placed((1, 4, 7, 7), (4, 1, 3, 3))
    return [x, f, topi.nn.depthwise_conv2d_nchw(x, f, 1, 1, 1)]


def _softmax() -> list[Tensor]:
    (x,) = _placed((6, 20))
    return [x, topi.nn.softmax(x)]


def _layer_norm() -> list[Tensor]:
    x, g, b = _placed((6, 24), (24,), (24,))
    return [x, g, b, topi.nn.layer_norm(x, g, b, [1], 1e-5)]


def _pool() -> list[Tensor]:
    (x,) = _placed((1, 4, 9, 9))
    return [x, topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")]


def _squares() -> list[Tensor]:
    (x,) = _placed((2, 16, 12))
    k, m = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 12), name="m")
    s = te.compute((2,), lambda i: te.sum(x[i, k, m] * x[i, k, m], axis=[k, m]), name="S")
    return [x, te.compute((2,), lambda i: tir.sqrt(s[i]), name="D")]


def _chain() -> list[Tensor]:
    (x,) = _placed((6, 14))
    a = te.compute(x.shape, lambda i, j: tir.exp(x[i, j]), name="a")
    return [x, _relu(te.compute(x.shape, lambda i, j: a[i, j] * 2.0, name="b"))]


def _transposed() -> list[Tensor]:
    a, b = _placed((8, 12), (8, 6))
    return [a, b, matmul_of(te.compute((12, 8), lambda i, j: a[j, i], name="T"), b)]


# Name -> (what declares it, the number of design spaces that TVM 0.19 makes with the rules for "llvm" and four cores).
PROGRAMS: dict[str, tuple[Callable[[], list[Tensor]], int]] = {
    "matmul": (_matmul, 3),
    "matmul_bias_relu": (_matmul_bias_relu, 3),
    "two_matmuls": (_two_matmuls, 9),
    "weights": (_weights, 3),
    "conv": (_conv, 3),
    "depthwise": (_depthwise, 3),
    "softmax": (_softmax, 9),
    "layer_norm": (_layer_norm, 9),
    "pool": (_pool, 3),
    "squares": (_squares, 3),
    "chain": (_chain, 1),
    "transposed": (_transposed, 3),
}


def program(name: str) -> tvm.IRModule:
    """One of these as a module."""
    return tvm.IRModule({"main": te.create_prim_func(PROGRAMS[name][0]())})


def spaces_of(task: ms.TuneContext) -> list[Schedule]:
    """The design spaces of a task that are schedules."""
    return [space for space in task.generate_design_space() if isinstance(space, Schedule)]
