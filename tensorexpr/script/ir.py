"""The words of TVMScript about modules, for ``from tensorexpr.script import ir as I``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tir.function import GlobalVar
from .read import ir_module


def module_attrs(attrs: Mapping[str, Any]) -> None:
    """Attributes of the module; read by `ir_module`."""


__all__ = ["GlobalVar", "ir_module", "module_attrs"]
