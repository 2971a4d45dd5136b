"""The arrays of a task as files that its processes share: raw elements, in a folder that only the user can enter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import asdict, dataclass
from ...tir.dtype import to_numpy

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class StoredArray:
    """An argument of the task: where its elements are (an input's values, an output's expected ones) and how close to come.

    An output without `file` can't be verified.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool
    file: str = ""
    rtol: float = 0.0
    atol: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The description as JSON."""
        return {**asdict(self), "shape": list(self.shape)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> StoredArray:
        """The description that `to_json` wrote."""
        return StoredArray(**{**data, "shape": tuple(data["shape"])})

    def load(self, folder: Path) -> Array:
        """The elements."""
        return load_array(folder / self.file, self.dtype, self.shape)


def save_array(path: Path, array: Array) -> None:
    """Write the elements of an array, and nothing else, to a file."""
    np.ascontiguousarray(array).tofile(path)


def load_array(path: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    """The array whose elements are in a file."""
    return np.fromfile(path, to_numpy(dtype)).reshape(shape)


def is_finite(array: Array) -> bool:
    """Whether all elements are finite numbers; integers are."""
    return array.dtype.kind in "iub" or bool(np.isfinite(array.astype(np.float64, copy=False)).all())
