"""JSON that comes from a file of unknown origin: parsed within limits, and checked field by field against a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ...errors import RecordError

MAX_LINE_BYTES = 1 << 20
# int() takes time quadratic in their number; a point of a space of hundreds of knobs has as many
MAX_DIGITS = 400
_SHOWN = 60
Check = Callable[[Any], bool]
Field = tuple[Check, str]  # what a value must satisfy, and how a message says it


def parse_json(line: str | bytes) -> Any:
    """The JSON value of a line.

    Raises:
        RecordError: for anything that isn't strict JSON of moderate size: NaN, repeated keys, endless digits and deep nests too.
    """
    if len(line) > MAX_LINE_BYTES:
        raise RecordError(f"a record has at most {MAX_LINE_BYTES} bytes; this line has {len(line)}")
    try:
        text = line.decode() if isinstance(line, bytes) else line
        value = json.loads(text, parse_constant=_no_constant, parse_int=_integer, parse_float=_number, object_pairs_hook=_object)
        # a line that comes as str may hold lone surrogates itself; those of escapes are found field by field
        text.encode()
    except UnicodeError:
        raise RecordError("the line is no UTF-8 text") from None
    except RecursionError:
        raise RecordError("the line nests too deeply") from None
    except RecordError:
        raise
    except ValueError as error:
        raise RecordError(f"the line is no JSON: {str(error)[:_SHOWN]}") from None
    return value


def _no_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise RecordError(f"a number with {len(digits)} digits is too long")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise RecordError(f"{shown(digits)} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    # only a length can tell: of two equal keys `dict` keeps the last
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise RecordError(f"the key {shown(twice)} stands twice in one object")
    return made


def check_fields(what: str, value: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    """`value` as an object with exactly these fields.

    Raises:
        RecordError: naming the first field that is missing, unknown or wrong.
    """
    if not isinstance(value, dict):
        raise RecordError(f"{what} is an object, not {shown(value)}")
    for name in fields:
        if name not in value:
            raise RecordError(f"{what} lacks {name!r}; it has the fields {', '.join(fields)}")
    for name in value:
        if name not in fields:
            raise RecordError(f"{what} has no field {shown(name)}; it has {', '.join(fields)}")
    for name, (check, description) in fields.items():
        if not check(value[name]):
            raise RecordError(f"{what}: {name} is {shown(value[name])}; it is {description}")
    return value


def shown(value: Any) -> str:
    """The start of a value, to stand in a message."""
    text = ascii(
        value[:_SHOWN] if isinstance(value, str) else value if isinstance(value, (int, float, bool, type(None))) else type(value).__name__
    )
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def is_text(limit: int) -> Check:
    """A check for strings of at most `limit` characters that UTF-8 can hold."""

    def check(value: Any) -> bool:
        return isinstance(value, str) and len(value) <= limit and _is_encodable(value)

    return check


def _is_encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def is_integer(low: int, high: int) -> Check:
    """A check for integers from `low` to `high`."""
    # not isinstance: True is an int, and no number of a log
    return lambda value: type(value) is int and low <= value <= high


def is_number(low: float, high: float) -> Check:
    """A check for numbers from `low` to `high`."""
    return lambda value: type(value) in (int, float) and low <= value <= high


def is_bool(value: Any) -> bool:
    """A check for true and false."""
    return isinstance(value, bool)
