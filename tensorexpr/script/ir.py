"""The words of TVMScript about modules, for ``from tensorexpr.script import ir as I``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.function import GlobalVar
from ..tir.global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .read import ir_module


def module_attrs(attrs: Mapping[str, Any]) -> None:
    """Attributes of the module; read by `ir_module`."""


def module_global_infos(global_infos: Mapping[str, Sequence[GlobalInfo]]) -> None:
    """Global infos of the module; read by `ir_module`."""


vdevice = VDevice
dummy_global_info = DummyGlobalInfo

__all__ = ["GlobalVar", "dummy_global_info", "ir_module", "module_attrs", "module_global_infos", "vdevice"]
