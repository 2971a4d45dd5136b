"""Sciences: grids, particles, statistics, graphs, dynamic programming."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tensorexpr import te, tir, topi

from .table import Draw, Program, number, over, placed, program


@program
def heat(draw: Draw) -> Program:
    a, b, c = draw(8, 150), draw(8, 150), draw(8, 150)
    x = placed("X", a + 2, b + 2, c + 2)

    def value(i: Any, j: Any, k: Any) -> Any:
        i, j, k = i + 1, j + 1, k + 1
        around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k] + x[i, j, k - 1] + x[i, j, k + 1]
        return x[i, j, k] + 0.1 * (around - 6.0 * x[i, j, k])

    def peer(x: Any) -> Any:
        inner = x[1:-1, 1:-1, 1:-1]
        rows, columns = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1], x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
        return inner + 0.1 * (rows + columns + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:] - 6 * inner)

    return Program([x], [te.compute((a, b, c), value)], peer)


@program
def forces(draw: Draw) -> Program:
    n = draw(20, 2000)
    x, m, k = placed("X", n, 3), placed("M", n), over(n)

    def force(i: Any, c: Any) -> Any:
        d = [x[k, a] - x[i, a] for a in range(3)]
        near = te.rsqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01)
        return te.sum((x[k, c] - x[i, c]) * m[k] * near * near * near, axis=k)

    def peer(x: Any, m: Any) -> Any:
        d = x[None] - x[:, None]
        return (d * (m * (d.square().sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)

    return Program([x, m], [te.compute((n, 3), force)], peer)


@program
def set_of_mandelbrot(draw: Draw) -> Program:
    h, w = draw(30, 500), draw(30, 500)
    a, b = placed("A", h, w), placed("B", h, w)

    def value(i: Any, j: Any) -> Any:
        x, y = number(0.0), number(0.0)
        for _ in range(8):
            x, y = (tir.max(number(-2.0), tir.min(number(2.0), v)) for v in (x * x - y * y + a[i, j], 2.0 * x * y + b[i, j]))
        return x * x + y * y

    def peer(a: Any, b: Any) -> Any:
        x, y = torch.zeros_like(a), torch.zeros_like(a)
        for _ in range(8):
            x, y = (x * x - y * y + a).clamp(-2, 2), (2 * x * y + b).clamp(-2, 2)
        return x * x + y * y

    return Program([a, b], [te.compute((h, w), value)], peer)


@program
def covariance(draw: Draw) -> Program:
    n, d = draw(16, 2000), draw(4, 300)
    x, k, q = placed("X", n, d), over(n), over(n)
    mean = te.compute((d,), lambda j: te.sum(x[k, j] / n, axis=k))
    out = te.compute((d, d), lambda i, j: te.sum((x[q, i] - mean[i]) * (x[q, j] - mean[j]) / (n - 1), axis=q))
    return Program([x], [out], lambda x: torch.cov(x.T))


@program
def mahalanobis(draw: Draw) -> Program:
    n, d = draw(8, 2000), draw(3, 128)
    x, mu, p, k, q = placed("X", n, d), placed("U", d), placed("P", d, d), over(d), over(d)
    centred = te.compute((n, d), lambda i, j: x[i, j] - mu[j])
    turned = te.compute((n, d), lambda i, j: te.sum(centred[i, k] * p[k, j], axis=k))
    out = te.compute((n,), lambda i: te.sum(turned[i, q] * centred[i, q], axis=q))
    return Program([x, mu, p], [out], lambda x, u, p: (((x - u) @ p) * (x - u)).sum(1))


@program
def bilinear(draw: Draw) -> Program:
    n, o, a, b = draw(1, 64), draw(2, 64), draw(8, 100), draw(8, 100)
    x, w, y, k, q = placed("X", n, a), placed("W", o, a, b), placed("Y", n, b), over(a), over(b)
    out = te.compute((n, o), lambda i, j: te.sum(x[i, k] * w[j, k, q] * y[i, q], axis=[k, q]))
    return Program([x, w, y], [out], lambda x, w, y: F.bilinear(x, y, w))


@program
def radial(draw: Draw) -> Program:
    n, m, d = draw(30, 1000), draw(30, 1000), draw(2, 64)
    a, b, k = placed("A", n, d), placed("B", m, d), over(d)
    far = te.compute((n, m), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k))
    out = te.compute((n, m), lambda i, j: te.exp(far[i, j] * -0.5))
    return Program([a, b], [out], lambda a, b: torch.exp(torch.cdist(a, b).square() * -0.5))


@program
def smallest_sums(draw: Draw) -> Program:
    n, m, d = draw(16, 300), draw(16, 300), draw(16, 300)
    a, b, k = placed("A", n, d), placed("B", d, m), over(d)
    out = te.compute((n, m), lambda i, j: te.min(a[i, k] + b[k, j], axis=k))
    return Program([a, b], [out], lambda a, b: (a[:, :, None] + b[None]).amin(1))


@program
def nearest_centre(draw: Draw) -> Program:
    n, c, d = draw(50, 2000), draw(3, 200), draw(2, 64)
    x, y, k = placed("X", n, d), placed("Y", c, d), over(d)
    far = te.compute((n, c), lambda i, j: te.sum((x[i, k] - y[j, k]) * (x[i, k] - y[j, k]), axis=k))
    return Program([x, y], [topi.argmin(far, axis=1)], lambda x, y: torch.cdist(x, y).argmin(1).int())


@program
def sums_by_label(draw: Draw) -> Program:
    n, c, d = draw(50, 2000), draw(3, 64), draw(2, 128)
    x, at, k = placed("X", n, d), placed("I", n, dtype="int32"), over(n)
    out = te.compute((c, d), lambda c_, j: te.sum(te.if_then_else(at[k] % c == c_, x[k, j], 0.0), axis=k))
    return Program([x, at], [out], lambda x, i: torch.zeros(c, d).index_add_(0, i % c, x))


@program
def differing_bits(draw: Draw) -> Program:
    n, m, d = draw(16, 500), draw(16, 500), draw(4, 64)
    a, b, k = placed("A", n, d, dtype="uint8"), placed("B", m, d, dtype="uint8"), over(d)
    out = te.compute((n, m), lambda i, j: te.sum(tir.popcount(a[i, k] ^ b[j, k]).astype("int32"), axis=k))
    bits = torch.tensor([bin(i).count("1") for i in range(256)], dtype=torch.int32)
    return Program([a, b], [out], lambda a, b: bits[(a[:, None] ^ b[None]).int()].sum(-1).int())


@program
def any_of_products(draw: Draw) -> Program:
    n, m, d = draw(16, 300), draw(16, 300), draw(16, 300)
    a, b, k = placed("A", n, d), placed("B", d, m), over(d)
    out = te.compute((n, m), lambda i, j: te.max(te.if_then_else(tir.all(a[i, k] > 1.5, b[k, j] > 1.5), 1, 0), axis=k))
    return Program([a, b], [out], lambda a, b: ((a > 1.5).float() @ (b > 1.5).float() > 0).int())


@program
def sampled_product(draw: Draw) -> Program:
    n, m, d = draw(16, 600), draw(16, 600), draw(8, 256)
    a, b, c, k = placed("A", n, d), placed("B", m, d), placed("C", n, m), over(d)
    dots = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k))
    return Program([a, b, c], [te.compute((n, m), lambda i, j: dots[i, j] * c[i, j])], lambda a, b, c: (a @ b.T) * c)


@program
def neighbours(draw: Draw) -> Program:
    n, d, e = draw(50, 3000), draw(8, 256), draw(2, 16)
    x, at, w, k = placed("X", n, d), placed("I", n, e, dtype="int32"), placed("W", n, e), over(e)
    out = te.compute((n, d), lambda i, j: te.sum(x[at[i, k] % n, j] * w[i, k], axis=k))
    return Program([x, at, w], [out], lambda x, i, w: (x[i.long() % n] * w[..., None]).sum(1))


@program
def polynomial(draw: Draw) -> Program:
    n, degree = draw(100, 1000000), draw(3, 12)
    x, c = placed("X", n), placed("C", degree)

    def value(i: Any) -> Any:
        total = c[0]
        for power in range(1, degree):
            total = total * x[i] + c[power]
        return total

    def peer(x: Any, c: Any) -> Any:
        total = c[0].expand(n)
        for power in range(1, degree):
            total = total * x + c[power]
        return total

    return Program([x, c], [te.compute((n,), value)], peer)


@program
def spread_of_columns(draw: Draw) -> Program:
    n, d = draw(16, 3000), draw(4, 1000)
    x, k, q = placed("X", n, d), over(n), over(n)
    mean = te.compute((d,), lambda j: te.sum(x[k, j] / n, axis=k))
    square = te.compute((d,), lambda j: te.sum((x[q, j] - mean[j]) * (x[q, j] - mean[j]) / n, axis=q))
    out = te.compute((n, d), lambda i, j: (x[i, j] - mean[j]) / te.sqrt(square[j] + 1e-6))
    return Program([x], [out], lambda x: (x - x.mean(0)) / (x.var(0, correction=0) + 1e-6).sqrt())


@program
def life(draw: Draw) -> Program:
    h, w = draw(30, 2000), draw(30, 2000)
    x = placed("X", h + 2, w + 2, dtype="uint8")

    def value(y: Any, z: Any) -> Any:
        around = sum((x[y + r, z + s] & 1 for r in range(3) for s in range(3) if (r, s) != (1, 1)), tir.const(0, "uint8"))
        alive = tir.any(around == 3, tir.all(around == 2, (x[y + 1, z + 1] & 1) == 1))
        return tir.Select(alive, tir.const(1, "uint8"), tir.const(0, "uint8"))

    def peer(x: Any) -> Any:
        bits = x & 1
        around = sum(bits[r : r + h, s : s + w] for r in range(3) for s in range(3)) - bits[1:-1, 1:-1]
        return ((around == 3) | ((around == 2) & (bits[1:-1, 1:-1] == 1))).byte()

    return Program([x], [te.compute((h, w), value)], peer)
