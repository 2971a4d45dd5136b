"""Cases that the fuzzer once reported: each must pass, whatever was wrong then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorexpr.testing.case import read

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    mismatch = read(path).check()
    assert mismatch is None, f"{mismatch}"


def test_there_are_cases() -> None:
    assert CASES
