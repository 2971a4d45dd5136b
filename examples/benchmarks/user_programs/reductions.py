"""Distances, norms and reductions."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tensorexpr import te, topi

from .table import Draw, Program, normal, over, placed, program


@program
def squared_distances(draw: Draw) -> Program:
    n, m, d = draw(50, 1500), draw(50, 1500), draw(3, 256)
    a, b, k = placed("A", n, d), placed("B", m, d), over(d)
    out = te.compute((n, m), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k))
    return Program([a, b], [out], lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") ** 2)


@program
def absolute_distances(draw: Draw) -> Program:
    n, m, d = draw(50, 1000), draw(50, 1000), draw(3, 128)
    a, b, k = placed("A", n, d), placed("B", m, d), over(d)
    return Program(
        [a, b], [te.compute((n, m), lambda i, j: te.sum(te.abs(a[i, k] - b[j, k]), axis=k))], lambda a, b: torch.cdist(a, b, p=1)
    )


@program
def cosines(draw: Draw) -> Program:
    n, m, d = draw(16, 500), draw(16, 500), draw(8, 300)
    a, b, k, p, q = placed("A", n, d), placed("B", m, d), over(d), over(d), over(d)
    of_a = te.compute((n,), lambda i: te.sum(a[i, p] * a[i, p], axis=p))
    of_b = te.compute((m,), lambda j: te.sum(b[j, q] * b[j, q], axis=q))
    dots = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k))
    out = te.compute((n, m), lambda i, j: dots[i, j] * te.rsqrt(of_a[i] * of_b[j]))
    return Program([a, b], [out], lambda a, b: F.normalize(a, dim=1) @ F.normalize(b, dim=1).T)


@program
def batch_norm(draw: Draw) -> Program:
    c, n = draw(3, 256), draw(16, 4000)
    x, g, b = placed("X", c, n), placed("G", c), placed("B", c)
    mean, variance = normal(x, 1, n)
    out = te.compute((c, n), lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(variance[i] + 1e-5) * g[i] + b[i])

    def peer(x: Any, g: Any, b: Any) -> Any:
        return F.batch_norm(x[None], None, None, g, b, True)[0]

    return Program([x, g, b], [out], peer)


@program
def group_norm(draw: Draw) -> Program:
    n, g, c, p = draw(1, 8), draw(2, 32), draw(2, 16), draw(16, 2000)
    x = placed("X", n, g, c, p)
    mean, variance = normal(x, 2, c * p)
    out = te.compute((n, g, c, p), lambda n, g, i, j: (x[n, g, i, j] - mean[n, g]) * te.rsqrt(variance[n, g] + 1e-5))
    return Program([x], [out], lambda x: F.group_norm(x.reshape(n, g * c, p), g).reshape(n, g, c, p))


@program
def root_mean_square_norm(draw: Draw) -> Program:
    n, d = draw(1, 2000), draw(16, 4096)
    x, g, k = placed("X", n, d), placed("G", d), over(d)
    total = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k))
    out = te.compute((n, d), lambda i, j: x[i, j] * te.rsqrt(total[i] / d + 1e-5) * g[j])
    return Program([x, g], [out], lambda x, g: F.rms_norm(x, (d,), g, 1e-5))


@program
def softmax_of_columns(draw: Draw) -> Program:
    x = placed("X", draw(2, 2000), draw(16, 2000))
    return Program([x], [topi.nn.softmax(x, axis=0)], lambda x: torch.softmax(x, 0))


@program
def log_of_sums(draw: Draw) -> Program:
    n, d = draw(2, 2000), draw(16, 2000)
    x, k, q = placed("X", n, d), over(d), over(d)
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k))
    total = te.compute((n,), lambda i: te.sum(te.exp(x[i, q] - most[i]), axis=q))
    return Program([x], [te.compute((n,), lambda i: te.log(total[i]) + most[i])], lambda x: torch.logsumexp(x, 1))


@program
def middle_sums(draw: Draw) -> Program:
    n, m, d = draw(1, 200), draw(2, 500), draw(2, 500)
    x, k = placed("X", n, m, d), over(m)
    return Program([x], [te.compute((n, d), lambda i, j: te.sum(x[i, k, j], axis=k))], lambda x: x.sum(1))


@program
def places_of_maxima(draw: Draw) -> Program:
    x, axis = placed("X", draw(2, 2000), draw(16, 2000)), draw.one_of(0, 1)
    return Program([x], [topi.argmax(x, axis=axis)], lambda x: x.argmax(axis).int())


@program
def running_sums(draw: Draw) -> Program:
    x, axis = placed("X", draw(2, 2000), draw(16, 2000)), draw.one_of(0, 1)
    return Program([x], [topi.cumsum(x, axis=axis)], lambda x: x.cumsum(axis))


@program
def squared_errors(draw: Draw) -> Program:
    n, m = draw(10, 2000), draw(10, 2000)
    a, b, k, q = placed("A", n, m), placed("B", n, m), over(n), over(m)
    out = te.compute((1,), lambda i: te.sum((a[k, q] - b[k, q]) * (a[k, q] - b[k, q]), axis=[k, q]))
    return Program([a, b], [out], lambda a, b: F.mse_loss(a, b, reduction="sum")[None])


@program
def matrix_times_vector(draw: Draw) -> Program:
    n, m = draw(8, 3000), draw(8, 3000)
    a, b, k = placed("A", n, m), placed("B", n), over(n)
    return Program([a, b], [te.compute((m,), lambda i: te.sum(a[k, i] * b[k], axis=k))], lambda a, b: a.T @ b)
