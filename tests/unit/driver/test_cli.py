"""The command line: its version, its subcommands, and its errors."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import pytest

import tensorexpr
from tensorexpr.driver.cli import main


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"tensorexpr {tensorexpr.__version__}\n"


def test_the_script_that_is_installed_is_this_one() -> None:
    described = ConfigParser()
    described.read(Path(__file__).parents[3] / "setup.cfg")
    assert described["options.entry_points"]["console_scripts"].strip() == "tensorexpr = tensorexpr.driver.cli:main"


def test_without_a_subcommand_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "bench" in capsys.readouterr().err


def test_folders_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--json", str(tmp_path / "no/x.json")]) == 2
    assert "x.json can't be written: there is no folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
