"""How far two computations of the same thing may differ: by dtype, reduction length and magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..tir.dtype import parse_dtype, scalar_dtype
from ..tir.expr import FloatImm, IntImm, PrimExpr, ProducerLoad, Var
from ..tir.rewriting import walk
from ..tir.stmt import For
from .dag import post_dfs_order, producer_map
from .extern import ExternOp
from .operation import ComputeOp, Operation
from .scan_op import ScanOp
from .tensor import Tensor

# Unit roundoff times two: the spacing of numbers at 1.
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# Spacings that an element may be off without any reduction: a few operators and a vector math function (up to 4 ulp each).
ELEMENTWISE = 32
# A maximum over fewer elements may be small by chance, and with it what is taken for the magnitude.
_ENOUGH_ELEMENTS = 32
# Compared at a time: temporaries of a whole tensor would take several times its memory, and those of a block stay in the second cache.
_BLOCK_ELEMENTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`|actual - expected| <= atol + rtol * |expected|`; both 0 where results agree exactly."""

    rtol: float
    atol: float

    def allows(self, actual: Any, expected: Any) -> Any:
        """For each element whether the difference is allowed. NaN matches NaN, an infinity only itself."""
        a, e = np.asarray(actual), np.asarray(expected)
        if a.dtype.kind in "iub":
            # in float64: unsigned differences wrap, 0 - 1 is 255 in uint8
            return a == e if not self.atol else np.abs(a.astype(np.float64) - e.astype(np.float64)) <= self.atol
        # the difference of close numbers is exact in their own format, so only float64 needs float64
        kind = np.float64 if a.dtype == np.float64 else np.float32
        wide_a, wide_e = a.astype(kind, copy=False), e.astype(kind, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.abs(wide_a - wide_e) <= self.atol + self.rtol * np.abs(wide_e)
            if close.all() and np.isfinite(wide_e).all():
                return close
            # an infinite expectation would allow anything: the bound is infinite too
            return np.where(np.isfinite(wide_e), close, (wide_a == wide_e) | (np.isnan(wide_a) & np.isnan(wide_e)))

    def mismatch(self, actual: Any, expected: Any) -> str:
        """What is wrong with `actual`: how many elements, and the worst one; empty if nothing is."""
        a, e = np.asarray(actual), np.asarray(expected)
        if a.shape != e.shape or a.dtype != e.dtype:
            return f"is {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}"
        flat_a, flat_e = a.reshape(-1), e.reshape(-1)
        wrong: list[Any] = []
        for start in range(0, a.size, _BLOCK_ELEMENTS):
            block = slice(start, start + _BLOCK_ELEMENTS)
            allowed = self.allows(flat_a[block], flat_e[block])
            if not allowed.all():
                wrong.append(start + np.flatnonzero(~allowed))
        return self._explain(flat_a, flat_e, np.concatenate(wrong), a.shape) if wrong else ""

    def _explain(self, actual: Any, expected: Any, wrong: Any, shape: tuple[int, ...]) -> str:
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(actual[wrong].astype(np.float64) - expected[wrong].astype(np.float64))
        worst = wrong[int(np.argmax(np.where(np.isnan(distance), np.inf, distance)))]
        at = [int(i) for i in np.unravel_index(worst, shape)]
        return (
            f"differs at {len(wrong)} of {actual.size} elements; worst at {at}: {actual[worst]}, expected {expected[worst]} "
            f"(rtol {self.rtol:g}, atol {self.atol:g})"
        )


def tolerance(dtype: str, reduction_length: int = 1, magnitude: float = 1.0) -> Tolerance:
    """The tolerance for elements of `dtype` that are sums of `reduction_length` terms of size up to `magnitude`.

    The rounding errors of n additions add up to at most n spacings of the largest partial sum; the terms' own errors
    come on top.
    """
    if not parse_dtype(dtype).is_float:
        return Tolerance(0.0, 0.0)
    epsilon = EPSILON[dtype]
    return Tolerance(ELEMENTWISE * epsilon, epsilon * magnitude * (2 * max(1, reduction_length) + ELEMENTWISE))


def reduction_length(tensors: Sequence[Tensor]) -> int:
    """The longest chain of additions below `tensors`: reduction extents summed up along a path, symbolic ones as 1."""
    ops = post_dfs_order([tensor.op for tensor in tensors])
    producers = producer_map(ops)
    length: dict[Operation, int] = {}
    for op in ops:
        own = 1
        for axis in op.reduce_axis:
            own *= axis.dom.extent.value if axis.dom is not None and isinstance(axis.dom.extent, IntImm) else 1
        if isinstance(op, ExternOp):  # no sum is longer than all of its constant loops together
            loops = [node.extent.value for node in walk(op.statement) if isinstance(node, For) and isinstance(node.extent, IntImm)]
            own = max(1, sum(loops))
        length[op] = own + max((length[producer] for producer in producers[op]), default=0)
        if isinstance(op, ScanOp):  # the errors of a step go into the next one
            steps = op.scan_axis.dom.extent if op.scan_axis.dom is not None else None
            length[op] *= max(1, steps.value) if isinstance(steps, IntImm) else 1
    return max((length[tensor.op] for tensor in tensors), default=1)


def tolerance_of(tensor: Tensor, magnitude: float = 1.0) -> Tolerance:
    """The tolerance for `tensor`, with all it is computed from: the coarsest dtype on the way counts.

    Integers that are made from floats may be one off, as a value beside a boundary is rounded to either side.

    Args:
        tensor: what is compared.
        magnitude: the size of the terms of its sums, see `term_magnitude`.
    """
    computed = _computed_dtypes(tensor)
    coarsest = max((tensor.dtype, *computed), key=lambda dtype: EPSILON.get(dtype, 0.0))
    kind = parse_dtype(tensor.dtype)
    if kind.is_float:
        return tolerance(coarsest, reduction_length([tensor]), magnitude)
    return Tolerance(0.0, 1.0 if kind.is_int and coarsest in EPSILON else 0.0)


def is_rounded(tensor: Tensor) -> bool:
    """Whether floats are made integers of 8 or 16 bits on the way to `tensor`, as where it is quantised."""
    computed = {parse_dtype(dtype) for dtype in _computed_dtypes(tensor)}
    return any(one.is_float for one in computed) and any(one.is_int and one.bits in (8, 16) for one in computed)


def _computed_dtypes(tensor: Tensor) -> set[str]:
    """The scalar dtypes of everything that is computed on the way to `tensor`; what is only read is as exact as it was."""
    ops = [op for op in post_dfs_order([tensor.op]) if isinstance(op, (ComputeOp, ExternOp))]
    roots = [root for op in ops for root in (op.body if isinstance(op, ComputeOp) else (op.statement,))]
    nodes = (node for root in roots for node in walk(root) if isinstance(node, PrimExpr))
    return {scalar_dtype(node.dtype) for node in nodes if not isinstance(node, (ProducerLoad, Var, IntImm, FloatImm))}


def term_magnitude(expected: Any, reduction_length: int) -> float:
    """The size of the terms whose sums are `expected`, if their signs are random: then n of them add up to sqrt(n) times as much."""
    values = np.abs(np.asarray(expected).astype(np.float64))
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0
    chance = sqrt(max(1.0, _ENOUGH_ELEMENTS / finite.size))
    return float(finite.max()) * chance / sqrt(max(1, reduction_length))
