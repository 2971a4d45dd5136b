"""More programs for `programs.py`, by field: inference, training, images, sciences, graphs and dynamic programming."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from programs_of_users import PROGRAMS as PROGRAMS  # all of them, when this file has put its own there
from programs_of_users import Draw, Program, normal, over, placed, product, program
from torch import einsum

from tensorexpr import te, tir, topi


def number(value: float) -> Any:
    """A constant of float32."""
    return tir.const(value, "float32")


# Inference


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


# Training


@program
def gradient_of_weights(draw: Draw) -> Program:
    n, d, h = draw(8, 512), draw(32, 768), draw(32, 768)
    x, dy, k, q = placed("X", n, d), placed("DY", n, h), over(n), over(n)
    weights = te.compute((d, h), lambda i, j: te.sum(x[k, i] * dy[k, j], axis=k))
    bias = te.compute((h,), lambda j: te.sum(dy[q, j], axis=q))
    return Program([x, dy], [weights, bias], lambda x, dy: (x.T @ dy, dy.sum(0)))


@program
def gradient_of_filters(draw: Draw) -> Program:
    n, c, o, s, f = draw(1, 4), draw(3, 64), draw(8, 64), draw(7, 40), draw.one_of(1, 3, 5)
    x, dy = placed("X", n, c, s + f - 1, s + f - 1), placed("DY", n, o, s, s)
    k, p, q = over(n), over(s), over(s)
    out = te.compute((o, c, f, f), lambda o, c, u, v: te.sum(dy[k, o, p, q] * x[k, c, p + u, q + v], axis=[k, p, q]))

    def peer(x: Any, dy: Any) -> Any:
        return torch.nn.grad.conv2d_weight(x, (o, c, f, f), dy)

    return Program([x, dy], [out], peer)


@program
def gradient_of_softmax(draw: Draw) -> Program:
    n, d = draw(2, 2000), draw(8, 2000)
    g, y, k = placed("G", n, d), placed("Y", n, d), over(d)
    total = te.compute((n,), lambda i: te.sum(g[i, k] * y[i, k], axis=k))
    out = te.compute((n, d), lambda i, j: (g[i, j] - total[i]) * y[i, j])
    return Program([g, y], [out], lambda g, y: torch._softmax_backward_data(g, y, 1, torch.float32))


@program
def gradient_of_norm(draw: Draw) -> Program:
    n, d = draw(2, 1000), draw(16, 2000)
    dy, x, g = placed("DY", n, d), placed("X", n, d), placed("G", d)
    mean, variance = normal(x, 1, d)
    scale = te.compute((n,), lambda i: te.rsqrt(variance[i] + 1e-5))
    k, q = over(d), over(d)
    first = te.compute((n,), lambda i: te.sum(dy[i, k] * g[k], axis=k))
    second = te.compute((n,), lambda i: te.sum(dy[i, q] * g[q] * (x[i, q] - mean[i]), axis=q))

    def value(i: Any, j: Any) -> Any:
        return scale[i] * (dy[i, j] * g[j] - first[i] / d - (x[i, j] - mean[i]) * scale[i] * scale[i] * second[i] / d)

    def peer(dy: Any, x: Any, g: Any) -> Any:
        mean, variance = x.mean(1, keepdim=True), x.var(1, unbiased=False, keepdim=True)
        return torch.ops.aten.native_layer_norm_backward(dy, x, [d], mean, torch.rsqrt(variance + 1e-5), g, g, [True, False, False])[0]

    return Program([dy, x, g], [te.compute((n, d), value)], peer)


@program
def cross_entropy(draw: Draw) -> Program:
    n, c = draw(4, 1000), draw(8, 2000)
    x, at, k, q, r = placed("X", n, c), placed("I", n, dtype="int32"), over(c), over(c), over(n)
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k))
    total = te.compute((n,), lambda i: te.sum(te.exp(x[i, q] - most[i]), axis=q))
    out = te.compute((1,), lambda _: te.sum((te.log(total[r]) + most[r] - x[r, tir.min(at[r], c - 1)]) / n, axis=r))
    return Program([x, at], [out], lambda x, i: F.cross_entropy(x, i.long().clamp(max=c - 1))[None])


@program
def step_of_adam(draw: Draw) -> Program:
    n = draw(100, 1000000)
    w, g, m, v = (placed(name, n) for name in "WGMV")
    first = te.compute((n,), lambda i: m[i] * 0.9 + g[i] * 0.1)
    second = te.compute((n,), lambda i: v[i] * v[i] * 0.999 + g[i] * g[i] * 0.001)
    out = te.compute((n,), lambda i: w[i] - first[i] * 0.001 / (te.sqrt(second[i]) + 1e-8))

    def peer(w: Any, g: Any, m: Any, v: Any) -> Any:
        first, second = m * 0.9 + g * 0.1, v * v * 0.999 + g * g * 0.001
        return first, second, w - first * 0.001 / (second.sqrt() + 1e-8)

    return Program([w, g, m, v], [first, second, out], peer)


@program
def huber(draw: Draw) -> Program:
    n, m = draw(10, 2000), draw(10, 2000)
    a, b, k = placed("A", n, m), placed("B", n, m), over(m)

    def loss(i: Any, k: Any) -> Any:
        d = te.abs(a[i, k] - b[i, k])
        return te.if_then_else(d < 1.0, d * d * 0.5, d - 0.5)

    return Program(
        [a, b], [te.compute((n,), lambda i: te.sum(loss(i, k), axis=k))], lambda a, b: F.huber_loss(a, b, reduction="none").sum(1)
    )


# Images


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


# Sciences


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
