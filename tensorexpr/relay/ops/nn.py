"""Operators of neural networks: products, convolutions, pools, norms and what is around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import topi
from ...errors import DeclarationError
from ...relax import op as graph_op
from ...relax.expr import Tuple as GraphTuple
from ...relax.expr import const as constant
from ...tir.arithmetic import as_int
from . import dynamic
from .row import Computed, Expr, Meaning, by_layout, dtype, number, of_planes, operator, shape
from .transform import _axis, _list

R = graph_op.nn


# Products


def _last_two(data: Any, swap: bool) -> Any:
    ndim = len(shape(data))
    return graph_op.permute_dims(data, [*range(ndim - 2), ndim - 1, ndim - 2]) if swap else data


@operator("nn.dense")
def dense(data: Expr, weight: Expr, units: int | None = None, out_dtype: str = "") -> Meaning:
    """Rows times the rows of weights: `data @ weight.T`."""
    _counted("units", units, shape(weight)[0])
    return graph_op.matmul(data, _last_two(_rounded(weight, data), True), out_dtype or None)


def _rounded(weight: Any, data: Any) -> Any:
    """Weights in the floats of the data: NumPy makes float64, and TVM's products take the data's type for both."""
    kinds = dtype(weight), dtype(data)
    return graph_op.astype(weight, kinds[1]) if kinds[0] != kinds[1] and all(one.startswith("float") for one in kinds) else weight


def _counted(what: str, stated: Any, found: Any) -> None:
    """What is stated twice, checked."""
    if stated is not None and as_int(found) is not None and int(stated) != as_int(found):
        raise DeclarationError(f"{what}={stated}, and the weights have {found}")


@operator("nn.matmul")
def matmul(
    tensor_a: Expr, tensor_b: Expr, units: int | None = None, out_dtype: str = "", transpose_a: bool = False, transpose_b: bool = False
) -> Meaning:
    """The product of matrices."""
    return graph_op.matmul(_last_two(tensor_a, transpose_a), _last_two(tensor_b, transpose_b), out_dtype or None)


@operator("nn.batch_matmul")
def batch_matmul(tensor_a: Expr, tensor_b: Expr, out_dtype: str = "", transpose_a: bool = False, transpose_b: bool = True) -> Meaning:
    """Products of matrices one by one; the second one is transposed unless it is told otherwise."""
    return graph_op.matmul(_last_two(tensor_a, transpose_a), _last_two(tensor_b, transpose_b), out_dtype or None)


@operator("nn.contrib_dense_pack")
def contrib_dense_pack(data: Expr, weight: Expr, weight_layout: str = "NC", units: int | None = None, out_dtype: str = "") -> Meaning:
    """As `dense`, with weights in blocks of columns, as in "NC8n"."""
    if weight_layout == "NC":
        return graph_op.matmul(data, _last_two(weight, True), out_dtype or None)

    def product(x: Any, w: Any) -> Any:
        return topi.nn.dense(x, topi.layout_transform(w, weight_layout, "NC"), None, out_dtype or None)

    return Computed(product, (data, weight), {}, "dense_pack")


# Convolutions


def _conv(rank: int, planes: str) -> Callable[..., Any]:
    """The operator of a convolution over some axes; `planes` are their letters."""
    ones: Any = 1 if rank == 1 else (1,) * rank
    none: Any = 0 if rank == 1 else (0,) * rank

    def meant(
        data: Expr, weight: Expr, strides: Any = ones, padding: Any = none, dilation: Any = ones, groups: int = 1,
        channels: int | None = None, kernel_size: Any = None, data_layout: str = f"NC{planes}", kernel_layout: str = f"OI{planes}",
        out_layout: str = "", out_dtype: str = "",
    ) -> Meaning:  # fmt: skip
        _checked(weight, kernel_layout, kernel_size, planes)
        rows = by_channel(data, _rounded(weight, data), groups, data_layout, kernel_layout)
        made = getattr(R, f"conv{rank}d")(
            data, rows, _list(strides), _list(padding), _list(dilation), groups, data_layout, kernel_layout, out_layout or None,
            out_dtype or None,
        )  # fmt: skip
        return _with_channels(made, channels, out_layout or data_layout)

    meant.__doc__ = f"A convolution over {rank} axes, in any layout."
    return operator(f"nn.conv{rank}d", settled=of_planes(rank))(meant)  # type: ignore[no-any-return]


def _with_channels(made: Any, stated: Any, layout: str) -> Any:
    """A convolution whose result has as many channels as are stated. Blocks of them ("NCHW8c") state two extents, and aren't looked at."""
    if layout.isupper():
        _counted("channels", stated, shape(made)[layout.index("C")])
    return made


