"""Stencils, convolutions and what is moved."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tensorexpr import te, topi

from .table import Draw, Program, over, placed, program


@program
def star(draw: Draw) -> Program:
    n, m = draw(50, 3000), draw(50, 3000)
    x = placed("X", n, m)
    out = te.compute((n - 2, m - 2), lambda i, j: (x[i, j + 1] + x[i + 1, j] + x[i + 2, j + 1] + x[i + 1, j + 2] + x[i + 1, j + 1]) * 0.2)
    weights = torch.tensor([[[[0, 0.2, 0], [0.2, 0.2, 0.2], [0, 0.2, 0]]]])
    return Program([x], [out], lambda x: F.conv2d(x[None, None], weights)[0, 0])


@program
def blur(draw: Draw) -> Program:
    n, m = draw(50, 3000), draw(50, 3000)
    x = placed("X", n, m)
    rows = te.compute((n, m - 2), lambda i, j: (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0)
    out = te.compute((n - 2, m - 2), lambda i, j: (rows[i, j] + rows[i + 1, j] + rows[i + 2, j]) / 3.0)
    return Program([x], [out], lambda x: F.avg_pool2d(x[None], 3, 1)[0])


@program
def correlation(draw: Draw) -> Program:
    n, m, w = draw(1, 64), draw(200, 20000), draw(3, 128)
    x, f, k = placed("X", n, m), placed("F", w), over(w)
    out = te.compute((n, m - w + 1), lambda i, j: te.sum(x[i, j + k] * f[k], axis=k))
    return Program([x, f], [out], lambda x, f: F.conv1d(x[:, None], f[None, None])[:, 0])


@program
def convolution_of_columns(draw: Draw) -> Program:
    c, h, w, o = draw(3, 64), draw(7, 40), draw(7, 40), draw(8, 128)
    x, f, k, wide = placed("X", c, h, w), placed("F", o, c * 9), over(c * 9), w - 2
    shape = (c * 9, (h - 2) * wide)
    columns = te.compute(shape, lambda i, j: x[i // 9, j // wide + i % 9 // 3, j % wide + i % 3])
    out = te.compute((o, shape[1]), lambda i, j: te.sum(f[i, k] * columns[k, j], axis=k))
    return Program([x, f], [out], lambda x, f: F.conv2d(x[None], f.reshape(o, c, 3, 3)).reshape(o, -1))


@program
def convolution_in_blocks(draw: Draw) -> Program:
    ci, co, h, w, b = draw(1, 16), draw(1, 16), draw(7, 56), draw(7, 56), 8
    x, f = placed("X", ci, h, w, b), placed("F", co, ci, 3, 3, b, b)
    k = [over(ci), over(3), over(3), over(b)]
    out = te.compute(
        (co, h - 2, w - 2, b), lambda o, y, z, n: te.sum(x[k[0], y + k[1], z + k[2], k[3]] * f[o, k[0], k[1], k[2], k[3], n], axis=k)
    )

    def peer(x: Any, f: Any) -> Any:
        data, weights = x.permute(0, 3, 1, 2).reshape(1, ci * b, h, w), f.permute(0, 5, 1, 4, 2, 3).reshape(co * b, ci * b, 3, 3)
        return F.conv2d(data, weights).reshape(co, b, h - 2, w - 2).permute(0, 2, 3, 1)

    return Program([x, f], [out], peer)


@program
def gathered(draw: Draw) -> Program:
    v, d, n = draw(100, 20000), draw(8, 768), draw(10, 2000)
    x, i = placed("X", v, d), placed("I", n, dtype="int32")
    return Program([x, i], [te.compute((n, d), lambda a, b: x[i[a], b])], lambda x, i: x[i.long()])


@program
def bags(draw: Draw) -> Program:
    v, d, n, b = draw(100, 20000), draw(8, 512), draw(10, 500), draw(2, 40)
    x, i, k = placed("X", v, d), placed("I", n, b, dtype="int32"), over(b)
    out = te.compute((n, d), lambda r, j: te.sum(x[i[r, k], j], axis=k))
    return Program([x, i], [out], lambda x, i: F.embedding_bag(i.long(), x, mode="sum"))


@program
def permuted(draw: Draw) -> Program:
    x, order = (
        placed("X", *(draw(2, 60) for _ in range(4))),
        draw.one_of((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (2, 3, 0, 1)),
    )
    return Program([x], [topi.transpose(x, order)], lambda x: x.permute(order).contiguous())


@program
def merged_heads(draw: Draw) -> Program:
    h, n, d = draw(2, 16), draw(16, 1000), draw(8, 128)
    x = placed("X", h, n, d)
    return Program([x], [te.compute((n, h * d), lambda i, j: x[j // d, i, j % d])], lambda x: x.permute(1, 0, 2).reshape(n, h * d))


@program
def kronecker(draw: Draw) -> Program:
    a, b, c, d = (draw(4, 60) for _ in range(4))
    x, y = placed("X", a, b), placed("Y", c, d)
    return Program([x, y], [te.compute((a * c, b * d), lambda i, j: x[i // c, j // d] * y[i % c, j % d])], torch.kron)


@program
def rotary(draw: Draw) -> Program:
    n, h, half = draw(1, 512), draw(2, 16), draw(8, 64)
    x, c, s = placed("X", n, h, 2 * half), placed("C", n, half), placed("S", n, half)

    def turned(i: Any, h: Any, j: Any) -> Any:
        k = j % half
        first = x[i, h, j] * c[i, k] - x[i, h, j + half] * s[i, k]
        return te.if_then_else(j < half, first, x[i, h, j] * c[i, k] + x[i, h, j - half] * s[i, k])

    def peer(x: Any, c: Any, s: Any) -> Any:
        a, b, c, s = x[..., :half], x[..., half:], c[:, None], s[:, None]
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    return Program([x, c, s], [te.compute((n, h, 2 * half), turned)], peer)


@program
def shuffled_pixels(draw: Draw) -> Program:
    c, h, w, f = draw(1, 64), draw(7, 100), draw(7, 100), draw.one_of(2, 3, 4)
    x = placed("X", c * f * f, h, w)
    out = te.compute((c, f * h, f * w), lambda c, y, z: x[c * f * f + y % f * f + z % f, y // f, z // f])
    return Program([x], [out], lambda x: F.pixel_shuffle(x[None], f)[0])
