"""Convolutions of 3 x 3 taps with weights for Winograd's minimal filtering: `topi.nn.winograd_tiles`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...topi.nn.winograd import winograd_matrices
from ...topi.nn.winograd_tiles import ALPHA, TAPS, TILE, conv2d_winograd_tiles
from ..relations import same_extents
from ..struct_info import StructInfo
from .row import Expr, Pattern, operator, tensor
from .window import paddings, positions, settled

_BYTES = ("int8", "uint8")
_WHERE = "relax.op.nn.conv2d_winograd"


def _four(padding: Any) -> list[Any]:
    front, back = paddings(padding, 2)
    return [*front, *back]


def _np_winograd(data: Any, weight: Any, padding: Any) -> Any:
    """Tile by tile, whatever the weights were made of."""
    top, left, bottom, right = _four(padding)
    n, height, width = data.shape[:3]
    whole = data.dtype.kind in "iu"
    wide = np.dtype(np.int64) if whole else data.dtype
    rows, columns = height + top + bottom - TAPS + 1, width + left + right - TAPS + 1
    tall, broad = -(-rows // TILE), -(-columns // TILE)
    border = (0, 0), (top, TILE * tall + TAPS - 1 - height - top), (left, TILE * broad + TAPS - 1 - width - left), (0, 0)
    padded = np.pad(data.astype(wide), border)
    a, b, _ = (matrix.astype(wide) for matrix in winograd_matrices(TILE, TAPS))
    # [N, tall, broad, I, 4, 4], every second window of four pixels along both axes
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (ALPHA, ALPHA), (1, 2))[:, ::TILE, ::TILE]
    products = np.einsum("ntxief,efio->ntxoef", b.T @ tiles @ b, weight.astype(wide))
    found = (a.T @ products @ a).transpose(0, 1, 4, 2, 5, 3).reshape(n, TILE * tall, TILE * broad, -1)[:, :rows, :columns]
    return (found >> 2).astype(np.int32) if whole else np.ascontiguousarray(found)


@operator("nn.conv2d_winograd", Pattern.OUT_FUSABLE, te=conv2d_winograd_tiles, numpy=_np_winograd, settled=settled(2))
def conv2d_winograd(data: Expr, weight: Expr, padding: int | Sequence[int] = 0) -> StructInfo:
    """A convolution of [N, H, W, I] with 3 x 3 taps, strides 1, by weights [4, 4, I, O] of `topi.nn.winograd_tiles.weights_of_tiles`.

    Data of bytes have weights of int16 and a result of int32, which is exact where four times it fits; others are floats of one dtype.
    """
    x, w = tensor(data, "data"), tensor(weight, "weight")
    for one in (x, w):
        if one.ndim not in (-1, 4):
            raise DeclarationError(f"{_WHERE}: {one.name} has 4 axes, not {one.info}")
    whole = x.dtype in _BYTES
    if x.dtype and w.dtype and w.dtype != ("int16" if whole else x.dtype):
        raise TypeMismatchError(f"{_WHERE}: data of {x.dtype} with weights of {w.dtype}; of bytes they are int16, else the data's floats")
    dtype = "int32" if whole else x.dtype
    if x.extents is None or w.extents is None:
        return x.like(None, dtype, 4)
    sizes = [as_int(extent) for extent in w.extents[:2]]
    if sizes != [ALPHA, ALPHA] or same_extents(x.extents[3], w.extents[2]) is False:
        raise DeclarationError(f"{_WHERE}: weights [{ALPHA}, {ALPHA}, I, O] for data [N, H, W, I]; not {w.info} for {x.info}")
    top, left, bottom, right = _four(padding)
    plane = [positions(x.extents[1], TAPS, 1, 1, top, bottom), positions(x.extents[2], TAPS, 1, 1, left, right)]
    return x.like([x.extents[0], *plane, w.extents[3]], dtype, 4)
