"""Borders around tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import topi
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ..expr import Call, Constant
from ..extents import simplified
from ..struct_info import StructInfo
from .row import Expr, Pattern, Prim, operator, tensor

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "circular", "wrap": "circular"}


def _ends(pad_width: Sequence[int]) -> tuple[list[int], list[int]]:
    return [int(n) for n in pad_width[::2]], [int(n) for n in pad_width[1::2]]


def _te_pad(data: Any, pad_value: Any, pad_width: Sequence[int], pad_mode: str) -> Any:
    front, back = _ends(pad_width)
    if pad_mode == "constant":
        return topi.nn.pad(data, front, back, pad_value() if hasattr(pad_value, "op") else pad_value)
    return topi.nn.index_pad(data, front, back, _MODES[pad_mode])


def _np_pad(data: Any, pad_value: Any, pad_width: Sequence[int], pad_mode: str) -> Any:
    front, back = _ends(pad_width)
    # NumPy only adds; negative widths are cut off behind.
    pads = [(max(0, a), max(0, b)) for a, b in zip(front, back, strict=True)]
    if pad_mode == "constant":
        padded = np.pad(data, pads, constant_values=np.asarray(pad_value).astype(data.dtype))
    else:
        mode: Any = {"circular": "wrap"}.get(_MODES[pad_mode], _MODES[pad_mode])
        padded = np.pad(data, pads, mode)
    return padded[tuple(slice(max(0, -a), extent - max(0, -b)) for extent, a, b in zip(padded.shape, front, back, strict=True))]


@operator("nn.pad", Pattern.INJECTIVE, te=_te_pad, numpy=_np_pad)
def _pad(data: Expr, pad_value: Prim, pad_width: Sequence[int], pad_mode: str = "constant") -> StructInfo:
    """A tensor with borders."""
    x = tensor(data, "data")
    if pad_mode not in _MODES:
        raise DeclarationError(f"relax.op.nn.pad: no pad_mode {pad_mode!r}; there are {', '.join(_MODES)}")
    if x.ndim not in (-1, len(pad_width) // 2) or len(pad_width) % 2:
        raise DeclarationError(f"relax.op.nn.pad: pad_width has two numbers for each axis, not {len(pad_width)} for {x.info}")
    if x.extents is None:
        return x.info
    shape = [simplified(extent + (a + b)) for extent, a, b in zip(x.extents, *_ends(pad_width), strict=True)]
    if any((as_int(extent) or 0) < 0 for extent in shape):
        raise DeclarationError(f"relax.op.nn.pad: pad_width {list(pad_width)} cuts off more than {x.info} has")
    return x.like(shape)


def pad(data: Any, pad_width: Sequence[int], pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    """A tensor with borders.

    Args:
        data: of any shape and dtype.
        pad_width: how many elements are added in front of and behind the first axis, of the second, and so on; less than 0 cuts off.
        pad_value: of the borders in mode "constant": a number, or a tensor without axes.
        pad_mode: "constant", "reflect" (mirrored at the outermost element), "replicate" or "edge" (the outermost element again),
            "circular" or "wrap" (from the other end).

    Raises:
        DeclarationError: for another mode, or widths that don't fit.
    """
    value = pad_value.data.numpy().item() if isinstance(pad_value, Constant) and not pad_value.data.shape else pad_value
    return _pad(data, value, [int(n) for n in pad_width], pad_mode)
