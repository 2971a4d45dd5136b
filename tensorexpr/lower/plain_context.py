"""A `PassContext` as plain data: what of it can travel to another process, and stand in a log.

Options are data; passes and instruments that a user wrote are Python functions, and stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeAlias

from ..errors import LoweringError
from .context import PassContext
from .instruments import PassInstrument
from .options import STRUCTS

PlainValue: TypeAlias = "int | bool | str"
_USER_PASSES = "tir.add_lower_pass"
_DEFAULT_LEVEL = PassContext().opt_level
_STARTS = ("opt_level", "required_pass.", "disabled_pass.", "config.")


def context_to_json(ctx: PassContext) -> dict[str, Any]:
    """The level, the switched passes and the options of a context as JSON.

    Instruments that only watch are left out: they watch the lowering of this process.

    Raises:
        LoweringError: if it holds Python functions that change the program: passes of the user, or an instrument with `should_run`.
    """
    if ctx.config.get(_USER_PASSES):
        raise LoweringError(
            f"PassContext config {_USER_PASSES!r} holds Python functions, which can't travel to another process; options, "
            "required_pass and disabled_pass can"
        )
    for instrument in ctx.instruments:
        decides = getattr(type(instrument), "should_run", None)
        if decides is not None and decides is not PassInstrument.should_run:
            raise LoweringError(
                f"the instrument {type(instrument).__name__} decides with should_run which passes run, and can't travel to another "
                "process; disabled_pass can"
            )
    return {
        "opt_level": ctx.opt_level,
        "required_pass": list(ctx.required_pass),
        "disabled_pass": list(ctx.disabled_pass),
        "config": {key: _plain(value) for key, value in ctx.config.items() if key != _USER_PASSES},
    }


def context_from_json(data: Mapping[str, Any]) -> PassContext:
    """The context that `context_to_json` wrote; the default one for no data.

    Raises:
        LoweringError: for an option that isn't known.
    """
    if not data:
        return PassContext()
    return PassContext(
        opt_level=data["opt_level"], required_pass=data["required_pass"], disabled_pass=data["disabled_pass"], config=data["config"]
    )


def options_in_words(data: Mapping[str, Any]) -> dict[str, PlainValue]:
    """What differs from the default context, flat, such as {"config.tir.disable_vectorize": 1}: as logs hold it."""
    found: dict[str, PlainValue] = {}
    if not data:
        return found
    if data["opt_level"] != _DEFAULT_LEVEL:
        found["opt_level"] = data["opt_level"]
    for switch in ("required_pass", "disabled_pass"):
        found.update({f"{switch}.{name}": True for name in data[switch]})
    usual = context_from_json(data).config
    for key, value in data["config"].items():
        if not isinstance(value, Mapping):
            found[f"config.{key}"] = value
            continue
        defaults = {item.name: item.default for item in fields(usual[key])}
        found.update({f"config.{key}.{name}": option for name, option in value.items() if option != defaults[name]})
    return found


def words_of_options(words: Mapping[str, Any]) -> dict[str, Any]:
    """Of what a log holds beside them, the options that `options_in_words` wrote."""
    return {name: value for name, value in words.items() if name.startswith(_STARTS)}


def arguments_of_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `PassContext` that `options_in_words` wrote, among whatever else a log holds beside them."""
    found: dict[str, Any] = {}
    for name, value in words_of_options(words).items():
        start, _, rest = name.partition(".")
        if start == "opt_level":
            found[start] = value
        elif start == "config":
            struct = next((key for key in STRUCTS if rest.startswith(f"{key}.")), None)
            config = found.setdefault(start, {})
            if struct is None:
                config[rest] = value
            else:
                config.setdefault(struct, {})[rest[len(struct) + 1 :]] = value
        else:
            found.setdefault(start, []).append(rest)
    return found


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