def _checked(weight: Any, layout: str, kernel_size: Any, planes: str) -> None:
    """Attributes that say what the weights say, too.

    Raises:
        DeclarationError: if they contradict each other.
    """
    if not layout.isupper() or len(layout) != len(shape(weight)):
        return
    extents = dict(zip(layout, shape(weight), strict=True))
    for letter, stated in zip(planes, _list(kernel_size) if kernel_size is not None else [], strict=False):
        _counted("kernel_size", stated, extents[letter])


def by_channel(data: Any, weight: Any, groups: int, data_layout: str, kernel_layout: str) -> Any:
    """Weights of a convolution by channel, which Relay states as (channels, multiplier), with one row for each result."""
    at = kernel_layout.find("OI")
    if groups == 1 or at < 0 or not (data_layout + kernel_layout).isupper():
        return weight
    extents = shape(weight)
    channels, outer, inner = (as_int(one) for one in (shape(data)[data_layout.index("C")], *extents[at : at + 2]))
    if not groups == channels == outer or inner is None:
        return weight
    return graph_op.reshape(weight, (*extents[:at], outer * inner, 1, *extents[at + 2 :])) if inner > 1 else weight


conv1d, conv2d, conv3d = _conv(1, "W"), _conv(2, "HW"), _conv(3, "DHW")


def _conv_transpose(rank: int, planes: str) -> Callable[..., Any]:
    ones, none = (1,) * rank, (0,) * rank

    def meant(
        data: Expr, weight: Expr, strides: Any = ones, padding: Any = none, dilation: Any = ones, groups: int = 1,
        channels: int | None = None, kernel_size: Any = None, data_layout: str = f"NC{planes}", kernel_layout: str = f"IO{planes}",
        out_layout: str = "", output_padding: Any = none, out_dtype: str = "",
    ) -> Meaning:  # fmt: skip
        _checked(weight, kernel_layout, kernel_size, planes)
        made = getattr(R, f"conv{rank}d_transpose")(
            data, weight, _list(strides), _list(padding), _list(output_padding), _list(dilation), groups, data_layout, kernel_layout,
            out_layout or None, out_dtype or None,
        )  # fmt: skip
        return _with_channels(made, channels, out_layout or data_layout)

    meant.__doc__ = f"A transposed convolution over {rank} axes."
    return operator(f"nn.conv{rank}d_transpose", settled=of_planes(rank))(meant)  # type: ignore[no-any-return]


conv1d_transpose, conv2d_transpose, conv3d_transpose = _conv_transpose(1, "W"), _conv_transpose(2, "HW"), _conv_transpose(3, "DHW")


def _packed(name: str) -> Callable[..., Any]:
    def meant(
        data: Expr, kernel: Expr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1,
        channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW8c", kernel_layout: str = "OIHW",
        out_layout: str = "", out_dtype: str = "",
    ) -> Meaning:  # fmt: skip
        return R.conv2d(
            data, kernel, _list(strides), _list(padding), _list(dilation), groups, data_layout, kernel_layout, out_layout or None,
            out_dtype or None,
        )  # fmt: skip

    meant.__doc__ = "A convolution whose operands are in blocks of channels."
    return operator(name, settled=of_planes(2))(meant)  # type: ignore[no-any-return]


