"""What arguments of exported methods are: `nn.spec.Tensor((1, "n"), "float32")`, `int`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tensor:
    """A tensor: extents are integers, or names of symbols, which are one in all of a method."""

    shape: Sequence[Any]
    dtype: str = "float32"


@dataclass(frozen=True)
class Int:
    """An integer, known when the graph runs; `int` is one too."""
