"""Modules that several tests call."""

from __future__ import annotations

import pytest

from tensorexpr.runtime.module import Module
from tensorexpr.tir.expr import Var

from .functions import buffer, module_of, signature


@pytest.fixture
def add_one() -> Module:
    """`add_one(a, n)`: adds 1 to the first element of a, which is float32[n], n from the array."""
    n = Var("n", "int64")
    body = "%v = load float, ptr %0\n%w = fadd float %v, 1.0\nstore float %w, ptr %0\nret i32 0"
    return module_of(signature(buffer("a", (n,), written=True), symbols=(n,), name="add_one"), body)
