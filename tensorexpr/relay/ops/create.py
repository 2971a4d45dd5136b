"""Tensors of numbers, and of random ones."""

from __future__ import annotations

from typing import Any

from ... import topi
from ...errors import DeclarationError
from ...relax import op as graph_op
from ...relax.expr import PrimValue
from ...tir.arithmetic import as_int
from ..expr import const
from . import dynamic
from .row import Computed, Expr, Meaning, number, operator


def _extents(value: Any) -> Any:
    """A shape as attributes have it, or as a constant tensor."""
    if hasattr(value, "struct_info"):
        return [int(one) for one in number(value).reshape(-1)]
    return [value] if as_int(value) is not None else list(value)


@operator("zeros")
def _zeros(shape: Any, dtype: str) -> Meaning:
    return graph_op.zeros(shape, dtype)


@operator("ones")
def _ones(shape: Any, dtype: str) -> Meaning:
    return graph_op.ones(shape, dtype)


@operator("full")
def _full(fill_value: Expr, shape: Any = (), dtype: str = "") -> Meaning:
    return graph_op.full(shape, fill_value, dtype or None)


def zeros(shape: Any, dtype: str) -> Any:
    """A tensor of zeros."""
    return dynamic.zeros(shape, dtype) if dynamic.is_value(shape) else _zeros(_extents(shape), dtype)


def ones(shape: Any, dtype: str) -> Any:
    """A tensor of ones."""
    return dynamic.ones(shape, dtype) if dynamic.is_value(shape) else _ones(_extents(shape), dtype)


def full(fill_value: Any, shape: Any = (), dtype: str = "") -> Any:
    """A tensor of one number.

    Args:
        fill_value: a constant or number, or an expression without dimensions.
        shape: extents.
        dtype: of its elements; that of the number without one.
    """
    value = const(fill_value, dtype or None) if isinstance(fill_value, (int, float)) else fill_value
    return dynamic.full(value, shape, dtype) if dynamic.is_value(shape) else _full(value, _extents(shape), dtype)


@operator("full_like")
def full_like(data: Expr, fill_value: Expr) -> Meaning:
    """A tensor of one number, of the shape and dtype of another one."""
    return graph_op.full_like(data, fill_value)


@operator("arange")
def _arange(start: Expr, stop: Expr, step: Expr, dtype: str = "float32") -> Meaning:
    first, last, each = (PrimValue(number(one).item()) for one in (start, stop, step))
    return graph_op.arange(first, last, each, dtype)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Any:
    """Numbers from `start` up to `stop`, which isn't one of them; from 0 to `start` with one bound alone."""
    first, last = (0, start) if stop is None else (start, stop)
    bounds = (first, last, 1 if step is None else step)
    made = [one if hasattr(one, "struct_info") else const(one, dtype) for one in bounds]
    return dynamic.arange(*made, dtype) if any(map(dynamic.is_value, made)) else _arange(*made, dtype)


@operator("shape_of")
def shape_of(data: Expr, dtype: str = "int32") -> Meaning:
    """The extents of a tensor, as a tensor."""
    return graph_op.astype(graph_op.shape_to_tensor(graph_op.shape_of(data)), dtype)


@operator("ndarray_size")
def ndarray_size(data: Expr, dtype: str = "int32") -> Meaning:
    """How many elements a tensor has."""
    return Computed(topi.ndarray_size, (data,), {"dtype": dtype}, "ndarray_size")


@operator("random.threefry_key")
def _key(seed: int) -> Meaning:
    raise DeclarationError("random.threefry_key is a constant; relay.random.threefry_key(seed) makes it")


def threefry_key(seed: int) -> Any:
    """The first key of random numbers: a constant of ten uint64."""
    return const([0, 0, 0, seed, 0, 0, 0, 0, 1 << 63, 0], "uint64")


@operator("random.threefry_generate", results=lambda **given: 2)
def threefry_generate(key: Expr, shape: Any) -> Meaning:
    """The next key, and random uint64 (Salmon et al. 2011)."""
    return Computed(topi.random.threefry_generate, (key,), {"out_shape": shape}, "threefry_generate")


@operator("random.threefry_split", results=lambda **given: 2)
def threefry_split(key: Expr) -> Meaning:
    """Two keys of one."""
    return Computed(topi.random.threefry_split, (key,), {}, "threefry_split")


def _drawn(law: str, key: Expr, parameters: tuple[Expr, Expr], shape: Any, dtype: str) -> Meaning:
    """The next key, and numbers of a law with two parameters."""
    return Computed(getattr(topi.random, law), (key, *parameters), {"out_shape": shape, "out_dtype": dtype}, law)


def _of_dtype(dtype: str, *values: Any) -> list[Expr]:
    """Parameters of a law as operands: a number is a constant of the dtype that is drawn."""
    return [one if hasattr(one, "struct_info") else const(one, dtype) for one in values]


@operator("random.uniform", results=lambda **given: 2)
def _uniform(key: Expr, low: Expr, high: Expr, shape: Any, dtype: str = "float32") -> Meaning:
    return _drawn("uniform", key, (low, high), shape, dtype)


def uniform(key: Any, shape: Any, dtype: str = "float32", low: Any = 0.0, high: Any = 1.0) -> Any:
    """The next key, and numbers from `low` up to `high`, all as likely."""
    return _uniform(key, *_of_dtype(dtype, low, high), shape, dtype)


@operator("random.normal", results=lambda **given: 2)
def _normal(key: Expr, mean: Expr, scale: Expr, shape: Any, dtype: str = "float32") -> Meaning:
    return _drawn("normal", key, (mean, scale), shape, dtype)


def normal(key: Any, shape: Any, dtype: str = "float32", mean: Any = 0.0, scale: Any = 1.0) -> Any:
    """The next key, and normally distributed numbers; `scale` is their standard deviation."""
    return _normal(key, *_of_dtype(dtype, mean, scale), shape, dtype)


@operator("random.multinomial", results=lambda **given: 2)
def multinomial(key: Expr, probs: Expr, num_samples: int) -> Meaning:
    """The next key, and indices drawn by probabilities along the last axis."""
    return Computed(topi.random.multinomial, (key, probs), {"num_samples": num_samples}, "multinomial")
