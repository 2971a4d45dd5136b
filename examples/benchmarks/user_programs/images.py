"""Images."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tensorexpr import te, tir, topi

from .table import Draw, Program, over, placed, program


@program
def picture_to_planes(draw: Draw) -> Program:
    h, w = draw(30, 1000), draw(30, 1000)
    x, mean, scale = placed("X", h, w, 3, dtype="uint8"), placed("M", 3), placed("S", 3)
    out = te.compute((3, h, w), lambda c, y, z: (x[y, z, c].astype("float32") / 255.0 - mean[c]) * scale[c])
    return Program([x, mean, scale], [out], lambda x, m, s: ((x.float() / 255 - m) * s).permute(2, 0, 1).contiguous())


@program
def grey(draw: Draw) -> Program:
    h, w = draw(30, 2000), draw(30, 2000)
    x = placed("X", h, w, 3, dtype="uint8")

    def value(y: Any, z: Any) -> Any:
        r, g, b = (x[y, z, c].astype("int32") for c in range(3))
        return ((77 * r + 150 * g + 29 * b) >> 8).astype("uint8")

    def peer(x: Any) -> Any:
        return ((77 * x[..., 0].int() + 150 * x[..., 1].int() + 29 * x[..., 2].int()) >> 8).byte()

    return Program([x], [te.compute((h, w), value)], peer)


@program
def edges(draw: Draw) -> Program:
    h, w = draw(30, 2000), draw(30, 2000)
    x = placed("X", h + 2, w + 2)

    def value(y: Any, z: Any) -> Any:
        a = x[y, z] + 2.0 * x[y + 1, z] + x[y + 2, z] - x[y, z + 2] - 2.0 * x[y + 1, z + 2] - x[y + 2, z + 2]
        b = x[y, z] + 2.0 * x[y, z + 1] + x[y, z + 2] - x[y + 2, z] - 2.0 * x[y + 2, z + 1] - x[y + 2, z + 2]
        return te.sqrt(a * a + b * b)

    of_rows = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    filters = torch.stack([of_rows, of_rows.T])[:, None]
    return Program([x], [te.compute((h, w), value)], lambda x: F.conv2d(x[None, None], filters)[0].square().sum(0).sqrt())


@program
def median_of_nine(draw: Draw) -> Program:
    h, w = draw(30, 500), draw(30, 500)
    x = placed("X", h + 2, w + 2, dtype="uint8")

    def value(y: Any, z: Any) -> Any:
        nine = [x[y + r, z + s] for r in range(3) for s in range(3)]
        for step in range(5):  # bubbles: the middle is in its place after five
            for i in range(8 - step):
                nine[i], nine[i + 1] = tir.min(nine[i], nine[i + 1]), tir.max(nine[i], nine[i + 1])
        return nine[4]

    def peer(x: Any) -> Any:
        return x.unfold(0, 3, 1).unfold(1, 3, 1).reshape(h, w, 9).median(-1).values

    return Program([x], [te.compute((h, w), value)], peer)


@program
def smoothed(draw: Draw) -> Program:
    h, w, r = draw(50, 1000), draw(50, 1000), draw.one_of(2, 3, 5)
    x, f, k, q = placed("X", h, w), placed("F", 2 * r + 1), over(2 * r + 1), over(2 * r + 1)

    def inside(i: Any, extent: int) -> Any:
        return tir.max(0, tir.min(extent - 1, i))

    rows = te.compute((h, w), lambda y, z: te.sum(x[y, inside(z + k - r, w)] * f[k], axis=k))
    out = te.compute((h, w), lambda y, z: te.sum(rows[inside(y + q - r, h), z] * f[q], axis=q))

    def peer(x: Any, f: Any) -> Any:
        padded = F.pad(x[None, None], (r, r, r, r), mode="replicate")
        return F.conv2d(F.conv2d(padded, f[None, None, None]), f[None, None, :, None])[0, 0]

    return Program([x, f], [out], peer)


@program
def resized(draw: Draw) -> Program:
    c, h, w = draw(1, 64), draw(7, 200), draw(7, 200)
    size = (draw(7, 300), draw(7, 300))
    x = placed("X", 1, c, h, w)
    out = topi.image.resize2d(x, [0.0] * 4, size, method="linear", coordinate_transformation_mode="half_pixel")
    return Program([x], [out], lambda x: F.interpolate(x, size, mode="bilinear"))


@program
def largest_of_windows(draw: Draw) -> Program:
    c, h, w, f, s = draw(1, 128), draw(8, 112), draw(8, 112), draw.one_of(2, 3, 5), draw.one_of(1, 2)
    x = placed("X", 1, c, h, w)
    p = f // 2
    out = topi.nn.pool2d(x, (f, f), (s, s), (1, 1), (p, p, p, p), "max")
    return Program([x], [out], lambda x: F.max_pool2d(x, f, s, p))


@program
def means_of_windows(draw: Draw) -> Program:
    c, h, w, f = draw(1, 128), draw(8, 112), draw(8, 112), draw.one_of(2, 3, 7)
    x = placed("X", 1, c, h, w)
    out = topi.nn.pool2d(x, (f, f), (f, f), (1, 1), (0, 0, 0, 0), "avg")
    return Program([x], [out], lambda x: F.avg_pool2d(x, f))


@program
def depthwise_and_norm(draw: Draw) -> Program:
    h, c, f = draw(7, 56), draw(16, 384), draw.one_of(3, 5, 7)
    x, w, k, q, r = placed("X", h + f - 1, h + f - 1, c), placed("W", f, f, c), over(f), over(f), over(c)
    made = te.compute((h, h, c), lambda y, z, c: te.sum(x[y + k, z + q, c] * w[k, q, c], axis=[k, q]))
    total = te.compute((h, h), lambda y, z: te.sum(made[y, z, r] * made[y, z, r], axis=r))
    out = te.compute((h, h, c), lambda y, z, j: made[y, z, j] * te.rsqrt(total[y, z] / c + 1e-5))

    def peer(x: Any, w: Any) -> Any:
        made = F.conv2d(x.permute(2, 0, 1)[None], w.permute(2, 0, 1)[:, None], groups=c)[0].permute(1, 2, 0)
        return F.rms_norm(made, (c,), None, 1e-5).contiguous()

    return Program([x, w], [out], peer)


@program
def grouped_filters(draw: Draw) -> Program:
    g, c, o, s = draw(2, 32), draw(2, 16), draw(2, 16), draw(7, 56)
    x, w, k, p, q = placed("X", 1, g * c, s + 2, s + 2), placed("W", g * o, c, 3, 3), over(c), over(3), over(3)
    out = te.compute((1, g * o, s, s), lambda n, f, y, z: te.sum(x[n, f // o * c + k, y + p, z + q] * w[f, k, p, q], axis=[k, p, q]))
    return Program([x, w], [out], lambda x, w: F.conv2d(x, w, groups=g))


@program
def filters_of_volumes(draw: Draw) -> Program:
    c, o, s = draw(1, 16), draw(4, 32), draw(4, 24)
    x, w, k = placed("X", 1, c, s + 2, s + 2, s + 2), placed("W", o, c, 3, 3, 3), [over(c), over(3), over(3), over(3)]
    out = te.compute(
        (1, o, s, s, s), lambda n, o, x_, y, z: te.sum(x[n, k[0], x_ + k[1], y + k[2], z + k[3]] * w[o, k[0], k[1], k[2], k[3]], axis=k)
    )
    return Program([x, w], [out], F.conv3d)


@program
def enlarged(draw: Draw) -> Program:
    c, o, s = draw(3, 128), draw(3, 128), draw(4, 40)
    x, w = placed("X", 1, c, s, s), placed("W", c, o, 4, 4)
    out = topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0))
    return Program([x, w], [out], lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1))
