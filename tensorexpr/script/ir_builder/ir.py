"""The words of modules for a builder, as I."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir.function import GlobalVar, PrimFunc
from ...tir.global_info import DummyGlobalInfo, GlobalInfo, VDevice, checked_infos
from . import frame
from .builder import IRBuilder
from .frame import IRModuleFrame


def ir_module() -> IRModuleFrame:
    """The frame of a module."""
    return IRModuleFrame(IRBuilder.current())


def _module(what: str) -> IRModuleFrame:
    found = next((frame for frame in reversed(IRBuilder.current().frames) if isinstance(frame, IRModuleFrame)), None)
    if found is None:
        raise DeclarationError(f"{what} stands outside of `with I.ir_module():`")
    return found


def decl_function(func_name: str, func_signature: Any = None) -> GlobalVar:
    """Announce a function that `def_function` gives later; its name as a value.

    Raises:
        DeclarationError: outside of a module, or if the name is taken.
    """
    module = _module("I.decl_function")
    if func_name in module.functions:
        raise DeclarationError(f"the module has a function {func_name!r} already")
    module.functions[func_name] = func_signature if isinstance(func_signature, PrimFunc) else None
    return GlobalVar(func_name)


def def_function(func_name: str, func: PrimFunc) -> None:
    """Define a function of the module, one that was announced or a new one.

    Raises:
        DeclarationError: outside of a module.
    """
    _module("I.def_function").functions[func_name] = func


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Add attributes to the module.

    Raises:
        DeclarationError: for one that is there already, unless it may be overwritten.
    """
    for key, value in attrs.items():
        module_set_attr(key, value, allow_overwrite)


def module_get_attr(attr_key: str) -> Any:
    """An attribute of the module, or None."""
    return _module("I.module_get_attr").attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Set an attribute of the module.

    Raises:
        DeclarationError: if it is there already, unless it may be overwritten.
    """
    module = _module("I.module_set_attr")
    if attr_key in module.attrs and not allow_overwrite:
        raise DeclarationError(f"the module has an attribute {attr_key!r} already; say allow_overwrite=True to replace it")
    module.attrs[attr_key] = attr_value


def module_global_infos(global_infos: Mapping[str, Sequence[GlobalInfo]]) -> None:
    """State the global infos of the module, lists by name.

    Raises:
        DeclarationError: outside of a module, or for values that are none.
    """
    _module("I.module_global_infos").global_infos |= checked_infos(global_infos)


vdevice = VDevice
dummy_global_info = DummyGlobalInfo


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice:
    """The device of the module by its kind and its place among those of the kind; the first one without either.

    Raises:
        DeclarationError: outside of a module, or if there is no such device.
    """
    infos = _module("I.lookup_vdevice").global_infos.get("vdevice", ())
    devices = [
        info for info in infos if isinstance(info, VDevice) and target_kind in (None, "vdevice", str(info.target and info.target.kind))
    ]
    if not -1 <= device_index < len(devices) or not devices:
        raise DeclarationError(f"the module has no device {max(device_index, 0)} of kind {target_kind or 'any'}; it has {len(devices)}")
    return devices[max(device_index, 0)]


__all__ = [
    "IRModuleFrame",
    "decl_function",
    "def_function",
    "dummy_global_info",
    "frame",
    "ir_module",
    "lookup_vdevice",
    "module_attrs",
    "module_get_attr",
    "module_global_infos",
    "module_set_attr",
    "vdevice",
]
