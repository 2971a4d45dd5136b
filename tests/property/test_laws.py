"""Every law of `arith.laws` holds at random integers, lane by lane, wherever its condition does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tensorexpr.arith.laws import _GENERAL, _INDEX
from tensorexpr.arith.laws.pattern import _FUNCTIONS, _ON_CONSTANTS, Law, Term, laws
from tensorexpr.tir import expr as tir

LANES = 3
TRIALS = 4000
ENOUGH = 4
TABLES = {f"{kind.__name__}-{group}": text for group, table in (("index", _INDEX), ("general", _GENERAL)) for kind, text in table.items()}


class _Undefined(Exception):
    """A division by zero."""


def _lanes(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,) * LANES


def _value(term: Term, env: dict[str, Any]) -> Any:
    """The value of a term: an integer, a bool, or a tuple of lanes."""
    kind = term[0]
    if kind in ("any", "const"):
        return env[term[1]]
    if kind == "value":
        return term[1]
    if kind == "ask":
        return _value(term[2][0], env) if term[1] == "prove" else False
    inner = [_value(part, env) for part in term[2]]
    if kind == "compute":
        return _FUNCTIONS[term[1]](*inner)
    if kind == "call":
        return inner[1] if inner[0] else inner[2]
    node = term[1]
    if node is tir.Ramp:
        return tuple(inner[0] + lane * inner[1] for lane in range(LANES))
    if node is tir.Broadcast:
        return _lanes(inner[0])
    if any(isinstance(x, tuple) for x in inner):
        return tuple(_scalar(node, list(lane)) for lane in zip(*map(_lanes, inner), strict=True))
    return _scalar(node, inner)


def _scalar(node: type, inner: list[Any]) -> Any:
    if node is tir.And:
        return bool(inner[0]) and bool(inner[1])
    if node is tir.Or:
        return bool(inner[0]) or bool(inner[1])
    if node is tir.Not:
        return not inner[0]
    if node is tir.Select:
        return inner[1] if inner[0] else inner[2]
    try:
        return _ON_CONSTANTS[node](*inner)
    except ZeroDivisionError as error:
        raise _Undefined from error


def _letters(term: Term) -> Iterator[str]:
    if term[0] in ("any", "const"):
        yield term[1]
    elif term[0] in ("node", "call"):
        for part in term[2]:
            yield from _letters(part)


def _is_condition(law: Law, name: str) -> bool:
    """True if a letter stands for a bool: an operand of a connective or the condition of a selection."""

    def found(term: Term) -> bool:
        if term[0] not in ("node", "call"):
            return False
        places = term[2] if term[0] == "node" and term[1] in (tir.And, tir.Or, tir.Not) else ()
        if (term[0] == "node" and term[1] is tir.Select) or term[0] == "call":
            places = term[2][:1]
        return any(part == ("any", name) for part in places) or any(map(found, term[2]))

    return found(law.pattern)


@pytest.mark.parametrize("table", TABLES)
def test_every_law_holds(table: str) -> None:
    rng = random.Random(table)
    for law in laws(TABLES[table]):
        names = sorted(set(_letters(law.pattern)))
        bools = {name for name in names if _is_condition(law, name)}
        held = 0
        for _ in range(TRIALS):
            env = {name: rng.random() < 0.5 if name in bools else rng.randint(-9, 12) for name in names}
            env["n"] = LANES
            try:
                if law.condition is not None and not _value(law.condition, env):
                    continue
                before, after = _value(law.pattern, env), _value(law.result, env)
            except (_Undefined, ZeroDivisionError):
                continue
            held += 1
            same = _lanes(before) == _lanes(after) if isinstance(before, tuple) else before == after
            assert same, f"{law.text}: {before} -> {after} at {env}"
            if held >= 300:
                break
        assert held >= ENOUGH, f"{law.text}: its condition held only {held} times"