contrib_conv2d_nchwc = _packed("nn.contrib_conv2d_NCHWc")
contrib_depthwise_conv2d_nchwc = _packed("nn.contrib_depthwise_conv2d_NCHWc")


@operator("nn.deformable_conv2d")
def deformable_conv2d(
    data: Expr, offset: Expr, weight: Expr, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
    deformable_groups: int = 1, groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW",
    kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "",
) -> Meaning:  # fmt: skip
    """A convolution whose taps are moved by offsets (Dai et al. 2017)."""
    by = by_layout(data_layout, NCHW=topi.nn.deformable_conv2d_nchw, NHWC=topi.nn.deformable_conv2d_nhwc)
    args = (list(strides), list(padding), list(dilation), deformable_groups, groups, out_dtype or None)
    return Computed(lambda x, o, w: by(x, o, w, *args), (data, offset, weight), {}, "deformable_conv2d")


@operator("nn.correlation")
def correlation(
    data1: Expr,
    data2: Expr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
    layout: str,
) -> Meaning:
    """Products, or differences, of patches of two planes (Dosovitskiy et al. 2015)."""
    by = by_layout(layout, NCHW=topi.nn.correlation_nchw)
    args = (kernel_size, max_displacement, stride1, stride2, padding, is_multiply)
    return Computed(lambda a, b: by(a, b, *args), (data1, data2), {}, "correlation")


