"""Texts, shapes and sequences of the runtime, by the names that programs ask for them."""

from __future__ import annotations

from ..ir.container import Array, Map
from .object import ShapeTuple, String

__all__ = ["Array", "Map", "ShapeTuple", "String"]
