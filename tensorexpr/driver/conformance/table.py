"""How many tests pass, by group and by operator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .workers import Outcome

_GROUPS = ("node", "node (expanded)", "simple", "pytorch-converted", "pytorch-operator", "real")


def operator_of(outcome: Outcome) -> str:
    """The operator that a test is about: that of its only node, else of its name."""
    source = outcome.case.source
    nodes = list(source.model.graph.node) if source.model is not None else []
    if len(nodes) == 1:
        return str(nodes[0].op_type)
    return re.sub(r"^test_|_expanded.*$", "", outcome.case.name).split("_")[0]


def _counts(outcomes: Sequence[Outcome]) -> tuple[int, int, int]:
    passed = [one for one in outcomes if one.passed]
    return len(passed), len([one for one in passed if not one.hosted]), len(outcomes)


def _rows(head: str, parts: Iterable[tuple[str, Sequence[Outcome]]]) -> list[str]:
    lines = [f"| {head} | pass | without host functions | tests |", "|---|---|---|---|"]
    return lines + [f"| {name} | {' | '.join(map(str, _counts(part)))} |" for name, part in parts if part]


def by_group(outcomes: Sequence[Outcome]) -> list[str]:
    """The table by group, as lines of Markdown."""
    parts = [(group, [one for one in outcomes if one.case.group == group]) for group in _GROUPS]
    return _rows("group", [*parts, ("**all**", outcomes)])


def by_operator(outcomes: Sequence[Outcome]) -> list[str]:
    """The table by operator of the node tests, those first of which most tests fail."""
    parts: dict[str, list[Outcome]] = {}
    for one in outcomes:
        if one.case.group == "node":
            parts.setdefault(operator_of(one), []).append(one)
    order = sorted(parts.items(), key=lambda item: (sum(one.passed for one in item[1]) - len(item[1]), item[0]))
    return _rows("operator", order)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """The last two lines: passes without any host function, and all."""
    passed, plain, count = _counts(outcomes)
    return [f"{plain} of {count} pass without any host function", f"{passed} of {count} pass"]
