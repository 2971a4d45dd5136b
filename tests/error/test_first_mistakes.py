"""What people type in their first five minutes, and what they read then."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import LoweringError, TypeMismatchError
from tensorexpr.lower.passes import deep_recursion

A, W = te.placeholder((4,), name="A"), te.placeholder((4,), name="W")


def test_missing_arguments_are_named() -> None:
    s = te.create_schedule(te.compute((4,), lambda i: A[i] + W[i], name="B").op)
    builds: tuple[Any, ...] = (tvm.lower, tvm.build)
    for build in builds:
        with pytest.raises(LoweringError, match=r"placeholder A is read but missing from args; pass every input, as in args=\[A, W, B\]"):
            build(s)
        with pytest.raises(LoweringError, match="placeholder W is read but missing from args"):
            build(s, A)  # one tensor is a list of one


@pytest.mark.parametrize("function", [math.exp, float])
def test_functions_of_numbers_on_elements(function: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"A\[0\] has no value while the computation is declared; use te.exp"):
        function(A[0])
    assert function(tir.const(2)) == function(2) and function(tir.const(0.5)) == function(0.5)


@pytest.mark.parametrize("name", ["micro"])
def test_packages_that_are_planned(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; it is planned, see docs/roadmap.md"):
        getattr(tvm, name)


def test_what_is_too_deep_to_be_lowered_is_refused() -> None:
    with pytest.raises(LoweringError, match="too deep to be lowered; compute parts of it in stages"), deep_recursion:
        assert sys.getrecursionlimit() > 4 * 5000  # a copy of 5,000 operators
        raise RecursionError
