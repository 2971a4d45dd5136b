"""Arrays as parts of programs: read-only, compared by their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DeclarationError
from .dtype import from_numpy, parse_dtype, to_numpy


class ConstantArray:
    """The elements of a constant. `numpy()` gives a copy."""

    __slots__ = ("_array",)

    def __init__(self, values: Any, dtype: str, shape: Sequence[int]) -> None:
        """Take over values of any array type, or a (nested) list.

        Raises:
            DeclarationError: if there are more or fewer of them than the shape says, or the dtype has vectors.
        """
        if parse_dtype(dtype).lanes != 1:
            raise DeclarationError(f"a constant array has scalars for elements, not {dtype}")
        # `astype` copies: freezing the result leaves the caller's array as it is.
        found = np.asarray(values.numpy() if hasattr(values, "numpy") else values).astype(to_numpy(dtype))
        if found.size != int(np.prod(shape, dtype=np.int64)):
            raise DeclarationError(f"{found.size} values are no array of shape {tuple(shape)}")
        self._array = found.reshape(tuple(shape))
        self._array.setflags(write=False)

    @property
    def dtype(self) -> str:
        """The dtype of the elements."""
        return from_numpy(self._array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._array.shape

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy as a NumPy array."""
        copy: np.ndarray[Any, Any] = self._array.copy()
        return copy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        # By bits: NaN equals itself, and 0.0 is not -0.0.
        return self.dtype, self.shape, self._array.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return ConstantArray, (self._array, self.dtype, self.shape)

    def __repr__(self) -> str:
        return f"ConstantArray({self._array.tolist()}, {self.dtype!r}, {self.shape})"
