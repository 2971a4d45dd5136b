"""Every program that a golden file holds is read, and printed as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorexpr.script import parse
from tensorexpr.tir.structural_difference import assert_structural_equal

HEADER = "# from tensorexpr.script import"
PROGRAMS = {
    str(path.relative_to(Path(__file__).parent)): path
    for path in sorted(Path(__file__).parent.rglob("*.py"))
    if path.read_text().startswith(HEADER)
}


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 80


@pytest.mark.parametrize("name", PROGRAMS)
def test_reading(name: str) -> None:
    text = PROGRAMS[name].read_text().rstrip("\n")
    # Those of the printer's own tests mention variables that nothing defines.
    loose = name.startswith("printer/")
    program = parse(text, check_well_formed=not loose)
    assert program.script() == text
    if name != "printer/scopes.py":  # whose undefined variable is another each time
        assert_structural_equal(parse(program.script(), check_well_formed=not loose), program)
