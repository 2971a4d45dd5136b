"""Convolutions by Winograd's minimal filtering: tiles of inputs and weights are transformed, multiplied and transformed back.

For m outputs of a filter of r taps, with alpha = m + r - 1 and points a_j (Lavin and Gray 2016, section 4; Cook-Toom):

    y = A^T ((G g) * (B^T d))        A: [alpha, m]    G: [alpha, r]    B: [alpha, alpha]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...te.declare import compute, reduce_axis
from ...te.reducer import sum as te_sum
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.expr import PrimExpr, Var
from ..advanced_indexing import const_matrix
from ..utils import get_const_int, need_equal, pad_pairs, spread
from .padding import pad

# The points of the polynomials, in the order in which they are used: small numbers whose powers stay exact, of both signs.
_POINTS = (0.0, 1.0, -1.0, 0.5, -2.0, -0.5, 2.0, -0.25, 4.0)
# Where loops over the small matrices are unrolled, so that their zeros and ones vanish.
_SIMPLIFY = "auto_scheduler_simplify_const_tensor_indices"


def winograd_matrices(tile_size: int, kernel_size: int) -> tuple[Any, Any, Any]:
    """A, B and G as float64 arrays, for `tile_size` outputs of `kernel_size` taps.

    Raises:
        DeclarationError: for sizes that need more points than are good.
    """
    alpha = tile_size + kernel_size - 1
    if not 2 <= alpha <= len(_POINTS) + 1:
        raise DeclarationError(f"winograd: {tile_size} outputs of {kernel_size} taps need {alpha - 1} points; there are {len(_POINTS)}")
    # alpha - 1 finite points; the last row or column stands for infinity, where only the highest power counts.
    points = np.array(_POINTS[: alpha - 1])
    a = np.zeros((alpha, tile_size))
    g = np.zeros((alpha, kernel_size))
    b = np.zeros((alpha, alpha))
    for j, point in enumerate(points):
        others = np.delete(points, j)
        a[j] = point ** np.arange(tile_size)
        # Lagrange's denominators go to G: weights are transformed once, data for every tile.
        g[j] = point ** np.arange(kernel_size) / np.prod(point - others)
        b[: alpha - 1, j] = np.atleast_1d(np.poly(others))[::-1]
    a[-1, -1] = g[-1, -1] = 1.0
    b[:, -1] = np.atleast_1d(np.poly(points))[::-1]
    return a, b, g


def winograd_transform_matrices(tile_size: int, kernel_size: int, out_dtype: str) -> tuple[Tensor, Tensor, Tensor]:
    """The constant tensors A [alpha, tile_size], B [alpha, alpha] and G [alpha, kernel_size] of `out_dtype`."""
    a, b, g = winograd_matrices(tile_size, kernel_size)
    made = [const_matrix(m.astype(out_dtype), name) for m, name in ((a, "matA"), (b, "matB"), (g, "matG"))]
    return made[0], made[1], made[2]


def conv2d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """Weights [O, I, k, k] as [alpha, alpha, O, I], for convolutions with `pre_computed`."""
    return _packed_kernel(kernel, get_const_int(kernel.shape[2]), tile_size, "OIHW", ("O", "I"))


def _packed_kernel(kernel: Tensor, size: int, tile_size: int, layout: str, last: tuple[str, str]) -> Tensor:
    place = {letter: n for n, letter in enumerate(layout)}
    alpha = tile_size + size - 1
    matrix = winograd_transform_matrices(tile_size, size, kernel.dtype)[2]
    kh, kw = reduce_axis((0, size), name="r_kh"), reduce_axis((0, size), name="r_kw")

    def body(eps: Var, nu: Var, x: Var, y: Var) -> PrimExpr:
        at: list[Any] = [0] * 4
        at[place["H"]], at[place["W"]] = kh.var, kw.var
        at[place[last[0]]], at[place[last[1]]] = x, y
        return te_sum(kernel(*at) * matrix[eps, kh] * matrix[nu, kw], axis=[kh, kw])

    shape = (alpha, alpha, *(kernel.shape[place[letter]] for letter in last))
    return compute(shape, body, name="kernel_pack", attrs={_SIMPLIFY: ["eps", "nu", "r_kh", "r_kw"]})


def _need_square(where: str, weight: Tensor, layout: str, size: int, pre_computed: bool) -> None:
    """Windows have one size in both directions, as have tiles."""
    if pre_computed:
        need_equal(where, "extents 0 and 1 of the transformed weights", weight.shape[0], weight.shape[1])
        # 6 x 6 may be 3 taps for tiles of 4 or 5 for tiles of 2; where the transform is in the same program it says which.
        for axis in getattr(weight.op, "reduce_axis", ()) if weight.op.name == "kernel_pack" else ():
            need_equal(where, "the taps of the transformed weights and those that the tiles of this height leave", axis.dom.extent, size)
    else:
        need_equal(where, "the height and the width of the window", size, weight.shape[layout.index("W")])


def _tile_size(height: Any) -> int:
    """Outputs of a tile: 4 where the image is a multiple of 8, else 2."""
    return 4 if get_const_int(height) % 8 == 0 else 2


def _transformed(tile: Tensor, matrix: Tensor, shape: tuple[Any, ...], name: str, axes: list[str]) -> Tensor:
    """matrix.T @ tile @ matrix over the first two dimensions."""
    rows, columns = (reduce_axis((0, tile.shape[0]), name=name) for name in ("r_a", "r_b"))

    def body(*i: Var) -> PrimExpr:
        return te_sum(tile[rows, columns, i[2], i[3]] * matrix[rows, i[0]] * matrix[columns, i[1]], axis=[rows, columns])

    return compute(shape, body, name=name, attrs={_SIMPLIFY: [*axes[:2], "r_a", "r_b"]}, varargs_names=axes)


def _winograd(
    where: str, data: Tensor, weight: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str, pre_computed: bool, layout: str
) -> Tensor:
    axes = {letter: n for n, letter in enumerate(layout)}
    if spread(where, "strides", strides, 2) != (1, 1) or spread(where, "dilation", dilation, 2) != (1, 1):
        raise DeclarationError(f"{where}: strides and dilation are 1; use conv2d for others")
    n, height, width, inputs = (get_const_int(data.shape[axes[letter]]) for letter in "NHWC")
    m = _tile_size(height)
    weights = "HWIO" if layout == "NHWC" else "OIHW"
    # Transformed weights [alpha, alpha, O, I] don't tell their taps: they were made with the m that the height says.
    size = get_const_int(weight.shape[0]) - m + 1 if pre_computed else get_const_int(weight.shape[weights.index("H")])
    _need_square(where, weight, weights, size, pre_computed)
    alpha = m + size - 1
    kernel = weight if pre_computed else _packed_kernel(weight, size, m, weights, ("O", "I"))
    outputs = kernel.shape[2]
    need_equal(where, "input channels of data and weight", inputs, kernel.shape[3])
    (top, bottom), (left, right) = pad_pairs(where, padding, (size, size))
    rows, columns = height + top + bottom - size + 1, width + left + right - size + 1
    tall, wide = -(-rows // m), -(-columns // m)
    before, after = [0] * 4, [0] * 4
    before[axes["H"]], before[axes["W"]] = top, left
    # Not the padding behind, but what the last tile reads: 6 rows in tiles of 4 are 2 tiles, the second one half used.
    after[axes["H"]] = tall * m + size - 1 - (height + top)
    after[axes["W"]] = wide * m + size - 1 - (width + left)
    padded = pad(data, before, after, name="data_pad")
    a, b, _ = winograd_transform_matrices(m, size, out_dtype)

    def at(image: Any, y: Any, x: Any, channel: Any) -> PrimExpr:
        return padded(*({"N": image, "H": y, "W": x, "C": channel}[letter] for letter in layout))

    def tile(eps: Var, nu: Var, p: Var, ci: Var) -> PrimExpr:
        # p counts tiles through images, rows and columns; `output` counts alike.
        row, column = arithmetic.floormod(arithmetic.floordiv(p, wide), tall), arithmetic.floormod(p, wide)
        return at(arithmetic.floordiv(p, tall * wide), row * m + eps, column * m + nu, ci)

    count = n * tall * wide
    input_tile = compute((alpha, alpha, count, inputs), tile, name="input_tile")
    data_pack = _transformed(input_tile, b, (alpha, alpha, count, inputs), "data_pack", ["eps", "nu", "p", "ci"])
    ci = reduce_axis((0, inputs), name="ci")
    products = compute(
        (alpha, alpha, count, outputs),
        lambda eps, nu, p, co: te_sum((data_pack[eps, nu, p, ci] * kernel[eps, nu, co, ci]).astype(out_dtype), axis=ci),
        name="bgemm",
        attrs={"layout_free_placeholders": [weight]} if pre_computed else None,
    )
    inverse = _transformed(products, a, (m, m, count, outputs), "inverse", ["vh", "vw", "p", "co"])

    def output(*i: Var) -> PrimExpr:
        image, y, x, channel = (i[axes[letter]] for letter in "NHWC")
        p = (image * tall + arithmetic.floordiv(y, m)) * wide + arithmetic.floordiv(x, m)
        element: PrimExpr = inverse(arithmetic.floormod(y, m), arithmetic.floormod(x, m), p, channel)
        return element

    sizes = {"N": n, "H": rows, "W": columns, "C": outputs}
    return compute(tuple(sizes[letter] for letter in layout), output, name="conv2d_winograd", tag="conv2d_winograd")


def conv2d_winograd_nhwc(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str = "float32",
    pre_computed: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """A convolution [N, H, W, I] with weights [k, k, I, O], or with `pre_computed` those of `conv2d_winograd_weight_transform`.

    Raises:
        DeclarationError: for strides or dilation other than 1, and shapes that don't fit.
    """
    return _winograd("conv2d_winograd_nhwc", data, weight, strides, padding, dilation, out_dtype, pre_computed, "NHWC")


def conv2d_winograd_nchw(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str = "float32",
    pre_computed: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """A convolution [N, I, H, W] with weights [O, I, k, k], or with `pre_computed` those of `conv2d_winograd_weight_transform`.

    Raises:
        DeclarationError: for strides or dilation other than 1, and shapes that don't fit.
    """
    return _winograd("conv2d_winograd_nchw", data, weight, strides, padding, dilation, out_dtype, pre_computed, "NCHW")


def conv2d_winograd_nhwc_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """`conv2d_winograd_nhwc` with weights that are transformed already."""
    return conv2d_winograd_nhwc(data, weight, strides, padding, dilation, out_dtype, pre_computed=True)


def conv2d_winograd_nchw_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """`conv2d_winograd_nchw` with weights that are transformed already."""
    return conv2d_winograd_nchw(data, weight, strides, padding, dilation, out_dtype, pre_computed=True)
