"""Pieces of today's networks."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import einsum

from tensorexpr import te, tir, topi

from .table import Draw, Program, normal, number, over, placed, product, program


@program
def rotary_of_halves(draw: Draw) -> Program:
    n, h, d = draw(16, 1000), draw(2, 16), 2 * draw(8, 64)
    x, c, s = placed("X", n, h, d), placed("C", n, d // 2), placed("S", n, d // 2)

    def turned(i: Any, h: Any, j: Any) -> Any:
        a, b = x[i, h, j % (d // 2)], x[i, h, j % (d // 2) + d // 2]
        cos, sin = c[i, j % (d // 2)], s[i, j % (d // 2)]
        return tir.if_then_else(j < d // 2, a * cos - b * sin, b * cos + a * sin)

    def peer(x: Any, c: Any, s: Any) -> Any:
        a, b, c, s = x[..., : d // 2], x[..., d // 2 :], c[:, None], s[:, None]
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    return Program([x, c, s], [te.compute((n, h, d), turned)], peer)


@program
def rotary_in_pairs(draw: Draw) -> Program:
    n, h, d = draw(16, 1000), draw(2, 16), 2 * draw(8, 64)
    x, c, s = placed("X", n, h, d), placed("C", n, d // 2), placed("S", n, d // 2)

    def turned(i: Any, h: Any, j: Any) -> Any:
        other = tir.if_then_else(j % 2 == 0, 0.0 - x[i, h, j + 1 - 2 * (j % 2)], x[i, h, j + 1 - 2 * (j % 2)])
        return x[i, h, j] * c[i, j // 2] + other * s[i, j // 2]

    def peer(x: Any, c: Any, s: Any) -> Any:
        a, b, c, s = x[..., ::2], x[..., 1::2], c[:, None], s[:, None]
        return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)

    return Program([x, c, s], [te.compute((n, h, d), turned)], peer)


@program
def gated_layer(draw: Draw) -> Program:
    n, d, m = draw(1, 128), draw(64, 1000), draw(64, 1500)
    x, w, v, u = placed("X", n, d), placed("W", d, m), placed("V", d, m), placed("U", m, d)
    gate, up = product(x, w), product(x, v)
    inner = te.compute((n, m), lambda i, j: gate[i, j] * te.sigmoid(gate[i, j]) * up[i, j])
    return Program([x, w, v, u], [product(inner, u)], lambda x, w, v, u: (F.silu(x @ w) * (x @ v)) @ u)


@program
def root_mean_square(draw: Draw) -> Program:
    n, d = draw(1, 2000), draw(32, 2000)
    x, g, k = placed("X", n, d), placed("G", d), over(d)
    square = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k))
    out = te.compute((n, d), lambda i, j: x[i, j] * te.rsqrt(square[i] * (1.0 / d) + 1e-6) * g[j])
    return Program([x, g], [out], lambda x, g: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * g)


@program
def norm_of_groups(draw: Draw) -> Program:
    n, g, c, h = draw(1, 4), draw(2, 16), draw(2, 16), draw(4, 64)
    x = placed("X", n, g, c, h, h)
    mean, spread = normal(x, 2, c * h * h)
    out = te.compute(x.shape, lambda b, i, *at: (x(b, i, *at) - mean[b, i]) * te.rsqrt(spread[b, i] + 1e-5))
    return Program([x], [out], lambda x: F.group_norm(x.reshape(n, g * c, h, h), g).reshape(x.shape))


@program
def norm_of_batch(draw: Draw) -> Program:
    n, c, h = draw(2, 32), draw(3, 64), draw(4, 56)
    x, g, b = placed("X", n, c, h, h), placed("G", c), placed("B", c)
    ks, qs = [over(e) for e in (n, h, h)], [over(e) for e in (n, h, h)]
    mean = te.compute((c,), lambda i: te.sum(x[ks[0], i, ks[1], ks[2]] / (n * h * h), axis=ks))
    far = te.compute(x.shape, lambda a, i, y, z: x[a, i, y, z] - mean[i])
    square = te.compute((c,), lambda i: te.sum(far[qs[0], i, qs[1], qs[2]] * far[qs[0], i, qs[1], qs[2]] / (n * h * h), axis=qs))
    out = te.compute(x.shape, lambda a, i, y, z: far[a, i, y, z] * te.rsqrt(square[i] + 1e-5) * g[i] + b[i])
    return Program([x, g, b], [out], lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True))


@program
def pixels_of_channels(draw: Draw) -> Program:
    n, c, h, r = draw(1, 2), draw(1, 16), draw(8, 128), draw.one_of(2, 3, 4)
    x = placed("X", n, c * r * r, h, h)
    out = te.compute((n, c, h * r, h * r), lambda b, i, y, z: x[b, i * r * r + y % r * r + z % r, y // r, z // r])
    return Program([x], [out], lambda x: F.pixel_shuffle(x, r))


@program
def unfolded(draw: Draw) -> Program:
    c, h, r = draw(1, 32), draw(8, 100), draw.one_of(3, 5)
    x, o = placed("X", 1, c, h, h), h - r + 1
    out = te.compute((1, c * r * r, o * o), lambda b, i, p: x[b, i // (r * r), p // o + i // r % r, p % o + i % r])
    return Program([x], [out], lambda x: F.unfold(x, r))


@program
def gates_of_lstm(draw: Draw) -> Program:
    n, d = draw(1, 128), draw(16, 600)
    x, h, c, w, u = placed("X", n, d), placed("H", n, d), placed("C", n, d), placed("W", 4 * d, d), placed("U", 4 * d, d)
    k = over(d)
    gates = te.compute((n, 4 * d), lambda i, j: te.sum(x[i, k] * w[j, k] + h[i, k] * u[j, k], axis=k))
    cell = te.compute(
        (n, d),
        lambda i, j: te.sigmoid(gates[i, j + d]) * c[i, j] + te.sigmoid(gates[i, j]) * te.tanh(gates[i, j + 2 * d]),
    )
    out = te.compute((n, d), lambda i, j: te.sigmoid(gates[i, j + 3 * d]) * te.tanh(cell[i, j]))

    def peer(x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
        i, f, g, o = (x @ w.T + h @ u.T).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh()

    return Program([x, h, c, w, u], [out], peer)


@program
def biased_attention(draw: Draw) -> Program:
    h, n, d = draw(2, 16), draw(16, 400), draw(16, 96)
    q, k, v, b, r, p = placed("Q", h, n, d), placed("K", h, n, d), placed("V", h, n, d), placed("B", h), over(d), over(n)
    dots = te.compute((h, n, n), lambda h, i, j: te.sum(q[h, i, r] * k[h, j, r], axis=r))
    far = te.compute((h, n, n), lambda h, i, j: dots[h, i, j] * number(d**-0.5) + b[h] * (j - i).astype("float32"))
    weights = topi.nn.softmax(te.compute((h, n, n), lambda h, i, j: tir.if_then_else(j <= i, far[h, i, j], -1e9)), axis=-1)
    out = te.compute((h, n, d), lambda h, i, e: te.sum(weights[h, i, p] * v[h, p, e], axis=p))

    def peer(q: Any, k: Any, v: Any, b: Any) -> Any:
        at = torch.arange(n)
        bias = b[:, None, None] * (at[None] - at[:, None])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(at[None] > at[:, None], -1e9))

    return Program([q, k, v, b], [out], peer)


@program
def heads_of_a_group(draw: Draw) -> Program:
    g, m, t, d = draw(1, 4), draw(2, 8), draw(16, 1500), draw(16, 128)
    q, k, r = placed("Q", g, m, d), placed("K", g, t, d), over(d)
    out = te.compute((g, m, t), lambda g, i, j: te.sum(q[g, i, r] * k[g, j, r], axis=r))
    return Program([q, k], [out], lambda q, k: q @ k.mT)


@program
def mixed_experts(draw: Draw) -> Program:
    n, e, d, m = draw(8, 64), draw(2, 8), draw(32, 256), draw(32, 256)
    x, w, g, k, q = placed("X", n, d), placed("W", e, d, m), placed("G", n, e), over(d), over(e)
    each = te.compute((e, n, m), lambda e, i, j: te.sum(x[i, k] * w[e, k, j], axis=k))
    out = te.compute((n, m), lambda i, j: te.sum(each[q, i, j] * g[i, q], axis=q))
    return Program([x, w, g], [out], lambda x, w, g: einsum("enm,ne->nm", x @ w, g))


@program
def bag_of_embeddings(draw: Draw) -> Program:
    v, d, n, t = draw(100, 5000), draw(16, 256), draw(8, 500), draw(2, 30)
    w, at, k = placed("W", v, d), placed("I", n, t, dtype="int32"), over(t)
    out = te.compute((n, d), lambda i, j: te.sum(w[at[i, k] % v, j], axis=k))
    return Program([w, at], [out], lambda w, i: F.embedding_bag(i % v, w, mode="sum"))


@program
def gradient_of_bias(draw: Draw) -> Program:
    n, c, h = draw(2, 32), draw(3, 128), draw(4, 56)
    x, ks = placed("X", n, c, h, h), [over(e) for e in (n, h, h)]
    out = te.compute((c,), lambda i: te.sum(x[ks[0], i, ks[1], ks[2]], axis=ks))
    return Program([x], [out], lambda x: x.sum((0, 2, 3)))


@program
def similarity(draw: Draw) -> Program:
    n, m, d = draw(20, 1000), draw(20, 1000), draw(8, 256)
    a, b = placed("A", n, d), placed("B", m, d)
    ks = over(d), over(d), over(d)
    first = te.compute((n,), lambda i: te.sum(a[i, ks[0]] * a[i, ks[0]], axis=ks[0]))
    other = te.compute((m,), lambda i: te.sum(b[i, ks[1]] * b[i, ks[1]], axis=ks[1]))
    dots = te.compute((n, m), lambda i, j: te.sum(a[i, ks[2]] * b[j, ks[2]], axis=ks[2]))
    out = te.compute((n, m), lambda i, j: dots[i, j] * te.rsqrt(first[i] * other[j]))
    return Program([a, b], [out], lambda a, b: F.normalize(a) @ F.normalize(b).T)


@program
def overlaps_of_boxes(draw: Draw) -> Program:
    n, m = draw(10, 2000), draw(10, 500)
    a, b = placed("A", n, 4), placed("B", m, 4)

    def value(i: Any, j: Any) -> Any:
        sides = [tir.min(a[i, c] + te.abs(a[i, c + 2]), b[j, c] + te.abs(b[j, c + 2])) - tir.max(a[i, c], b[j, c]) for c in (0, 1)]
        both = tir.max(sides[0], 0.0) * tir.max(sides[1], 0.0)
        return both / (te.abs(a[i, 2] * a[i, 3]) + te.abs(b[j, 2] * b[j, 3]) - both + 1e-6)

    def peer(a: Any, b: Any) -> Any:
        a, b = a[:, None], b[None]
        ends = torch.minimum(a[..., :2] + a[..., 2:].abs(), b[..., :2] + b[..., 2:].abs())
        both = (ends - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
        return both / ((a[..., 2] * a[..., 3]).abs() + (b[..., 2] * b[..., 3]).abs() - both + 1e-6)

    return Program([a, b], [te.compute((n, m), value)], peer)
