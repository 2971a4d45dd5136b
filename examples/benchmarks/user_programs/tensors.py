"""Products of tensors, small matrices, geometry."""

from __future__ import annotations

from typing import Any

import torch
from torch import einsum

from tensorexpr import te, tir

from .table import Draw, Program, over, placed, program


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
