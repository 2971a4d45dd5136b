"""Fourier transforms by their definition: dft, stft."""

from __future__ import annotations

import math
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute, reduce_axis
from ..te.reducer import sum as te_sum
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const
from ..tir.expr import PrimExpr, Var
from .utils import need_rank, shape_text

pi = math.pi


def dft(re_data: Tensor, im_data: Tensor, inverse: Any) -> list[Tensor]:
    """The discrete Fourier transform along the last axis.

    Args:
        re_data, im_data: real and imaginary parts, of one shape [..., n].
        inverse: the inverse transform, divided by n.

    Returns:
        Real and imaginary parts of the shape of the inputs. n^2 multiply-adds for each row.

    Raises:
        DeclarationError: for parts of different ranks.
    """
    if re_data.ndim != im_data.ndim:
        raise DeclarationError(f"dft: the parts have the shapes {shape_text(re_data)} and {shape_text(im_data)}; they must be equal")
    size, dtype = re_data.shape[-1], re_data.dtype
    k = [reduce_axis((0, size), name="k") for _ in range(2)]
    cosines, sines = _waves((size, size), size, 1.0 if bool(inverse) else -1.0, dtype)

    def real(*i: Var) -> Any:
        at = (*i[:-1], k[0].var)
        return te_sum(re_data(*at) * cosines(k[0].var, i[-1]) - im_data(*at) * sines(k[0].var, i[-1]), axis=k[0])

    def imaginary(*i: Var) -> Any:
        at = (*i[:-1], k[1].var)
        return te_sum(re_data(*at) * sines(k[1].var, i[-1]) + im_data(*at) * cosines(k[1].var, i[-1]), axis=k[1])

    parts = [compute(re_data.shape, part, name=name, tag="dft") for part, name in ((real, "dft_re"), (imaginary, "dft_im"))]
    if not bool(inverse):
        return parts
    return [compute(p.shape, lambda *i, p=p: p(*i) / cast(size, dtype), name=f"{p.name}_scaled", tag="elemwise") for p in parts]


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
    k = reduce_axis((0, n_fft), name="k")
    scale = 1.0 / math.sqrt(n_fft) if normalized else 1.0

    shape = tuple(output_shape)
    cosines, sines = _waves((n_fft, shape[-3]), n_fft, -1.0, data.dtype)
    # Windowed once, not for each frequency; real and imaginary parts side by side, as the result has them.
    windowed = compute(
        (n_fft, shape[-3], 2), lambda j, f, part: window(j) * intrin.select(part == 0, cosines(j, f), sines(j, f)), name="waves"
    )

    def body(*i: Var) -> Any:
        frequency, frame, part = i[-3:]
        return te_sum(data(*i[:-3], frame * hop_length + k.var) * windowed(k.var, frequency, part), axis=k)

    sums: Tensor = compute(shape, body, name="stft", tag="stft")
    if not normalized:
        return sums
    return compute(sums.shape, lambda *i: sums(*i) * const(scale, data.dtype), name="stft_scaled", tag="elemwise")
