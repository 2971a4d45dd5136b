"""The names under which the parts of a sparse weight are registered as inputs of a task.

sparse_dense_bsr_{rows}_{columns}_{block rows}_{block columns}_{blocks}_{row starts}_ and then W_data, W_indices, W_indptr
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..te.dag import post_dfs_order
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.expr import Mul, PrimExpr, ProducerLoad, Reduce
from ..tir.rewriting import walk

_PREFIXES = {"sparse_dense_sp_rhs_bsrmm_block": "sparse_dense_bsr", "sparse_conv2d_sp_bsrmm_block": "sparse_conv2d_bsr"}  # by tag


def sparse_input_names(tensors: Sequence[Tensor]) -> dict[Tensor, str]:
    """The tensors that hold a sparse weight of topi's products, with the name that a task's input has there."""
    found: dict[Tensor, str] = {}
    for op in post_dfs_order([tensor.op for tensor in tensors]):
        if isinstance(op, ComputeOp) and op.tag in _PREFIXES:
            found.update(_names(op))
    return found


def _names(op: ComputeOp) -> dict[Tensor, str]:
    """Of sum(data[starts[row] + k, r, c] * dense[.., indices[starts[row] + k] * width + c, ..])."""
    match op.body:
        case (Reduce(source=(Mul(ProducerLoad() as one, ProducerLoad() as other),)),):
            sparse, dense = sorted((one, other), key=lambda load: len(_read_in(load.indices)))
        case _:
            return {}
    starts, places = _read_in(sparse.indices), _read_in(dense.indices)
    indices = [tensor for tensor in places if tensor not in starts]
    data = cast(Tensor, sparse.producer)
    if len(starts) != 1 or len(indices) != 1 or data.ndim != 3:
        return {}
    columns = next(size for size, at in zip(dense.producer.shape, dense.indices, strict=True) if _read_in((at,)))
    sizes = ((starts[0].shape[0] - 1) * data.shape[1], columns, data.shape[1], data.shape[2], indices[0].shape[0], starts[0].shape[0])
    prefix = "_".join([_PREFIXES[op.tag], *map(str, sizes)])
    return {data: f"{prefix}_W_data", indices[0]: f"{prefix}_W_indices", starts[0]: f"{prefix}_W_indptr"}


def _read_in(indices: Sequence[PrimExpr]) -> list[Tensor]:
    """The tensors whose elements some indices depend on."""
    return list(dict.fromkeys(cast(Tensor, n.producer) for index in indices for n in walk(index) if isinstance(n, ProducerLoad)))
