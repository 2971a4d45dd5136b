"""Products with weights of which most blocks are zeros become products of sparse matrices.

nn.dense(%x, %w)    with values of %w    nn.sparse_dense(%x, (%w.data, %w.indices, %w.indptr))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..expr import Function, Tuple, Var
from ..op.nn import sparse_dense
from ..ty import TensorType
from ..visitor import ExprMutator
from .simplify_fc_transpose import Converted, converted, values_of

_PARTS = ("data", "indices", "indptr")


def _blocks(matrix: Any, size: tuple[int, int]) -> tuple[Any, Any, Any]:
    """The blocks of a matrix that aren't zeros, the column of each, and where each row of blocks begins."""
    tall, wide = size
    apart = matrix.reshape(matrix.shape[0] // tall, tall, matrix.shape[1] // wide, wide).transpose(0, 2, 1, 3)
    is_kept = apart.any((2, 3))
    starts = np.concatenate(([0], np.cumsum(is_kept.sum(1))))
    return apart[is_kept], np.nonzero(is_kept)[1].astype("int32"), starts.astype("int32")


class _Sparse(ExprMutator):
    def __init__(self, values: dict[str, Any], size: tuple[int, int], threshold: float) -> None:
        super().__init__()
        self.values, self._size, self._threshold = values, size, threshold
        self._made: dict[str, Tuple] = {}

    def visit_call(self, call: Any) -> Any:
        """A product whose weight is a parameter with few blocks."""
        made = super().visit_call(call)
        weight = made.args[1] if made.op == "nn.dense" else None
        if not isinstance(weight, Var):
            return made
        matrix = self.values.get(weight.name_hint)
        if matrix is None or matrix.ndim != 2 or any(extent % block for extent, block in zip(matrix.shape, self._size, strict=True)):
            return made
        parts = _blocks(matrix, self._size)
        if 1 - parts[0].size / matrix.size < self._threshold:
            return made
        return sparse_dense(made.args[0], self._operands(weight.name_hint, parts))

    def _operands(self, name: str, parts: tuple[Any, ...]) -> Tuple:
        if name not in self._made:
            named = {f"{name}.{part}": value for part, value in zip(_PARTS, parts, strict=True)}
            self.values.update(named)
            self._made[name] = Tuple([Var(one, TensorType(value.shape, str(value.dtype))) for one, value in named.items()])
        return self._made[name]


def convert(
    func: Function, params: Mapping[str, Any], blocksize: Sequence[int], sparsity_threshold: float, layout: str = "NHWC",
    kernel_size: int = 1,
) -> Converted:  # fmt: skip
    """The function with sparse weights, and the values of its parameters.

    Args:
        func: of Relay.
        params: values of weights by name.
        blocksize: rows and columns of a block, by which the extents of weights are divided; others stay.
        sparsity_threshold: how many of the elements have to lie in blocks of zeros, from 0 to 1.
        layout, kernel_size: accepted: of convolutions, which stay.
    """
    values = values_of(params)
    tall, wide = blocksize
    return converted(_Sparse(values, (int(tall), int(wide)), float(sparsity_threshold)), func, values)


__all__ = ["convert"]
