"""Products of matrices in another order: ExpandMatmulOfSum, AdjustMatmulOrder, ReorderTakeAfterMatmul."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from ...arith.analyzer import Analyzer
from ...lower.passes import ModulePass
from ...tir.expr import IntImm, PrimExpr
from ...tir.function import IRModule
from ...tir.reduce import Range
from ...tir.rewriting import variables
from ..analysis import computable_at_compile_time
from ..expr import Call, Constant, Function
from ..ops.elementwise import add
from ..ops.linear import matmul
from ..ops.manipulate import take
from ..struct_info import TensorStructInfo
from .passes import each_function
from .rewriting import Rewriter, Rules, rewritten, rule_pass
from .transposes import PERMUTE, order_of

MATMUL = "relax.matmul"
_LARGEST = 1 << 31  # of extents that are symbols


def _expanded(graph: Rewriter, call: Call) -> Any:
    """`x @ (a + b)` is `x @ a + x @ b`, unless both are constants."""
    total = graph.call(call.args[1], "relax.add")
    # A summand that is broadcast is no matrix of the sum's shape.
    if total is None or any(arg.struct_info != total.struct_info for arg in total.args):
        return None
    if all(isinstance(graph.value(arg), Constant) for arg in total.args):
        return None
    return add(*(matmul(call.args[0], arg, call.attrs["out_dtype"]) for arg in total.args))


def _extents(expr: Any, place: int) -> list[PrimExpr] | None:
    """The extents of a factor of three; None if they aren't known. A vector in front is a row, one at the end a column."""
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo) or info.extents is None or info.ndim < (2 if place == 1 else 1):
        return None
    one = [IntImm("int64", 1)]
    return list(info.extents) if info.ndim > 1 else [*one, *info.extents] if place == 0 else [*info.extents, *one]


def _cost(a: list[PrimExpr], b: list[PrimExpr]) -> PrimExpr:
    """Multiplications of a product."""
    return prod(_product(a, b)) * a[-1]


def _product(a: list[PrimExpr], b: list[PrimExpr]) -> list[PrimExpr]:
    return [*(a[:-2] if len(a) >= len(b) else b[:-2]), a[-2], b[-1]]


def _is_less(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether one cost is less than another one at all sizes."""
    analyzer = Analyzer()
    for symbol in {*variables(a), *variables(b)}:
        analyzer.bind(symbol, Range.from_min_extent(1, _LARGEST))
    return analyzer.can_prove(a < b)


def _is_known(expr: Any, known: set[Any]) -> bool:
    """Whether an operand is a weight, or a constant, or follows from such alone."""
    return isinstance(expr, Constant) or expr in known or (isinstance(expr, Call) and all(_is_known(arg, known) for arg in expr.args))


def _factors(graph: Rewriter, arg: Any, dtype: str) -> tuple[Any, Any] | None:
    """The factors of an operand that is a product, or the transpose of one: `(a @ b).T` is `b.T @ a.T`."""
    # Read by this product alone: otherwise it is computed in any case.
    inner = graph.only(arg, MATMUL, PERMUTE)
    if inner is not None and inner.op == PERMUTE:
        within = graph.only(inner.args[0], MATMUL) if order_of(inner) == [1, 0] else None
        if within is None or within.attrs["out_dtype"] != dtype or any(one.struct_info.ndim != 2 for one in within.args):
            return None
        a, b = (Call(inner.op, (one,), inner.attrs) for one in within.args)
        return b, a
    return None if inner is None or inner.attrs["out_dtype"] != dtype else inner.args


def _cheaper(known: set[Any], graph: Rewriter, call: Call) -> Any:
    """`(a @ b) @ c` or `a @ (b @ c)`, whichever has fewer multiplications; products of weights are computed once, whatever they cost."""
    dtype = call.attrs["out_dtype"]
    for place in (0, 1):
        inner = _factors(graph, call.args[place], dtype)
        if inner is None or all(_is_known(one, known) for one in inner):
            continue
        factors = (*inner, call.args[1]) if place == 0 else (call.args[0], *inner)
        shapes = [_extents(one, n) for n, one in enumerate(factors)]
        # A vector with a stack of matrices gives rows, which the next product takes for one matrix.
        if any(shape is None for shape in shapes) or (1 in (one.struct_info.ndim for one in factors) and factors[1].struct_info.ndim != 2):
            continue
        (first, second, third), (a, b, c) = factors, (shape or [] for shape in shapes)
        left = _cost(a, b) + _cost(_product(a, b), c)
        right = _cost(b, c) + _cost(a, _product(b, c))
        weights = [_is_known(one, known) for one in factors]
        if place == 0 and (all(weights[1:]) or _is_less(right, left)):
            return matmul(first, matmul(second, third, dtype), dtype)
        if place == 1 and (all(weights[:2]) or _is_less(left, right)):
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
TAKE: Rules = {MATMUL: [_taken]}


def ExpandMatmulOfSum() -> ModulePass:
    """A pass: a product with a sum is a sum of products, as for weights with corrections of low rank (Hu et al. 2021)."""
    return rule_pass("ExpandMatmulOfSum", EXPAND)


def AdjustMatmulOrder() -> ModulePass:
    """A pass: of three factors those are multiplied first that cost less, at all sizes that symbols may have.

    Two that are weights (parameters behind the first "num_input", an attribute of functions) are multiplied first whatever they cost,
    as `LiftTransformParams` computes their product once.
    """

    def run(func: Function, mod: IRModule) -> Function:
        known = set(computable_at_compile_time(func))
        return rewritten(func, {MATMUL: [partial(_cheaper, known)]})

    return each_function("AdjustMatmulOrder", run)


def ReorderTakeAfterMatmul() -> ModulePass:
    """A pass: columns are taken of a product, not of its right factor."""
    return rule_pass("ReorderTakeAfterMatmul", TAKE)
