"""Matrix products by the BLAS inside NumPy, as stages of a tensor computation.

The stage calls a Python function, so that a module with one can't be exported; it runs on the threads that NumPy uses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..runtime.registry import register_func
from ..te.extern import extern
from ..te.tensor import Tensor
from ..tir.conversion import as_int
from ..tir.foreign import call_packed

_MATMUL, _BATCH_MATMUL = "tvm.contrib.cblas.matmul", "tvm.contrib.cblas.batch_matmul"
_KINDS = ("float32", "float64")


def _multiply(lhs: Any, rhs: Any, out: Any, transa: bool = False, transb: bool = False) -> None:
    left, right, result = np.from_dlpack(lhs), np.from_dlpack(rhs), np.from_dlpack(out)
    left = left.swapaxes(-1, -2) if transa else left
    right = right.swapaxes(-1, -2) if transb else right
    np.matmul(left, right, out=result)


register_func(_MATMUL, _multiply, override=True)
register_func(_BATCH_MATMUL, _multiply, override=True)


def _product(name: str, lhs: Tensor, rhs: Tensor, transa: bool, transb: bool, kwargs: dict[str, Any]) -> Tensor:
    if lhs.dtype != rhs.dtype or lhs.dtype not in _KINDS:
        raise DeclarationError(f"{name}: operands of {lhs.dtype} and {rhs.dtype}; both are float32 or both are float64")
    rank = 2 if name == _MATMUL else 3
    if len(lhs.shape) != rank or len(rhs.shape) != rank:
        raise DeclarationError(f"{name}: operands of {len(lhs.shape)} and {len(rhs.shape)} dimensions; both have {rank}")
    (rows, terms), (others, columns) = lhs.shape[-2:][:: -1 if transa else 1], rhs.shape[-2:][:: -1 if transb else 1]
    # else NumPy would say so when it runs, or, of a batch of 1, multiply it by all of the other's
    for left, right, what in (
        (terms, others, "terms"),
        *((left, right, "matrices") for left, right in zip(lhs.shape[:-2], rhs.shape[:-2], strict=True)),
    ):
        if as_int(left) is not None and as_int(right) is not None and as_int(left) != as_int(right):
            raise DeclarationError(f"{name}: {left} {what} on the left, {right} on the right")
    shape = (*lhs.shape[:-2], rows, columns)

    def call(ins: Any, outs: Any) -> Any:
        return call_packed(name, ins[0], ins[1], outs[0], bool(transa), bool(transb))

    made = extern(shape, [lhs, rhs], call, name=kwargs.pop("name", "C"), dtype=lhs.dtype, **kwargs)
    assert isinstance(made, Tensor)
    return made


def matmul(lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, **kwargs: Any) -> Tensor:
    """lhs [m, k] times rhs [k, n], each transposed if asked: [m, n].

    Raises:
        DeclarationError: for operands that aren't both float32 or both float64.
    """
    return _product(_MATMUL, lhs, rhs, transa, transb, kwargs)


def batch_matmul(lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, iterative: bool = False, **kwargs: Any) -> Tensor:
    """lhs [b, m, k] times rhs [b, k, n], each matrix transposed if asked: [b, m, n]. `iterative` has no effect.

    Raises:
        DeclarationError: for operands that aren't both float32 or both float64.
    """
    return _product(_BATCH_MATMUL, lhs, rhs, transa, transb, kwargs)
