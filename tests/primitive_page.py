"""The page docs/primitives.md, made of what the methods of `tir.Schedule` say of themselves."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tensorexpr import tir
from tensorexpr.schedule.blocks.facade.base import ScheduleBase

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests/golden/tir_schedule"
# Methods whose whole programs stand in the file of another one.
_SHARED = {"read_at": "read_at_write_at", "write_at": "read_at_write_at"}
# The classes that hold the methods, in the order of the page.
_TITLES = {
    "Questions": "Asking for blocks and loops",
    "Samples": "Decisions that a search may change",
    "Loops": "Loops, and how they run",
    "Nests": "Nests and blocks",
    "Placement": "Where blocks are computed",
    "Caches": "Copies",
    "Reductions": "Reductions",
    "Memory": "Memory",
    "Layouts": "Layouts and padding",
    "Notes": "Annotations",
}
_HEAD = """# The primitives of tir.Schedule

Each method with the sentence, the nest before and after, and what is refused, as its docstring has them. Whole programs before and after
are in the files linked to, which the tests compare. `python -m pytest tests/end_to_end/test_documents.py --update-golden` makes this page.
"""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    groups = {
        cls.__name__: cls for cls in tir.Schedule.__mro__ if issubclass(cls, ScheduleBase) and cls not in (ScheduleBase, tir.Schedule)
    }
    assert set(groups) <= set(_TITLES), "a class of methods has no title here"
    for name in _TITLES:
        methods = {key: value for key, value in vars(groups[name]).items() if inspect.isfunction(value) and key[0] != "_"}
        parts += [f"## {_TITLES[name]}\n", *(_entry(key, method) for key, method in methods.items())]
    return "\n".join(parts)


def _entry(name: str, method: object) -> str:
    """One method."""
    doc = inspect.getdoc(method) or ""
    sentence, _, rest = doc.partition("\n\n")
    lines = [f"### {name}\n", f"`{name}({', '.join(_arguments(method))})`", "", " ".join(sentence.split()), ""]
    nest = textwrap.dedent("\n".join(_nest(rest)))
    if nest.strip():
        lines += ["```text", nest.rstrip(), "```", ""]
    refused = _section(rest, "Raises:")
    if refused:
        lines += [f"Refused {refused.removeprefix('ScheduleError: ')}", ""]
    golden = GOLDEN / f"{_SHARED.get(name, name)}.txt"
    if golden.exists():
        lines += [f"[Whole programs](../{golden.relative_to(ROOT)})", ""]
    return "\n".join(lines)


def _arguments(method: object) -> Iterator[str]:
    assert callable(method)
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        yield str(parameter.replace(annotation=inspect.Parameter.empty))


def _nest(rest: str) -> Iterator[str]:
    """The indented lines before the sections."""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            return
        yield line


def _section(rest: str, title: str) -> str:
    """The text of a section, in one line."""
    lines = rest.splitlines()
    if title not in lines:
        return ""
    found = []
    for line in lines[lines.index(title) + 1 :]:
        if line and not line.startswith(" "):
            break
        found.append(line)
    return " ".join(" ".join(found).split())
