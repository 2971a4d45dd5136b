"""Layers of transformers as one operator, which PyTorch takes in evaluation mode without gradients: by those that they consist of."""

from __future__ import annotations

import math
from typing import Any

from ... import relax
from .nn import root_of_width
from .table import Context, aten

_OF_KEYS = 1  # what a mask is of; else of scores, of all heads or of each


def _product(c: Context, x: Any, weight: Any, bias: Any) -> Any:
    found = c.op("matmul", x, c.op("permute_dims", weight, axes=[1, 0]))
    return found if bias is None else c.op("add", found, bias)


def _norm(c: Context, x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return c.op("nn.layer_norm", x, weight, bias, axes=[-1], epsilon=eps)


def _heads(
    c: Context, inputs: tuple[Any, Any, Any], heads: int, weights: tuple[Any, Any, Any, Any], mask: Any, mask_type: int | None
) -> tuple[Any, Any]:
    """The result of several heads, and the weights of keys [n, head, query, key]. A mask says what takes no part."""
    in_weight, in_bias, out_weight, out_bias = weights
    if all(one is inputs[0] for one in inputs):
        parts: Any = c.op("split", _product(c, inputs[0], in_weight, in_bias), 3, axis=-1)
        parts = [c.builder.emit(relax.TupleGetItem(parts, n)) for n in range(3)]
    else:
        by_part = [c.op("split", one, 3, axis=0) for one in (in_weight, in_bias)]
        parts = [_product(c, x, *(c.builder.emit(relax.TupleGetItem(one, n)) for one in by_part)) for n, x in enumerate(inputs)]
    query, key, value = (c.op("permute_dims", c.reshape(x, _cut(c, x, heads)), axes=[0, 2, 1, 3]) for x in parts)
    turned = c.op("permute_dims", key, axes=[0, 1, 3, 2])
    dtype = c.dtype_of(query)
    scores = c.op("multiply", c.op("matmul", query, turned), c.cast(root_of_width(c, query), dtype))
    if mask is not None:
        hidden = c.cast(mask, "bool")
        if mask_type == _OF_KEYS:
            hidden = c.op("expand_dims", hidden, axis=[1, 2])
        scores = c.op("where", hidden, relax.const(-math.inf, dtype), scores)
    shares = c.op("nn.softmax", scores, axis=-1)
    mixed = c.op("permute_dims", c.op("matmul", shares, value), axes=[0, 2, 1, 3])
    return _product(c, c.reshape(mixed, c.shape_of(parts[0])), out_weight, out_bias), shares


def _cut(c: Context, x: Any, heads: int) -> list[Any]:
    *front, width = c.shape_of(x)
    return [*front, heads, width // heads]


@aten("_native_multi_head_attention")
def _multi_head(
    c: Context, query: Any, key: Any, value: Any, width: int, heads: int, in_weight: Any, in_bias: Any, out_weight: Any, out_bias: Any,
    mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: int | None = None,
) -> Any:  # fmt: skip
    found, shares = _heads(c, (query, key, value), heads, (in_weight, in_bias, out_weight, out_bias), mask, mask_type)
    if not need_weights:
        return [found, None]
    return [found, c.op("mean", shares, axis=[1]) if average else shares]


@aten("_transformer_encoder_layer_fwd")
def _encoder_layer(
    c: Context, x: Any, width: int, heads: int, in_weight: Any, in_bias: Any, out_weight: Any, out_bias: Any, use_gelu: bool,
    norm_first: bool, eps: float, scale1: Any, shift1: Any, scale2: Any, shift2: Any, weight1: Any, bias1: Any, weight2: Any, bias2: Any,
    mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    given = _norm(c, x, scale1, shift1, eps) if norm_first else x
    mixed, _ = _heads(c, (given, given, given), heads, (in_weight, in_bias, out_weight, out_bias), mask, mask_type)
    x = c.op("add", x, mixed)
    x = x if norm_first else _norm(c, x, scale1, shift1, eps)
    wide = _product(c, _norm(c, x, scale2, shift2, eps) if norm_first else x, weight1, bias1)
    x = c.op("add", x, _product(c, c.op("nn.gelu" if use_gelu else "nn.relu", wide), weight2, bias2))
    return x if norm_first else _norm(c, x, scale2, shift2, eps)
