"""Inference: weights of few bits, one query, states."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import einsum

from tensorexpr import te, topi

from .table import Draw, Program, normal, number, over, placed, product, program


@program
def weights_of_bytes(draw: Draw) -> Program:
    n, m, d = draw(1, 8), draw(128, 4096), draw(128, 4096)
    x, w, s, k = placed("X", n, d), placed("W", m, d, dtype="int8"), placed("S", m), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(x[i, k] * w[j, k].astype("float32"), axis=k))
    return Program([x, w, s], [te.compute((n, m), lambda i, j: out[i, j] * s[j])], lambda x, w, s: (x @ w.float().T) * s)


@program
def products_of_bytes(draw: Draw) -> Program:
    n, m, d = draw(1, 256), draw(16, 768), draw(16, 1024)
    x, w, k = placed("X", n, d, dtype="int8"), placed("W", m, d, dtype="int8"), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(x[i, k].astype("int32") * w[j, k].astype("int32"), axis=k))
    return Program([x, w], [out], lambda x, w: (x.float() @ w.float().T).int())


@program
def weights_of_nibbles(draw: Draw) -> Program:
    n, m, half = draw(1, 8), draw(64, 2048), draw(64, 1024)
    x, w, s, k = placed("X", n, 2 * half), placed("W", m, half, dtype="uint8"), placed("S", m), over(2 * half)

    def weight(j: Any, k: Any) -> Any:
        return ((w[j, k // 2].astype("int32") >> (4 * (k % 2))) & 15).astype("float32") - 8.0

    out = te.compute((n, m), lambda i, j: te.sum(x[i, k] * weight(j, k), axis=k))

    def peer(x: Any, w: Any, s: Any) -> Any:
        both = torch.stack([w & 15, w >> 4], -1).reshape(m, 2 * half).float() - 8
        return (x @ both.T) * s

    return Program([x, w, s], [te.compute((n, m), lambda i, j: out[i, j] * s[j])], peer)


@program
def one_query(draw: Draw) -> Program:
    h, t, d = draw(4, 32), draw(16, 2000), draw(16, 128)
    q, k, v, r, p = placed("Q", h, d), placed("K", h, t, d), placed("V", h, t, d), over(d), over(t)
    scores = te.compute((h, t), lambda h, j: te.sum(q[h, r] * k[h, j, r], axis=r))
    weights = topi.nn.softmax(te.compute((h, t), lambda h, j: scores[h, j] * number(d**-0.5)), axis=-1)
    out = te.compute((h, d), lambda h, e: te.sum(weights[h, p] * v[h, p, e], axis=p))
    return Program([q, k, v], [out], lambda q, k, v: F.scaled_dot_product_attention(q[:, None], k, v)[:, 0])


@program
def heads_side_by_side(draw: Draw) -> Program:
    b, n, h, d = draw(1, 4), draw(16, 256), draw(2, 16), draw(16, 96)
    q, k, r = placed("Q", b, n, h, d), placed("K", b, n, h, d), over(d)
    out = te.compute((b, h, n, n), lambda b, h, i, j: te.sum(q[b, i, h, r] * k[b, j, h, r], axis=r))
    return Program([q, k], [out], lambda q, k: einsum("bihd,bjhd->bhij", q, k))


@program
def linear_attention(draw: Draw) -> Program:
    h, n, d = draw(2, 16), draw(32, 1000), draw(16, 64)
    q, k, v, t, r = placed("Q", h, n, d), placed("K", h, n, d), placed("V", h, n, d), over(n), over(d)
    state = te.compute((h, d, d), lambda h, a, b: te.sum(k[h, t, a] * v[h, t, b], axis=t))
    out = te.compute((h, n, d), lambda h, i, e: te.sum(q[h, i, r] * state[h, r, e], axis=r))
    return Program([q, k, v], [out], lambda q, k, v: q @ (k.transpose(1, 2) @ v))


@program
def norm_before_product(draw: Draw) -> Program:
    n, d, h = draw(1, 256), draw(64, 1024), draw(64, 1024)
    x, g, w, k = placed("X", n, d), placed("G", d), placed("W", d, h), over(d)
    total = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k))
    normed = te.compute((n, d), lambda i, j: x[i, j] * te.rsqrt(total[i] / d + 1e-5) * g[j])
    return Program([x, g, w], [product(normed, w)], lambda x, g, w: F.rms_norm(x, (d,), g, 1e-5) @ w)


@program
def depthwise_of_time(draw: Draw) -> Program:
    t, c = draw(16, 2000), draw(16, 1024)
    x, w, b, k = placed("X", t + 3, c), placed("W", 4, c), placed("B", c), over(4)
    out = te.compute((t, c), lambda i, j: te.sum(x[i + k, j] * w[k, j], axis=k))
    active = te.compute((t, c), lambda i, j: (out[i, j] + b[j]) * te.sigmoid(out[i, j] + b[j]))

    def peer(x: Any, w: Any, b: Any) -> Any:
        return F.silu(F.conv1d(x.T[None], w.T[:, None], b, groups=c))[0].T.contiguous()

    return Program([x, w, b], [active], peer)


@program
def states_in_time(draw: Draw) -> Program:
    t, c = draw(16, 500), draw(16, 2000)
    a, x = placed("A", t, c), placed("X", t, c)
    state = te.placeholder((t, c), name="state")
    first = te.compute((1, c), lambda _, j: x[0, j])
    update = te.compute((t, c), lambda i, j: te.sigmoid(a[i, j]) * state[i - 1, j] + x[i, j])

    def peer(a: Any, x: Any) -> Any:
        found, gates = [x[0]], torch.sigmoid(a)
        for i in range(1, t):
            found.append(gates[i] * found[-1] + x[i])
        return torch.stack(found)

    return Program([a, x], [te.scan(first, update, state, inputs=[a, x])], peer)


@program
def embedded(draw: Draw) -> Program:
    v, n, d = draw(100, 10000), draw(8, 512), draw(32, 768)
    table, places, at, g, b = placed("T", v, d), placed("P", n, d), placed("I", n, dtype="int32"), placed("G", d), placed("B", d)
    x = te.compute((n, d), lambda i, j: table[at[i], j] + places[i, j])
    mean, variance = normal(x, 1, d)
    out = te.compute((n, d), lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(variance[i] + 1e-5) * g[j] + b[j])
    return Program([table, places, at, g, b], [out], lambda t, p, i, g, b: F.layer_norm(t[i.long()] + p, (d,), g, b))
