"""The lines that the mutation check breaks are still there: one that matches nothing tries nothing."""

from __future__ import annotations

from dataclasses import replace

from .mutate import MUTATIONS


def test_every_mutation_breaks_a_line_that_is_there() -> None:
    assert [f"{why}: {mutation}" for mutation in MUTATIONS if (why := mutation.why_stale())] == []


def test_mutations_are_different() -> None:
    assert len({(mutation.file, mutation.old, mutation.new, mutation.only) for mutation in MUTATIONS}) == len(MUTATIONS)


def test_stale_mutations_say_why() -> None:
    one = MUTATIONS[0]
    assert replace(one, file="schedule/no_such.py").why_stale() == "there is no such file"
    assert replace(one, old="no such line").why_stale() == "the line stands there 0 times"
    assert replace(one, only=("tests/unit/no_such.py",)).why_stale() == "there are no tests tests/unit/no_such.py"
