"""Options of a PassContext as texts of the command line."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
from ...lower.context import PassContext
from ...lower.options import validated
from ...lower.passes import Pass
from ...runtime.registry import get_global_func
from .model import TVMCException

_ADDED = "tir.add_lower_pass"
_BOOLEANS = {"true": 1, "false": 0}


def load_function(full_name: str) -> Any:
    """What makes a pass, by name: a registered function, one of `tir.transform`, or "module.function", whose module is imported.

    Raises:
        TVMCException: for a name without a module, or one that its module hasn't.
        ModuleNotFoundError: for a module that there isn't.
    """
    if (found := get_global_func(full_name, allow_missing=True)) is not None:
        return found
    home, _, name = full_name.rpartition(".")
    if not home:
        raise TVMCException(f"{full_name}: no function is registered by this name; tir.transform.UnrollLoop, or module.function, names one")
    if home == "tir.transform" or home == "tvm" or home.startswith("tvm."):
        home = f"{__name__.split('.')[0]}.{home.removeprefix('tvm').lstrip('.')}".rstrip(".")
    made = getattr(importlib.import_module(home), name, None)
    if made is None:
        raise TVMCException(f"{full_name}: the module {home} has no function {name}")
    return made


def _added(value: str) -> list[tuple[int, Pass]]:
    """Passes with the phase behind which each runs: "1,tir.transform.UnrollLoop,2,mine.make_pass"."""
    words = [word.strip() for word in value.split(",")]
    if len(words) % 2 or not all(word.isdigit() for word in words[::2]):
        raise TVMCException(f"--pass-config {_ADDED}={value}: expected phases and passes in turn, such as 1,tir.transform.UnrollLoop")
    return [(int(phase), load_function(name)()) for phase, name in zip(words[::2], words[1::2], strict=True)]


def get_pass_config_value(name: str, value: str, config_type: str) -> Any:
    """The value of an option by its type.

    Args:
        name: of the option.
        value: as text.
        config_type: as `PassContext.list_configs` has it.

    Raises:
        TVMCException: for a text that is none of the type, or a type that isn't written as text.
    """
    if config_type == "runtime.String":
        return value
    if config_type == "Array":
        return _added(value)
    if config_type != "IntImm":
        raise TVMCException(f"--pass-config {name}: it is a {config_type}, which isn't written as text; set it in a program's PassContext")
    number = _BOOLEANS.get(value.lower(), value)
    if not str(number).removeprefix("-").isdigit():
        raise TVMCException(f"--pass-config {name}={value}: expected a number, true or false")
    return int(number)


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """`["tir.disable_vectorize=true"]` as options of a PassContext.

    Raises:
        TVMCException: for one without a value, an option that there isn't, or a value that doesn't fit.
    """
    found: dict[str, Any] = {}
    for one in input_configs or ():
        name, sign, text = (part.strip() for part in one.partition("="))
        if not sign or not name:
            raise TVMCException(f"--pass-config {one}: expected name=value, such as tir.disable_vectorize=true")
        known = PassContext.list_configs()
        if name not in known:
            try:
                validated({name: text})
            except ConfigError as error:
                raise TVMCException(f"--pass-config {one}: {error}") from None
        value = get_pass_config_value(name, text, known[name]["type"])
        found[name] = [*found.get(name, ()), *value] if isinstance(value, list) else value
    return found
