"""Operators that make tensors of a stated shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int, cast
from ...tir.dtype import parse_dtype, to_numpy
from ...tir.expr import IntImm, PrimExpr, Var
from ..expr import PrimValue, const
from ..extents import simplified
from ..struct_info import RelaxExpr, StructInfo, TensorStructInfo, extent
from .row import Expr, Operand, Pattern, Prim, Shape, operator, tensor


def _te_full(shape: Any, fill_value: Any, dtype: str) -> Any:
    return te.compute(shape, lambda *_: cast(fill_value() if isinstance(fill_value, te.Tensor) else fill_value, dtype), name="T_full")


def _np_full(shape: Any, fill_value: Any, dtype: str) -> Any:
    return np.full(shape, fill_value, to_numpy(dtype))


@operator("full", Pattern.INJECTIVE, te=_te_full, numpy=_np_full)
def _full(shape: Shape, fill_value: Expr, dtype: str) -> StructInfo:
    """A tensor of one value."""
    if tensor(fill_value, "fill_value").ndim not in (0, -1):
        raise DeclarationError(f"one value is a tensor without axes, not {fill_value.struct_info}")
    return TensorStructInfo(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: str | None = None) -> Any:
    """A tensor of one value, a number or a tensor without axes; of its dtype if no other is stated."""
    value = fill_value if isinstance(fill_value, RelaxExpr) else const(fill_value, dtype)
    return _full(shape, value, dtype or tensor(value).dtype)


def _filled(name: str, value: int) -> Any:
    def rule(shape: Shape, dtype: str) -> StructInfo:
        if not dtype:
            raise DeclarationError(f"relax.op.{name} has to know its dtype, such as float32")
        return TensorStructInfo(shape, dtype)

    def made(shape: Any, dtype: str) -> Any:
        return topi.full(shape, dtype, value)

    rule.__doc__ = f"A tensor of {name}."
    return operator(name, Pattern.INJECTIVE, te=made, numpy=lambda shape, dtype: np.full(shape, value, to_numpy(dtype)))(rule)


def _filled_like(name: str, value: int) -> Any:
    def rule(x: Expr, dtype: str | None = None) -> StructInfo:
        info = tensor(x, "x").info
        return TensorStructInfo(info.shape, dtype or info.dtype, info.vdevice, info.ndim)

    def made(x: Any, dtype: str | None) -> Any:
        return topi.full(x.shape, dtype or x.dtype, value)

    def evaluated(x: Any, dtype: str | None) -> Any:
        return np.full(x.shape, value, x.dtype if dtype is None else to_numpy(dtype))

    rule.__doc__ = f"A tensor of {name.partition('_')[0]}, of the shape of another."
    return operator(name, Pattern.INJECTIVE, te=made, numpy=evaluated)(rule)


zeros, ones = _filled("zeros", 0), _filled("ones", 1)
zeros_like, ones_like = _filled_like("zeros_like", 0), _filled_like("ones_like", 1)


def full_like(x: Any, fill_value: Any, dtype: str | None = None) -> Any:
    """A tensor of one value, of the shape of another, and of its dtype if no other is stated: calls of other operators."""
    operand = tensor(x, "x")
    filler = fill_value if isinstance(fill_value, RelaxExpr) else const(fill_value, dtype or operand.dtype or None)
    made = _full_like(x, filler, dtype or operand.dtype)
    return made


@operator(
    "full_like",
    Pattern.INJECTIVE,
    te=lambda x, fill_value, dtype: _te_full(x.shape, fill_value, dtype or x.dtype),
    numpy=lambda x, fill_value, dtype: np.full(x.shape, fill_value, x.dtype if dtype is None else to_numpy(dtype)),
)
def _full_like(x: Expr, fill_value: Expr, dtype: str | None = None) -> StructInfo:
    """A tensor of one value, of the shape of another."""
    info = tensor(x, "x").info
    if tensor(fill_value, "fill_value").ndim not in (0, -1):
        raise DeclarationError(f"relax.op.full_like: one value is a tensor without axes, not {fill_value.struct_info}")
    return TensorStructInfo(info.shape, dtype or info.dtype, info.vdevice, info.ndim)


def _value(prim: Any) -> Any:
    """A number of an argument, or its expression; None for a tensor, whose elements nobody knows."""
    if not isinstance(prim, PrimValue):
        return None
    found = as_int(prim.value)
    return found if found is not None else getattr(prim.value, "value", prim.value)


def _steps(start: Any, end: Any, step: Any) -> PrimExpr | None:
    """How many numbers there are from `start` to before `end`; None if that isn't known.

    Raises:
        DeclarationError: for a step of 0.
    """
    if step == 0:
        raise DeclarationError("relax.op.arange: a step of 0")
    if None in (start, end, step) or (isinstance(step, PrimExpr) and as_int(step) is None):
        return None
    if not any(isinstance(one, PrimExpr) for one in (start, end)):
        # NumPy's count is the authority: (end - start) / step of floats may round either way.
        return IntImm("int64", len(np.arange(start, end, step)))
    if not isinstance(step, int) or any(isinstance(one, float) for one in (start, end)):
        return None
    # Not max(n, 0): other tensors have the extent n, and extents aren't negative.
    if isinstance(end, Var) and start == 0 and step == 1:
        return end
    reach = extent(end) - extent(start) if step > 0 else extent(start) - extent(end)
    return simplified(te.max((reach + (abs(step) - 1)) // abs(step), extent(0)))


def _te_arange(start: Any, end: Any, step: Any, dtype: str) -> Any:
    count = _steps(start, end, step)

    def term(i: Any) -> Any:
        if not parse_dtype(dtype).is_float:
            # In int64: from -100 on the product 150 is no int8, though the sum 50 is one.
            return (i.astype("int64") * step + start).astype(dtype)
        wide = "float64" if dtype == "float64" else "float32"
        return (i.astype(wide) * te.const(step, wide) + (te.const(start, wide) if not isinstance(start, PrimExpr) else start)).astype(dtype)

    return te.compute((count,), term, name="arange")


def _np_arange(start: Any, end: Any, step: Any, dtype: str) -> Any:
    start, end, step = (np.asarray(one)[()] for one in (start, end, step))
    wide = np.float64 if any(np.asarray(one).dtype.kind not in "iub" for one in (start, end, step)) else np.int64
    count = max(0, int(np.ceil((wide(end) - wide(start)) / wide(step))))
    return (wide(start) + np.arange(count) * wide(step)).astype(to_numpy(dtype))


@operator("arange", Pattern.INJECTIVE, te=_te_arange, numpy=_np_arange)
def _arange(start: Prim, end: Prim, step: Prim, dtype: str) -> StructInfo:
    """The numbers from `start` to before `end`, each so far from the last."""
    parse_dtype(dtype)
    count = _steps(*map(_value, (start, end, step)))
    return TensorStructInfo(None if count is None else [count], dtype, ndim=1)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: str | None = None) -> Any:
    """The numbers from `start` to before `end`, each so far from the last; of one number, from 0 to before it.

    Numbers and expressions of symbols say how many there are; tensors without axes are taken too. Without a dtype integers make int64,
    others float32, and tensors their own dtype.
    """
    given = [0, start, step] if end is None else [start, end, step]
    made = [one if isinstance(one, RelaxExpr) else PrimValue(one) for one in given]
    if dtype is None:
        tensors = [one.struct_info for one in made if isinstance(one.struct_info, TensorStructInfo)]
        floats = [one for one in made if isinstance(one, PrimValue) and not parse_dtype(one.value.dtype).is_int]
        dtype = tensors[0].dtype if tensors else "float32" if floats else "int64"
    return _arange(*made, dtype)


def _np_eye(n: Any, m: Any, k: Any, dtype: str) -> Any:
    return np.eye(int(n), int(m), int(k)).astype(to_numpy(dtype))


@operator("eye", Pattern.INJECTIVE, te=lambda n, m, k, dtype: topi.eye(n, m, k, dtype), numpy=_np_eye)
def _eye(n: Prim, m: Prim, k: Prim, dtype: str) -> StructInfo:
    """A matrix with ones on a diagonal and zeros elsewhere."""
    shape = [one.value for one in (n, m)] if all(isinstance(one, PrimValue) for one in (n, m)) else None
    return TensorStructInfo(shape, dtype, ndim=2)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: str = "float32") -> Any:
    """[n, m] with ones on diagonal `k`, which is above the main one if positive, and zeros elsewhere; m is n by default."""
    return _eye(n, n if m is None else m, k, dtype)


def _matrix(name: str, x: Any) -> Operand:
    found = tensor(x, "x")
    if found.ndim != -1 and found.ndim < 2:
        raise DeclarationError(f"relax.op.{name}: matrices have two axes, and x is {found.info}")
    return found


@operator(
    "eye_like",
    Pattern.INJECTIVE,
    te=lambda x, k, dtype: topi.eye(x.shape[0], x.shape[1], k, dtype or x.dtype),
    numpy=lambda x, k, dtype: _np_eye(x.shape[0], x.shape[1], k, dtype or str(x.dtype)),
)
def eye_like(x: Expr, k: Prim = 0, dtype: str | None = None) -> StructInfo:
    """Ones on diagonal `k` and zeros elsewhere, of the shape of a matrix, and of its dtype if no other is stated."""
    info = _matrix("eye_like", x).info
    if info.ndim not in (2, -1):
        raise DeclarationError(f"relax.op.eye_like: a matrix has two axes, and x is {info}")
    return TensorStructInfo(info.shape, dtype or info.dtype, info.vdevice, info.ndim)


def _triangle(name: str, where: str, upper: bool) -> Any:
    def rule(x: Expr, k: Prim = 0) -> StructInfo:
        operand = _matrix(name, x)
        if not isinstance(k, PrimValue) and tensor(k, "k").ndim not in (0, -1):
            raise TypeMismatchError(f"relax.op.{name}: k is a number, or a tensor without axes, not {k.struct_info}")
        return operand.info

    def computed(x: Any, k: Any) -> Any:
        number = k().astype("int64") if isinstance(k, te.Tensor) else k
        return topi.trilu(x, number, upper)

    def evaluated(x: Any, k: Any) -> Any:
        return (np.triu if upper else np.tril)(x, int(k))

    rule.__doc__ = f"Matrices with zeros {where} diagonal `k`: a number, or a tensor without axes."
    return operator(name, Pattern.INJECTIVE, te=computed, numpy=evaluated)(rule)


tril, triu = _triangle("tril", "above", False), _triangle("triu", "below", True)
