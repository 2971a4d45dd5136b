"""Workloads by the name that they have in TVM, and entries of the registry as text, for another process.

An entry of a function names its module; nothing is pickled.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import RecordError, WorkloadError
from ..te import serialize
from .workload import (
    WORKLOAD_FUNC_REGISTRY,
    make_workload_key,
    register_workload,
    register_workload_tensors,
    workload_key_to_tensors,
)

__all__ = [
    "WORKLOAD_FUNC_REGISTRY",
    "deserialize_workload_registry_entry",
    "load_workload_func_registry",
    "make_workload_key",
    "register_workload",
    "register_workload_tensors",
    "save_workload_func_registry",
    "serialize_workload_registry_entry",
    "workload_key_to_tensors",
]


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, str, str]:
    """What another process needs to know of a workload: its name, and its tensors as JSON or where its function is.

    Args:
        workload_key: a name, or a key.

    Raises:
        WorkloadError: if it isn't registered, or its function has no place in a module.
    """
    name = workload_key if workload_key in WORKLOAD_FUNC_REGISTRY else _name_of(workload_key)
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise WorkloadError(f"workload {name[:200]!r} is not registered")
    value = WORKLOAD_FUNC_REGISTRY[name]
    if isinstance(value, list):
        return name, "tensors", serialize.dumps(value)
    module, function = value.__module__, value.__qualname__
    # a function within another, or one that was replaced, isn't what the other process would find by this name
    if getattr(sys.modules.get(module), function, None) is not value:
        raise WorkloadError(f"workload {name!r}: another process can't find {function!r}; define it at the top of a module")
    return name, "function", f"{module}:{function}"


def deserialize_workload_registry_entry(data: Sequence[Any]) -> None:
    """Register what `serialize_workload_registry_entry` wrote, unless the name is taken.

    Raises:
        RecordError: if it is anything else.
        WorkloadError: if the function isn't there.
    """
    if not (isinstance(data, (list, tuple)) and len(data) == 3 and all(isinstance(item, str) for item in data)):
        raise RecordError("an entry of the workload registry is a name, a kind and a text")
    name, kind, text = data
    if name in WORKLOAD_FUNC_REGISTRY:
        return
    if kind == "tensors":
        register_workload_tensors(name, serialize.loads(text))
        return
    module, _, function = text.partition(":")
    try:
        found = getattr(sys.modules.get(module) or import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise WorkloadError(f"workload {name!r} is the function {text!r}, which isn't there: {error}") from None
    register_workload(name, found, override=True)


def save_workload_func_registry(filename: str | Path) -> None:
    """Write all workloads that another process can find.

    Raises:
        OSError: if the file can't be written.
    """
    entries = []
    for name in WORKLOAD_FUNC_REGISTRY:
        try:
            entries.append(serialize_workload_registry_entry(name))
        except WorkloadError:
            continue
    Path(filename).write_text(json.dumps(entries))


def load_workload_func_registry(filename: str | Path) -> None:
    """Register what `save_workload_func_registry` wrote.

    Raises:
        RecordError: if the file is anything else.
    """
    try:
        entries = json.loads(Path(filename).read_text())
    except (OSError, ValueError) as error:
        raise RecordError(f"{filename}: {error}") from None
    for entry in entries if isinstance(entries, list) else [entries]:
        deserialize_workload_registry_entry(entry)


def _name_of(workload_key: str) -> str:
    try:
        data = json.loads(workload_key)
    except ValueError:
        return workload_key
    return data[0] if isinstance(data, list) and data and isinstance(data[0], str) else workload_key
