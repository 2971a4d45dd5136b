"""The forms of a target (words, dicts, JSON, tags), read and checked against the table of kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import processor
from ..errors import TargetError
from . import kinds

_NUMBER = re.compile(r"^(0|[1-9][0-9]*)$")
_TRUTHS = {"1": True, "true": True, "True": True, "0": False, "false": False, "False": False}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or any(c.isspace() for c in value):
        raise TargetError(f"target option -{name} takes a word, not {value!r}")
    return value


def _words(name: str, value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not items:
        raise TargetError(f"target option -{name} takes words joined by commas or a list of them, not {value!r}")
    return tuple(_text(name, item) for item in items)


def _features(name: str, value: Any) -> tuple[str, ...]:
    words = _words(name, value)
    for word in words:
        if word[0] not in "+-" or len(word) < 2:
            raise TargetError(f"target option -{name}: {word!r} needs a sign, as in '+avx2,-avx512f'")
    return words


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not _NUMBER.match(str(value)) or not int(value):
        raise TargetError(f"target option -{name} takes a positive integer, not {value!r}")
    return int(value)


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not _NUMBER.match(str(value)):
        raise TargetError(f"target option -{name} takes an integer from 0, not {value!r}")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    if str(value) not in _TRUTHS:
        raise TargetError(f"target option -{name} takes 1 or 0, true or false, not {value!r}")
    return _TRUTHS[str(value)]


def _cache(name: str, value: Any) -> str:
    found = processor.parse_cache(str(value))
    if found is None:
        raise TargetError(f"target option -{name} takes the bytes and ways of a cache, such as 32K/8, not {value!r}")
    return f"{processor.size_text(found[0])}/{found[1]}"


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    kinds.WORD: _text,
    kinds.NUMBER: _number,
    kinds.POSITIVE: _positive,
    kinds.FLAG: _flag,
    kinds.WORDS: _words,
    kinds.FEATURES: _features,
    kinds.CACHE: _cache,
    kinds.TEXT: lambda name, value: str(value),
}
_ANY_OPTION = {name for kind in kinds.KINDS.values() for name in kind.all_options()} | {"host"}


def read(target: Any) -> dict[str, Any]:
    """Kind, options and host of a string, a dict or JSON text, unchecked."""
    match target:
        case Mapping():
            return dict(target)
        case str() if target.lstrip().startswith("{"):
            try:
                config = json.loads(target)
            except ValueError as error:
                raise TargetError(f"target {target!r} is no JSON: {error}") from None
            return dict(config)
        case str():
            return _read_words(target)
    raise TargetError(f"a target is a string, dict or Target, not {type(target).__name__} {target!r}")


def _read_words(text: str) -> dict[str, Any]:
    """`"llvm -a=1 --b 2"` as {"kind": "llvm", "a": "1", "b": "2"}, a tag as what it stands for."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target {text!r}: {error}") from None
    config: dict[str, Any] = {"kind": words.pop(0)} if words and not words[0].startswith("-") else {}
    # A tag stands alone: with options behind it, it is taken for a kind.
    if not words and config.get("kind") not in (None, *kinds.KINDS):
        # Tags are a long table that most programs don't need.
        from .tag import find_tag

        config = find_tag(str(config["kind"])) or config
    while words:
        word = words.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise TargetError(f"target {text!r}: {word!r} is no option; options are written -name=value or -name value")
        if not has_value:
            # Of an unknown option it isn't known whether the next word is its value.
            stands_alone = not words or words[0].startswith("-")
            if stands_alone and _is_flag(name, config.get("kind")):
                value = "1"
            elif not words or name not in _ANY_OPTION:
                raise TargetError(f"target {text!r}: option -{name} has no value. {_known_options(config.get('kind'), name)}")
            else:
                value = words.pop(0)
        if name in config:
            raise TargetError(f"target {text!r}: option -{name} is given twice")
        config[name] = value
    return config


def _is_flag(name: str, kind: Any) -> bool:
    """Whether an option says yes or no."""
    return kind in kinds.KINDS and kinds.KINDS[kind].all_options().get(name) == kinds.FLAG


def check_kind(kind: Any) -> str:
    """A kind that there is.

    Raises:
        TargetError: for another one.
    """
    if isinstance(kind, str) and kind in kinds.KINDS:
        return str(kind)
    known = f"built: {', '.join(kinds.MADE_KINDS)}; not built yet: {', '.join(sorted(set(kinds.KINDS) - set(kinds.MADE_KINDS)))}"
    if kind is None:
        raise TargetError(f"a target starts with its kind ({known})")
    from difflib import get_close_matches

    if "/" in str(kind):
        from .tag import TAGS

        close = get_close_matches(str(kind), TAGS, 3)
        raise TargetError(f"no target tag {kind!r}" + (f"; similar: {', '.join(close)}" if close else "; see target.list_tags()"))
    meant = get_close_matches(str(kind), kinds.KINDS, 1)
    raise TargetError(f"no target kind {kind!r}{f', did you mean {meant[0]!r}?' if meant else ';'} {known}")


def check_options(kind: str, config: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options by name, read, with the kind's defaults and labels; labels first, the others in the order of their names.

    Raises:
        TargetError: for an option that the kind hasn't, or a value that the option doesn't take.
    """
    row = kinds.KINDS[kind]
    known = row.all_options()
    for name in config:
        if name not in known:
            raise TargetError(f"no target option -{name}. {_known_options(kind, name)}")
    given = {name: value for name, value in config.items() if not (name in ("keys", "tag") and value in ("", [], ()))}
    values = dict(row.defaults) | {name: _READERS[known[name]](name, value) for name, value in given.items()}
    if values.get("vector-width") not in (None, 128, 256, 512):
        raise TargetError(f"target option -vector-width takes 128, 256 or 512 bits, not {values['vector-width']}")
    device = (values["device"],) if "device" in values else ()
    keys = tuple(dict.fromkeys((*values.pop("keys", ()), *device, *(() if "keys" in given else row.keys))))
    return (("keys", keys), *sorted(values.items()))


def _known_options(kind: Any, name: str) -> str:
    options = kinds.KINDS[kind if kind in kinds.KINDS else "llvm"].all_options()
    from difflib import get_close_matches

    close = get_close_matches(name.replace("_", "-"), options, 1) or get_close_matches(name, options, 1)
    hint = f"Did you mean -{close[0]}? " if close else ""
    return f"{hint}Known: {', '.join(f'-{option}' for option in options)}"
