"""Computations as users write them, of sizes drawn at random, each with what PyTorch has for it. `programs.py` measures them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import einsum

from tensorexpr import te, tir, topi
from tensorexpr.te.tensor import Tensor


@dataclass(frozen=True)
class Program:
    """Inputs, results, and PyTorch's function from the same inputs to the same results."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    peer: Callable[..., Any]


class Draw:
    """Sizes at random: half of them are multiples of a power of two."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def __call__(self, low: int, high: int) -> int:
        value = round(math.exp(self._random.uniform(math.log(low), math.log(high))))
        if self._random.random() < 0.5:
            value = next((value // part * part for part in (64, 32, 16, 8, 4) if value >= 2 * part), value)
        return max(low, min(high, value))

    def one_of(self, *values: Any) -> Any:
        """One of some values."""
        return self._random.choice(values)


PROGRAMS: dict[str, Callable[[Draw], Program]] = {}


def program(make: Callable[[Draw], Program]) -> Callable[[Draw], Program]:
    """Put into the table."""
    name = make.__name__.strip("_")
    if name in PROGRAMS:
        raise ValueError(f"there is a program {name} already, which this one would hide")
    PROGRAMS[name] = make
    return make


def placed(name: str, *shape: int, dtype: str = "float32") -> Any:
    """An input."""
    return te.placeholder(shape, dtype, name=name)


def over(extent: int) -> Any:
    """An axis of a sum."""
    return te.reduce_axis((0, extent), "k")


def product(a: Any, b: Any) -> Any:
    """A @ B."""
    k = over(a.shape[1])
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def normal(x: Any, axes: int, divisor: int) -> tuple[Any, Any]:
    """Mean and variance over all axes behind some."""

    def mean(of: Callable[..., Any]) -> Any:
        ks = [over(extent) for extent in x.shape[axes:]]
        return te.compute(x.shape[:axes], lambda *i: te.sum(of(x(*i, *ks), i) / divisor, axis=ks))

    first = mean(lambda value, i: value)
    return first, mean(lambda value, i: (value - first(*i)) * (value - first(*i)))


# Products


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


# Distances


@program
def squared_distances(draw: Draw) -> Program:
    n, m, d = draw(50, 1500), draw(50, 1500), draw(3, 256)
    a, b, k = placed("A", n, d), placed("B", m, d), over(d)
    out = te.compute((n, m), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k))
    return Program([a, b], [out], lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") ** 2)


@program
def absolute_distances(draw: Draw) -> Program:
    n, m, d = draw(50, 1000), draw(50, 1000), draw(3, 128)
    a, b, k = placed("A", n, d), placed("B", m, d), over(d)
    return Program(
        [a, b], [te.compute((n, m), lambda i, j: te.sum(te.abs(a[i, k] - b[j, k]), axis=k))], lambda a, b: torch.cdist(a, b, p=1)
    )


@program
def cosines(draw: Draw) -> Program:
    n, m, d = draw(16, 500), draw(16, 500), draw(8, 300)
    a, b, k, p, q = placed("A", n, d), placed("B", m, d), over(d), over(d), over(d)
    of_a = te.compute((n,), lambda i: te.sum(a[i, p] * a[i, p], axis=p))
    of_b = te.compute((m,), lambda j: te.sum(b[j, q] * b[j, q], axis=q))
    dots = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k))
    out = te.compute((n, m), lambda i, j: dots[i, j] * te.rsqrt(of_a[i] * of_b[j]))
    return Program([a, b], [out], lambda a, b: F.normalize(a, dim=1) @ F.normalize(b, dim=1).T)


# Norms and reductions


@program
def batch_norm(draw: Draw) -> Program:
    c, n = draw(3, 256), draw(16, 4000)
    x, g, b = placed("X", c, n), placed("G", c), placed("B", c)
    mean, variance = normal(x, 1, n)
    out = te.compute((c, n), lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(variance[i] + 1e-5) * g[i] + b[i])

    def peer(x: Any, g: Any, b: Any) -> Any:
        return F.batch_norm(x[None], None, None, g, b, True)[0]

    return Program([x, g, b], [out], peer)


@program
def group_norm(draw: Draw) -> Program:
    n, g, c, p = draw(1, 8), draw(2, 32), draw(2, 16), draw(16, 2000)
    x = placed("X", n, g, c, p)
    mean, variance = normal(x, 2, c * p)
    out = te.compute((n, g, c, p), lambda n, g, i, j: (x[n, g, i, j] - mean[n, g]) * te.rsqrt(variance[n, g] + 1e-5))
    return Program([x], [out], lambda x: F.group_norm(x.reshape(n, g * c, p), g).reshape(n, g, c, p))


@program
def root_mean_square_norm(draw: Draw) -> Program:
    n, d = draw(1, 2000), draw(16, 4096)
    x, g, k = placed("X", n, d), placed("G", d), over(d)
    total = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k))
    out = te.compute((n, d), lambda i, j: x[i, j] * te.rsqrt(total[i] / d + 1e-5) * g[j])
    return Program([x, g], [out], lambda x, g: F.rms_norm(x, (d,), g, 1e-5))


@program
def softmax_of_columns(draw: Draw) -> Program:
    x = placed("X", draw(2, 2000), draw(16, 2000))
    return Program([x], [topi.nn.softmax(x, axis=0)], lambda x: torch.softmax(x, 0))


@program
def log_of_sums(draw: Draw) -> Program:
    n, d = draw(2, 2000), draw(16, 2000)
    x, k, q = placed("X", n, d), over(d), over(d)
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k))
    total = te.compute((n,), lambda i: te.sum(te.exp(x[i, q] - most[i]), axis=q))
    return Program([x], [te.compute((n,), lambda i: te.log(total[i]) + most[i])], lambda x: torch.logsumexp(x, 1))


@program
def middle_sums(draw: Draw) -> Program:
    n, m, d = draw(1, 200), draw(2, 500), draw(2, 500)
    x, k = placed("X", n, m, d), over(m)
    return Program([x], [te.compute((n, d), lambda i, j: te.sum(x[i, k, j], axis=k))], lambda x: x.sum(1))


@program
def places_of_maxima(draw: Draw) -> Program:
    x, axis = placed("X", draw(2, 2000), draw(16, 2000)), draw.one_of(0, 1)
    return Program([x], [topi.argmax(x, axis=axis)], lambda x: x.argmax(axis).int())


@program
def running_sums(draw: Draw) -> Program:
    x, axis = placed("X", draw(2, 2000), draw(16, 2000)), draw.one_of(0, 1)
    return Program([x], [topi.cumsum(x, axis=axis)], lambda x: x.cumsum(axis))


@program
def squared_errors(draw: Draw) -> Program:
    n, m = draw(10, 2000), draw(10, 2000)
    a, b, k, q = placed("A", n, m), placed("B", n, m), over(n), over(m)
    out = te.compute((1,), lambda i: te.sum((a[k, q] - b[k, q]) * (a[k, q] - b[k, q]), axis=[k, q]))
    return Program([a, b], [out], lambda a, b: F.mse_loss(a, b, reduction="sum")[None])


@program
def matrix_times_vector(draw: Draw) -> Program:
    n, m = draw(8, 3000), draw(8, 3000)
    a, b, k = placed("A", n, m), placed("B", n), over(n)
    return Program([a, b], [te.compute((m,), lambda i: te.sum(a[k, i] * b[k], axis=k))], lambda a, b: a.T @ b)


# Windows


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


# Moves


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
