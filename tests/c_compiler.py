"""C text through the system's C compiler, with its warnings as errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping

import pytest

from tensorexpr.codegen.c_module import emit_c
from tensorexpr.runtime import c_module
from tensorexpr.runtime.c_module import CCode, CSourceModule
from tensorexpr.target import Target
from tensorexpr.tir.function import PrimFunc

COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
C = Target("c")
# Without optimisation: a kernel takes it most of its time. What is constant and overflows is right with -fwrapv.
STRICT = ("-std=c99", "-Wall", "-Werror", "-Wno-overflow", "-O0", "-fPIC", "-fwrapv", "-fno-strict-aliasing")


@pytest.fixture
def strictly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Warnings of the C compiler are errors."""
    monkeypatch.setattr(c_module, "FLAGS", STRICT)
    yield


def in_c(functions: Mapping[str, PrimFunc]) -> CSourceModule:
    """Lowered functions as one module of C, of which each has its key as its symbol."""
    named = {name: func.with_attr({"global_symbol": name}) for name, func in functions.items()}
    return CSourceModule(CCode(emit_c(named, C), C))
