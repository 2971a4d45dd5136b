"""Operators of ONNX Runtime's own domain, which its optimiser and its quantiser put into models, by its description of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from .pool import average_pool, global_average_pool

R = relax.op
_DOMAIN = "com.microsoft"
_EPSILON = 1e-12


@onnx_op("Gelu", domain=_DOMAIN)
def gelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """x times the normal distribution's function."""
    return R.nn.gelu(inputs[0])


@onnx_op("BiasGelu", domain=_DOMAIN)
def bias_gelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """As Gelu, of a sum."""
    return R.nn.gelu(R.add(inputs[0], inputs[1]))


@onnx_op("FastGelu", domain=_DOMAIN)
def fast_gelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """As Gelu, by the approximation with a hyperbolic tangent; of a sum, if there is a bias."""
    return R.nn.gelu_tanh(R.add(inputs[0], inputs[1]) if ctx.has(1) else inputs[0])


@onnx_op("QuickGelu", domain=_DOMAIN)
def quick_gelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """x times the logistic function of a multiple of it."""
    return R.nn.swish(inputs[0], attrs.float("alpha", 1.702))


@onnx_op("FusedMatMul", domain=_DOMAIN)
def fused_matmul(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of matrices, of which each may be transposed, times a number."""
    factors = []
    for n, name in enumerate(("transA", "transB")):
        rank = ctx.rank(n)
        order = [*range(rank - 2), rank - 1, rank - 2]
        factors.append(R.permute_dims(inputs[n], order) if attrs.bool(name, False) and rank > 1 else inputs[n])
    made, alpha = R.matmul(*factors), attrs.float("alpha", 1.0)
    return made if alpha == 1.0 else R.multiply(made, relax.const(alpha, ctx.dtype(0)))


def _normalised(ctx: Context, x: Any, gamma: Any, beta: Any, attrs: Attributes) -> list[Any]:
    """A layer norm of the last axis, with its mean and inverse deviation where they are used."""
    epsilon, dtype = attrs.float("epsilon", _EPSILON), gamma.struct_info.dtype
    shift = R.zeros_like(gamma) if beta is None else beta
    made = [R.nn.layer_norm(x, gamma, shift, [-1], epsilon)]
    if ctx.wants(1) or ctx.wants(2):
        spread = R.rsqrt(R.variance(x, [-1], keepdims=True) + relax.const(epsilon, dtype))
        made += [R.mean(x, [-1], keepdims=True), spread]
    return made


def _results(ctx: Context, made: list[Any], more: Any) -> list[Any]:
    """Three results, those that nothing uses left out, and the fourth."""
    return [*made, *[None] * (3 - len(made)), *([more] if ctx.wants(3) else [])]


@onnx_op("SkipLayerNormalization", domain=_DOMAIN)
def skip_layer_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A layer norm of a sum: of data, a residual and maybe a bias."""
    total = R.add(inputs[0], inputs[1])
    total = ctx.emit(R.add(total, inputs[4]) if ctx.has(4) else total)
    return _results(ctx, _normalised(ctx, total, inputs[2], inputs[3], attrs), total)


@onnx_op("SimplifiedLayerNormalization")
@onnx_op("SimplifiedLayerNormalization", domain=_DOMAIN)
def simplified_layer_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The last axes by the root of their mean square, scaled."""
    axis = ctx.axis(attrs.int("axis", -1))
    return R.nn.rms_norm(inputs[0], inputs[1], list(range(axis, ctx.rank(0))), attrs.float("epsilon", 1e-5))


@onnx_op("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def skip_simplified_layer_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """As SimplifiedLayerNormalization, of a sum."""
    total = R.add(inputs[0], inputs[1])
    total = ctx.emit(R.add(total, inputs[3]) if ctx.has(3) else total)
    return _results(ctx, [R.nn.rms_norm(total, inputs[2], [-1], attrs.float("epsilon", _EPSILON))], total)


@onnx_op("EmbedLayerNormalization", domain=_DOMAIN)
def embed_layer_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A layer norm of the sum of embeddings: of words, of their places, and of segments."""
    extents = ctx.extents(0)
    places = inputs[8] if ctx.has(8) else R.broadcast_to(R.arange(0, extents[1], 1, "int64"), extents)
    total = R.add(R.take(inputs[2], inputs[0], 0), R.take(inputs[3], places, 0))
    total = ctx.emit(R.add(total, R.take(inputs[4], inputs[1], 0)) if ctx.has(1) and ctx.has(4) else total)
    words = R.sum(inputs[7], [1]) if ctx.has(7) else R.zeros([extents[0]], "int32")
    return [_normalised(ctx, total, inputs[5], inputs[6], attrs)[0], words, *([total] if ctx.wants(2) else [])]


@onnx_op("Attention", domain=_DOMAIN)
def attention(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Attention of several heads, whose queries, keys and values are products of the data with one matrix of weights."""
    if ctx.has(4) or attrs.bool("do_rotary", False):
        ctx.fail("attention with a past, or with rotated places")
    heads, (batch, length, _) = attrs.int("num_heads"), ctx.extents(0)
    width = ctx.extents(1)[1]
    sizes = attrs.ints("qkv_hidden_sizes", [int(width) // 3] * 3)
    made = R.matmul(inputs[0], inputs[1])
    made = ctx.emit(R.add(made, inputs[2]) if ctx.has(2) else made)
    parts = ctx.emit(R.split(made, np.cumsum(sizes)[:-1].tolist(), -1))
    query, key, value = (
        ctx.emit(R.permute_dims(R.reshape(relax.TupleGetItem(parts, n), [batch, length, heads, size // heads]), [0, 2, 1, 3]))
        for n, size in enumerate(sizes)
    )
    scale = attrs.float("scale", 0.0) or 1.0 / np.sqrt(sizes[0] // heads)
    scores = R.multiply(R.matmul(query, R.permute_dims(key, [0, 1, 3, 2])), relax.const(scale, ctx.dtype(0)))
    if ctx.has(3):
        hidden = R.subtract(relax.const(1.0, ctx.dtype(0)), R.astype(_mask(ctx, inputs[3], length), ctx.dtype(0)))
        scores = R.add(scores, R.multiply(hidden, relax.const(attrs.float("mask_filter_value", -10000.0), ctx.dtype(0))))
    scores = R.add(scores, inputs[5]) if ctx.has(5) else scores
    if attrs.bool("unidirectional", False):
        seen = R.tril(R.ones([length, length], "int32"))
        scores = R.where(R.greater(seen, relax.const(0, "int32")), scores, relax.const(np.finfo(np.float32).min, ctx.dtype(0)))
    found = R.permute_dims(R.matmul(R.nn.softmax(scores, -1), value), [0, 2, 1, 3])
    present = [R.concat((R.expand_dims(key, 0), R.expand_dims(value, 0)), 0)] if ctx.wants(1) else []
    return [R.reshape(found, [batch, length, sizes[2]]), *present]


def _mask(ctx: Context, mask: Any, length: Any) -> Any:
    """Which keys are seen, as 0 and 1 for each query of each head: a mask as such, or how many keys a sequence has."""
    rank = ctx.rank(3)
    if rank == 1:
        if str(ctx.extents(3)[0]) != str(ctx.extents(0)[0]):
            ctx.fail(f"a mask of shape {ctx.extents(3)}; of one axis it holds the lengths of sequences")
        return R.less(R.arange(0, length, 1, "int32"), R.reshape(R.astype(mask, "int32"), [-1, 1, 1, 1]))
    if rank not in (2, 3):
        ctx.fail(f"a mask of {rank} axes")
    return R.expand_dims(mask, [1, 2] if rank == 2 else [1])


def _floats(inputs: Inputs, index: int) -> Any:
    """The floats that quantised numbers stand for; behind them their scale and what stands for zero."""
    return R.dequantize(inputs[index], inputs[index + 1], _zero(inputs, index + 2, inputs[index]), -1)


def _zero(inputs: Inputs, index: int, like: Any) -> Any:
    return relax.const(0, like.struct_info.dtype) if inputs[index] is None else inputs[index]


def _by_floats(name: str, operands: int, computed: Callable[..., Any]) -> None:
    """An operator on quantised numbers: each operand, and then the result, has a scale and a zero."""

    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        data = inputs[0]
        made = computed(ctx, attrs, *(ctx.emit(_floats(inputs, 3 * n)) for n in range(operands)))
        return R.quantize(made, inputs[3 * operands], _zero(inputs, 3 * operands + 1, data), -1, data.struct_info.dtype)

    convert.__doc__ = f"`{name}` of the numbers that integers stand for."
    onnx_op(f"QLinear{name}", domain=_DOMAIN)(convert)


def _planes(pool: Callable[..., Any]) -> Callable[..., Any]:
    """A pool of channels first."""

    def computed(ctx: Context, attrs: Attributes, x: Any) -> Any:
        if attrs.bool("channels_last", False):
            ctx.fail("channels_last")
        return pool(ctx, [x], attrs)

    return computed


_by_floats("Add", 2, lambda ctx, attrs, x, y: R.add(x, y))
_by_floats("Mul", 2, lambda ctx, attrs, x, y: R.multiply(x, y))
_by_floats("Sigmoid", 1, lambda ctx, attrs, x: R.sigmoid(x))
_by_floats("LeakyRelu", 1, lambda ctx, attrs, x: R.nn.leakyrelu(x, attrs.float("alpha", 0.01)))
_by_floats("Softmax", 1, lambda ctx, attrs, x: R.nn.softmax(x, attrs.int("axis", -1)))
_by_floats("AveragePool", 1, _planes(average_pool))
_by_floats("GlobalAveragePool", 1, _planes(global_average_pool))


@onnx_op("QGemm", domain=_DOMAIN)
def qgemm(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of quantised matrices plus a bias in int32, as quantised numbers, or as floats if their scale is left out."""
    left = R.permute_dims(_floats(inputs, 0)) if attrs.bool("transA", False) else _floats(inputs, 0)
    turned = attrs.bool("transB", False)
    right = R.dequantize(inputs[3], inputs[4], _zero(inputs, 5, inputs[3]), 0 if turned else 1)
    total = R.matmul(left, R.permute_dims(right) if turned else right)
    if ctx.has(6):
        total = R.add(total, R.multiply(R.astype(inputs[6], "float32"), R.multiply(inputs[1], inputs[4])))
    alpha = attrs.float("alpha", 1.0)
    total = total if alpha == 1.0 else R.multiply(total, relax.const(alpha, "float32"))
    return R.quantize(total, inputs[7], _zero(inputs, 8, inputs[0]), -1, ctx.dtype(0)) if ctx.has(7) else total


@onnx_op("QLinearConcat", domain=_DOMAIN)
def qlinear_concat(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Quantised tensors one after the other, by the scale and zero of the result, which stand first."""
    parts = [_floats(inputs, n) for n in range(2, len(inputs), 3)]
    return R.quantize(R.concat(parts, attrs.int("axis")), inputs[0], inputs[1], -1, ctx.dtype(2))
