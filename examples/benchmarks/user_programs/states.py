"""Finance and chains of states."""

from __future__ import annotations

import math
from typing import Any

import torch

from tensorexpr import te, tir

from .table import Draw, Program, number, over, placed, program


@program
def options(draw: Draw) -> Program:
    n = draw(1000, 500000)
    s, x, t = placed("S", n), placed("X", n), placed("T", n)

    def value(i: Any) -> Any:
        spot, strike, time = te.abs(s[i]) + 1.0, te.abs(x[i]) + 1.0, te.abs(t[i]) + 0.1
        root = te.sqrt(time) * 0.2
        d = (te.log(spot / strike) + time * 0.05) / root
        phi = [0.5 + 0.5 * te.erf(v * number(0.5**0.5)) for v in (d, d - root)]
        return spot * phi[0] - strike * te.exp(time * -0.03) * phi[1]

    def peer(s: Any, x: Any, t: Any) -> Any:
        s, x, t = s.abs() + 1, x.abs() + 1, t.abs() + 0.1
        root = t.sqrt() * 0.2
        d = ((s / x).log() + t * 0.05) / root
        phi = [0.5 + 0.5 * torch.erf(v * 0.5**0.5) for v in (d, d - root)]
        return s * phi[0] - x * (t * -0.03).exp() * phi[1]

    return Program([s, x, t], [te.compute((n,), value)], peer)


@program
def mean_of_paths(draw: Draw) -> Program:
    n, t = draw(100, 20000), draw(4, 64)
    z, k, q = placed("Z", n, t), over(t), over(n)
    total = te.compute((n,), lambda i: te.sum(z[i, k], axis=k))
    paid = te.compute((n,), lambda i: tir.max(te.exp(total[i] * number(0.1 / math.sqrt(t))) - 1.0, 0.0))
    out = te.compute((1,), lambda _: te.sum(paid[q], axis=q))
    return Program([z], [out], lambda z: (torch.exp(z.sum(1) * (0.1 / math.sqrt(t))) - 1).clamp(min=0).sum(0, keepdim=True))


@program
def likeliest_step(draw: Draw) -> Program:
    n, s = draw(1, 64), draw(8, 300)
    p, a, e, k = placed("P", n, s), placed("A", s, s), placed("E", n, s), over(s)
    best = te.compute((n, s), lambda b, j: te.max(p[b, k] + a[k, j], axis=k))
    out = te.compute((n, s), lambda b, j: best[b, j] + e[b, j])
    return Program([p, a, e], [out], lambda p, a, e: (p[:, :, None] + a).amax(1) + e)


@program
def forward_step(draw: Draw) -> Program:
    n, s = draw(1, 64), draw(8, 200)
    p, a, e, k, q = placed("P", n, s), placed("A", s, s), placed("E", n, s), over(s), over(s)
    most = te.compute((n, s), lambda b, j: te.max(p[b, k] + a[k, j], axis=k))
    total = te.compute((n, s), lambda b, j: te.sum(te.exp(p[b, q] + a[q, j] - most[b, j]), axis=q))
    out = te.compute((n, s), lambda b, j: te.log(total[b, j]) + most[b, j] + e[b, j])
    return Program([p, a, e], [out], lambda p, a, e: torch.logsumexp(p[:, :, None] + a, 1) + e)


@program
def rank_of_pages(draw: Draw) -> Program:
    n = draw(50, 3000)
    a, x, k, q = placed("A", n, n), placed("X", n), over(n), over(n)
    degree = te.compute((n,), lambda j: te.sum(te.abs(a[j, q]), axis=q))
    out = te.compute((n,), lambda i: te.sum(te.abs(a[k, i]) * (x[k] / degree[k]), axis=k))
    return Program([a, x], [out], lambda a, x: a.abs().T @ (x / a.abs().sum(1)))


@program
def reaction(draw: Draw) -> Program:
    h, w = draw(30, 1000), draw(30, 1000)
    u, v = placed("U", h + 2, w + 2), placed("V", h + 2, w + 2)

    def spread(x: Any, y: Any, z: Any) -> Any:
        return x[y, z + 1] + x[y + 2, z + 1] + x[y + 1, z] + x[y + 1, z + 2] - 4.0 * x[y + 1, z + 1]

    def first(y: Any, z: Any) -> Any:
        a, b = u[y + 1, z + 1], v[y + 1, z + 1]
        return a + 0.2 * spread(u, y, z) - a * b * b + 0.04 * (1.0 - a)

    def second(y: Any, z: Any) -> Any:
        a, b = u[y + 1, z + 1], v[y + 1, z + 1]
        return b + 0.1 * spread(v, y, z) + a * b * b - 0.1 * b

    def peer(u: Any, v: Any) -> Any:
        a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]
        p, q = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1] for x in (u, v))
        return a + 0.2 * p - a * b * b + 0.04 * (1 - a), b + 0.1 * q + a * b * b - 0.1 * b

    return Program([u, v], [te.compute((h, w), first), te.compute((h, w), second)], peer)
