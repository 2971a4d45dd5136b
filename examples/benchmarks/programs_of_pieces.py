"""More programs for `programs.py`: pieces of today's networks, of signals, tensors, finance, geometry and chains of states."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from programs_of_fields import PROGRAMS as PROGRAMS  # all of them, when this file has put its own there
from programs_of_fields import number
from programs_of_users import Draw, Program, normal, over, placed, product, program
from torch import einsum

from tensorexpr import te, tir, topi

# Networks


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


# Signals and pictures


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


# Tensors and matrices


@program
def mttkrp(draw: Draw) -> Program:
    a, b, c, r = draw(8, 200), draw(8, 100), draw(8, 100), draw(4, 64)
    x, u, v, k, q = placed("X", a, b, c), placed("U", b, r), placed("V", c, r), over(b), over(c)
    out = te.compute((a, r), lambda i, j: te.sum(x[i, k, q] * u[k, j] * v[q, j], axis=[k, q]))
    return Program([x, u, v], [out], lambda x, u, v: einsum("abc,br,cr->ar", x, u, v))


@program
def along_middle(draw: Draw) -> Program:
    a, b, c, r = draw(4, 100), draw(8, 200), draw(4, 200), draw(4, 100)
    x, u, k = placed("X", a, b, c), placed("U", r, b), over(b)
    out = te.compute((a, r, c), lambda i, j, m: te.sum(u[j, k] * x[i, k, m], axis=k))
    return Program([x, u], [out], lambda x, u: u @ x)


@program
def along_first(draw: Draw) -> Program:
    a, b, c, r = draw(8, 200), draw(4, 100), draw(4, 100), draw(4, 100)
    x, u, k = placed("X", a, b, c), placed("U", a, r), over(a)
    out = te.compute((r, b, c), lambda j, i, m: te.sum(u[k, j] * x[k, i, m], axis=k))
    return Program([x, u], [out], lambda x, u: einsum("abc,ar->rbc", x, u))


@program
def chain_of_batches(draw: Draw) -> Program:
    n, a, b, c, d = draw(2, 64), draw(4, 100), draw(4, 100), draw(4, 100), draw(4, 100)
    x, y, z, k, q = placed("X", n, a, b), placed("Y", n, b, c), placed("Z", n, c, d), over(b), over(c)
    first = te.compute((n, a, c), lambda n, i, j: te.sum(x[n, i, k] * y[n, k, j], axis=k))
    out = te.compute((n, a, d), lambda n, i, j: te.sum(first[n, i, q] * z[n, q, j], axis=q))
    return Program([x, y, z], [out], lambda x, y, z: x @ y @ z)


@program
def diagonals_of_products(draw: Draw) -> Program:
    n, d = draw(20, 1000), draw(8, 1000)
    a, b, k = placed("A", n, d), placed("B", d, n), over(d)
    return Program([a, b], [te.compute((n,), lambda i: te.sum(a[i, k] * b[k, i], axis=k))], lambda a, b: einsum("id,di->i", a, b))


@program
def sum_of_two_products(draw: Draw) -> Program:
    n, m, d = draw(8, 600), draw(8, 600), draw(8, 600)
    a, b, c, e, k = placed("A", n, d), placed("B", d, m), placed("C", n, d), placed("E", d, m), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j] + c[i, k] * e[k, j], axis=k))
    return Program([a, b, c, e], [out], lambda a, b, c, e: a @ b + c @ e)


@program
def small_inverses(draw: Draw) -> Program:
    n = draw(100, 50000)
    x = placed("X", n, 2, 2)

    def value(i: Any, r: Any, c: Any) -> Any:
        det = x[i, 0, 0] * x[i, 1, 1] - x[i, 0, 1] * x[i, 1, 0]
        det = det + tir.if_then_else(det < 0.0, -0.5, 0.5)
        return tir.if_then_else(r == c, x[i, 1 - r, 1 - c], 0.0 - x[i, r, c]) / det

    def peer(x: Any) -> Any:
        a, b, c, d = x[:, 0, 0], x[:, 0, 1], x[:, 1, 0], x[:, 1, 1]
        det = a * d - b * c
        det = det + torch.where(det < 0, -0.5, 0.5)
        return torch.stack([d, -b, -c, a], -1).reshape(n, 2, 2) / det[:, None, None]

    return Program([x], [te.compute((n, 2, 2), value)], peer)


@program
def rotated_points(draw: Draw) -> Program:
    n, m = draw(1, 64), draw(50, 5000)
    r, x, t, k = placed("R", n, 3, 3), placed("X", m, 3), placed("T", n, 3), over(3)
    turned = te.compute((n, m, 3), lambda n, i, c: te.sum(r[n, c, k] * x[i, k], axis=k))
    out = te.compute((n, m, 3), lambda n, i, c: turned[n, i, c] + t[n, c])
    return Program([r, x, t], [out], lambda r, x, t: x @ r.mT + t[:, None])


@program
def crossed(draw: Draw) -> Program:
    n = draw(100, 200000)
    a, b = placed("A", n, 3), placed("B", n, 3)
    out = te.compute((n, 3), lambda i, c: a[i, (c + 1) % 3] * b[i, (c + 2) % 3] - a[i, (c + 2) % 3] * b[i, (c + 1) % 3])
    return Program([a, b], [out], torch.linalg.cross)


@program
def products_of_quaternions(draw: Draw) -> Program:
    n = draw(100, 100000)
    a, b = placed("A", 4, n), placed("B", 4, n)

    def part(*signed: tuple[int, int, int]) -> Any:
        return te.compute((n,), lambda i: sum((a[p, i] * b[q, i] * float(sign) for sign, p, q in signed[1:]), a[0, i] * b[signed[0][2], i]))

    first = part((1, 0, 0), (-1, 1, 1), (-1, 2, 2), (-1, 3, 3))
    second = part((1, 0, 1), (1, 1, 0), (1, 2, 3), (-1, 3, 2))

    def peer(a: Any, b: Any) -> Any:
        (p, q, r, s), (t, u, v, w) = a, b
        return p * t - q * u - r * v - s * w, p * u + q * t + r * w - s * v

    return Program([a, b], [first, second], peer)


# Finance and chains of states


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
