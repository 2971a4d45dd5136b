"""Marks of tests: what runs here, what is skipped, and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tensorexpr.testing import CompareBeforeAfter
from tensorexpr.testing.parameters import _kept

PROGRAM = """
import pytest
import tensorexpr as tvm
import tensorexpr.testing
from tensorexpr.script import tir as T

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
def test_some(target, dev, request):
    assert target == "llvm" and dev == tvm.cpu(0) and request.node.name == "test_some[llvm]"

@tvm.testing.parametrize_targets
def test_all(target, dev):
    assert tvm.testing.device_enabled(target) and dev.exist

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_without_a_device(target):
    assert target == "llvm"

@tvm.testing.parametrize_targets("llvm")
class TestSomeWithADevice:
    def test_with(self, target, dev):
        assert dev == tvm.cpu(0)

    def test_without(self, target):
        assert target == "llvm"

def test_parameters(size, doubled, named):
    assert doubled == 2 * size and named == 1

width, word = tvm.testing.parameters((1, "a"), (2, "b"))

def test_together(width, word):
    assert (width, word) in [(1, "a"), (2, "b")]

def test_one_of_them(word):
    assert word in "ab"

class TestInAClass:
    depth = tvm.testing.parameter(5, 6)

    @tvm.testing.fixture
    def deeper(self, depth):
        return depth + 1

    def test_depth(self, depth, deeper):
        assert deeper == depth + 1

made = []

@tvm.testing.fixture(cache_return_value=True)
def costly(size):
    made.append(size)
    return [size]

def test_copies(costly, width):
    costly.append(0)
    assert len(costly) == 2 and len(made) == len(set(made))

@tvm.testing.exclude_targets("cuda")
def test_target(target, dev):
    assert target == "llvm" and dev == tvm.cpu(0)

@tvm.testing.known_failing_targets("llvm")
def test_fails(target):
    raise AssertionError

class Base(tvm.testing.CompareBeforeAfter):
    value = tvm.testing.parameter(1, 2)

    def transform(self):
        return tvm.tir.transform.Simplify()

class TestSimplifies(Base):
    def before(A: T.Buffer(4, "int32")):
        A[0] = A[1] + 0

    def expected(A: T.Buffer(4, "int32")):
        A[0] = A[1]

class TestRaises(Base):
    @pytest.fixture
    def transform(self, value):
        def refuse(program):
            raise tvm.tir.ScheduleError(str(value))

        return refuse

    class Before:
        def one(A: T.Buffer(4, "int32")):
            A[0] = 1

    expected = tvm.tir.ScheduleError

if __name__ == "__main__":
    tvm.testing.main()
"""


def test_a_file_of_marked_tests_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "test_marked.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(path), "-rs", "-p", "no:cacheprovider"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "22 passed, 4 skipped, 1 xfailed" in done.stdout
    for reason in ("a CUDA GPU is not here", "the package nobody_has_this is not here", "cuda is not here"):
        assert reason in done.stdout


def test_the_fixture_of_a_program_alone() -> None:
    """Base classes of tests normalise a program by this name, without a transform."""
    made = CompareBeforeAfter._normalize_before(lambda: None)
    assert CompareBeforeAfter._normalize_before(made) is made, "a fixture stays what it is"


def test_kept_values_are_of_arguments_of_one_type() -> None:
    """1, 1.0 and True are equal, and no fixture wants the one for the other."""
    kept = _kept(lambda *args, **named: [repr((args, named))])
    for arguments in ((1,), (1.0,), (True,), (0.0,), (-0.0,), ("1",)):
        for _ in range(2):
            assert kept(*arguments) == [repr((arguments, {}))]
            assert kept(n=arguments[0]) == [repr(((), {"n": arguments[0]}))]


def test_what_a_fixture_raises_it_raises_once() -> None:
    calls: list[int] = []

    def broken(n: int) -> None:
        calls.append(n)
        raise TypeError("the fixture's own")

    with pytest.raises(TypeError, match="own"):
        _kept(broken)(3)
    assert calls == [3]


def test_what_cannot_be_kept_is_made_anew() -> None:
    class Stubborn:
        def __deepcopy__(self, memo: object) -> None:
            raise NotImplementedError

    made = _kept(lambda *_: Stubborn())
    assert made(1) is not made(1)
    assert _kept(lambda given: given)([1]) == [1]  # a list is no key
