"""Convolutions of 3 x 3 taps by Winograd's minimal filtering, for tiles of 2 x 2 results, by rows of tiles.

    V[n, ty, e, f, tx, i] = (B^T d B)[e, f]                               of the 4 x 4 pixels of a tile
    M[n, ty, e, f, tx, o] = sum over i of V[n, ty, e, f, tx, i] * U[e, f, i, o]
    Y[n, 2 ty + a, 2 tx + b, o] = (A^T M[n, ty, :, :, tx, o] A)[a, b]

16 multiply-adds make 4 results, where their definition takes 36 (Lavin and Gray 2016, section 4.1). B and A are 0, 1 and -1. Weights U
are G g G^T, of integers (2 G) g (2 G)^T, which are integers: sums are four times the result, and dividing by four is exact. All
of it wraps at 32 bits as the result does, so that results are those of the definition if four times each fits 32 bits. Of floats
sums are of fewer terms, and of pixels of a whole tile: an infinite one makes NaN of results of its tile that don't depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...te.declare import compute, reduce_axis
from ...te.reducer import sum as te_sum
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr, Var
from ..utils import get_const_int, need_equal, pad_pairs
from .padding import pad
from .winograd import winograd_matrices

TILE, TAPS = 2, 3  # results of a tile along an axis, and taps of a window
ALPHA = TILE + TAPS - 1
_TIMES_FOUR = 2  # bits by which sums of integers are too large


def weights_of_tiles(weight: Any) -> Any:
    """Weights [3, 3, I, O] as `conv2d_winograd_tiles` takes them, [4, 4, I, O]: int16 of int8, else of their own dtype.

    Args:
        weight: a NumPy array of int8, float32 or float64.
    """
    whole = weight.dtype.kind == "i"
    g = winograd_matrices(TILE, TAPS)[2] * (2 if whole else 1)
    wide = np.int16 if whole else weight.dtype
    # Row by row, so that no array of all of them in another dtype is there.
    rows = [np.tensordot(g.astype(wide), sum(row[t] * weight[t].astype(wide) for t in range(TAPS)), (1, 0)) for row in g.astype(wide)]
    return np.stack(rows)


def conv2d_winograd_tiles(data: Tensor, weight: Tensor, padding: Any) -> Tensor:
    """A convolution of [N, H, W, I] with 3 x 3 taps and weights [4, 4, I, O], strides and dilation 1; see the module.

    Args:
        data: uint8 or int8 with weights of int16, giving int32; else floats of the weights' dtype.
        weight: of `weights_of_tiles`.
        padding: of zeros, as of `conv2d_nhwc`.

    Raises:
        DeclarationError: for shapes and dtypes that don't fit.
    """
    where = "conv2d_winograd_tiles"
    whole = parse_dtype(weight.dtype).is_int
    if weight.dtype != ("int16" if data.dtype in ("uint8", "int8") else data.dtype):
        raise DeclarationError(f"{where}: weights of int16 for data of bytes, or of the data's floats; not {weight.dtype} for {data.dtype}")
    if any(as_int(extent) is None for extent in (*data.shape, *weight.shape)):
        raise DeclarationError(f"{where}: data {data.shape} and weights {weight.shape}: extents are constants; use conv2d for open ones")
    n, height, width, inputs = (get_const_int(extent) for extent in data.shape)
    for axis in (0, 1):
        need_equal(where, f"extent {axis} of the weights of tiles", get_const_int(weight.shape[axis]), ALPHA)
    need_equal(where, "input channels of data and weight", inputs, get_const_int(weight.shape[2]))
    (top, bottom), (left, right) = pad_pairs(where, padding, (TAPS, TAPS))
    rows, columns = height + top + bottom - TAPS + 1, width + left + right - TAPS + 1
    tall, wide = -(-rows // TILE), -(-columns // TILE)
    outputs, sums = weight.shape[3], "int32" if whole else data.dtype
    values = compute(data.shape, lambda *i: data(*i).astype("int16"), name="pixels") if whole else data
    # What the last tile reads, which may be more than the border.
    after = [0, TILE * tall + TAPS - 1 - (height + top), TILE * wide + TAPS - 1 - (width + left), 0]
    padded = pad(values, [0, top, left, 0], after, arithmetic.const(0, values.dtype), name="data_pad")
    a, b, _ = winograd_matrices(TILE, TAPS)

    def tile(image: Var, ty: Var, e: Var, f: Var, tx: Var, channel: Var) -> PrimExpr:
        return _combined(b.T, e, lambda r: _combined(b.T, f, lambda s: padded(image, TILE * ty + r, TILE * tx + s, channel)))

    tiles = compute((n, tall, ALPHA, ALPHA, wide, inputs), tile, name="tiles")
    i = reduce_axis((0, inputs), name="ri")
    products = compute(
        (n, tall, ALPHA, ALPHA, wide, outputs),
        lambda image, ty, e, f, tx, o: te_sum(tiles(image, ty, e, f, tx, i).astype(sums) * weight(e, f, i, o).astype(sums), axis=i),
        name="products",
    )

    def element(image: Var, y: Var, x: Var, o: Var) -> PrimExpr:
        (ty, a_y), (tx, a_x) = ((arithmetic.floordiv(at, TILE), arithmetic.floormod(at, TILE)) for at in (y, x))
        found = _combined(a.T, a_y, lambda e: _combined(a.T, a_x, lambda f: products(image, ty, e, f, tx, o)))
        return found >> _TIMES_FOUR if whole else found

    return compute((n, rows, columns, outputs), element, name="conv2d_winograd", tag="conv2d_winograd")


def _combined(matrix: Any, row: PrimExpr, term: Callable[[int], PrimExpr]) -> PrimExpr:
    """The terms, weighted by the row of a matrix of 0, 1 and -1: one sum for each row, of which the index chooses one."""
    *others, found = (_signed_sum(signs, term) for signs in matrix.tolist())
    for number, other in reversed([*enumerate(others)]):
        found = intrin.select(arithmetic.convert(row == number), other, found)
    return found


def _signed_sum(signs: Sequence[float], term: Callable[[int], PrimExpr]) -> PrimExpr:
    """Terms with their signs, those that are added first."""
    order = sorted((place for place, sign in enumerate(signs) if sign), key=lambda place: -signs[place])
    found = term(order[0])
    assert signs[order[0]] == 1
    for place in order[1:]:
        found = found + term(place) if signs[place] == 1 else found - term(place)
    return found
