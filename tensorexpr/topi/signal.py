"""Fourier transforms: dft and stft, fast ones (`fourier`) of lengths that are known, of others by their definition."""

from __future__ import annotations

import math
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute, reduce_axis
from ..te.reducer import sum as te_sum
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import as_int, cast, const, floordiv, floormod
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr, Var
from ..tir.ir_builder import IRBuilder
from .fourier import Transform
from .rows import in_loops, product
from .utils import need_rank, shape_text

pi = math.pi
_FAST = ("float32", "float64")


def dft(re_data: Tensor, im_data: Tensor, inverse: Any) -> list[Tensor]:
    """The discrete Fourier transform along the last axis.

    Args:
        re_data, im_data: real and imaginary parts, of one shape [..., n].
        inverse: the inverse transform, divided by n.

    Returns:
        Real and imaginary parts of the shape of the inputs: n log n operations for each row, n^2 where n isn't known or the dtype is
        a narrow one.

    Raises:
        DeclarationError: for parts of different ranks.
    """
    if re_data.ndim != im_data.ndim:
        raise DeclarationError(f"dft: the parts have the shapes {shape_text(re_data)} and {shape_text(im_data)}; they must be equal")
    size, dtype = re_data.shape[-1], re_data.dtype
    known = as_int(size)
    if known and dtype in _FAST and im_data.dtype == dtype:
        return _fast_dft(re_data, im_data, known, bool(inverse))
    cosines, sines = _waves((size, size), size, 1.0 if bool(inverse) else -1.0, dtype)

    def product(part: Tensor, waves: Tensor) -> Tensor:
        k = reduce_axis((0, size), name="k")
        return compute(part.shape, lambda *i: te_sum(part(*i[:-1], k.var) * waves(k.var, i[-1]), axis=k), name="dft_product", tag="dft")

    # Four products of matrices, which have register tiles; a sum of two products in one reduction would have none.
    (rc, rs), (ic, is_) = ([product(part, waves) for waves in (cosines, sines)] for part in (re_data, im_data))
    parts = [
        compute(re_data.shape, lambda *i: rc(*i) - is_(*i), name="dft_re", tag="dft"),
        compute(re_data.shape, lambda *i: rs(*i) + ic(*i), name="dft_im", tag="dft"),
    ]
    if not bool(inverse):
        return parts
    return [compute(p.shape, lambda *i, p=p: p(*i) / cast(size, dtype), name=f"{p.name}_scaled", tag="elemwise") for p in parts]


def _fast_dft(re_data: Tensor, im_data: Tensor, size: int, inverse: bool) -> list[Tensor]:
    dtype, count = re_data.dtype, product(re_data.shape[:-1])

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        re, im, re_out, im_out = (ib.buffer_ptr(buffer, (count * size,)) for buffer in (*ins, *outs))
        with ib.for_range(0, count, "row", kind="parallel") as row:
            transform = Transform(ib, size, dtype, 1 if inverse else -1, 1.0 / size if inverse else 1.0)
            transform.rows((re, im), row * size, (re_out, im_out), row * size)

    return in_loops([re_data.shape] * 2, [re_data, im_data], body, "dft", [dtype] * 2)


def _fast_stft(data: Tensor, n_fft: int, hop: int, window: Tensor, scale: float, frequencies: int, shape: tuple[Any, ...]) -> Tensor:
    samples, dtype = data.shape[-1], data.dtype
    batch, frames = product(shape[:-3]), arithmetic.convert(shape[-2])

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        signal, weight = ib.buffer_ptr(ins[0], (batch * samples,)), ib.buffer_ptr(ins[1])
        out = ib.buffer_ptr(outs[0], (batch * frequencies * frames * 2,))
        with ib.for_range(0, batch * frames, "row", kind="parallel") as row:
            transform = Transform(ib, n_fft, dtype, -1, scale)
            number, frame = floordiv(row, frames), floormod(row, frames)
            windowed, re, im = (ib.allocate(dtype, (n_fft,), name) for name in ("windowed", "re", "im"))
            with ib.for_range(0, n_fft, "j", kind="vectorize") as j:
                windowed[j] = signal[number * samples + frame * hop + j] * weight[j]
            transform.rows((windowed, None), 0, (re, im), 0)
            with ib.for_range(0, frequencies, "k") as k:
                place = ((number * frequencies + k) * frames + frame) * 2
                out[place], out[place + 1] = re[k], im[k]

    return in_loops([shape], [data, window], body, "stft", [dtype])[0]


def _waves(shape: tuple[Any, Any], size: Any, sign: float, dtype: str) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles j * k / size, [j, k]: computed once for all rows and windows, as each costs more than its product."""

    def angle(j: Var, k: Var) -> PrimExpr:
        turns = arithmetic.floormod(j * k, size)  # an exact fraction of a turn, whatever the product
        return const(sign * 2.0 * pi, dtype) * cast(turns, dtype) / cast(size, dtype)

    cosines = compute(shape, lambda j, k: intrin.cos(angle(j, k)), name="cosines", tag="dft")
    return cosines, compute(shape, lambda j, k: intrin.sin(angle(j, k)), name="sines", tag="dft")


def stft(
    data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool, onesided: bool, output_shape: Any
) -> Tensor:
    """The Fourier transforms of windows of a signal.

    Args:
        data: [batch, samples], or [samples].
        n_fft: samples of a transform.
        hop_length: samples from one window to the next.
        win_length: the length of the window, for programs that pass it; `window` has n_fft elements.
        window: [n_fft], multiplied with the samples.
        normalized: divide by the square root of n_fft.
        onesided: kept for programs that pass it; `output_shape` says how many frequencies there are.
        output_shape: [batch, frequencies, windows, 2], or without the batch.

    Returns:
        A tensor of output_shape and the dtype of `data`; real and imaginary parts stand last.
    """
    need_rank("stft", "window", window, 1)
    scale = 1.0 / math.sqrt(n_fft) if normalized else 1.0
    shape = tuple(output_shape)
    frequencies = as_int(shape[-3])
    if data.dtype in _FAST and window.dtype == data.dtype and frequencies and frequencies <= n_fft:
        return _fast_stft(data, n_fft, hop_length, window, scale, frequencies, shape)
    k = reduce_axis((0, n_fft), name="k")

    def wave(j: Var, c: Var) -> PrimExpr:
        # cos(x) and -sin(x) are sines a quarter and a half turn on: one for each number, of an exact fraction of a turn
        quarters = floormod(j * floordiv(c, 2), n_fft) * 4 + (1 + floormod(c, 2)) * n_fft
        turn = cast(floormod(quarters, 4 * n_fft), data.dtype) / const(4.0 * n_fft, data.dtype)
        return window(j) * intrin.sin(const(2.0 * pi, data.dtype) * turn)

    # Windowed once, not for each frame; real and imaginary parts side by side, as the result has them, are the columns of one product.
    windowed = compute((n_fft, shape[-3] * 2), wave, name="waves")

    def body(*i: Var) -> Any:
        frame, column = i[-2:]
        return te_sum(data(*i[:-2], frame * hop_length + k.var) * windowed(k.var, column), axis=k)

    sums: Tensor = compute((*shape[:-3], shape[-2], shape[-3] * 2), body, name="stft_frames", tag="stft")

    def ordered(*i: Var) -> PrimExpr:
        frequency, frame, part = i[-3:]
        found: PrimExpr = sums(*i[:-3], frame, frequency * 2 + part)
        return found * const(scale, data.dtype) if normalized else found

    return compute(shape, ordered, name="stft", tag="stft")
