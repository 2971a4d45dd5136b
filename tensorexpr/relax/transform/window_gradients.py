"""Derivatives of convolutions and pools of planes, for `Gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from .. import op
from ..expr import Call
from ..op import grad
from ..ops.window import paddings, sizes
from ..struct_info import TensorStructInfo


def _numbers(value: Any, what: Call) -> list[int]:
    info = value.struct_info
    known = [as_int(one) for one in info.extents] if isinstance(info, TensorStructInfo) and info.extents is not None else [None]
    if None in known:
        raise DeclarationError(f"Gradient: windows of a plane of unknown extents, {info}: {what}")
    return [one for one in known if one is not None]


def conv2d(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    """By the data a transposed convolution, by the weights one of the data with the adjoint, a channel being a sample of a batch there.

    Raises:
        DeclarationError: for other layouts than NCHW and OIHW, and groups whose weights' derivatives aren't those of whole channels.
    """
    data, weight = call.args
    given: Any = call.attrs
    if (given["data_layout"], given["kernel_layout"]) != ("NCHW", "OIHW") or given["out_layout"] not in (None, "", "NCHW"):
        raise DeclarationError(
            f"Gradient: convolutions of the layouts NCHW and OIHW have derivatives; ConvertLayout changes others: {call}"
        )
    strides, dilation = sizes(given["strides"], 2, "strides"), sizes(given["dilation"], 2, "dilation")
    front, back = paddings(given["padding"], 2)
    x, w, y = (_numbers(one, call) for one in (data, weight, result))
    groups = int(given["groups"])
    # How many pixels at the end no window reached.
    left = [x[n + 2] + front[n] + back[n] - (y[n + 2] - 1) * strides[n] - (w[n + 2] - 1) * dilation[n] - 1 for n in (0, 1)]
    by_data = op.nn.conv2d_transpose(adjoint, weight, strides, [*front, *back], left, dilation, groups)
    pixels, change = op.permute_dims(data, [1, 0, 2, 3]), op.permute_dims(adjoint, [1, 0, 2, 3])
    if groups > 1:
        # Channels of a group stand together: [G I, N, H, W] -> [I, G N, H, W], whose group g meets the results of group g.
        pixels = op.reshape(pixels, [groups, x[1] // groups, x[0], *x[2:]])
        pixels = op.reshape(op.permute_dims(pixels, [1, 0, 2, 3, 4]), [x[1] // groups, groups * x[0], *x[2:]])
    found = op.nn.conv2d(pixels, change, dilation, [*front, *back], strides, groups)
    whole = op.strided_slice(found, [2, 3], [0, 0], w[2:])
    return [by_data, op.permute_dims(whole, [1, 0, 2, 3])]


def _pool(make: Callable[..., Call]) -> Callable[[Call, Any, Any], Sequence[Any]]:
    return lambda call, result, adjoint: [make(adjoint, call.args[0], **call.attrs)]


ROWS = {
    "nn.conv2d": conv2d,
    "nn.avg_pool2d": _pool(grad.avg_pool2d_backward),
    "nn.max_pool2d": _pool(grad.max_pool2d_backward),
}
