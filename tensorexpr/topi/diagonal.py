"""Diagonals: eye, triangles and matrix_set_diag."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.expr import PrimExpr, Var
from .transform import injective
from .utils import extent_value, get_const_int, need_equal, need_matrices, shape_text

_ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def eye(n: Any, m: Any = None, k: int = 0, dtype: str = "float32") -> Tensor:
    """[n, m] with ones on diagonal `k` (0 is the main one, above it they are positive) and zeros elsewhere; m is n by default."""
    return injective(
        (n, n if m is None else m), lambda i, j: intrin.select(arithmetic.convert(j - i == k), const(1, dtype), const(0, dtype)), "eye"
    )


def trilu(data: Tensor, k: Any, upper: bool) -> Tensor:
    """The upper (or lower) triangle of the last two axes from diagonal `k` on; zero elsewhere.

    Args:
        data: [..., rows, columns], of any dtype.
        k: the diagonal: a number or an expression; 0 is the main one, positive ones lie above.
        upper: the part on and above the diagonal, else the one on and below it.

    Returns:
        A tensor like `data`.
    """
    need_matrices("trilu", data)

    def body(*i: Var) -> PrimExpr:
        row, column = i[-2], i[-1]
        inside = row <= column - k if upper else row >= column - k
        return intrin.select(inside, data(*i), const(0, data.dtype))

    return injective(data.shape, body, "trilu")


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with other elements on their diagonals.

    Args:
        data: [..., m, n].
        diagonal: [..., length] for one diagonal, or [..., number of diagonals, length of the longest], the upmost one first.
        k: the diagonal, or (lowest, highest).
        align: where diagonals above and below the main one stand in rows that are longer: "RIGHT_LEFT" puts those above to the right
            and those below to the left.

    Returns:
        A tensor of the shape of `data`.

    Raises:
        DeclarationError: for another alignment, a highest diagonal below the lowest, or shapes that don't fit.
    """
    low, high = (get_const_int(k), get_const_int(k)) if not isinstance(k, (list, tuple)) else (get_const_int(k[0]), get_const_int(k[-1]))
    if align not in _ALIGNMENTS:
        raise DeclarationError(f"matrix_set_diag: align is {align!r}; it takes {', '.join(_ALIGNMENTS)}")
    if high < low:
        raise DeclarationError(f"matrix_set_diag: the diagonals go from {low} to {high}; the lowest comes first")
    above, below = align.split("_")
    _check_diagonals(data, diagonal, low, high)
    rows, columns = data.shape[-2], data.shape[-1]
    longest = diagonal.shape[-1]

    def body(*i: Var) -> PrimExpr:
        batch, (row, column) = i[:-2], i[-2:]
        number = column - row
        length = arithmetic.minimum(columns + arithmetic.minimum(-number, 0), rows - arithmetic.maximum(-number, 0))
        # Rows hold the longest diagonal; a shorter one leaves so many places of its row free, at one end or the other.
        shift = longest - length
        offset = intrin.select(number >= 0, shift if above == "RIGHT" else const(0), shift if below == "RIGHT" else const(0))
        along = row - arithmetic.maximum(-number, 0) + offset
        place = arithmetic.maximum(arithmetic.minimum(along, longest - 1), 0)
        one = diagonal.ndim == data.ndim - 1
        of = () if one else (arithmetic.maximum(arithmetic.minimum(high - number, high - low), 0),)
        return intrin.if_then_else(arithmetic.all(number >= low, number <= high), diagonal(*batch, *of, place), data(*i))

    return injective(data.shape, body, "matrix_set_diag")


def _check_diagonals(data: Tensor, diagonal: Tensor, low: int, high: int) -> None:
    """Refuse diagonals of which some elements would be read beside their row, or never."""
    where = "matrix_set_diag"
    need_matrices(where, data)
    if diagonal.ndim != data.ndim and not (diagonal.ndim == data.ndim - 1 and low == high):
        raise DeclarationError(
            f"{where}: diagonals of {shape_text(diagonal)} for {shape_text(data)}; a row of one, or rows of all from {low} to {high}"
        )
    for dim in range(data.ndim - 2):
        need_equal(where, f"extent {dim} of data and diagonal", data.shape[dim], diagonal.shape[dim])
    if diagonal.ndim == data.ndim:
        need_equal(where, "the diagonals and those from the lowest to the highest", diagonal.shape[-2], high - low + 1)
    rows, columns = map(extent_value, data.shape[-2:])
    if isinstance(rows, int) and isinstance(columns, int):
        longest = max(min(rows + min(number, 0), columns - max(number, 0)) for number in range(low, high + 1))
        need_equal(where, "the elements of the longest diagonal", diagonal.shape[-1], max(longest, 0))
