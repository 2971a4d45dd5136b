"""Training: gradients, losses, steps of an optimiser."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tensorexpr import te, tir

from .table import Draw, Program, normal, over, placed, program


@program
def gradient_of_weights(draw: Draw) -> Program:
    n, d, h = draw(8, 512), draw(32, 768), draw(32, 768)
    x, dy, k, q = placed("X", n, d), placed("DY", n, h), over(n), over(n)
    weights = te.compute((d, h), lambda i, j: te.sum(x[k, i] * dy[k, j], axis=k))
    bias = te.compute((h,), lambda j: te.sum(dy[q, j], axis=q))
    return Program([x, dy], [weights, bias], lambda x, dy: (x.T @ dy, dy.sum(0)))


@program
def gradient_of_filters(draw: Draw) -> Program:
    n, c, o, s, f = draw(1, 4), draw(3, 64), draw(8, 64), draw(7, 40), draw.one_of(1, 3, 5)
    x, dy = placed("X", n, c, s + f - 1, s + f - 1), placed("DY", n, o, s, s)
    k, p, q = over(n), over(s), over(s)
    out = te.compute((o, c, f, f), lambda o, c, u, v: te.sum(dy[k, o, p, q] * x[k, c, p + u, q + v], axis=[k, p, q]))

    def peer(x: Any, dy: Any) -> Any:
        return torch.nn.grad.conv2d_weight(x, (o, c, f, f), dy)

    return Program([x, dy], [out], peer)


@program
def gradient_of_softmax(draw: Draw) -> Program:
    n, d = draw(2, 2000), draw(8, 2000)
    g, y, k = placed("G", n, d), placed("Y", n, d), over(d)
    total = te.compute((n,), lambda i: te.sum(g[i, k] * y[i, k], axis=k))
    out = te.compute((n, d), lambda i, j: (g[i, j] - total[i]) * y[i, j])
    return Program([g, y], [out], lambda g, y: torch._softmax_backward_data(g, y, 1, torch.float32))


@program
def gradient_of_norm(draw: Draw) -> Program:
    n, d = draw(2, 1000), draw(16, 2000)
    dy, x, g = placed("DY", n, d), placed("X", n, d), placed("G", d)
    mean, variance = normal(x, 1, d)
    scale = te.compute((n,), lambda i: te.rsqrt(variance[i] + 1e-5))
    k, q = over(d), over(d)
    first = te.compute((n,), lambda i: te.sum(dy[i, k] * g[k], axis=k))
    second = te.compute((n,), lambda i: te.sum(dy[i, q] * g[q] * (x[i, q] - mean[i]), axis=q))

    def value(i: Any, j: Any) -> Any:
        return scale[i] * (dy[i, j] * g[j] - first[i] / d - (x[i, j] - mean[i]) * scale[i] * scale[i] * second[i] / d)

    def peer(dy: Any, x: Any, g: Any) -> Any:
        mean, variance = x.mean(1, keepdim=True), x.var(1, unbiased=False, keepdim=True)
        return torch.ops.aten.native_layer_norm_backward(dy, x, [d], mean, torch.rsqrt(variance + 1e-5), g, g, [True, False, False])[0]

    return Program([dy, x, g], [te.compute((n, d), value)], peer)


@program
def cross_entropy(draw: Draw) -> Program:
    n, c = draw(4, 1000), draw(8, 2000)
    x, at, k, q, r = placed("X", n, c), placed("I", n, dtype="int32"), over(c), over(c), over(n)
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k))
    total = te.compute((n,), lambda i: te.sum(te.exp(x[i, q] - most[i]), axis=q))
    out = te.compute((1,), lambda _: te.sum((te.log(total[r]) + most[r] - x[r, tir.min(at[r], c - 1)]) / n, axis=r))
    return Program([x, at], [out], lambda x, i: F.cross_entropy(x, i.long().clamp(max=c - 1))[None])


@program
def step_of_adam(draw: Draw) -> Program:
    n = draw(100, 1000000)
    w, g, m, v = (placed(name, n) for name in "WGMV")
    first = te.compute((n,), lambda i: m[i] * 0.9 + g[i] * 0.1)
    second = te.compute((n,), lambda i: v[i] * v[i] * 0.999 + g[i] * g[i] * 0.001)
    out = te.compute((n,), lambda i: w[i] - first[i] * 0.001 / (te.sqrt(second[i]) + 1e-8))

    def peer(w: Any, g: Any, m: Any, v: Any) -> Any:
        first, second = m * 0.9 + g * 0.1, v * v * 0.999 + g * g * 0.001
        return first, second, w - first * 0.001 / (second.sqrt() + 1e-8)

    return Program([w, g, m, v], [first, second, out], peer)


@program
def huber(draw: Draw) -> Program:
    n, m = draw(10, 2000), draw(10, 2000)
    a, b, k = placed("A", n, m), placed("B", n, m), over(m)

    def loss(i: Any, k: Any) -> Any:
        d = te.abs(a[i, k] - b[i, k])
        return te.if_then_else(d < 1.0, d * d * 0.5, d - 0.5)

    return Program(
        [a, b], [te.compute((n,), lambda i: te.sum(loss(i, k), axis=k))], lambda a, b: F.huber_loss(a, b, reduction="none").sum(1)
    )
