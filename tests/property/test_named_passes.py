"""Passes called by name on programs as TVM has them: whatever they rewrite, a program computes what it did before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.lower import transform
from tensorexpr.lower.passes import Pass
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of

SIZES = (4, 3, 8)  # of the loops i, j, k; the innermost may be a vector
PASSES: dict[str, Callable[[], Pass]] = {
    "vectorize": transform.VectorizeLoop,
    "serial": lambda: transform.VectorizeLoop(False),
    "flatten": transform.FlattenBuffer,
    "narrow": lambda: transform.NarrowDataType(32),
    "narrow to 16": lambda: transform.NarrowDataType(16),
    "force narrow": transform.ForceNarrowIndexToInt32,
    "hoist": transform.HoistIfThenElse,
    "select": transform.RewriteUnsafeSelect,
    "intrinsics": transform.LowerIntrin,
    "definitions": transform.ConvertSSA,
    "vectors, flat and narrow": lambda: transform.Sequential(
        [transform.FlattenBuffer(), transform.NarrowDataType(32), transform.VectorizeLoop()]
    ),
}


@st.composite
def indices(draw: st.DrawFn, wide: bool) -> str:
    """An index of B within its 64 elements."""
    number = (lambda n: f"T.int64({n})") if wide else str
    terms = [f"{var} * {number(draw(st.integers(0, 9)))}" for var in draw(st.lists(st.sampled_from("ijk"), max_size=3))]
    operator = draw(st.sampled_from(("%", "//")))
    text = " + ".join([*terms, number(draw(st.integers(0, 9)))])
    if operator == "//":
        text = f"({text}) // {number(draw(st.sampled_from((2, 3, 4))))}"
    return f"({text}) % {number(64)}"


@st.composite
def conditions(draw: st.DrawFn, wide: bool) -> str:
    """A condition on loop variables, the scalar n or an element."""
    var, limit = draw(st.sampled_from(("i", "j", "k", "n"))), draw(st.integers(0, 8))
    bound = f"T.int64({limit})" if wide and var != "n" else str(limit)
    return f"{var} {draw(st.sampled_from(('<', '>=', '!=')))} {bound}"


@st.composite
def programs(draw: st.DrawFn) -> PrimFunc:
    """Three loops that write each element of A at most once, under conditions, from elements of B."""
    wide = draw(st.booleans())
    number = (lambda n: f"T.int64({n})") if wide else str
    kinds = ("T.serial", "T.serial", draw(st.sampled_from(("T.serial", "T.vectorized"))))
    lines = ["@T.prim_func", 'def main(A: T.Buffer((4, 3, 8), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):']
    depth = 1
    for var, size, kind in zip("ijk", SIZES, kinds, strict=True):
        lines.append("    " * depth + f"for {var} in {kind}({number(size)}):")
        depth += 1
    for _ in range(draw(st.integers(0, 2))):
        lines.append("    " * depth + f"if {draw(conditions(wide))}:")
        depth += 1
    value = f"B[{draw(indices(wide))}]"
    form = draw(st.sampled_from(("plain", "select", "lazy", "let", "sum")))
    if form == "select":
        value = f"T.Select({draw(conditions(wide))}, {value}, B[{draw(indices(wide))}])"
    elif form == "lazy":
        value = f"T.if_then_else({draw(conditions(wide))}, {value}, 7)"
    elif form == "sum":
        value = f"{value} * 3 + B[{draw(indices(wide))}] // 5 % 4"
    elif form == "let":
        lines.append("    " * depth + f"v: T.int32 = {value} + 1")
        value = "v * v"
    lines.append("    " * depth + f"A[i, j, k] = {value}")
    if draw(st.booleans()) and depth > 4:
        lines += ["    " * (depth - 1) + "else:", "    " * depth + "A[i, j, k] = 5"]
    func = from_source("\n".join(lines))
    assert isinstance(func, PrimFunc)
    return func


def _run(func: PrimFunc, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    out = np.full((4, 3, 8), -1, np.int32)
    interpret(func, [out, np.arange(64, dtype=np.int32) * 7 - 100, n])
    return out


@pytest.mark.parametrize("name", sorted(PASSES))
@given(func=programs(), n=st.integers(0, 6))
@settings(max_examples=share_of(25), deadline=None)
def test_a_pass_by_name_keeps_what_is_computed(name: str, func: PrimFunc, n: int) -> None:
    changed = PASSES[name]()(IRModule({"main": func}))["main"]
    assert np.array_equal(_run(func, n), _run(changed, n))
