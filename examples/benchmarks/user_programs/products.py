"""Products of matrices, attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import einsum

from tensorexpr import te, tir, topi

from .table import Draw, Program, over, placed, product, program


@program
def transposed_both(draw: Draw) -> Program:
    n, m, d = draw(50, 1000), draw(50, 1000), draw(16, 1000)
    a, b, k = placed("A", d, n), placed("B", m, d), over(d)
    return Program([a, b], [te.compute((n, m), lambda i, j: te.sum(a[k, i] * b[j, k], axis=k))], lambda a, b: a.T @ b.T)


@program
def gram(draw: Draw) -> Program:
    n, d = draw(50, 1000), draw(16, 1000)
    a, k = placed("A", n, d), over(d)
    return Program([a], [te.compute((n, n), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k))], lambda a: a @ a.T)


@program
def scaled(draw: Draw) -> Program:
    n, m, d = draw(50, 600), draw(50, 600), draw(50, 600)
    a, b, s, k = placed("A", n, d), placed("B", d, m), placed("S", d), over(d)
    return Program([a, b, s], [te.compute((n, m), lambda i, j: te.sum(a[i, k] * s[k] * b[k, j], axis=k))], lambda a, b, s: (a * s) @ b)


@program
def dequantised(draw: Draw) -> Program:
    n, m, d = draw(1, 256), draw(64, 1000), draw(64, 1000)
    a, w, z, s, k = placed("A", n, d), placed("W", d, m, dtype="int8"), placed("Z", m), placed("S", m), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(a[i, k] * ((w[k, j].astype("float32") - z[j]) * s[j]), axis=k))
    return Program([a, w, z, s], [out], lambda a, w, z, s: a @ ((w.float() - z) * s))


@program
def halves(draw: Draw) -> Program:
    n, m, d = draw(50, 500), draw(50, 500), draw(16, 500)
    a, b, k = placed("A", n, d, dtype="float16"), placed("B", d, m, dtype="float16"), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k))
    return Program([a, b], [out], lambda a, b: a.float() @ b.float())


@program
def triangle(draw: Draw) -> Program:
    n, m = draw(50, 600), draw(50, 600)
    a, b, k = placed("A", n, n), placed("B", n, m), over(n)
    out = te.compute((n, m), lambda i, j: te.sum(te.if_then_else(k <= i, a[i, k], 0.0) * b[k, j], axis=k))
    return Program([a, b], [out], lambda a, b: torch.tril(a) @ b)


@program
def layers(draw: Draw) -> Program:
    n, d, h = draw(1, 256), draw(64, 768), draw(64, 1500)
    x, w, v, b = placed("X", n, d), placed("W", d, h), placed("V", h, d), placed("B", h)
    first = product(x, w)
    hidden = te.compute((n, h), lambda i, j: tir.max(first[i, j] + b[j], tir.const(0.0, "float32")))
    return Program([x, w, v, b], [product(hidden, v)], lambda x, w, v, b: F.relu(x @ w + b) @ v)


@program
def gated(draw: Draw) -> Program:
    n, d, h = draw(1, 256), draw(64, 768), draw(64, 1500)
    x, w, v = placed("X", n, d), placed("W", d, h), placed("V", d, h)
    a, b = product(x, w), product(x, v)
    out = te.compute((n, h), lambda i, j: a[i, j] * te.sigmoid(a[i, j]) * b[i, j])
    return Program([x, w, v], [out], lambda x, w, v: F.silu(x @ w) * (x @ v))


@program
def low_rank(draw: Draw) -> Program:
    n, d, h, r = draw(8, 256), draw(64, 512), draw(64, 512), draw(4, 16)
    x, w, a, b = placed("X", n, d), placed("W", d, h), placed("A", d, r), placed("B", r, h)
    y, z = product(x, w), product(product(x, a), b)
    return Program([x, w, a, b], [te.compute((n, h), lambda i, j: y[i, j] + z[i, j] * 2.0)], lambda x, w, a, b: x @ w + (x @ a) @ b * 2)


@program
def factors_of_three(draw: Draw) -> Program:
    n, m, d, e = draw(20, 200), draw(20, 200), draw(20, 200), draw(8, 64)
    a, b, c = placed("A", n, d, e), placed("B", d, m), placed("C", e, m)
    k, q = over(d), over(e)
    out = te.compute((n, m), lambda i, j: te.sum(a[i, k, q] * b[k, j] * c[q, j], axis=[k, q]))
    return Program([a, b, c], [out], lambda a, b, c: einsum("ikl,kj,lj->ij", a, b, c))


@program
def complex_numbers(draw: Draw) -> Program:
    n, m, d = draw(30, 400), draw(30, 400), draw(16, 400)
    a, b, k, q = placed("A", n, d, 2), placed("B", d, m, 2), over(d), over(d)
    real = te.compute((n, m), lambda i, j: te.sum(a[i, k, 0] * b[k, j, 0] - a[i, k, 1] * b[k, j, 1], axis=k))
    imaginary = te.compute((n, m), lambda i, j: te.sum(a[i, q, 0] * b[q, j, 1] + a[i, q, 1] * b[q, j, 0], axis=q))

    def peer(a: Any, b: Any) -> Any:
        made = torch.view_as_complex(a) @ torch.view_as_complex(b)
        return made.real.contiguous(), made.imag.contiguous()

    return Program([a, b], [real, imaginary], peer)


@program
def band(draw: Draw) -> Program:
    n, d, w = draw(64, 2000), draw(8, 128), draw(3, 64)
    a, b, k = placed("A", n, d), placed("B", n + w, d), over(d)
    out = te.compute((n, w), lambda i, j: te.sum(a[i, k] * b[i + j, k], axis=k))
    return Program([a, b], [out], lambda a, b: einsum("nd,ndw->nw", a, b.unfold(0, w, 1)[:n]))


@program
def shared_heads(draw: Draw) -> Program:
    b, h, g, q, d = draw(1, 4), draw(1, 8), draw(2, 8), draw(32, 256), draw(16, 96)
    x, y, k = placed("A", b, h * g, q, d), placed("B", b, h, q, d), over(d)
    out = te.compute((b, h * g, q, q), lambda n, m, i, j: te.sum(x[n, m, i, k] * y[n, m // g, j, k], axis=k))

    def peer(x: Any, y: Any) -> Any:
        return (x.reshape(b, h, g, q, d) @ y[:, :, None].transpose(-1, -2)).reshape(b, h * g, q, q)

    return Program([x, y], [out], peer)


def _attention(draw: Draw, is_causal: bool) -> Program:
    h, n, d = draw(4, 48), draw(32, 256), draw(16, 96)
    q, k, v = (placed(name, h, n, d) for name in "QKV")
    r, t = over(d), over(n)
    scores = te.compute((h, n, n), lambda h, i, j: te.sum(q[h, i, r] * k[h, j, r], axis=r))
    least = tir.const(-1e30, "float32")
    seen = te.compute((h, n, n), lambda h, i, j: te.if_then_else(j <= i, scores[h, i, j] * d**-0.5, least))
    weights = topi.nn.softmax(seen if is_causal else te.compute((h, n, n), lambda h, i, j: scores[h, i, j] * d**-0.5), axis=-1)
    out = te.compute((h, n, d), lambda h, i, e: te.sum(weights[h, i, t] * v[h, t, e], axis=t))
    return Program([q, k, v], [out], lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=is_causal))


@program
def attention(draw: Draw) -> Program:
    return _attention(draw, False)


@program
def causal_attention(draw: Draw) -> Program:
    return _attention(draw, True)


@program
def experts(draw: Draw) -> Program:
    e, n, d, h = draw(2, 8), draw(4, 64), draw(32, 256), draw(32, 256)
    x, w, k = placed("X", e, n, d), placed("W", e, d, h), over(d)
    return Program([x, w], [te.compute((e, n, h), lambda e, i, j: te.sum(x[e, i, k] * w[e, k, j], axis=k))], torch.bmm)
