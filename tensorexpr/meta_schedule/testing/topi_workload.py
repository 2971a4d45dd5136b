"""Standard operators that are operators of topi, for `te_workload`."""

from __future__ import annotations

from ... import te, topi
from ...errors import WorkloadError
from ...te.tensor import Tensor

Tensors = tuple[Tensor, ...]


def conv2d_winograd_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    tile_size: int = 4,
) -> Tensors:
    """A convolution by Winograd's algorithm: data [N, H, W, CI], transformed weight [kernel, kernel, CO, CI] -> [N, H', W', CO].

    Args:
        kernel_size: of the transformed weight: of a tile and the window less one.
        tile_size: accepted; the height decides, see `topi.nn.conv2d_winograd_nhwc`.
    """
    data = te.placeholder((N, H, W, CI), name="data")
    weight = te.placeholder((kernel_size, kernel_size, CO, CI), name="weight")
    return data, weight, topi.nn.conv2d_winograd_nhwc_without_weight_transform(data, weight, stride, padding, dilation)


def conv2d_nhwc_without_layout_rewrite(
    Input: Tensor, Filter: Tensor, stride: int, padding: int, dilation: int, out_dtype: str = "float32"
) -> Tensor:
    """Input [N, H, W, CI], Filter [KH, KW, CI, CO] -> [N, H', W', CO], where no tuner chooses the filter's layout."""
    made: Tensor = topi.nn.conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)
    return made


def conv2d_nchw_bias_bn_relu(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """A convolution X [n, ci, h, w], W [co, ci, kh, kw], a bias B, a batch normalisation (scale, offset), each [co, 1, 1], and a ReLU."""
    data, weight = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype), te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    bias, scale, offset = (te.placeholder((co, 1, 1), name=name) for name in ("B", "bn_scale", "bn_offset"))
    conv = topi.nn.conv2d_nchw(data, weight, stride, padding, dilation, out_dtype)
    biased = te.compute(conv.shape, lambda i, j, k, l: conv[i, j, k, l] + bias[j, 0, 0], name="bias_add")  # noqa: E741
    scaled = te.compute(conv.shape, lambda i, j, k, l: biased[i, j, k, l] * scale[j, 0, 0], name="bn_mul")  # noqa: E741
    moved = te.compute(conv.shape, lambda i, j, k, l: scaled[i, j, k, l] + offset[j, 0, 0], name="bn_add")  # noqa: E741
    return data, weight, bias, offset, scale, topi.nn.relu(moved)


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """The largest of each window of 2 by 2: X [n, ci, h, w] -> [n, ci, h + 2 padding - 1, w + 2 padding - 1].

    Raises:
        WorkloadError: where no window fits.
    """
    if min(h, w) + 2 * padding < 2:
        raise WorkloadError(f"no window of 2 by 2 fits into {h} by {w} with {padding} around")
    data = te.placeholder((n, ci, h, w), name="X")
    return data, topi.nn.pool2d(data, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")
