"""Forms that programs of 2021 to 2024 use: each reads as the form of today, prints back, and runs."""

# mypy: disable-error-code="valid-type, no-untyped-def, name-defined, operator, call-overload, no-any-return"

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import tensorexpr
from tensorexpr import tir
from tensorexpr.script import from_source
from tensorexpr.script import tir as T
from tensorexpr.tir.structural import structural_equal

HEADER = "from tensorexpr.script import tir as T\n\n@T.prim_func\n"
PARAMS = 'A: T.Buffer[(16,), "float32"], B: T.Buffer[16, "float32"]'
# What is written -> the same today, in a loop over i where B[i] gets the value.
VALUES = {
    'T.if_then_else(i < 4, A[i], T.float32(0), dtype="float32")': "T.if_then_else(i < 4, A[i], T.float32(0))",
    'T.if_then_else(i < 4, 1, 2, dtype="float32")': "T.if_then_else(i < 4, T.float32(1), T.float32(2))",
    'T.exp(A[i], dtype="float32")': "T.exp(A[i])",
    'T.power(A[i], T.float32(2), dtype="float32")': "T.pow(A[i], T.float32(2))",
    'T.fmod(A[i], T.float32(2), dtype="float32")': "T.fmod(A[i], T.float32(2))",
    'T.Select(T.isnan(A[i], dtype="bool"), 1.0, 2.0)': "T.Select(T.isnan(A[i]), 1.0, 2.0)",
    'T.Select(T.likely(i < 3, dtype="bool"), 1.0, 2.0)': "T.Select(T.likely(i < 3), 1.0, 2.0)",
    'T.cast(T.shift_left(i, 2, dtype="int32"), "float32")': 'T.Cast("float32", T.shift_left(i, 2))',
    'T.cast(T.abs(i - 8, dtype="int32"), "float32")': 'T.Cast("float32", T.abs(i - 8))',
    'T.cast(T.floordiv(i, 3) * T.floormod(i, 3), "float32")': 'T.Cast("float32", i // 3 * (i % 3))',
    "T.max(T.min(A[i], 1.0), T.float32(0))": "T.max(T.min(A[i], T.float32(1)), T.float32(0))",
    'T.reinterpret(T.reinterpret(A[i], dtype="int32"), dtype="float32")': 'T.reinterpret("float32", T.reinterpret("int32", A[i]))',
}


def function(text: str) -> tir.PrimFunc:
    """The function of a text."""
    found = from_source(HEADER + text)
    assert isinstance(found, tir.PrimFunc)
    return found


def storing(value: str) -> tir.PrimFunc:
    """A loop that stores a value."""
    return function(f"def main({PARAMS}):\n    for i in T.serial(0, 16):\n        B[i] = {value}\n")


def ran(func: tir.PrimFunc) -> np.ndarray:
    """The second array after a run of compiled code."""
    a, b = np.linspace(-2, 2, 16, dtype="float32"), np.zeros(16, "float32")
    tensorexpr.build(func)(a, b)
    return b


@pytest.mark.parametrize("old", VALUES)
def test_values(old: str) -> None:
    func, today = storing(old), storing(VALUES[old])
    assert structural_equal(func, today)
    assert structural_equal(from_source(func.script()), func)
    np.testing.assert_array_equal(ran(func), ran(today))


# Whole bodies of a function of `PARAMS` that all double A.
BODIES = {
    "allocate as": """
    with T.allocate([16], "float32", "global") as data:
        C = T.buffer_decl([16], "float32", data=data)
        with T.attr(data, "storage_alignment", 64):
            for i in range(16):
                C[i] = A[i]
        for i in range(16):
            B[i] = C[i] + C[i]
""",
    "allocate": """
    data: T.Ptr[T.float32] = T.allocate([16], "float32", "global")
    C = T.Buffer((16,), "float32", data=data)
    for i in T.serial(16):
        C[i] = A[i]
    for i in T.grid(16):
        B[i] = C[i] * T.float32(2)
""",
    "let": """
    for i in T.unroll(0, 16):
        x = T.var("float32")
        with T.let(x, A[i]):
            B[i] = x + x
""",
    "let with a type": """
    for i in T.parallel(0, 16):
        x: T.float32 = A[i]
        y: T.let[T.float32] = x
        j = T.meta_var(i)
        B[j] = x + y
""",
    "blocks": """
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i in T.thread_binding(0, 16, thread="vthread.x"):
        with T.block("B"):
            vi = T.axis.S(16, i)
            T.reads([A[vi]])
            T.writes([B[vi]])
            T.block_attr({"note": 1})
            T.evaluate(0)
            B[vi] = A[vi] * 2.0
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    func = function(f"def main({PARAMS}) -> None:{BODIES[name]}")
    assert structural_equal(from_source(func.script()), func)
    np.testing.assert_array_equal(ran(func), 2 * np.linspace(-2, 2, 16, dtype="float32"))


def test_shapes_of_variables() -> None:
    func = function("""
def main(a: T.handle, b: T.handle, k: T.int32) -> None:
    n = T.var("int32")
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32", align=64, offset_factor=1)
    B = T.match_buffer(b, [n, m], dtype="float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj], dtype="float32") * T.cast(k, "float32")
""")
    assert structural_equal(from_source(func.script()), func)
    a, b = np.ones((3, 5), "float32"), np.zeros((3, 5), "float32")
    tensorexpr.build(func)(a, b, 2)
    np.testing.assert_allclose(b, 2 * np.exp(a), rtol=1e-6)


def test_a_row_that_begins_anywhere() -> None:
    func = function("""
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32", offset_factor=1)
    for i in range(n):
        A[i] = 3.0
""")
    a = np.zeros(6, "float32")
    tensorexpr.build(func)(a[2:5], 3)
    np.testing.assert_array_equal(a, [0, 0, 3, 3, 3, 0])


FACTOR = 2


@T.macro
def doubled(target, source, i):
    target[i] = source[i] * T.float32(FACTOR)


@T.macro
def a_block(target, source, i):
    with T.block("B"):
        vi = T.axis.spatial(16, i)
        doubled(target, source, i=vi)


@T.macro(hygienic=False)
def by_the_factor_there(i):
    B[i] = A[i] * factor  # noqa: F821


@T.prim_func
def with_macros(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        a_block(B, A, i)


@T.prim_func
def with_names_of_its_own(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    factor = T.float32(2)  # noqa: F841
    for i in range(16):
        by_the_factor_there(i)


@pytest.mark.parametrize("func", [with_macros, with_names_of_its_own])
def test_macros(func: tir.PrimFunc) -> None:
    assert structural_equal(from_source(func.script()), func)
    np.testing.assert_array_equal(ran(func), 2 * np.linspace(-2, 2, 16, dtype="float32"))


def test_macros_of_texts() -> None:
    text = Path(inspect.getfile(test_macros)).read_text()
    macro = text[text.index("@T.macro\ndef doubled") : text.index("@T.macro\ndef a_block")].replace("FACTOR", "2")
    func = from_source(f"{macro}{HEADER}def main({PARAMS}):\n    for i in range(16):\n        doubled(B, A, i)\n")
    assert isinstance(func, tir.PrimFunc)
    np.testing.assert_array_equal(ran(func), 2 * np.linspace(-2, 2, 16, dtype="float32"))


def test_a_macro_is_no_function() -> None:
    with pytest.raises(TypeError, match="the macro doubled is a part of scripts"):
        doubled(1, 2, 3)
