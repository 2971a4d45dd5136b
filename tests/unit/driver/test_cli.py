"""The command line: its version, its subcommands, and its errors."""

from __future__ import annotations

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

import tensorexpr
from tensorexpr.driver import cli
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
    assert main([]) == 1
    assert "bench" in capsys.readouterr().err


def test_a_subcommand_loads_what_it_needs() -> None:
    """Searches and importers take longer to load than a network to run."""
    program = (
        "import sys; from tensorexpr.driver.cli import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "names = 'onnx', 'sympy', 'llvmlite', 'tensorexpr.spaces', 'tensorexpr.auto_scheduler', 'tensorexpr.fleet'\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert "--fill-mode" in done.stdout and done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", cli._ABOUT)
def test_each_subcommand_has_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0 and f"usage: tensorexpr {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--input-shapes", "x=1,3"], 'argument --input-shapes: expected "name:[1,3,224,224] other:[1,?]", not "x=1,3"'),
        (["--opt-level", "much"], "argument -O/--opt-level: invalid int value: 'much'"),
        (["--tuning-recods=x", "y"], "unrecognized arguments: --tuning-recods=x y; is --tuning-records meant?"),
        (["--bake"], "unrecognized arguments: --bake"),
    ],
)
def test_options_that_cannot_be_read(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compile", "net.onnx", *options])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {said}\ntensorexpr compile --help lists the options\n"


def test_output_that_nobody_reads() -> None:
    """As by `| head`: no error of ours, and none of Python's at its end."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        program = (
            "from tensorexpr.driver import cli, worker\n"
            "worker.run = lambda options: print('much') or 0\n"
            "raise SystemExit(cli.main(['worker', 'tcp://127.0.0.1:1']))"
        )
        done = subprocess.run([sys.executable, "-c", program], stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_folders_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--json", str(tmp_path / "no/x.json")]) == 2
    assert "x.json can't be written: there is no folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
