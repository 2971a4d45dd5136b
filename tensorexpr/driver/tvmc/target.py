"""Targets of the command line: a text with options, with a host behind it, and with code generators before it."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...target import Target, TargetKind, TargetLike
from .model import TVMCException

Options = Mapping[str, Mapping[str, Any]]
# A name, or an option with a value, which may be quoted and may have commas in it; a comma between targets.
_TOKEN = re.compile(r"""-{0,2}[^\s,='"]+(?:=(?:'[^']*'|"[^"]*"|[^\s,'"]+(?:,[^\s,'"]+)*)?)?|,""")
_MAIN = "llvm"  # whose options --help shows


def tokenize_target(target: str) -> list[str]:
    """`"a -x=1,2, b -y='3, 4'"` as its words: names, options, and commas between targets."""
    return _TOKEN.findall(target)


def parse_target(target: str) -> list[dict[str, Any]]:
    """The targets and code generators of a text, in order: {"name", "opts", "raw", "is_tvm_target"} of each.

    Raises:
        TVMCException: for a comma without a name before it.
    """
    groups: list[list[str]] = [[]]
    for token in tokenize_target(target):
        if token == ",":
            groups.append([])
        else:
            groups[-1].append(token)
    found = []
    for group in groups:
        if not group or group[0].startswith("-"):
            raise TVMCException(f'--target "{target}": expected names of targets with commas between, each with its options behind it')
        options: dict[str, Any] = {}
        name = ""
        for word in group[1:]:
            if name and not word.startswith("-") and options[name] is True:  # -num-cores 2
                options[name] = word.strip("'\"")
                continue
            name, sign, value = word.lstrip("-").partition("=")
            options[name] = value.strip("'\"") if sign else True
        found.append({"name": group[0], "opts": options, "raw": " ".join(group), "is_tvm_target": group[0] in Target.list_kinds()})
    return found


def _text(parsed: Mapping[str, Any]) -> str:
    """A parsed target as a text again."""
    words = (f"-{name}" if value is True else f"-{name}={value}" for name, value in parsed["opts"].items())
    return " ".join([parsed["name"], *words])


def _check(parsed: list[dict[str, Any]], options: Options) -> None:
    names = [one["name"] for one in parsed]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise TVMCException(f"--target names {repeated[0]} twice")
    kinds = [one["name"] for one in parsed if one["is_tvm_target"]]
    if len(kinds) > 2 or (kinds and not parsed[-1]["is_tvm_target"]):
        raise TVMCException(
            f"--target {', '.join(names)}: expected code generators, a target, and its host at most; targets are {', '.join(kinds)}"
        )
    for kind, given in options.items():
        if given and kind not in names:
            raise TVMCException(
                f"Passed --target-{kind}-{next(iter(given))} but did not specify {kind} target: --target is {', '.join(names)}"
            )


def target_from_cli(target: TargetLike, additional_target_options: Options | None = None) -> tuple[Target, list[dict[str, Any]]]:
    """The target of an option, and the code generators that it names before that.

    Args:
        target: a text, such as "llvm -mcpu=skylake-avx512", "cuda, llvm" (the second one is the host) or "mine, llvm" ("mine" is a code
            generator, see `composite_target`); a JSON object, or a file of one; or a target.
        additional_target_options: {"llvm": {"mcpu": "core-avx2"}}.

    Raises:
        TargetError: for a target, or an option of it, that there isn't.
        TVMCException: for options of a target that isn't named, or more targets than one and its host.
    """
    options = {
        kind: {key: value for key, value in given.items() if value is not None} for kind, given in (additional_target_options or {}).items()
    }
    if not isinstance(target, str):
        if any(options.values()):
            raise TVMCException(f"options of {next(iter(options))} go with a target that is a text, and this is {target!r}")
        return Target(target), []
    text = Path(target).read_text(encoding="utf-8") if os.path.isfile(target) else target
    if text.lstrip().startswith("{"):
        try:
            return Target(json.loads(text)), []
        except json.JSONDecodeError as error:
            raise TVMCException(f"--target {target}: it is no JSON: {error}") from None
    parsed = parse_target(text.strip())
    _check(parsed, options)
    for one in parsed:
        one["opts"].update(options.get(one["name"], {}))
    devices = [_text(one) for one in parsed if one["is_tvm_target"]] or [_text(parsed[-1])]  # a kind that there isn't is the target's error
    return Target(*devices), [one for one in parsed[:-1] if not one["is_tvm_target"]]


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """--target, and an option for each attribute of each kind of target: --target-llvm-mcpu."""
    parser.add_argument(
        "--target", default=_MAIN, help='what for: "llvm" (this machine, the default), "llvm -mcpu=core-avx2", "cuda, llvm"'
    )
    attributes = parser.add_argument_group("attributes of the target", 'words of --target, too: "llvm -mcpu=core-avx2"')
    for kind in Target.list_kinds():
        for name, holds in TargetKind.options_from_name(kind).items():
            attributes.add_argument(f"--target-{kind}-{name}", metavar="VALUE", help=holds if kind == _MAIN else argparse.SUPPRESS)


def reconstruct_target_args(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The attributes of targets among options, by the target's kind."""
    found = {}
    for kind in Target.list_kinds():
        values = {name: getattr(args, f"target_{kind}_{name}".replace("-", "_"), None) for name in TargetKind.options_from_name(kind)}
        if given := {name: value for name, value in values.items() if value is not None}:
            found[kind] = given
    return found
