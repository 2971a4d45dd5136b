"""Transforms of signals. They run on the host, by the fast algorithm: a product with the matrix of the transform is `matmul`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm
from ..struct_info import StructInfo
from .row import Expr, operator, tensor


def _np_dft(x: Any, length: int, axis: int, inverse: bool, onesided: bool) -> Any:
    place = axis % x.ndim
    signal = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    if onesided and inverse:
        return np.fft.irfft(signal, length, place)[..., None].astype(x.dtype)
    transform: Any = np.fft.rfft if onesided else np.fft.ifft if inverse else np.fft.fft
    found = transform(signal, length, place)
    return np.stack([found.real, found.imag], -1).astype(x.dtype)


@operator("dft", numpy=_np_dft)
def dft(x: Expr, length: int, axis: int = -2, inverse: bool = False, onesided: bool = False) -> StructInfo:
    """The discrete Fourier transform of a given length along an axis of a tensor whose last axis has real and imaginary parts.

    The signal is cut to the length, or filled up with zeros. `inverse` divides by the length. `onesided` takes a real signal to the first
    length // 2 + 1 frequencies, and with `inverse` takes these to the real signal.
    """
    operand = tensor(x, "x")
    place = operand.axis(axis)
    if length < 1 or operand.ndim == 1 or (operand.ndim != -1 and place == operand.ndim - 1):
        raise DeclarationError(f"relax.op.dft: a length of {length}, along axis {axis} of {operand.info}; the last axis has the parts")
    if operand.extents is None:
        return operand.like(None, ndim=operand.ndim)
    parts = as_int(operand.extents[-1])
    if parts not in (1, 2, None) or (onesided and parts == (1 if inverse else 2)):
        raise DeclarationError(f"relax.op.dft: {parts} parts in the last axis of x, with inverse={inverse} and onesided={onesided}")
    new = list(operand.extents)
    new[place] = IntImm("int64", length // 2 + 1 if onesided and not inverse else length)
    new[-1] = IntImm("int64", 1 if onesided and inverse else 2)
    return operand.like(new)
