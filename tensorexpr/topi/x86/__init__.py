"""Operators and schedules for x86 by the names that programs call.

Operators are those of `topi.nn` under the arguments that they take here (a tuner's configuration is passed by AutoTVM, not by programs);
schedules are the default schedules, which are made for the target's vectors and caches, unless a log of AutoTVM that is applied knows the
operator's workload: then they are the log's (`topi.tasks`). The products of `cblas`, `mkl` and `dnnl` are those
of the BLAS inside NumPy, see `tensorexpr.contrib.cblas`.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ...errors import DeclarationError
from ...target import Target
from ...te.tensor import Tensor
from .. import nn, transform, vision
from ..named_operators import renamed
from ..named_schedules import define_schedules, schedule_injective_from_existing
from ..nn.dense import bias_add
from ..utils import extent_value
from ..utils import get_max_power2_factor as get_max_power2_factor
from ..utils import is_empty_shape as is_empty_shape
from ..utils import traverse_inline as traverse_inline

_NAMES = """
adaptive_pool batch_matmul batch_matmul_cblas batch_matmul_int8 batch_matmul_mkl batch_norm binarize_pack binary_dense
bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense broadcast concatenate concatenate_cpu conv1d_ncw conv1d_nwc
conv2d_NCHWc conv2d_NCHWc_int8 conv2d_nchw conv2d_nchw_int8 conv2d_nhwc conv2d_nhwc_pack_int8 conv2d_transpose_nchw
conv3d_ncdhw conv3d_ndhwc conv3d_transpose_ncdhw dense_cblas dense_dnnl dense_dynamic dense_int8 dense_mkl dense_nopack
dense_pack depthwise_conv2d_NCHWc depthwise_conv2d_nchw elemwise group_conv1d_ncw group_conv1d_nwc group_conv2d_nchw
group_conv2d_nchwc injective matmul_cblas matmul_dnnl matmul_mkl pool reduce softmax sparse_dense spconv2d_3x3_nchw
spconv2d_3x3_nhwc
"""
OPERATORS = tuple(_NAMES.split())

_CONV = "data kernel strides padding dilation"
_BITS = "pack_dtype out_dtype unipolar"
# Operators of other modules by their names and arguments here.
_COMPUTES: dict[str, tuple[Callable[..., Any], str]] = {
    "batch_matmul": (nn.batch_matmul, "tensor_a tensor_b out_shape out_dtype transpose_a transpose_b"),
    "bitserial_conv2d_nchw": (nn.bitserial_conv2d_nchw, f"data kernel stride padding in_bits weight_bits {_BITS}"),
    "bitserial_conv2d_nhwc": (nn.bitserial_conv2d_nhwc, f"data kernel stride padding in_bits weight_bits {_BITS}"),
    "bitserial_dense": (nn.bitserial_dense, f"data weight data_bits weight_bits {_BITS}"),
    "concatenate": (transform.concatenate, "data axis"),
    "conv2d_NCHWc": (nn.conv2d_NCHWc, f"{_CONV} layout out_layout out_dtype"),
    "conv2d_NCHWc_int8": (nn.conv2d_NCHWc_int8, f"{_CONV} layout out_layout out_dtype"),
    "conv2d_nchw": (nn.conv2d_nchw, f"{_CONV} out_dtype"),
    "conv2d_nchw_int8": (nn.conv2d_nchw, f"{_CONV} out_dtype"),
    "conv2d_transpose_nchw": (nn.conv2d_transpose_nchw, "data kernel strides padding out_dtype output_padding"),
    "conv3d_ncdhw": (nn.conv3d_ncdhw, f"{_CONV} groups out_dtype"),
    "conv3d_ndhwc": (nn.conv3d_ndhwc, f"{_CONV} groups out_dtype"),
    "conv3d_transpose_ncdhw": (nn.conv3d_transpose_ncdhw, "data kernel strides padding out_dtype output_padding"),
    "dense_dynamic": (nn.dense, "A B bias dtype"),
    "dense_int8": (nn.dense, "data weight bias out_dtype"),
    "dense_nopack": (nn.dense, "data weight bias out_dtype"),
    "dense_pack": (nn.dense_pack, "data weight bias out_dtype"),
    "depthwise_conv2d_NCHWc": (nn.depthwise_conv2d_NCHWc, f"{_CONV} layout out_layout out_dtype"),
    "depthwise_conv2d_nchw": (nn.depthwise_conv2d_nchw, f"{_CONV} out_dtype"),
    "group_conv2d_nchw": (nn.group_conv2d_nchw, f"{_CONV} groups out_dtype"),
    "group_conv2d_nchw_spatial_pack": (nn.group_conv2d_nchw, f"{_CONV} groups out_dtype"),
    "roi_align_nchw": (vision.roi_align_nchw, "data rois pooled_size spatial_scale mode sample_ratio"),
}

# Operators that are tasks of AutoTVM too.
_TASK_NAMES = """
batch_matmul bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense conv2d_NCHWc conv2d_NCHWc_int8 conv3d_ncdhw conv3d_ndhwc
dense_int8 dense_nopack dense_pack depthwise_conv2d_NCHWc group_conv2d_nchw
"""
_TASKS = frozenset(_TASK_NAMES.split())

Workload3D = namedtuple(
    "Workload3D",
    "in_dtype out_dtype depth height width in_filter groups out_filter dkernel hkernel wkernel dpad hpad wpad dstride hstride wstride",
)

_OWN = [
    "Workload3D", "batch_matmul_cblas", "batch_matmul_mkl", "binary_op_multiplier", "dense_cblas", "dense_dnnl", "dense_mkl",
    "get_max_power2_factor", "get_simd_32bit_lanes", "infer_pad3d", "is_empty_shape", "matmul_cblas", "matmul_dnnl", "matmul_mkl",
    "schedule_injective_for_concat", "schedule_injective_from_existing", "traverse_inline",
]  # fmt: skip


def _renamed(name: str, function: Callable[..., Any], names: str) -> Callable[..., Any]:
    """An operator under another name, its first arguments under the names given."""

    def call(args: tuple[Any, ...]) -> Any:
        if name in _TASKS and _is_task(name, args):
            from ..tasks.dispatch import declare

            return declare(name, args)
        return function(*args)

    return renamed(__name__, "x86", name, function, names, call)


def _is_task(name: str, args: Any) -> bool:
    """Whether the task of a name is what is asked for: that of small numbers takes packed weights, the operator others too."""
    return all(isinstance(arg, Tensor) for arg in args[:2]) and (name != "dense_int8" or args[1].ndim == 4)


globals().update({name: _renamed(name, function, names) for name, (function, names) in _COMPUTES.items()})


def _blas_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """The product of two matrices by the BLAS inside NumPy, plus `bias` [N] if there is one. See `contrib.cblas.matmul`.

    Raises:
        DeclarationError: for operands that aren't both float32 or both float64, or an out_dtype that isn't theirs.
    """
    from ...contrib import cblas

    _same_dtype("matmul", tensor_a, out_dtype)
    product = cblas.matmul(tensor_a, tensor_b, transpose_a, transpose_b)
    return product if bias is None else bias_add(product, bias, -1)


def _blas_dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """data [M, K] times the transpose of weight [N, K] by the BLAS inside NumPy, plus `bias` [N] if there is one.

    Raises:
        DeclarationError: for operands that aren't both float32 or both float64, or an out_dtype that isn't theirs.
    """
    return _blas_matmul(data, weight, bias, out_dtype, False, True)


def _blas_batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    out_shape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """The products of two batches of matrices by the BLAS inside NumPy. See `contrib.cblas.batch_matmul`.

    Raises:
        DeclarationError: for operands that aren't both float32 or both float64, or an out_dtype that isn't theirs.
    """
    from ...contrib import cblas

    _same_dtype("batch_matmul", tensor_a, out_dtype)
    return cblas.batch_matmul(tensor_a, tensor_b, transpose_a, transpose_b)


def _same_dtype(where: str, tensor: Tensor, out_dtype: str | None) -> None:
    if out_dtype not in (None, tensor.dtype):
        raise DeclarationError(
            f"{where}: BLAS sums {tensor.dtype} in its own dtype, not in {out_dtype}; topi.nn.{where} takes any out_dtype"
        )


matmul_cblas = matmul_mkl = matmul_dnnl = _blas_matmul
dense_cblas = dense_mkl = dense_dnnl = _blas_dense
batch_matmul_cblas = batch_matmul_mkl = _blas_batch_matmul
schedule_injective_for_concat = schedule_injective_from_existing


def binary_op_multiplier(pack_dtype: str) -> int:
    """How many bits a word of an unsigned dtype holds."""
    return int(pack_dtype.removeprefix("uint"))


def get_simd_32bit_lanes() -> int:
    """How many numbers of 32 bits a vector of the current target holds."""
    return Target.target_or_current(None).vector_bits // 32


def infer_pad3d(data: Tensor, data_pad: Tensor | None, layout: str) -> tuple[int, int, int]:
    """The padding on each side of D, H and W, of a tensor and what `topi.nn.pad` made of it.

    Args:
        data: before; data_pad: after, or None for no padding.
        layout: "NCDHW" or "NDHWC".

    Raises:
        DeclarationError: for another layout.
    """
    if layout not in ("NCDHW", "NDHWC"):
        raise DeclarationError(f'infer_pad3d: layout is {layout!r}; it takes "NCDHW" or "NDHWC"')
    if data_pad is None:
        return 0, 0, 0
    found = [(extent_value(data_pad.shape[n]) - extent_value(data.shape[n])) // 2 for n in map(layout.index, "DHW")]
    return found[0], found[1], found[2]


__all__ = [*_OWN, *_COMPUTES, *(f"schedule_{operator}" for operator in OPERATORS)]

define_schedules(globals(), OPERATORS)


def _by_log(name: str, default: Callable[..., Any]) -> Callable[..., Any]:
    """The schedule of an operator that is a task: that of the log in force, or the default one."""

    @functools.wraps(default)
    def scheduled(outs: Any, layout: str | None = None) -> Any:
        from ..tasks.dispatch import schedule

        outputs = [outs] if isinstance(outs, Tensor) else outs
        tensors = isinstance(outputs, (list, tuple)) and outputs and all(isinstance(out, Tensor) for out in outputs)
        return schedule(name, list(outputs)) if tensors else default(outs, layout)

    return scheduled


globals().update({f"schedule_{name}": _by_log(name, globals()[f"schedule_{name}"]) for name in _TASKS if name in OPERATORS})
