"""What the documents show runs, and prints what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import primitive_page
from tests.end_to_end.documents import run_blocks

ROOT = Path(__file__).parents[2]
# Programs in processes of their own run as a user's do: without the checks of every pass, which the tests of their parts have.
AS_USERS = {name: value for name, value in os.environ.items() if name != "TENSOREXPR_VERIFY"}


def test_the_example_of_the_readme_prints_what_it_says() -> None:
    printed, others = run_blocks((ROOT / "README.md").read_text())
    assert printed == others[0]


def test_the_guide_to_schedules_draws_what_it_says() -> None:
    printed, others = run_blocks((ROOT / "docs/guides/schedules.md").read_text())
    assert printed == others[0]


def test_the_guide_to_graphs_shows_what_it_says() -> None:
    printed, others = run_blocks((ROOT / "docs/guides/graphs.md").read_text())
    assert printed == "".join(others)


def test_the_guide_to_lowering_runs() -> None:
    printed, _ = run_blocks((ROOT / "docs/guides/lowering.md").read_text())
    assert printed == "main has 1 store(s)\n[1. 2. 3. 4. 5. 6. 7. 8.]\n"


def test_the_guide_to_tuning_packs_weights_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, others = run_blocks((ROOT / "docs/guides/tuning.md").read_text())
    assert printed == others[-1]


def test_the_guide_to_tvmc_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, others = run_blocks((ROOT / "docs/guides/tvmc.md").read_text())
    assert printed == others[1]


def test_the_guide_to_tuning_networks_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, others = run_blocks((ROOT / "docs/guides/tuning_networks.md").read_text())
    assert printed == "".join(others)


def test_the_guide_to_declaring_runs() -> None:
    printed, _ = run_blocks((ROOT / "docs/guides/declaring.md").read_text())
    assert printed.splitlines() == ["[8.]", "[1.    1.762 1.943 1.96  1.961]", "[ 2.  4.  6.  8. 10. 12.]", "[2. 2. 2. 2.]", "1.0"]


def test_the_guide_to_gpus_runs() -> None:
    printed, others = run_blocks((ROOT / "docs/guides/gpu.md").read_text())
    assert printed == "".join(others)


def test_the_guide_to_tensorir_shows_what_it_says() -> None:
    printed, others = run_blocks((ROOT / "docs/guides/tensorir.md").read_text())
    assert printed == "".join(others)


@pytest.mark.slow
def test_the_guide_to_meta_schedule_finds_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, others = run_blocks((ROOT / "docs/guides/meta_schedule.md").read_text())
    assert printed.endswith(others[-1])


def test_the_page_of_primitives_is_that_of_their_docstrings(request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs/primitives.md"
    if request.config.getoption("--update-golden"):
        path.write_text(primitive_page.page())
    assert path.read_text() == primitive_page.page(), "run with --update-golden, and look at the diff"


def test_the_guide_to_tensorir_names_every_primitive() -> None:
    names = re.findall(r"^### (\w+)$", primitive_page.page(), re.M)
    guide = (ROOT / "docs/guides/tensorir.md").read_text()
    assert [name for name in names if f"(../primitives.md#{name})" not in guide] == []


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    command = [sys.executable, str(ROOT / "examples/benchmarks/readme_table.py"), "--print"]
    table = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=AS_USERS).stdout
    text = (ROOT / "README.md").read_text()
    assert text.split("<!-- performance: start -->\n")[1].split("<!-- performance: end -->")[0] == table


def test_the_guide_for_those_who_come_from_tvm_runs() -> None:
    printed, _ = run_blocks((ROOT / "docs/guides/coming_from_tvm.md").read_text())
    assert printed == "True\n"


def test_the_guide_to_relay_runs() -> None:
    printed, _ = run_blocks((ROOT / "docs/guides/relay.md").read_text())
    assert printed == "nd.array([[16., 16., 16., 16., 16., 16., 16., 16.]], dtype='float32')\n"
