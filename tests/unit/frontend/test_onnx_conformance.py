"""A part of the standard's tests, evenly drawn; `onnx-conformance` runs all. What can't pass is in a list, with reasons."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorexpr.driver.cli import main
from tensorexpr.driver.conformance.cases import Case, cases
from tensorexpr.driver.conformance.command import write_tables
from tensorexpr.driver.conformance.table import by_group, by_operator, summary
from tensorexpr.driver.conformance.workers import Outcome, run_case, run_cases
from tensorexpr.errors import TensorExprError

pytest.importorskip("onnx")
LIST = Path(__file__).with_name("onnx_unsupported.txt")
PARTS, STEP = 10, 13  # of about 150 tests
SLOW = re.compile(r"_expanded|^test_(attention|densenet|inception|resnet|vgg|zfnet|bvlc|shufflenet|squeezenet)")


def unsupported() -> dict[str, str]:
    """Names of tests that don't pass, and why."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: reason.strip() for name, _, reason in (line.partition(" ") for line in lines)}


@cache
def drawn() -> list[Case]:
    return [case for case in cases() if not SLOW.search(case.name)][::STEP]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_what_the_list_says(part: int) -> None:
    listed = unsupported()
    found = {case.name: run_case(case) for case in drawn()[part::PARTS]}
    wrong = {name: error for name, (passed, _, error) in found.items() if not passed and name not in listed}
    assert wrong == {}
    assert [name for name, (passed, _, _) in found.items() if passed and name in listed] == []


def test_the_list_names_tests_and_reasons() -> None:
    names = {case.name for case in cases()}
    assert [name for name in unsupported() if name not in names] == []
    assert [name for name, reason in unsupported().items() if not reason] == []


def outcomes() -> list[Outcome]:
    made = []
    for name, group, passed, hosted in (
        ("test_a", "node", True, ()),
        ("test_b", "node", True, ("nonzero",)),
        ("test_c", "simple", False, ()),
    ):
        made.append(Outcome(Case(name, group, SimpleNamespace(model=None)), passed, hosted, "" if passed else "no\n reason", 0.1))
    return made


def test_the_last_lines_count() -> None:
    assert summary(outcomes()) == ["1 of 3 pass without any host function", "2 of 3 pass"]
    assert by_group(outcomes())[-1] == "| **all** | 2 | 1 | 3 |"
    assert by_operator(outcomes())[2:] == ["| a | 1 | 1 | 1 |", "| b | 1 | 0 | 1 |"]


def test_tables_stand_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_tables(page, outcomes())
    text = page.read_text()
    assert "2 of 3 pass." in text
    page.write_text(f"above\n{text}below\n")
    write_tables(page, outcomes())
    assert page.read_text() == f"above\n{text}below\n"
    page.write_text("nothing")
    with pytest.raises(TensorExprError, match="has no place for the tables"):
        write_tables(page, outcomes())


def test_a_test_that_crashes_or_hangs_is_a_result() -> None:
    class Crashes:
        rtol = atol = 0.0

        @property
        def model(self) -> Any:
            import os

            os._exit(3)

    class Hangs(Crashes):
        @property
        def model(self) -> Any:
            import time

            time.sleep(60)

    node = [case for case in drawn() if case.name in ("test_abs", "test_add")] or drawn()[:1]
    made = [Case("crashes", "node", Crashes()), Case("hangs", "node", Hangs()), *node]
    found = run_cases(made, jobs=1, limit=3.0)
    assert [one.error for one in found[:2]] == ["the process crashed", "stopped after 3 s"]
    assert len(found) == len(made)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["onnx-conformance", "--include", "^test_abs$|^test_add$", "--jobs", "1", "--list", str(tmp_path / "list")]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["2 of 2 pass without any host function", "2 of 2 pass"]
    assert (tmp_path / "list").read_text() == ""
    assert main(["onnx-conformance", "--include", "no such test"]) == 2
    assert main(["onnx-conformance", "--include", "("]) == 2
    assert "is no regular expression" in capsys.readouterr().err


def test_the_suite_of_the_package_takes_the_backend() -> None:
    from onnx.backend.base import Backend as Base

    from tensorexpr.frontend.onnx.backend import Backend

    assert {name for name in ("prepare", "run_model", "supports_device", "is_compatible") if hasattr(Base, name)} <= set(dir(Backend))
    case = next(one for one in cases("^test_add$"))
    (inputs, expected), *_ = case.data_sets(case.model())
    np.testing.assert_allclose(Backend.run_model(case.model(), inputs)[0], expected[0])
