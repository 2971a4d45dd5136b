"""What a convolution is to a tuner: dtypes, extents, window, padding and steps, as records of numbers."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ..utils import get_const_int, get_pad_tuple, need_equal, need_rank, spread

Workload = namedtuple(
    "Workload",
    "in_dtype out_dtype height width in_filter groups out_filter kernel_h kernel_w padt padl padb padr "
    "dilation_h dilation_w stride_h stride_w",
)
DepthwiseWorkload = namedtuple(
    "DepthwiseWorkload",
    "in_dtype out_dtype height width in_filter out_filter kernel_h kernel_w padt padl padb padr dilation_h dilation_w stride_h stride_w",
)

# Layouts of the weights that go with those of the data; small letters are parts within a block.
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}
_DEPTHWISE_KERNELS = {"NCHW": "CMHW", "NHWC": "HWCM", "NCHWc": "CMHWmc"}


def conv2d_workload(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str, data_layout: str = "NCHW"
) -> Workload:
    """The record of a convolution.

    Args:
        data: in `data_layout`, of constant extents.
        kernel: OIHW for NCHW, else HWIO.
        stride, dilation: one number, or two.
        padding: as `topi.utils.get_pad_tuple` takes it.
        out_dtype: of the sums.
        data_layout: NCHW, NHWC or HWCN.

    Raises:
        DeclarationError: for other layouts, ranks or dtypes.
    """
    x, w, window = _parts("conv2d", data, kernel, stride, padding, dilation, data_layout, _KERNELS)
    return Workload(data.dtype, out_dtype, x["H"], x["W"], x["C"], x["C"] // w["I"], w["O"], *window)


def depthwise_workload(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str, data_layout: str = "NCHW"
) -> DepthwiseWorkload:
    """As `conv2d_workload`, of a convolution of each channel.

    Args:
        kernel: of C channels and M results of each: CMHW for NCHW, HWCM for NHWC, and CMHWmc for NCHWc, where data and kernel have
            blocks of the same number of channels.

    Raises:
        DeclarationError: for other layouts, ranks, channels or dtypes.
    """
    x, w, window = _parts("depthwise_conv2d", data, kernel, stride, padding, dilation, data_layout, _DEPTHWISE_KERNELS)
    need_equal("depthwise_conv2d", "channels of data and kernel", x["C"] * x.get("c", 1), w["C"] * w.get("c", 1))
    channels = x["C"] * x.get("c", 1)
    return DepthwiseWorkload(data.dtype, out_dtype, x["H"], x["W"], channels, channels * w["M"] * w.get("m", 1), *window)


def _parts(
    where: str, data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, layout: str, kernels: dict[str, str]
) -> tuple[dict[str, int], dict[str, int], list[int]]:
    """Extents of data and kernel by letters, and what both records say of the window."""
    if layout not in kernels:
        raise DeclarationError(f"{where}: the layout is {layout!r}; workloads are of {', '.join(kernels)}")
    need_rank(where, "data", data, len(layout))
    need_rank(where, "kernel", kernel, len(kernels[layout]))
    if data.dtype != kernel.dtype and (data.dtype, kernel.dtype) != ("uint8", "int8"):
        raise DeclarationError(f"{where}: data of {data.dtype} and weights of {kernel.dtype}; both have one dtype, or uint8 and int8")
    x = dict(zip(layout, map(get_const_int, data.shape), strict=True))
    w = dict(zip(kernels[layout], map(get_const_int, kernel.shape), strict=True))
    steps, apart = spread(where, "stride", stride, 2), spread(where, "dilation", dilation, 2)
    pads = get_pad_tuple(padding, [(w[letter] - 1) * step + 1 for letter, step in zip("HW", apart, strict=True)])
    return x, w, [w["H"], w["W"], *map(get_const_int, (*pads, *apart, *steps))]
