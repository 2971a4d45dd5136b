"""Products of matrices in another order: ExpandMatmulOfSum, AdjustMatmulOrder, ReorderTakeAfterMatmul."""

from __future__ import annotations

from math import prod
from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ..expr import Call, Constant
from ..ops.elementwise import add
from ..ops.linear import matmul
from ..ops.manipulate import take
from ..struct_info import TensorStructInfo
from .rewriting import Rewriter, Rules, rule_pass

MATMUL = "relax.matmul"


def _expanded(graph: Rewriter, call: Call) -> Any:
    """`x @ (a + b)` is `x @ a + x @ b`, unless both are constants."""
    total = graph.call(call.args[1], "relax.add")
    # A summand that is broadcast is no matrix of the sum's shape.
    if total is None or any(arg.struct_info != total.struct_info for arg in total.args):
        return None
    if all(isinstance(graph.value(arg), Constant) for arg in total.args):
        return None
    return add(*(matmul(call.args[0], arg, call.attrs["out_dtype"]) for arg in total.args))


def _extents(expr: Any) -> list[int] | None:
    """The extents of a matrix, or of a stack of them, if they are constants."""
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo) or info.extents is None or info.ndim < 2:
        return None
    found = [as_int(extent) for extent in info.extents]
    return None if None in found else found  # type: ignore[return-value]


def _cost(a: list[int], b: list[int]) -> int:
    """Multiplications of a product."""
    outer = a[:-2] if len(a) >= len(b) else b[:-2]
    return prod(outer) * a[-2] * a[-1] * b[-1]


def _product(a: list[int], b: list[int]) -> list[int]:
    return [*(a[:-2] if len(a) >= len(b) else b[:-2]), a[-2], b[-1]]


def _cheaper(graph: Rewriter, call: Call) -> Any:
    """`(a @ b) @ c` or `a @ (b @ c)`, whichever has fewer multiplications."""
    for place in (0, 1):
        # Read by this product alone: otherwise it is computed in any case.
        inner = graph.only(call.args[place], MATMUL)
        if inner is None or inner.attrs["out_dtype"] != call.attrs["out_dtype"]:
            continue
        first, second, third = (*inner.args, call.args[1]) if place == 0 else (call.args[0], *inner.args)
        shapes = _extents(first), _extents(second), _extents(third)
        if any(shape is None for shape in shapes):
            continue
        a, b, c = (shape or [] for shape in shapes)
        left = _cost(a, b) + _cost(_product(a, b), c)
        right = _cost(b, c) + _cost(a, _product(b, c))
        dtype = call.attrs["out_dtype"]
        if place == 0 and right < left:
            return matmul(first, matmul(second, third, dtype), dtype)
        if place == 1 and left < right:
            return matmul(matmul(first, second, dtype), third, dtype)
    return None


def _taken(graph: Rewriter, call: Call) -> Any:
    """`x @ take(w, i)` is `take(x @ w, i)`."""
    inner = graph.call(call.args[1], "relax.take")
    if inner is None or inner.attrs["axis"] not in (1, -1):
        return None
    x, w, places = (arg.struct_info for arg in (call.args[0], *inner.args))
    if w.ndim != 2 or places.ndim != 1 or x.ndim < 1:
        return None
    return take(matmul(call.args[0], inner.args[0], call.attrs["out_dtype"]), inner.args[1], x.ndim - 1)


EXPAND: Rules = {MATMUL: [_expanded]}
ORDER: Rules = {MATMUL: [_cheaper]}
TAKE: Rules = {MATMUL: [_taken]}


def ExpandMatmulOfSum() -> ModulePass:
    """A pass: a product with a sum is a sum of products, as for weights with corrections of low rank (Hu et al. 2021)."""
    return rule_pass("ExpandMatmulOfSum", EXPAND)


def AdjustMatmulOrder() -> ModulePass:
    """A pass: of three factors those are multiplied first that cost less, where shapes are known."""
    return rule_pass("AdjustMatmulOrder", ORDER)


def ReorderTakeAfterMatmul() -> ModulePass:
    """A pass: columns are taken of a product, not of its right factor."""
    return rule_pass("ReorderTakeAfterMatmul", TAKE)