@operator("nn.bitserial_conv2d")
def bitserial_conv2d(
    data: Expr, weight: Expr, strides: Any = (1, 1), padding: Any = (0, 0), channels: int | None = None, kernel_size: Any = (3, 3),
    activation_bits: int = 1, weight_bits: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", pack_dtype: str = "uint32",
    out_dtype: str = "int16", unipolar: bool = True,
) -> Meaning:  # fmt: skip
    """A convolution of numbers of a few bits."""
    by = by_layout(data_layout, NCHW=topi.nn.bitserial_conv2d_nchw, NHWC=topi.nn.bitserial_conv2d_nhwc)
    args = (list(strides), list(padding), activation_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    return Computed(lambda x, w: by(x, w, *args), (data, weight), {}, "bitserial_conv2d")


@operator("nn.bitserial_dense")
def bitserial_dense(
    data: Expr, weight: Expr, units: int | None = None, data_bits: int = 1, weight_bits: int = 1, pack_dtype: str = "uint32",
    out_dtype: str = "int16", unipolar: bool = True,
) -> Meaning:  # fmt: skip
    """A product of numbers of a few bits."""
    args = (data_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    return Computed(lambda x, w: topi.nn.bitserial_dense(x, w, *args), (data, weight), {}, "bitserial_dense")


# Pools


def _pool(kind: str, rank: int, planes: str) -> Callable[..., Any]:
    ones, none = (1,) * rank, (0,) * rank

    def common(
        data: Any, pool_size: Any, strides: Any, dilation: Any, padding: Any, layout: str, out_layout: str, ceil: bool, count: bool
    ) -> Any:
        made = getattr(R, f"{kind}_pool{rank}d")
        sizes = [_list(one) for one in (pool_size, strides, padding, dilation)]
        return made(data, *sizes, ceil, count, layout, out_layout or None)

    def maximum(
        data: Expr, pool_size: Any = ones, strides: Any = ones, dilation: Any = ones, padding: Any = none, layout: str = f"NC{planes}",
        out_layout: str = "", ceil_mode: bool = False,
    ) -> Meaning:  # fmt: skip
        return common(data, pool_size, strides, dilation, padding, layout, out_layout, ceil_mode, False)

    def mean(
        data: Expr, pool_size: Any = ones, strides: Any = ones, dilation: Any = ones, padding: Any = none, layout: str = f"NC{planes}",
        out_layout: str = "", ceil_mode: bool = False, count_include_pad: bool = False,
    ) -> Meaning:  # fmt: skip
        return common(data, pool_size, strides, dilation, padding, layout, out_layout, ceil_mode, count_include_pad)

    meant: Any = maximum if kind == "max" else mean
    meant.__doc__ = f"The {'greatest element' if kind == 'max' else 'mean'} of windows over {rank} axes."
    return operator(f"nn.{kind}_pool{rank}d")(meant)  # type: ignore[no-any-return]


max_pool1d, max_pool2d, max_pool3d = _pool("max", 1, "W"), _pool("max", 2, "HW"), _pool("max", 3, "DHW")
avg_pool1d, avg_pool2d, avg_pool3d = _pool("avg", 1, "W"), _pool("avg", 2, "HW"), _pool("avg", 3, "DHW")


def _whole_pool(kind: str, rank: int, planes: str) -> Callable[..., Any]:
    def meant(data: Expr, layout: str = f"NC{planes}", out_layout: str = "") -> Meaning:
        if out_layout not in ("", layout):
            raise DeclarationError(f"out_layout is layout, {layout}, or empty, not {out_layout}: layout_transform changes it")
        axes = [place for place, letter in enumerate(layout) if letter in planes]
        return (graph_op.max if kind == "max" else graph_op.mean)(data, axes, True)

    meant.__doc__ = f"The {'greatest element' if kind == 'max' else 'mean'} of each plane."
    return operator(f"nn.global_{kind}_pool{rank}d")(meant)  # type: ignore[no-any-return]


global_max_pool1d, global_max_pool2d, global_max_pool3d = (_whole_pool("max", n + 1, p) for n, p in enumerate(("W", "HW", "DHW")))
global_avg_pool1d, global_avg_pool2d, global_avg_pool3d = (_whole_pool("avg", n + 1, p) for n, p in enumerate(("W", "HW", "DHW")))


def _cells(kind: str, rank: int, planes: str) -> Callable[..., Any]:
    def meant(data: Expr, output_size: Any = None, layout: str = f"NC{planes}", out_layout: str = "") -> Meaning:
        extents = dict(zip(layout, shape(data), strict=False))
        sizes = [] if output_size is None else _list(output_size)
        sizes = sizes * rank if len(sizes) == 1 else sizes
        size = [extents[letter] if n >= len(sizes) or sizes[n] is None else sizes[n] for n, letter in enumerate(planes)]
        return getattr(R, f"adaptive_{kind}_pool{rank}d")(data, size, layout, out_layout or None)

    meant.__doc__ = f"The {'greatest element' if kind == 'max' else 'mean'} of each of so many cells of a plane."
    return operator(f"nn.adaptive_{kind}_pool{rank}d", also=(f"contrib.adaptive_{kind}_pool{rank}d",))(meant)  # type: ignore[no-any-return]


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_cells("max", n + 1, p) for n, p in enumerate(("W", "HW", "DHW")))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_cells("avg", n + 1, p) for n, p in enumerate(("W", "HW", "DHW")))


def _pool_gradient(kind: str) -> Callable[..., Any]:
    def meant(
        out_grad: Expr, data: Expr, pool_size: Any = (1, 1), strides: Any = (1, 1), padding: Any = (0, 0), layout: str = "NCHW",
        out_layout: str = "", ceil_mode: bool = False, count_include_pad: bool = False,
    ) -> Meaning:  # fmt: skip
        pads = _list(padding) * 2 if len(_list(padding)) == 2 else _list(padding)
        args = (list(pool_size), list(strides), pads, kind, ceil_mode, count_include_pad, layout)
        return Computed(lambda g, x: topi.nn.pool_grad(g, x, *args), (out_grad, data), {}, f"{kind}_pool2d_grad")

    meant.__doc__ = "What a pool passes back to its operand."
    return operator(f"nn.{kind}_pool2d_grad")(meant)  # type: ignore[no-any-return]


max_pool2d_grad, avg_pool2d_grad = _pool_gradient("max"), _pool_gradient("avg")


