"""Reductions on NumPy arrays: accumulators that take blocks of values in lexicographic order.

Sums and products of floats are accumulated in float64; integers wrap as their dtype does. Combiners that aren't known
are folded one reduction point after the other, for all output elements at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dataclass import dataclass, field
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import Add, And, CommReducer, Max, Min, Mul, Or, PrimExpr
from ..tir.reduction_laws import GREATEST, LEAST, law_of_one, operator_of
from .evaluation import Array, Program, compile_program

_WHOLE_BLOCK: dict[type[PrimExpr], Callable[..., Array]] = {
    Add: np.add.reduce,
    Mul: np.multiply.reduce,
    Max: np.maximum.reduce,
    Min: np.minimum.reduce,
    And: np.logical_and.reduce,
    Or: np.logical_or.reduce,
}
# NumPy's extrema are NaN where an element is.
_NAN_WINS: dict[str, type[PrimExpr]] = {GREATEST.name: Max, LEAST.name: Min}
_ROUNDED = (Add, Mul)
_IDLE: dict[type[PrimExpr], int] = {Add: 0, Mul: 1}  # what changes nothing; for the others the running value itself


@dataclass(slots=True)
class Accumulator:
    """The running values of a reduction for a block of output elements."""

    combiner: CommReducer
    values: list[Array]
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.values = [self._widened(value, i) for i, value in enumerate(self.values)]
        self.program = compile_program(self.combiner.result)

    def _widened(self, value: Array, index: int) -> Array:
        value = np.asarray(value)
        wide = self._is_rounded(index)
        return value.astype(np.float64) if wide else value

    def _is_rounded(self, index: int) -> bool:
        """True for sums and products of floats, which are accumulated in float64."""
        return (
            len(self.combiner.result) == 1
            and operator_of(self.combiner, index) in _ROUNDED
            and parse_dtype(self.combiner.lhs[index].dtype).is_float
        )

    def combine(self, sources: Sequence[Array], condition: Array | None) -> None:
        """Take the block of values whose dimensions after those of the accumulators are the reduction's."""
        operator = operator_of(self.combiner) if len(self.values) == 1 else None
        if len(self.values) == 1 and operator is None:
            law = law_of_one(self.combiner)
            extreme = _NAN_WINS.get(law.name) if law is not None else None
            if extreme is not None:
                self._take(extreme, sources[0], condition)
                return
        if operator is None or not self._combine_block(operator, sources[0], condition):
            self._fold(sources, condition)

    def _combine_block(self, operator: type[PrimExpr], source: Array, condition: Array | None) -> bool:
        value = self.values[0]
        if operator in (Max, Min) and value.dtype.kind not in "iub" and (np.isnan(source).any() or np.isnan(value).any()):
            return False  # which operand wins depends on the order then
        self._take(operator, source, condition)
        return True

    def _take(self, operator: type[PrimExpr], source: Array, condition: Array | None) -> None:
        value, block = self.values[0], source
        if condition is not None:
            idle = _IDLE.get(operator, value.reshape(value.shape + (1,) * (source.ndim - value.ndim)))
            block = np.where(condition, source, np.asarray(idle).astype(source.dtype))
        trailing = tuple(range(value.ndim, block.ndim))
        block = block.astype(value.dtype, copy=False)
        with np.errstate(all="ignore"):
            part = _WHOLE_BLOCK[operator](block, axis=trailing)
            self.values[0] = _WHOLE_BLOCK[operator](np.stack(np.broadcast_arrays(value, part)), axis=0)

    def _dtype(self, index: int) -> str:
        return self.combiner.lhs[index].dtype

    def _fold(self, sources: Sequence[Array], condition: Array | None) -> None:
        lead = self.values[0].ndim
        flat = [_merge_trailing(source, lead) for source in sources]
        keep = None if condition is None else _merge_trailing(condition, lead)
        for point in range(flat[0].shape[-1]):
            env = dict(zip(self.combiner.lhs, self.values, strict=True))
            env |= {var: source[..., point] for var, source in zip(self.combiner.rhs, flat, strict=True)}
            combined = self.program.run(env)
            if keep is not None:
                combined = [np.where(keep[..., point], new, old) for new, old in zip(combined, self.values, strict=True)]
            self.values = combined

    def results(self) -> list[Array]:
        """The values in the declared dtypes."""
        with np.errstate(all="ignore"):
            return [np.asarray(value).astype(to_numpy(self._dtype(i))) for i, value in enumerate(self.values)]


def _merge_trailing(block: Array, lead: int) -> Array:
    return np.ascontiguousarray(block).reshape((*block.shape[:lead], -1))
