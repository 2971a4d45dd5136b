"""Sparse matrices as programs hold them: rows of compressed values (CSR), as arrays and as placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeclarationError
from ..runtime import ndarray
from ..te.declare import placeholder as dense_placeholder

float32 = "float32"
itype = "int32"
_STYPES = ("csr",)


class CSRNDArray:
    """A matrix whose elements that aren't zero are kept: `data` [nnz], their columns `indices` [nnz], the begins of rows `indptr`.

    Args:
        arg1: a matrix, or (data, indices, indptr).
        device: where the parts live, default the CPU.
        shape: of the matrix; a must for parts.

    Raises:
        DeclarationError: for something else, or parts without a shape.
    """

    stype = "csr"

    def __init__(self, arg1: Any, device: Any = None, shape: Sequence[int] | None = None) -> None:
        if isinstance(arg1, tuple):
            if len(arg1) != 3 or shape is None:
                raise DeclarationError("CSRNDArray: parts are (data, indices, indptr), and shape says how large the matrix is")
            data, indices, indptr = (_values(part) for part in arg1)
        else:
            matrix = _values(arg1)
            if matrix.ndim != 2:
                raise DeclarationError(f"CSRNDArray: an array of {matrix.ndim} dimensions; it takes a matrix, or (data, indices, indptr)")
            rows, indices = np.nonzero(matrix)
            data, shape = matrix[rows, indices], matrix.shape
            indptr = np.concatenate([[0], np.bincount(rows, minlength=matrix.shape[0]).cumsum()])
        self.shape = tuple(shape)
        self.data = ndarray.array(data, device)
        self.indices, self.indptr = (ndarray.array(part.astype(itype), device) for part in (indices, indptr))
        self.dtype = str(self.data.dtype)

    def numpy(self) -> NDArray[Any]:
        """The whole matrix."""
        whole = np.zeros(self.shape, self.dtype)
        begins = self.indptr.numpy()
        # rows of the elements: 0 0 1 of the begins 0 2 3
        whole[np.repeat(np.arange(self.shape[0]), np.diff(begins)), self.indices.numpy()] = self.data.numpy()
        return whole

    asnumpy = numpy


def _values(array: Any) -> NDArray[Any]:
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


class CSRPlaceholderOp:
    """A sparse matrix that a program gets: the placeholders `data`, `indices` and `indptr`.

    Args:
        shape: [rows, columns].
        nonzeros: how many elements are kept.
        dtype: of the elements.
        name: the parts are named after it.
    """

    stype = "csr"

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: str, name: str) -> None:
        self.shape, self.dtype, self.name = tuple(shape), dtype, name
        self.data = dense_placeholder((nonzeros,), dtype, f"{name}_data")
        self.indices = dense_placeholder((nonzeros,), itype, f"{name}_indices")
        self.indptr = dense_placeholder((self.shape[0] + 1,), itype, f"{name}_indptr")


def array(source_array: Any, device: Any = None, shape: Sequence[int] | None = None, stype: str = "csr") -> CSRNDArray:
    """A sparse matrix of a dense one, or of its parts; see `CSRNDArray`.

    Raises:
        DeclarationError: for another stype than "csr".
    """
    _checked(stype)
    return CSRNDArray(source_array, device, shape)


def placeholder(
    shape: Sequence[Any], nonzeros: Any = None, dtype: str | None = None, name: str = "placeholder", stype: str | None = None
) -> CSRPlaceholderOp:
    """Placeholders of a sparse matrix; see `CSRPlaceholderOp`.

    Raises:
        DeclarationError: without `nonzeros`, or for another stype than "csr".
    """
    _checked(stype or "csr")
    if nonzeros is None or len(shape) != 2:
        raise DeclarationError(f"sparse placeholder {name}: it takes a shape [rows, columns] and nonzeros, how many elements are kept")
    return CSRPlaceholderOp(shape, nonzeros, dtype or float32, name)


def _checked(stype: str) -> None:
    if stype not in _STYPES:
        raise DeclarationError(f"no sparse matrices of stype {stype!r}; there are {', '.join(_STYPES)}")
