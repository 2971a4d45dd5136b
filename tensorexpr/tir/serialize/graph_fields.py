"""What saved graphs consist of: kinds of nodes, their fields, and plain values as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import RecordError
from .rows import shown

Types = Sequence["NodeType"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """How a plain value stands in a field: as text."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a node.

    `holds`: a Scalar; or the class (or classes) of the node it refers to. `many`: it refers to a list of such.
    `optional`: None is one too. `get`: the value in our node, the attribute of this name by default.
    """

    name: str
    holds: Scalar | type | tuple[type, ...]
    many: bool = False
    optional: bool = False
    get: Callable[[Any], Any] | None = None

    def value(self, node: Any) -> Any:
        """What our node has there."""
        return getattr(node, self.name) if self.get is None else self.get(node)


@dataclass(frozen=True, slots=True)
class NodeType:
    """One kind of node.

    `fields` in the order in which they are visited, which numbers what they refer to. `make` takes them by name; it may raise
    any of our errors. `repr_text`: instead of fields the node is one string, which `make` takes and this gives.
    `shared`: what occurs twice is one node, as variables must be.
    """

    key: str
    cls: type
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    shared: bool = True
    repr_text: Callable[[Any], str] | None = None


def _read_int(text: str) -> int:
    # uint64 has 20 digits at most; a longer text isn't converted.
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,19})", text):
        raise RecordError(f"{shown(text)} is no integer")
    return int(text)


def _read_float(text: str) -> float:
    if not re.fullmatch(r"-?(inf|nan|[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)", text):
        raise RecordError(f"{shown(text)} is no number")
    return float(text)


INTEGER = Scalar(str, _read_int)
# 17 digits tell any two float64 apart.
FLOAT = Scalar(lambda value: f"{value:.17g}" if math.isfinite(value) else str(value), _read_float)
TEXT = Scalar(str, str)
SPAN = Field("span", type(None), optional=True, get=lambda node: None)  # places in sources aren't kept
