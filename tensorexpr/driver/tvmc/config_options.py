"""Options of commands from a file of JSON: `--config net.json`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .model import TVMCException

_SUFFIX = ".json"
CONFIGS_JSON_DIR: str | None = None  # what was found; a program may set it


class ConfigsJsonNotFoundError(TVMCException):
    """There is no folder of configurations."""


def get_configs_json_dir() -> str:
    """The folder in which configurations are looked for that are no files by themselves.

    It is that of the variable TVM_CONFIGS_JSON_DIR, else tensorexpr in the user's folder of configurations.

    Raises:
        ConfigsJsonNotFoundError: if there is none.
    """
    global CONFIGS_JSON_DIR
    if CONFIGS_JSON_DIR is None:
        own = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "tensorexpr")
        there = [one for one in (os.environ.get("TVM_CONFIGS_JSON_DIR"), own) if one and os.path.isdir(one)]
        if not there:
            raise ConfigsJsonNotFoundError(f"there is no folder of configurations: TVM_CONFIGS_JSON_DIR, or {own}")
        CONFIGS_JSON_DIR = there[0]
    return CONFIGS_JSON_DIR


def find_json_file(name: str, path: str) -> str:
    """A file by its name in a folder or below it; "" if there is none."""
    return next((os.path.join(root, name) for root, _, files in os.walk(path) if name in files), "")


def read_and_convert_json_into_dict(config_args: argparse.Namespace) -> dict[str, Any]:
    """What the file of `--config` says.

    Raises:
        TVMCException: for a file that isn't there, or holds no object of JSON.
    """
    name = str(config_args.config).strip()
    name = name if name.endswith(_SUFFIX) else name + _SUFFIX
    path = name if os.path.isfile(name) else find_json_file(name, get_configs_json_dir())
    if not path:
        raise TVMCException(f"--config {name}: there is no such file, nor is it in {get_configs_json_dir()}")
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise TVMCException(f"--config {path}: it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise TVMCException(f'--config {path}: expected an object, such as {{"targets": [{{"kind": "llvm"}}], "trials": 100}}')
    return found


def convert_config_json_to_cli(json_params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A configuration as values of options, an option each.

    Args:
        json_params: options by their names without dashes before them. "targets" is a list of {"kind": "llvm", "mcpu": ...}, "executor"
            and "runtime" are {"kind": "graph", ...}, other objects, such as "pass-config", are name=value for each entry.

    Raises:
        TVMCException: for a target, an executor or a runtime without a kind.
    """
    found: list[dict[str, Any]] = []
    for key, value in json_params.items():
        option = key.replace("-", "_")
        if key == "targets":
            kinds = [_kind_of(one, "target", found) for one in value]
            found.append({"target": ", ".join(kinds)})
        elif key in ("executor", "runtime"):
            inner: list[dict[str, Any]] = []
            found += [{key: _kind_of(value, key, inner)}, *inner]
        elif isinstance(value, Mapping):
            found.append({option: [f"{name}={one}" for name, one in value.items()]})
        else:
            found.append({option: value})
    return found


def _kind_of(described: Any, what: str, options: list[dict[str, Any]]) -> str:
    """The kind of a target, an executor or a runtime; its attributes become options."""
    if not isinstance(described, Mapping) or "kind" not in described:
        raise TVMCException(f'--config: {described!r} is no {what}; expected {{"kind": ..., attributes}}')
    kind = str(described["kind"])
    options += [{f"{what}_{kind}_{name}".replace("-", "_"): value} for name, value in described.items() if name != "kind"]
    return kind
