"""Products of matrices."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ...tir.expr import PrimExpr
from ..expr import Call
from ..relations import same_extents
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .elementwise import add, broadcast
from .manipulate import permute_dims
from .row import Expr, Exprs, Operand, Pattern, operator, tensor


def matmul_of(x1: Any, x2: Any, out_dtype: str | None = None, *, transposed: bool = False, name: str = "matmul") -> Any:
    """Products along the last axis of the one and the last but one of the other; axes in front of these broadcast.

    With `transposed` the last two axes of the second one have changed places: both are read along their last axis.
    """
    dtype, k = out_dtype or x1.dtype, te.reduce_axis((0, x1.shape[-1]), name="k")
    rows, columns = len(x1.shape) > 1, len(x2.shape) > 1
    a_outer, b_outer = list(x1.shape[:-2]), list(x2.shape[:-2])
    outer = broadcast(a_outer, b_outer, "matmul")
    if outer is None:
        raise DeclarationError(f"relax.op.matmul: whether {a_outer} and {b_outer} broadcast depends on symbols")
    last = [x2.shape[-2 if transposed else -1]] if columns else []
    shape = [*outer, *(x1.shape[-2:-1] if rows else ()), *last]

    def at(tensor: Any, own: list[Any], index: tuple[Any, ...], last: tuple[Any, ...]) -> Any:
        # Aligned at the last one: an operand of fewer axes has the last of them.
        first = len(outer) - len(own)
        batch = zip(index[first : len(outer)], own, outer[first:], strict=True)
        place = (*(0 if _is_one(extent) and not _is_one(full) else i for i, extent, full in batch), *last)
        return tensor[place]

    def element(*index: Any) -> Any:
        i, j = (index[len(outer) : len(outer) + 1] if rows else ()), (index[-1:] if columns else ())
        product = at(x1, a_outer, index, (*i, k)).astype(dtype) * at(x2, b_outer, index, (*j, k) if transposed else (k, *j)).astype(dtype)
        return te.sum(product, axis=k)

    return te.compute(shape, element, name=name)


def _is_one(extent: Any) -> bool:
    return as_int(extent) == 1


def _np_matmul(x1: Any, x2: Any, out_dtype: str | None = None) -> Any:
    dtype = to_numpy(out_dtype) if out_dtype else x1.dtype
    return np.matmul(x1.astype(dtype), x2.astype(dtype))


@operator("matmul", Pattern.OUT_FUSABLE, te=matmul_of, numpy=_np_matmul)
def matmul(x1: Expr, x2: Expr, out_dtype: str | None = None) -> StructInfo:
    """The product of matrices, or of stacks of them that broadcast; a vector is a row on the left and a column on the right."""
    a, b = tensor(x1, "x1"), tensor(x2, "x2")
    if 0 in (a.ndim, b.ndim):
        raise DeclarationError("relax.op.matmul: numbers have no product of matrices; use multiply")
    if out_dtype in (None, "void", "") and a.dtype != b.dtype and a.dtype and b.dtype:
        raise TypeMismatchError(f"relax.op.matmul: operands of {a.dtype} and {b.dtype}; use astype, or state out_dtype")
    dtype = a.dtype if out_dtype in (None, "void", "") else out_dtype
    shape = _product_shape(a, b)
    if shape is not None:
        return a.like(shape, dtype)
    # The axis of 1 that a vector gets for the product isn't in the result.
    ndim = -1 if -1 in (a.ndim, b.ndim) else max(a.ndim, b.ndim, 2) - (a.ndim == 1) - (b.ndim == 1)
    return a.like(None, dtype, ndim)


def _product_shape(a: Operand, b: Operand) -> list[PrimExpr] | None:
    if a.extents is None or b.extents is None:
        return None
    inner = b.extents[-2] if b.ndim > 1 else b.extents[0]
    if same_extents(a.extents[-1], inner) is False:
        raise DeclarationError(f"relax.op.matmul: {a.info} has {a.extents[-1]} columns, and {b.info} {inner} rows")
    outer = broadcast(a.extents[:-2], b.extents[:-2], "matmul")
    return None if outer is None else [*outer, *(a.extents[-2:-1] if a.ndim > 1 else ()), *(b.extents[-1:] if b.ndim > 1 else ())]


def linear(data: Any, weight: Any, bias: Any = None, out_dtype: str | None = None) -> Call:
    """`data @ weight.T + bias`, of weights with a row for each output: calls of other operators."""
    product: Call = matmul(data, permute_dims(weight, None), out_dtype)
    return product if bias is None else add(product, bias)


def _te_dense(data: Any, weight: Any) -> Any:
    return matmul_of(data, weight, transposed=True, name="dense")


@operator("nn.dense", Pattern.OUT_FUSABLE, te=_te_dense, numpy=lambda data, weight: np.matmul(data, weight.T))
def dense(data: Expr, weight: Expr) -> StructInfo:
    """`data @ weight.T`, by its name of 2022: [..., k] and [n, k] give [..., n]. Builds make `matmul` of it."""
    x, w = tensor(data, "data"), tensor(weight, "weight")
    if w.ndim not in (-1, 2) or x.ndim == 0:
        raise DeclarationError(
            f"relax.op.nn.dense: weights are [outputs, inputs], and data has an axis of inputs, not {w.info} and {x.info}"
        )
    if x.dtype != w.dtype and x.dtype and w.dtype:
        raise TypeMismatchError(f"relax.op.nn.dense: operands of {x.dtype} and {w.dtype}; use astype")
    if x.extents is None or w.extents is None:
        return x.like(None, x.dtype, x.ndim)
    if same_extents(x.extents[-1], w.extents[1]) is False:
        raise DeclarationError(f"relax.op.nn.dense: {x.info} has {x.extents[-1]} inputs, and {w.info} takes {w.extents[1]}")
    return x.like([*x.extents[:-1], w.extents[0]], x.dtype)


def spelled_out(subscripts: str, ndims: Sequence[int]) -> str:
    """Subscripts with letters for "..." and an arrow, of operands with so many axes.

    Raises:
        DeclarationError: for subscripts that don't fit the operands.
    """
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise DeclarationError(f"relax.op.einsum: {subscripts!r} has {len(terms)} terms for {len(ndims)} operands")
    unused = [letter for letter in string.ascii_letters if letter not in text]
    rest = {term: ndim - len(term.replace("...", "")) for term, ndim in zip(terms, ndims, strict=True)}
    wrong = next((term for term, extra in rest.items() if extra < 0 or (extra and "..." not in term)), None)
    if wrong is not None:
        raise DeclarationError(f"relax.op.einsum: {wrong!r} of {subscripts!r} doesn't fit an operand of {rest[wrong]} more axes")
    # Letters of "..." are aligned at the last one, as axes broadcast.
    common = "".join(unused[: max(rest.values(), default=0)])
    named = [term.replace("...", common[len(common) - rest[term] :] if rest[term] else "") for term in terms]
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        # NumPy's rule without an arrow: letters that occur once, in alphabetical order.
        output = "..." + "".join(letter for letter in sorted(set(letters)) if letters.count(letter) == 1)
    return f"{','.join(named)}->{output.replace('...', common)}"


def _np_einsum(operands: Any, subscripts: str) -> Any:
    return np.einsum(spelled_out(subscripts, [one.ndim for one in operands]), *operands)


def _te_einsum(operands: Any, subscripts: str) -> Any:
    return topi.einsum(spelled_out(subscripts, [len(one.shape) for one in operands]), *operands)


@operator("einsum", Pattern.OUT_FUSABLE, te=_te_einsum, numpy=_np_einsum)
def einsum(operands: Exprs, subscripts: str) -> StructInfo:
    """Einstein's sum of products, as NumPy's: einsum((a, b), "...ij,...jk->...ik")."""
    infos = operands.struct_info
    fields = infos.fields if isinstance(infos, TupleStructInfo) else ()
    found = [info for info in fields if isinstance(info, TensorStructInfo)]
    if not found or len(found) != len(fields):
        raise TypeMismatchError(f"relax.op.einsum takes a tuple of tensors, not {operands}")
    if len({info.dtype for info in found if info.dtype}) > 1:
        raise TypeMismatchError(f"relax.op.einsum: operands of {' and '.join(info.dtype for info in found)}; use astype")
    first = Operand("operand 0", found[0])
    if any(info.ndim == -1 for info in found):
        return first.like(None)
    terms, output = spelled_out(subscripts, [info.ndim for info in found]).split("->")
    extents: dict[str, PrimExpr] = {}
    for term, info in zip(terms.split(","), found, strict=True):
        for letter, one in zip(term, info.extents or (), strict=False):
            known = extents.setdefault(letter, one)
            if same_extents(known, one) is False and not _is_one(one):
                if not _is_one(known):
                    raise DeclarationError(f"relax.op.einsum: the extents of {letter!r} in {subscripts!r} are {known} and {one}")
                # An extent of 1 broadcasts, so the letter has that of the others.
                extents[letter] = one
    if not set(output) <= set(terms) or len(set(output)) != len(output):
        raise DeclarationError(f"relax.op.einsum: the result of {subscripts!r} takes letters of the operands, each once")
    return first.like(None if not set(output) <= set(extents) else [extents[letter] for letter in output], ndim=len(output))


@operator("det", numpy=lambda x: np.asarray(np.linalg.det(x), x.dtype))
def det(x: Expr) -> StructInfo:
    """The determinants of square matrices, along the last two axes."""
    operand = tensor(x, "x")
    if operand.ndim in (0, 1) or (operand.extents is not None and same_extents(*operand.extents[-2:]) is False):
        raise DeclarationError(f"relax.op.det: determinants are of square matrices, not of {operand.info}")
    return operand.like(None if operand.extents is None else operand.extents[:-2], ndim=max(operand.ndim - 2, -1))
