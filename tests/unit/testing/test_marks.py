"""Marks of tests: what runs here, what is skipped, and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import tensorexpr as tvm
import tensorexpr.testing

size = tvm.testing.parameter(3, 4)
named = tvm.testing.parameter(by_dict={"one": 1})

@tvm.testing.fixture(cache_return_value=True)
def doubled(size):
    return 2 * size

@tvm.testing.requires_llvm
def test_llvm():
    pass

@tvm.testing.requires_cuda
def test_cuda():
    raise AssertionError

@tvm.testing.requires_package("nobody_has_this")
def test_package():
    raise AssertionError

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_some(target, dev):
    assert target == "llvm" and dev == tvm.cpu(0)

@tvm.testing.parametrize_targets
def test_all(target, dev):
    assert tvm.testing.device_enabled(target) and dev.exist

def test_parameters(size, doubled, named):
    assert doubled == 2 * size and named == 1

if __name__ == "__main__":
    tvm.testing.main()
"""


def test_a_file_of_marked_tests_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "test_marked.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(path), "-rs", "-p", "no:cacheprovider"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 3 skipped" in done.stdout
    for reason in ("a CUDA GPU is not here", "the package nobody_has_this is not here", "cuda is not here"):
        assert reason in done.stdout
