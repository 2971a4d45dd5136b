"""Definitions that nothing of a function uses, which compilers warn of: an argument, an unused binding, a value of a dropped one."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"[A-Za-z_]\w*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/')
# What `CContext` and its users write: a type, a name, and a value or the size of an array.
_DEFINITION = re.compile(
    r"^(?P<depth> *)(?:static )?(?:const )?\w+\*? (?:restrict )?(?P<name>\w+)(?:\[\d+\])?(?: = (?P<value>.*))?;$", re.DOTALL
)
_ASSIGNMENT = re.compile(r"^ *(?P<name>\w+)(?P<place>\[.*\])? = (?P<value>.*);$")
_WORDS = ("return", "goto", "else", "typedef", "extern")


def without_unused(lines: Sequence[str], effects: set[str]) -> list[str]:
    """The lines of a function's body without what nothing below them reads.

    Args:
        lines: one statement each.
        effects: names whose values are calls that do something, which stay.
    """
    read: set[str] = set()
    written: set[str] = set()
    kept: list[str] = []
    # From the last line on: what only a dropped line used is dropped, too.
    for line in reversed(lines):
        bare = _STRING.sub("", line)
        definition = _DEFINITION.match(line)
        if definition is not None and definition["depth"] and line.split()[0] not in _WORDS:
            name, value = definition["name"], definition["value"]
            if name not in read:
                if name in effects:
                    line = f"{definition['depth']}{value};"
                elif name not in written:
                    continue
                elif value is None:  # to write through a pointer is a use of it
                    kept.append(f"{definition['depth']}(void){name};")
            read.update(_NAME.findall(_STRING.sub("", value or "")))
            kept.append(line)
            continue
        assignment = _ASSIGNMENT.match(bare)
        if assignment is None:
            read.update(_NAME.findall(bare))
        else:
            written.add(assignment["name"])
            read.update(_NAME.findall(f"{assignment['place']} {assignment['value']}"))
        kept.append(line)
    return kept[::-1]


def defines(lines: Sequence[str], name: str) -> bool:
    """Whether one of the lines defines a name."""
    return any(found is not None and found["name"] == name for found in map(_DEFINITION.match, lines))
