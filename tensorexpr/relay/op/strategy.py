"""What strategies of operators are made of, such as `wrap_compute_dense(topi.nn.dense)` and `wrap_topi_schedule(schedule)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...schedule.te_schedule import create_schedule
from ...target import Target
from ..strategies import OpImplementation, OpSpecialization, OpStrategy

Compute = Callable[..., list[Any]]
_CONV = "strides padding dilation"


def _attribute(name: str, attrs: Any, inputs: Sequence[Any], out_type: Any) -> Any:
    """What a computation gets behind its operands: an attribute, "-" for None, the shape of the result."""
    if name == "-":
        return None
    if name == "shape":
        return out_type.shape
    if name == "out_dtype":
        return inputs[0].dtype if attrs.get(name) in (None, "", "same") else attrs[name]
    return attrs[name]


def _wrapped(count: int, compute: Callable[..., Any], names: str) -> Compute:
    """A computation on `count` operands and attributes of these names as one of a strategy."""

    def call(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        made = compute(*inputs[:count], *(_attribute(name, attrs, inputs, out_type) for name in names.split()))
        return list(made) if isinstance(made, (list, tuple)) else [made]

    return call


def wrap_compute_conv2d(
    topi_compute: Callable[..., Any], *, need_data_layout: bool = False, need_kernel_layout: bool = False, need_out_layout: bool = False,
    has_groups: bool = False, need_auto_scheduler_layout: bool = False, need_meta_schedule_layout: bool = False,
) -> Compute:  # fmt: skip
    """`f(data, kernel, strides, padding, dilation[, groups][, data_layout][, kernel_layout][, out_layout], out_dtype)` for strategies.

    Args:
        topi_compute: the function.
        need_data_layout, need_kernel_layout, need_out_layout, has_groups: which of these it takes.
        need_auto_scheduler_layout, need_meta_schedule_layout: accepted; layouts that tuners choose are those of whole graphs.
    """
    layouts = {"data_layout": need_data_layout, "kernel_layout": need_kernel_layout, "out_layout": need_out_layout}
    asked = [name for name, is_asked in {"groups": has_groups, **layouts}.items() if is_asked]
    return _wrapped(2, topi_compute, f"{_CONV} {' '.join(asked)} out_dtype")


def wrap_compute_conv1d(topi_compute: Callable[..., Any]) -> Compute:
    """`f(data, kernel, strides, padding, dilation, out_dtype)` for strategies."""
    return _wrapped(2, topi_compute, f"{_CONV} out_dtype")


def wrap_compute_conv3d(topi_compute: Callable[..., Any], need_layout: bool = False, **_: Any) -> Compute:
    """`f(data, kernel, strides, padding, dilation, groups[, data_layout], out_dtype)` for strategies."""
    return _wrapped(2, topi_compute, f"{_CONV} groups {'data_layout' if need_layout else ''} out_dtype")


def wrap_compute_conv2d_transpose(topi_compute: Callable[..., Any], has_groups: bool = False) -> Compute:
    """`f(data, kernel, strides, padding, out_dtype, output_padding[, groups])` for strategies."""
    return _wrapped(2, topi_compute, f"strides padding out_dtype output_padding {'groups' if has_groups else ''}")


def wrap_compute_dense(topi_compute: Callable[..., Any], **_: Any) -> Compute:
    """`f(data, weight, None, out_dtype)` for strategies."""
    return _wrapped(2, topi_compute, "- out_dtype")


def wrap_compute_matmul(topi_compute: Callable[..., Any], **_: Any) -> Compute:
    """`f(a, b, None, out_dtype, transpose_a, transpose_b)` for strategies."""
    return _wrapped(2, topi_compute, "- out_dtype transpose_a transpose_b")


def wrap_compute_batch_matmul(topi_compute: Callable[..., Any], *, need_out_dtype: bool = False, **_: Any) -> Compute:
    """`f(a, b, shape of the result, out_dtype or None, transpose_a, transpose_b)` for strategies."""
    return _wrapped(2, topi_compute, f"shape {'out_dtype' if need_out_dtype else '-'} transpose_a transpose_b")


def wrap_compute_softmax(topi_compute: Callable[..., Any]) -> Compute:
    """`f(data, axis)` for strategies."""
    return _wrapped(1, topi_compute, "axis")


def wrap_compute_scanop(topi_compute: Callable[..., Any]) -> Compute:
    """`f(data, axis, dtype, exclusive)` for strategies."""
    return _wrapped(1, topi_compute, "axis dtype exclusive")


def wrap_topi_schedule(topi_schedule: Callable[..., Any]) -> Callable[..., Any]:
    """A function that schedules tensors, `f(outs)`, for strategies; the target is current around it."""

    def call(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
        with Target.target_or_current(target):
            return topi_schedule(outs)

    return call


def naive_schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    """The loops as the computation has them."""
    return create_schedule([out.op for out in outs])


__all__ = [
    "OpImplementation", "OpSpecialization", "OpStrategy", "naive_schedule", "wrap_compute_batch_matmul", "wrap_compute_conv1d",
    "wrap_compute_conv2d", "wrap_compute_conv2d_transpose", "wrap_compute_conv3d", "wrap_compute_dense", "wrap_compute_matmul",
    "wrap_compute_scanop", "wrap_compute_softmax", "wrap_topi_schedule",
]  # fmt: skip
