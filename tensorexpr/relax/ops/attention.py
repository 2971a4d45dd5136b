"""Attention: values weighted by how well keys fit queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError
from ...tir import intrin
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import as_int, cast, const, floordiv
from ..extents import simplified
from ..relations import same_extents
from ..struct_info import StructInfo
from .row import Expr, Pattern, operator, tensor

_MASKS = (None, "TopLeft", "BottomRight")


def _te_attention(
    query: Any, key: Any, value: Any, bias: Any = None, *, scale: float | None, causal_mask: str | None, window_size: int | None
) -> Any:
    batch, length, heads, size = query.shape
    others, of_values = key.shape[1], value.shape[3]
    # Heads of queries that share one of keys and values: query head n reads head n // share.
    share = floordiv(heads, key.shape[2])
    dtype = "float32" if query.dtype in ("float16", "bfloat16") else query.dtype
    factor = const(scale_of(scale, as_int(size)), dtype)
    k = te.reduce_axis((0, size), name="k")

    def product(b: Any, n: Any, i: Any, j: Any) -> Any:
        return te.sum(cast(query(b, i, n, k.var), dtype) * cast(key(b, j, floordiv(n, share), k.var), dtype), axis=k)

    products = te.compute((batch, heads, length, others), product, name="attention_products")

    def score(b: Any, n: Any, i: Any, j: Any) -> Any:
        found = products(b, n, i, j) * factor
        if bias is not None:
            at = [0 if as_int(extent) == 1 else index for index, extent in zip((b, n, i, j), bias.shape, strict=True)]
            found = found + cast(bias(*at), dtype)
        if causal_mask is None:
            return found
        last = i + (others - length if causal_mask == "BottomRight" else 0)
        seen = [j <= last] if window_size is None else [j <= last, j > last - window_size]
        # Not -inf: in a row that sees no key at all (-inf) - (-inf) would be NaN.
        return intrin.if_then_else(all_of(*seen), found, intrin.min_value(dtype))

    weights = topi.nn.softmax(te.compute(products.shape, score, name="attention_scores"), -1)
    m = te.reduce_axis((0, others), name="m")

    def mixed(b: Any, i: Any, n: Any, h: Any) -> Any:
        return te.sum(weights(b, n, i, m.var) * cast(value(b, m.var, floordiv(n, share), h), dtype), axis=m)

    found = te.compute((batch, length, heads, of_values), mixed, name="attention")
    return found if dtype == query.dtype else topi.cast(found, query.dtype)


def scale_of(scale: float | None, size: int | None) -> float:
    """What products are multiplied by: as stated, else one by the root of the size of a head.

    Raises:
        DeclarationError: if nothing says it.
    """
    if scale is None and size is None:
        raise DeclarationError("relax.op.nn.attention: the size of a head has to be known, or a scale")
    return 1 / math.sqrt(size or 1) if scale is None else float(scale)


def seen_keys(length: int, others: int, causal_mask: str, window_size: int | None) -> Any:
    """An array [length, others] of bools: whether a query sees a key."""
    last = np.arange(length)[:, None] + (others - length if causal_mask == "BottomRight" else 0)
    j = np.arange(others)
    return (j <= last) & ((window_size is None) | (j > last - (window_size or 0)))


def _np_attention(
    query: Any, key: Any, value: Any, bias: Any = None, *, scale: float | None, causal_mask: str | None, window_size: int | None
) -> Any:
    wide = np.float64
    share = query.shape[2] // key.shape[2]
    q, k, v = (np.moveaxis(one.astype(wide), 2, 1) for one in (query, np.repeat(key, share, 2), np.repeat(value, share, 2)))
    scores = q @ k.swapaxes(-1, -2) * scale_of(scale, query.shape[3])
    scores = scores if bias is None else scores + bias.astype(wide)
    if causal_mask is not None:
        seen = seen_keys(scores.shape[-2], scores.shape[-1], causal_mask, window_size)
        # The kernel's least number, so that both agree on rows that see no key.
        scores = np.where(seen, scores, np.finfo(np.float32).min)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.moveaxis(weights / weights.sum(-1, keepdims=True) @ v, 1, 2).astype(query.dtype)


@operator("nn.attention", Pattern.OPAQUE, te=_te_attention, numpy=_np_attention)
def attention(
    query: Expr, key: Expr, value: Expr, bias: Expr | None = None, scale: float | None = None, causal_mask: str | None = None,
    window_size: int | None = None,
) -> StructInfo:  # fmt: skip
    """Values weighted by the softmax of products of queries and keys (Vaswani et al. 2017).

    Args:
        query: [batch, length, heads, size].
        key, value: [batch, others, heads, size] and [batch, others, heads, size of values]; there may be fewer heads, each for several.
        bias: added to the products: [batch, heads, length, others], or 1 for an extent; None for none.
        scale: of the products; one by the root of `size` by default.
        causal_mask: "TopLeft" or "BottomRight": queries see no keys behind their own, counted from the first or the last of both.
        window_size: how many keys they see then, their own included.
    """
    q, k, v = tensor(query, "query"), tensor(key, "key"), tensor(value, "value")
    for one in (q, k, v):
        if one.ndim not in (4, -1):
            raise DeclarationError(f"relax.op.nn.attention: {one.name} has 4 axes, [batch, length, heads, size], not {one.info}")
    if causal_mask not in _MASKS or (window_size is not None and causal_mask is None):
        raise DeclarationError(
            f"relax.op.nn.attention: no causal_mask {causal_mask!r} with window_size {window_size}; there are TopLeft and BottomRight"
        )
    if q.extents is None or k.extents is None or v.extents is None:
        return q.like(None, ndim=4)
    pairs = [(q, 0, k, 0), (q, 3, k, 3), (k, 0, v, 0), (k, 1, v, 1), (k, 2, v, 2)]
    for a, m, b, n in pairs:
        if same_extents((a.extents or ())[m], (b.extents or ())[n]) is False:
            raise DeclarationError(f"relax.op.nn.attention: extent {m} of {a.name}, {a.info}, isn't extent {n} of {b.name}, {b.info}")
    heads, shared = as_int(q.extents[2]), as_int(k.extents[2])
    if heads is not None and shared is not None and (not shared or heads % shared):
        raise DeclarationError(f"relax.op.nn.attention: {heads} heads of queries for {shared} of keys")
    return q.like([*q.extents[:3], simplified(v.extents[3])])
