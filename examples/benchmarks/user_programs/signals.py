"""Signals and pictures."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import einsum

from tensorexpr import te, tir, topi

from .table import Draw, Program, number, over, placed, program


@program
def filtered_signals(draw: Draw) -> Program:
    n, t, r = draw(1, 16), draw(200, 50000), draw(3, 65)
    x, w, k = placed("X", n, t + r - 1), placed("W", r), over(r)
    out = te.compute((n, t), lambda i, j: te.sum(x[i, j + k] * w[k], axis=k))
    return Program([x, w], [out], lambda x, w: F.conv1d(x[:, None], w[None, None])[:, 0])


@program
def causal_filters(draw: Draw) -> Program:
    n, c, o, t, r = draw(1, 4), draw(4, 64), draw(4, 64), draw(50, 2000), draw.one_of(2, 3, 5)
    x, w, k, q = placed("X", n, c, t), placed("W", o, c, r), over(c), over(r)
    padded = topi.nn.pad(x, (0, 0, r - 1), (0, 0, 0))
    out = te.compute((n, o, t), lambda b, f, i: te.sum(padded[b, k, i + q] * w[f, k, q], axis=[k, q]))
    return Program([x, w], [out], lambda x, w: F.conv1d(F.pad(x, (r - 1, 0)), w))


@program
def correlated(draw: Draw) -> Program:
    c, h, w, r = draw(8, 64), draw(8, 64), draw(8, 100), draw.one_of(1, 2, 3)
    a, b, k = placed("A", c, h, w), placed("B", c, h + 2 * r, w + 2 * r), over(c)
    e = 2 * r + 1
    out = te.compute((e, e, h, w), lambda u, v, y, z: te.sum(a[k, y, z] * b[k, y + u, z + v], axis=k))

    def peer(a: Any, b: Any) -> Any:
        return torch.stack([torch.stack([(a * b[:, u : u + h, v : v + w]).sum(0) for v in range(e)]) for u in range(e)])

    return Program([a, b], [out], peer)


@program
def cosine_transform(draw: Draw) -> Program:
    h, w = 8 * draw(4, 100), 8 * draw(4, 100)
    x, c, k, q = placed("X", h, w), placed("C", 8, 8), over(8), over(8)
    rows = te.compute((h, w), lambda i, j: te.sum(c[i % 8, k] * x[i // 8 * 8 + k, j], axis=k))
    out = te.compute((h, w), lambda i, j: te.sum(rows[i, j // 8 * 8 + q] * c[j % 8, q], axis=q))

    def peer(x: Any, c: Any) -> Any:
        blocks = x.reshape(h // 8, 8, w // 8, 8)
        return einsum("ik,akbl,jl->aibj", c, blocks, c).reshape(h, w)

    return Program([x, c], [out], peer)


@program
def wavelet(draw: Draw) -> Program:
    n, t = draw(1, 200), 2 * draw(32, 4000)
    x = placed("X", n, t)
    low = te.compute((n, t // 2), lambda i, j: (x[i, 2 * j] + x[i, 2 * j + 1]) * number(0.5**0.5))
    high = te.compute((n, t // 2), lambda i, j: (x[i, 2 * j] - x[i, 2 * j + 1]) * number(0.5**0.5))
    return Program([x], [low, high], lambda x: ((x[:, ::2] + x[:, 1::2]) * 0.5**0.5, (x[:, ::2] - x[:, 1::2]) * 0.5**0.5))


@program
def autocorrelation(draw: Draw) -> Program:
    n, t, lags = draw(1, 32), draw(100, 5000), draw(4, 64)
    x, k = placed("X", n, t + lags), over(t)
    out = te.compute((n, lags), lambda i, lag: te.sum(x[i, k] * x[i, k + lag], axis=k))
    return Program([x], [out], lambda x: einsum("nt,ntl->nl", x[:, :t], x.unfold(1, lags, 1)[:, :t]))


@program
def bilateral(draw: Draw) -> Program:
    h, w, r = draw(20, 300), draw(20, 400), draw.one_of(1, 2)
    x, e = placed("X", h + 2 * r, w + 2 * r), 2 * r + 1

    def weight(y: Any, z: Any, u: Any, v: Any) -> Any:
        far = x[y + u, z + v] - x[y + r, z + r]
        return te.exp(far * far * -2.0)

    ks, qs = (over(e), over(e)), (over(e), over(e))
    total = te.compute((h, w), lambda y, z: te.sum(weight(y, z, *ks), axis=ks))
    value = te.compute((h, w), lambda y, z: te.sum(weight(y, z, *qs) * x[y + qs[0], z + qs[1]], axis=qs))
    out = te.compute((h, w), lambda y, z: value[y, z] / total[y, z])

    def peer(x: Any) -> Any:
        windows = x.unfold(0, e, 1).unfold(1, e, 1)
        weights = torch.exp((windows - x[r : r + h, r : r + w, None, None]).square() * -2)
        return (weights * windows).sum((2, 3)) / weights.sum((2, 3))

    return Program([x], [out], peer)


@program
def grown(draw: Draw) -> Program:
    h, w, r = draw(20, 1000), draw(20, 1000), draw.one_of(3, 5, 7)
    x, k, q = placed("X", h + r - 1, w + r - 1, dtype="uint8"), over(r), over(r)
    out = te.compute((h, w), lambda y, z: te.max(x[y + k, z + q], axis=[k, q]))
    return Program([x], [out], lambda x: F.max_pool2d(x.float()[None], r, 1)[0].byte())


@program
def sampled_between(draw: Draw) -> Program:
    c, h, w = draw(1, 16), draw(20, 200), draw(20, 200)
    x, u, v = placed("X", c, h, w), placed("U", h, w), placed("V", h, w)

    def value(c: Any, y: Any, z: Any) -> Any:
        a = tir.max(0.0, tir.min(number(h - 1.001), u[y, z] * 3.0 + y.astype("float32")))
        b = tir.max(0.0, tir.min(number(w - 1.001), v[y, z] * 3.0 + z.astype("float32")))
        i, j = (te.floor(one).astype("int32") for one in (a, b))
        p, q = a - te.floor(a), b - te.floor(b)
        upper = x[c, i, j] * (1.0 - q) + x[c, i, j + 1] * q
        return upper * (1.0 - p) + (x[c, i + 1, j] * (1.0 - q) + x[c, i + 1, j + 1] * q) * p

    def peer(x: Any, u: Any, v: Any) -> Any:
        a = (u * 3 + torch.arange(h)[:, None]).clamp(0, h - 1.001) / (h - 1) * 2 - 1
        b = (v * 3 + torch.arange(w)[None]).clamp(0, w - 1.001) / (w - 1) * 2 - 1
        return F.grid_sample(x[None], torch.stack([b, a], -1)[None], align_corners=True)[0]

    return Program([x, u, v], [te.compute((c, h, w), value)], peer)


@program
def looked_up(draw: Draw) -> Program:
    h, w = draw(20, 1500), draw(20, 1500)
    x, t = placed("X", h, w, dtype="uint8"), placed("T", 256)
    return Program([x, t], [te.compute((h, w), lambda y, z: t[x[y, z].astype("int32")])], lambda x, t: t[x.int()])
