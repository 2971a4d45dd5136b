"""Matrix products: dense layers, matmul and batched matmul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from .. import tag
from ..utils import equal_const_int, extent_value, get_const_int, get_max_power2_factor, need_equal, need_rank


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """[..., M, K] times [K, N] (each transposed if said so), plus bias [N] if there is one.

    Args:
        tensor_a: [..., M, K], or [..., K, M] with `transpose_a`.
        tensor_b: [K, N], or [N, K] with `transpose_b`. A tuner may choose its layout.
        out_dtype: of the result and of the sums, default the dtype of `tensor_a`.
    """
    name = "T_dense" if transpose_b and not transpose_a else f"T_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    if not isinstance(tensor_a, Tensor) or tensor_a.ndim < 2:
        raise DeclarationError(f"{name}: tensor_a has two dimensions at least")
    need_rank(name, "tensor_b", tensor_b, 2)
    rows, depth = tensor_a.shape[-2:][::-1] if transpose_a else tensor_a.shape[-2:]
    columns, depth_b = tensor_b.shape if transpose_b else tensor_b.shape[::-1]
    need_equal(name, "the summed extents of the two matrices", depth, depth_b)
    k = te.reduce_axis((0, depth), name="k")
    dtype = out_dtype or tensor_a.dtype

    def body(*i: Var) -> PrimExpr:
        *batch, row, column = i
        left = tensor_a(*batch, k.var, row) if transpose_a else tensor_a(*batch, row, k.var)
        right = tensor_b(column, k.var) if transpose_b else tensor_b(k.var, column)
        return te.sum(cast(left, dtype) * cast(right, dtype), axis=k)

    shape = (*tensor_a.shape[:-2], rows, columns)
    names = [*(f"b{n}" for n in range(tensor_a.ndim - 2)), "i", "j"]
    result: Tensor = compute(shape, body, name, "dense" if name == "T_dense" else "matmul", {"layout_free_placeholders": [tensor_b]}, names)
    return result if bias is None else bias_add(result, bias, -1)


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """data [..., K] times the transpose of weight [N, K], plus bias [N] if there is one.

    Args:
        data: [..., K].
        weight: [N, K].
        bias: [N], or None.
        out_dtype: that products are summed in; that of `data` by default.
        auto_scheduler_rewritten_layout, meta_schedule_original_shape: what tuners know of a weight in another layout.

    Returns:
        `out_dtype` [..., N].
    """
    return matmul(data, weight, bias, out_dtype, False, True)


def dense_pack(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """A dense layer whose weights are packed in blocks of columns.

    Args:
        data: [M, K].
        weight: [N/b, K, b], or [N, K] to be packed here in the largest block of 16, 8, ... 1 that divides N.
        bias: [N], if there is one.
        out_dtype: of the result and of the sums, default the dtype of `data`.

    Returns:
        [M, N].

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    need_rank("dense_pack", "data", data, 2)
    packed = weight
    if weight.ndim == 2:
        columns, block = get_const_int(weight.shape[0]), get_max_power2_factor(get_const_int(weight.shape[0]), 16)
        packed = compute((columns // block, weight.shape[1], block), lambda z, k, x: weight(z * block + x, k), "packed_weight")
    need_rank("dense_pack", "weight", packed, 3)
    need_equal("dense_pack", "the summed extents of data and weight", data.shape[1], packed.shape[1])
    width = packed.shape[2]
    k = te.reduce_axis((0, data.shape[1]), name="k")
    dtype = out_dtype or data.dtype

    def body(y: Var, x: Var) -> PrimExpr:
        right = packed(floordiv(x, width), k.var, floormod(x, width))
        return te.sum(cast(data(y, k.var), dtype) * cast(right, dtype), axis=k)

    result: Tensor = compute((data.shape[0], extent_value(packed.shape[0] * width)), body, "T_dense_pack", "dense_pack")
    return result if bias is None else bias_add(result, bias, -1)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """`data` plus a vector along `axis`.

    Args:
        data: [any shape], of any dtype.
        bias: a vector as long as `axis`, of that dtype.
        axis: counted from the end if negative.

    Returns:
        A tensor like `data`.
    """
    place = axis % data.ndim
    need_rank("bias_add", "the bias", bias, 1)
    need_equal("bias_add", "the extent of the axis and of the bias", data.shape[place], bias.shape[0])
    return compute(
        data.shape,
        lambda *i: data(*i) + cast(bias(i[place]), data.dtype),
        "T_add",
        tag.BROADCAST,
        varargs_names=[f"ax{n}" for n in range(data.ndim)],
    )


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Sequence[Any] | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """Products of matrices of two batches, of which one may be of extent 1.

    Args:
        tensor_a: [B, M, K], or [B, K, M] with `transpose_a`.
        tensor_b: [B, N, K], or [B, K, N] without `transpose_b`.
        oshape: the result's shape, to check it; it follows from the operands.
        out_dtype: of the result and of the sums, default the dtype of `tensor_a`.
    """
    name = f"T_batch_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    need_rank(name, "tensor_a", tensor_a, 3)
    need_rank(name, "tensor_b", tensor_b, 3)
    rows, depth = tensor_a.shape[1:][::-1] if transpose_a else tensor_a.shape[1:]
    columns, depth_b = tensor_b.shape[1:] if transpose_b else tensor_b.shape[1:][::-1]
    need_equal(name, "the summed extents of the two matrices", depth, depth_b)
    one_a, one_b = equal_const_int(tensor_a.shape[0], 1), equal_const_int(tensor_b.shape[0], 1)
    if not one_a and not one_b:
        need_equal(name, "the batches (unless one is 1)", tensor_a.shape[0], tensor_b.shape[0])
    batch = tensor_b.shape[0] if one_a else tensor_a.shape[0]
    for extent, wanted in zip((batch, rows, columns), oshape or (), strict=False):
        need_equal(name, "the extents of the result and of oshape", extent, wanted)
    k = te.reduce_axis((0, depth), name="k")
    dtype = out_dtype or tensor_a.dtype

    def body(b: Var, i: Var, j: Var) -> PrimExpr:
        first, second = (0 if one_a else b), (0 if one_b else b)
        left = tensor_a(first, k.var, i) if transpose_a else tensor_a(first, i, k.var)
        right = tensor_b(second, j, k.var) if transpose_b else tensor_b(second, k.var, j)
        return te.sum(cast(left, dtype) * cast(right, dtype), axis=k)

    return compute((batch, rows, columns), body, name, "batch_matmul", {"layout_free_placeholders": [tensor_b]})