# Norms and activations


@operator("nn.bias_add")
def bias_add(data: Expr, bias: Expr, axis: int = 1) -> Meaning:
    """A number added to each channel."""
    extents = shape(data)
    place = _axis(axis, len(extents))
    return graph_op.add(data, graph_op.reshape(bias, [extents[place], *([1] * (len(extents) - place - 1))]))


@operator("nn.batch_norm", results=lambda **given: 3)
def batch_norm(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: int = 1, epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> Meaning:  # fmt: skip
    """Channels by their moving mean and variance, scaled and shifted (Ioffe and Szegedy 2015); with these two as they are."""
    return R.batch_norm(data, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale)


@operator("nn.layer_norm")
def layer_norm(
    data: Expr, gamma: Expr, beta: Expr, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True
) -> Meaning:
    """Rows by their mean and variance, scaled and shifted (Ba et al. 2016)."""
    return R.layer_norm(data, gamma, beta, [axis], epsilon, center, scale)


@operator("nn.group_norm")
def group_norm(
    data: Expr, gamma: Expr, beta: Expr, num_groups: int, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True
) -> Meaning:
    """Groups of channels by their mean and variance, scaled and shifted (Wu and He 2018)."""
    ndim = len(shape(data))
    others = [n for n in range(1, ndim) if n != _axis(axis, ndim)]
    return R.group_norm(data, gamma, beta, num_groups, axis, others, epsilon, center, scale)


@operator("nn.instance_norm")
def instance_norm(
    data: Expr, gamma: Expr, beta: Expr, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True
) -> Meaning:
    """Planes by their mean and variance, scaled and shifted (Ulyanov et al. 2016)."""
    ndim = len(shape(data))
    others = [n for n in range(1, ndim) if n != _axis(axis, ndim)]
    return R.instance_norm(data, gamma, beta, axis, others, epsilon, center, scale)


@operator("nn.l2_normalize")
def l2_normalize(data: Expr, eps: float, axis: Any = None) -> Meaning:
    """Elements by the root of the sum of squares along axes, which is at least that of `eps`."""
    total = graph_op.sum(graph_op.square(data), _list(axis) if axis is not None else None, True)
    return graph_op.divide(data, graph_op.sqrt(graph_op.maximum(total, constant(eps, dtype(data)))))


@operator("nn.lrn")
def lrn(data: Expr, size: int = 5, axis: int = 1, bias: float = 2, alpha: float = 1e-5, beta: float = 0.75) -> Meaning:
    """Elements by the squares of neighbours along an axis (Krizhevsky et al. 2012, section 3.3)."""
    return R.lrn(data, size, axis, alpha, beta, bias)


@operator("nn.softmax")
def softmax(data: Expr, axis: int = -1) -> Meaning:
    """Exponentials by their sum along an axis."""
    return R.softmax(data, axis)


@operator("nn.fast_softmax")
def fast_softmax(data: Expr, axis: int = -1) -> Meaning:
    """As `softmax`, with exponentials that are as fast as the accurate ones here."""
    return R.softmax(data, axis)


@operator("nn.log_softmax")
def log_softmax(data: Expr, axis: int = -1) -> Meaning:
    """The logarithm of `softmax`."""
    return R.log_softmax(data, axis)


@operator("nn.dropout", results=lambda **given: 2)
def dropout_raw(data: Expr, rate: float = 0.5) -> Meaning:
    """The tensor itself, and a mask of ones: nothing is dropped when a network runs."""
    return GraphTuple((data, graph_op.ones_like(data)))


def dropout(data: Any, rate: float = 0.5) -> Any:
    """The first result of `dropout_raw`."""
    return dropout_raw(data, rate)[0]


@operator("nn.pad")
def _pad(data: Expr, pad_value: Expr, pad_width: Any, pad_mode: str = "constant") -> Meaning:
    widths = [int(n) for pair in pad_width for n in pair]
    value = pad_value if dynamic.is_value(pad_value) else number(pad_value).item()
    return R.pad(data, widths, value, {"edge": "replicate"}.get(pad_mode, pad_mode))


def pad(data: Any, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Any:
    """A tensor with borders: pairs of how many elements in front of and behind each axis.

    Args:
        data: a tensor.
        pad_width: the pairs, or a tensor of them.
        pad_value: a number, or a tensor without axes.
        pad_mode: "constant", "edge" or "reflect".
    """
    from ..expr import const

    if dynamic.is_value(pad_width):
        return dynamic.pad(data, pad_width, pad_value if hasattr(pad_value, "struct_info") else const(pad_value), pad_mode)
    widths = number(pad_width).tolist() if hasattr(pad_width, "struct_info") else pad_width
    value = pad_value if hasattr(pad_value, "struct_info") else const(pad_value, "float32" if isinstance(pad_value, float) else None)
    return _pad(data, value, widths, pad_mode)


@operator("nn.mirror_pad")
def mirror_pad(data: Expr, pad_width: Any, mode: str = "SYMMETRIC") -> Meaning:
    """A tensor with borders that mirror it, at its edge or (REFLECT) at the outermost elements."""
    before, after = [int(a) for a, _ in pad_width], [int(b) for _, b in pad_width]
    return Computed(lambda x: topi.nn.mirror_pad(x, before, after, mode), (data,), {}, "mirror_pad")


# Blocks, patches and sizes


@operator("nn.space_to_depth")
def space_to_depth(data: Expr, block_size: int, layout: str = "NCHW") -> Meaning:
    """Blocks of a plane as channels."""
    return Computed(topi.nn.space_to_depth, (data,), {"block_size": block_size, "layout": layout}, "space_to_depth")


@operator("nn.depth_to_space")
def depth_to_space(data: Expr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Meaning:
    """Channels as blocks of a plane."""
    order = "CRD" if mode == "CDR" else mode  # one order by two names: channels run slowest
    return Computed(topi.nn.depth_to_space, (data,), {"block_size": block_size, "layout": layout, "mode": order}, "depth_to_space")


@operator("nn.space_to_batch_nd")
def space_to_batch_nd(data: Expr, block_shape: Sequence[int], paddings: Any, pad_value: float = 0) -> Meaning:
    """Blocks of planes as elements of the batch."""
    before, after = [a for a, _ in paddings], [b for _, b in paddings]
    return Computed(lambda x: topi.nn.space_to_batch_nd(x, list(block_shape), before, after, pad_value), (data,), {}, "space_to_batch_nd")


@operator("nn.batch_to_space_nd")
def batch_to_space_nd(data: Expr, block_shape: Sequence[int], crops: Any) -> Meaning:
    """Elements of the batch as blocks of planes."""
    before, after = [a for a, _ in crops], [b for _, b in crops]
    return Computed(lambda x: topi.nn.batch_to_space_nd(x, list(block_shape), before, after), (data,), {}, "batch_to_space_nd")


@operator("nn.dilate")
def dilate(data: Expr, strides: Sequence[int], dilation_value: float = 0.0) -> Meaning:
    """Elements so far apart, with a value between them."""
    return Computed(lambda x: topi.nn.dilate(x, list(strides), dilation_value), (data,), {}, "dilate")


@operator("nn.fifo_buffer")
def fifo_buffer(data: Expr, buffer: Expr, axis: int) -> Meaning:
    """A buffer without its oldest elements and with new ones."""
    return Computed(topi.nn.fifo_buffer, (data, buffer), {"axis": axis}, "fifo_buffer")


@operator("nn.bitpack")
def bitpack(data: Expr, bits: int = 1, pack_axis: int = 1, bit_axis: int = 2, pack_type: str = "uint32", name: str = "BitPack") -> Meaning:
    """Bits of elements in words."""
    return Computed(lambda x: topi.nn.bitpack(x, bits, pack_axis, bit_axis, pack_type, name), (data,), {}, "bitpack")
