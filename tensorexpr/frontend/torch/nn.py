"""Operators of neural networks: products, convolutions, pools, norms, softmax, attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import relax
from ...errors import DeclarationError
from .random import dropped
from .table import CONVERTERS, Context, aten


@aten("mm", "bmm", "matmul", "mv", "dot")
def _matmul(c: Context, input: Any, other: Any, *rest: Any) -> Any:
    return c.op("matmul", input, other)


@aten("addmm", "baddbmm")
def _addmm(c: Context, input: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = c.op("matmul", mat1, mat2)
    if alpha != 1:
        product = c.op("multiply", product, relax.const(alpha, c.dtype))
    added = input if beta == 1 else c.op("multiply", input, relax.const(beta, c.dtype))
    # With a beta of 0 PyTorch ignores the input: no NaN of it gets through.
    return c.op("add", product, added) if beta else product


@aten("linear")
def _linear(c: Context, input: Any, weight: Any, bias: Any = None) -> Any:
    turned = c.op("permute_dims", weight, axes=[1, 0]) if c.rank(weight) == 2 else weight
    product = c.op("matmul", input, turned)
    return product if bias is None else c.op("add", product, bias)


def _channels(c: Context, bias: Any, rank: int) -> Any:
    """A vector of channels beside an image of a rank."""
    return c.reshape(bias, [1, c.shape_of(bias)[0], *[1] * (rank - 2)])


def _sizes(value: Any, rank: int) -> list[int]:
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    return given * rank if len(given) == 1 else given


def _convolution(
    c: Context, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, is_transposed: bool = False,
    output_padding: Any = 0,
) -> Any:  # fmt: skip
    if c.rank(input) == c.rank(weight) - 1:  # an image without a batch
        whole = _convolution(
            c, c.op("expand_dims", input, axis=0), weight, bias, stride, padding, dilation, groups, is_transposed, output_padding
        )
        return c.op("squeeze", whole, axis=[0])
    rank = c.rank(input) - 2
    strides, spread = _sizes(stride, rank), _sizes(dilation, rank)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(spread, c.shape_of(weight)[2:], strict=True)]
        # Of an odd number PyTorch puts the larger half behind.
        pads = [*(one // 2 for one in total), *(one - one // 2 for one in total)]
    else:
        pads = [0] * (2 * rank) if padding == "valid" else _sizes(padding, rank) * 2
    name = f"nn.conv{rank}d" + "_transpose" * is_transposed
    more = {"output_padding": _sizes(output_padding, rank)} if is_transposed else {}
    result = c.op(name, input, weight, strides=strides, padding=pads, dilation=spread, groups=groups, **more)
    return result if bias is None else c.op("add", result, _channels(c, bias, rank + 2))


@aten("conv1d", "conv2d", "conv3d")
def _conv(
    c: Context, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    return _convolution(c, input, weight, bias, stride, padding, dilation, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    c: Context, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    return _convolution(c, input, weight, bias, stride, padding, dilation, groups, True, output_padding)


@aten("convolution")
def _any_convolution(
    c: Context, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    return _convolution(c, input, weight, bias, stride, padding, dilation, groups, transposed, output_padding)


@aten("batch_norm", "_native_batch_norm_legit_no_training")
def _batch_norm(c: Context, input: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    is_plain = len(rest) > 2  # batch_norm(..., training, momentum, eps, cudnn_enabled)
    if mean is None:  # of the batch itself
        axes = [n for n in range(c.rank(input)) if n != 1]
        mean, var = (c.op(name, input, axis=axes) for name in ("mean", "variance"))
    elif is_plain and rest[0]:
        raise DeclarationError("batch norm in training changes its statistics; export the module in evaluation mode, with module.eval()")
    eps = rest[2] if is_plain else rest[1]
    channels, dtype = c.shape_of(mean)[0], c.dtype_of(input)
    scale = weight if weight is not None else c.op("ones", [channels], dtype)
    shift = bias if bias is not None else c.op("zeros", [channels], dtype)
    found = c.op("nn.batch_norm", input, scale, shift, mean, var, axis=1, epsilon=eps)
    result = c.builder.emit(relax.TupleGetItem(found, 0))
    return result if is_plain else [result, None, None]


@aten("layer_norm", "native_layer_norm")
def _layer_norm(c: Context, input: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float = 1e-5, *rest: Any) -> Any:
    axes, dtype = [n - len(shape) for n in range(len(shape))], c.dtype_of(input)
    scale = weight if weight is not None else c.op("ones", list(shape), dtype)
    shift = bias if bias is not None else c.op("zeros", list(shape), dtype)
    found = c.op("nn.layer_norm", input, scale, shift, axes=axes, epsilon=eps)
    # The native form has mean and deviation behind it, which only gradients use.
    return [found, None, None] if isinstance(c.result, (list, tuple)) else found


@aten("group_norm")
def _group_norm(c: Context, input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any) -> Any:
    _, channels, *pixels = c.shape_of(input)
    dtype = c.dtype_of(input)
    scale = weight if weight is not None else c.op("ones", [channels], dtype)
    shift = bias if bias is not None else c.op("zeros", [channels], dtype)
    axes = list(range(2, 2 + len(pixels)))
    return c.op("nn.group_norm", input, scale, shift, num_groups=groups, channel_axis=1, axes=axes, epsilon=eps)


@aten("rms_norm")
def _rms_norm(c: Context, input: Any, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    scale = weight if weight is not None else c.op("ones", list(shape), c.dtype)
    # Without one PyTorch takes the epsilon of the dtype that it sums in, float32 for half precision. An eps of 0 is one, too.
    least = (2.0**-52 if c.dtype == "float64" else 2.0**-23) if eps is None else eps
    return c.op("nn.rms_norm", input, scale, axes=[n - len(shape) for n in range(len(shape))], epsilon=least)


@aten("softmax", "_softmax", "softmax.int")
def _softmax(c: Context, input: Any, dim: int, *rest: Any) -> Any:
    return c.op("nn.softmax", c.cast(input, c.dtype), axis=dim)


@aten("log_softmax", "_log_softmax", "log_softmax.int")
def _log_softmax(c: Context, input: Any, dim: int, *rest: Any) -> Any:
    return c.op("nn.log_softmax", c.cast(input, c.dtype), axis=dim)


def _pool(name: str, rank: int) -> Callable[..., Any]:
    def convert(
        c: Context, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *rest: Any
    ) -> Any:  # max: dilation, ceil_mode; avg: ceil_mode, count_include_pad, divisor_override
        is_max, factor = name == "max_pool", 1.0
        window = _sizes(kernel_size, rank)
        # No stride, or an empty list: windows lie side by side.
        steps = _sizes(stride, rank) if stride else window
        options: dict[str, Any] = {"strides": steps, "padding": _sizes(padding, rank) * 2}
        if is_max:
            options |= {"dilation": _sizes(rest[0] if rest else 1, rank), "ceil_mode": bool(rest[1]) if len(rest) > 1 else False}
        else:
            options |= {"ceil_mode": bool(rest[0]) if rest else False, "count_include_pad": bool(rest[1]) if len(rest) > 1 else True}
            divisor = rest[2] if len(rest) > 2 else None
            if divisor is not None and options["ceil_mode"]:
                raise DeclarationError("windows past the border are divided by the elements that they have, not by divisor_override")
            if divisor is not None:  # all windows have as many elements then, those of the border counted
                factor, options["count_include_pad"] = math.prod(window) / divisor, True
        has_batch = c.rank(input) == rank + 2
        given = input if has_batch else c.op("expand_dims", input, axis=0)
        if is_max and 1 in c.picked:
            # There places are counted within a plane, here within the tensor.
            both = c.op("nn.max_pool_with_places", given, pool_size=window, **options)
            values, places = (c.builder.emit(relax.TupleGetItem(both, n)) for n in range(2))
            plane = relax.const(math.prod(c.shape_of(given)[2:]), "int64")
            results = [values, c.op("floor_mod", places, plane)]
        else:
            found = c.op(f"nn.{name}{rank}d", given, pool_size=window, **options)
            results = [found if factor == 1 else c.op("multiply", found, relax.const(factor, c.dtype_of(found))), None]
        if not has_batch:
            results = [one if one is None else c.op("squeeze", one, axis=[0]) for one in results]
        return results if isinstance(c.result, (list, tuple)) else results[0]

    return convert


for _rank in (1, 2, 3):
    CONVERTERS[f"max_pool{_rank}d"] = CONVERTERS[f"max_pool{_rank}d_with_indices"] = _pool("max_pool", _rank)
    CONVERTERS[f"avg_pool{_rank}d"] = _pool("avg_pool", _rank)


def _adaptive(rank: int) -> Callable[..., Any]:
    def convert(c: Context, input: Any, output_size: Any) -> Any:
        sizes = [extent if one is None else one for one, extent in zip(output_size, c.shape_of(input)[-rank:], strict=True)]
        if all(one == 1 for one in sizes):
            return c.op("mean", input, axis=[n - rank for n in range(rank)], keepdims=True)
        return c.op(f"nn.adaptive_avg_pool{rank}d", input, output_size=sizes)

    return convert


CONVERTERS.update({f"{prefix}adaptive_avg_pool{rank}d": _adaptive(rank) for rank in (1, 2, 3) for prefix in ("", "_")})


def _adaptive_max(rank: int) -> Callable[..., Any]:
    def convert(c: Context, input: Any, output_size: Any) -> Any:
        sizes = [extent if one is None else one for one, extent in zip(output_size, c.shape_of(input)[-rank:], strict=True)]
        if 1 in c.picked:
            return _adaptive_places(c, input, sizes)
        has_batch = c.rank(input) == rank + 2
        found = c.op(f"nn.adaptive_max_pool{rank}d", input if has_batch else c.op("expand_dims", input, axis=0), output_size=sizes)
        return [found if has_batch else c.op("squeeze", found, axis=[0]), None]

    return convert


def _adaptive_places(c: Context, input: Any, sizes: Sequence[int]) -> list[Any]:
    """Maxima over adaptive windows and their places in a plane: windows as rows of a table, shorter ones with their first element again."""
    rank, extents = len(sizes), c.shape_of(input)[-len(sizes) :]
    if not all(isinstance(one, int) for one in extents):
        raise DeclarationError("places of maxima over adaptive windows are of planes of a known size; export with fixed sizes")
    table = np.zeros((1, 1), "int64")
    for extent, size in zip(extents, sizes, strict=True):
        spans = [(n * extent // size, -(-(n + 1) * extent // size)) for n in range(size)]
        longest = max(end - begin for begin, end in spans)
        along = np.array([[begin + k if begin + k < end else begin for k in range(longest)] for begin, end in spans])
        whole = table[:, None, :, None] * extent + along[None, :, None, :]
        table = whole.reshape(table.shape[0] * size, -1)
    front = c.shape_of(input)[:-rank]
    plane = c.reshape(input, [*front, int(np.prod(extents))])
    windows = c.op("take", plane, relax.const(table), axis=len(front))
    best = c.op("expand_dims", c.op("argmax", windows, axis=-1), axis=-1)
    # A place in the window, by the same table for all planes.
    whole_shape: list[Any] = [*front, *table.shape]
    spread = c.op("broadcast_to", relax.const(table), relax.ShapeExpr(tuple(whole_shape)))
    found = [c.op("max", windows, axis=[-1]), c.op("gather_elements", spread, c.cast(best, "int64"), axis=len(front) + 1)]
    return [c.reshape(one, [*front, *sizes]) for one in found]


CONVERTERS.update({f"adaptive_max_pool{rank}d": _adaptive_max(rank) for rank in (1, 2, 3)})


@aten("_trilinear")
def _trilinear(
    c: Context, a: Any, b: Any, d: Any, new_a: Sequence[int], new_b: Sequence[int], new_d: Sequence[int], summed: Sequence[int], *rest: Any
) -> Any:
    """A sum of products of three tensors, each with new axes where the others have theirs."""
    spread = []
    for value, axes in ((a, new_a), (b, new_b), (d, new_d)):
        for axis in sorted(axes):
            value = c.op("expand_dims", value, axis=axis)
        spread.append(value)
    return c.op("sum", c.op("multiply", c.op("multiply", spread[0], spread[1]), spread[2]), axis=list(summed))


@aten("addbmm")
def _addbmm(c: Context, input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    total = c.op("sum", c.op("matmul", batch1, batch2), axis=[0])
    scaled = [
        one if factor == 1 else c.op("multiply", one, relax.const(factor, c.dtype)) for one, factor in ((input, beta), (total, alpha))
    ]
    return c.op("add", *scaled) if beta else scaled[1]


@aten("prelu", "_prelu_kernel")
def _prelu(c: Context, input: Any, weight: Any) -> Any:
    # One slope for each channel, or one for all.
    by_channel = c.rank(weight) == 1 and c.rank(input) > 1
    slope = c.reshape(weight, [c.shape_of(weight)[0], *[1] * (c.rank(input) - 2)]) if by_channel else weight
    return c.op("where", c.op("greater", input, relax.const(0, c.dtype)), input, c.op("multiply", input, slope))


def root_of_width(c: Context, query: Any) -> Any:
    """1 / sqrt(d) of queries with d elements."""
    width = c.shape_of(query)[-1]
    return 1 / math.sqrt(width) if isinstance(width, int) else c.op("rsqrt", c.cast(width, c.dtype_of(query)))


@aten("scaled_dot_product_attention")
def _attention(
    c: Context, query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0, is_causal: bool = False, scale: Any = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Vaswani et al., Attention Is All You Need (NeurIPS 2017), equation 1; masks are added, or say what takes part."""
    rank, dtype = c.rank(query), c.dtype_of(query)
    if enable_gqa:  # groups of heads share keys
        heads = c.shape_of(query)[-3] // c.shape_of(key)[-3]
        key, value = (c.op("repeat", one, heads, axis=rank - 3) if heads > 1 else one for one in (key, value))
    factor = scale if scale is not None else root_of_width(c, query)
    turned = c.op("permute_dims", key, axes=[*range(rank - 2), rank - 1, rank - 2])
    scores = c.op("multiply", c.op("matmul", query, turned), c.cast(factor, dtype))
    if is_causal:
        rows, columns = (c.op("arange", 0, c.shape_of(one)[-2], 1, dtype="int64") for one in (query, key))
        # Query i sees keys 0 to i, counted from the first of both also where there are more keys.
        mask = c.op("greater_equal", c.op("expand_dims", rows, axis=1), c.op("expand_dims", columns, axis=0))
    if mask is not None and c.dtype_of(mask) == "bool":
        scores = c.op("where", mask, scores, relax.const(-math.inf, dtype))
    elif mask is not None:
        scores = c.op("add", scores, mask)
    weights = c.op("nn.softmax", scores, axis=-1)
    if dropout:
        weights = dropped(c, weights, dropout, c.shape_of(weights))[0]
    found = c.op("matmul", weights, value)
    if mask is None or is_causal:
        return found
    # Of a query that sees no key the result is 0 there, where softmax alone is NaN.
    seen = c.op("max", c.cast(mask, "int8") if c.dtype_of(mask) == "bool" else mask, axis=[-1], keepdims=True)
    none = relax.const(0, "int8") if c.dtype_of(mask) == "bool" else relax.const(-math.inf, c.dtype_of(mask))
    return c.op("where", c.op("equal", seen, none), relax.const(0, dtype), found)
