"""No row of a device's table ends the process that compiles it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("arch", ["sm_50", "sm_80", "sm_90a"])
def test_every_row_is_compiled(arch: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.unit.ptx.rows", arch], capture_output=True, text=True, cwd=ROOT, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1].startswith("end"), f"after {lines[-1:]}: {done.stderr[-2000:]}"
    refused = [line for line in lines if line.startswith("refused")]
    assert all("needs -arch" in line for line in refused if arch != "sm_80"), refused
    assert all("float64" in line for line in refused if arch == "sm_80"), refused
