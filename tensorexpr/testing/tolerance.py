"""How far two computations of the same thing may differ: by dtype, reduction length and magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..te.dag import post_dfs_order, producer_map
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..tir.dtype import parse_dtype
from ..tir.expr import IntImm

# Unit roundoff times two: the spacing of numbers at 1.
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# Spacings that an element may be off without any reduction: a few operators and a vector math function (up to 4 ulp each).
ELEMENTWISE = 32


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|actual - expected| <= atol + rtol * |expected|; both 0 for integers, which agree exactly."""

    rtol: float
    atol: float

    def allows(self, actual: Any, expected: Any) -> Any:
        """For each element whether the difference is allowed. NaN matches NaN, an infinity only itself."""
        a, e = np.asarray(actual), np.asarray(expected)
        if a.dtype.kind in "iub":
            return a == e
        wide_a, wide_e = a.astype(np.float64), e.astype(np.float64)
        with np.errstate(invalid="ignore"):
            close = np.abs(wide_a - wide_e) <= self.atol + self.rtol * np.abs(wide_e)
        return np.where(np.isfinite(wide_e), close, (wide_a == wide_e) | (np.isnan(wide_a) & np.isnan(wide_e)))


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
        length[op] = own + max((length[producer] for producer in producers[op]), default=0)
    return max((length[tensor.op] for tensor in tensors), default=1)


def assert_close(actual: Any, expected: Any, allowed: Tolerance, name: str = "result") -> None:
    """Compare arrays element by element.

    Raises:
        AssertionError: if shape or dtype differ or an element is too far off; it shows the worst one.
    """
    a, e = np.asarray(actual), np.asarray(expected)
    if a.shape != e.shape or a.dtype != e.dtype:
        raise AssertionError(f"{name} is {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}")
    wrong = ~np.asarray(allowed.allows(a, e))
    if not wrong.any():
        return
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.nan_to_num(np.abs(a.astype(np.float64) - e.astype(np.float64)), nan=np.inf), -1.0)
    worst = np.unravel_index(int(np.argmax(distance)), a.shape)
    raise AssertionError(
        f"{name} differs at {int(wrong.sum())} of {a.size} elements; worst at {[int(i) for i in worst]}: {a[worst]}, expected {e[worst]} "
        f"(rtol {allowed.rtol:g}, atol {allowed.atol:g})"
    )
