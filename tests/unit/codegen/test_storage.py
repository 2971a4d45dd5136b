"""Allocations on the stack and in workspaces, and what happens when there is no memory."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.codegen.storage import STACK_LIMIT
from tensorexpr.errors import CodegenError
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import IntImm, PrimExpr, StringImm, Var
from tensorexpr.tir.stmt import Allocate, AssertStmt, ForKind, Stmt, seq

from .harness import compile_function, flat, load, loop, primfunc, ramp, store

TRUE = IntImm("bool", 1)


def within(buffer: Buffer, size: int | PrimExpr, body: Stmt, dtype: str = "float32") -> Stmt:
    """`body` with storage for the buffer around it."""
    return Allocate(buffer.data, dtype, (ops.convert(size),), TRUE, body)


def _round_trip(size: int | PrimExpr, extent: int | PrimExpr, a: Buffer, out: Buffer, temporary: Buffer) -> Stmt:
    fill = loop("i", extent, lambda i: store(temporary, i, load(a, i) * 2.0))
    use = loop("j", extent, lambda j: store(out, j, load(temporary, j) + 1.0))
    return within(temporary, size, seq(fill, use))


@pytest.mark.parametrize("size", (16, STACK_LIMIT // 4, STACK_LIMIT // 4 + 1, 1 << 18))
def test_constant_sizes(size: int) -> None:
    a, out, temporary = flat("a", size), flat("out", size), flat("temporary", size)
    compiled = compile_function(primfunc([a, out], _round_trip(size, size, a, out, temporary)))
    assert ("alloca" in compiled.text) == (size * 4 <= STACK_LIMIT) == ("aligned_alloc" not in compiled.text)
    data, result = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    assert compiled(data, result) == 0
    assert (result == data * 2 + 1).all()


def test_sizes_computed_at_run_time() -> None:
    n = Var("n", "int32")
    a, out, temporary = flat("a", n), flat("out", n), flat("temporary", n)
    compiled = compile_function(primfunc([a, out], _round_trip(n, n, a, out, temporary)))
    assert compiled.text.count("call void @free") == 1
    for size in (0, 1, 1000, 100_000):
        data, result = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        assert compiled(data, result) == 0
        assert (result == data * 2 + 1).all()


def test_workspaces_in_loops_are_allocated_once() -> None:
    a, out, temporary = flat("a", 30_000), flat("out", 30_000), flat("temporary", 30_000)
    body = loop("r", 50, lambda r: _round_trip(30_000, 30_000, a, out, temporary))
    compiled = compile_function(primfunc([a, out], body))
    assert compiled.text.count("call noalias ptr @aligned_alloc") == 1
    assert compiled.text.index("@aligned_alloc") < compiled.text.index("start:")
    data, result = np.arange(30_000, dtype=np.float32), np.zeros(30_000, np.float32)
    assert compiled(data, result) == 0
    assert (result == data * 2 + 1).all()


def test_the_stack_is_shared_by_all_allocations_of_a_function() -> None:
    size = STACK_LIMIT // 4 // 2
    a, out = flat("a", size), flat("out", size)
    body = seq(*(_round_trip(size, size, a, out, flat(f"t{i}", size)) for i in range(3)))
    text = compile_function(primfunc([a, out], body)).text
    assert text.count("alloca") == 2 and text.count("call noalias ptr @aligned_alloc") == 1


def test_allocations_are_aligned() -> None:
    out, n = flat("out", 1, "float32"), Var("n", "int32")
    for size in (4, 1 << 20, n):
        temporary = flat("temporary", 64)
        value = store(temporary, ramp(16, 16), ramp(0, 16).astype("float32x16"))
        text = compile_function(primfunc([out, n], within(temporary, size, seq(value, store(out, 0, load(temporary, 16)))))).text
        assert "store <16 x float>" in text and "align 64\n" in text[text.index("store <16 x float>") :]


@pytest.mark.parametrize("kind", (ForKind.SERIAL, ForKind.PARALLEL))
def test_no_memory_is_an_error_code(kind: ForKind) -> None:
    """1 EiB is nobody's."""
    out, n = flat("out", 4), Var("n", "int64")

    def body(i: Var) -> Stmt:
        temporary = flat("temporary", n)
        first = flat("first", n)
        inner = within(temporary, n, seq(store(temporary, 0, 1.0), store(out, i, load(temporary, 0))))
        return within(first, 100, seq(store(first, 0, 1.0), inner))

    compiled = compile_function(primfunc([out, n], loop("i", 4, body, kind)))
    result = np.zeros(4, np.float32)
    assert compiled(result, 5) == 0 and (result == 1).all()
    code = compiled(np.zeros(4, np.float32), 1 << 58)
    assert compiled.signature.errors[code - 1] == "out of memory: no workspace for temporary"


def test_no_memory_for_a_constant_size() -> None:
    out, temporary = flat("out", 1), flat("temporary", 1)
    size = IntImm("int64", 1 << 58)
    compiled = compile_function(primfunc([out], within(temporary, size, seq(store(temporary, 0, 1.0), store(out, 0, load(temporary, 0))))))
    code = compiled(np.zeros(1, np.float32))
    assert compiled.signature.errors[code - 1] == f"out of memory: no workspace of {1 << 60} bytes"


def test_an_assert_inside_frees_what_is_live() -> None:
    out, n = flat("out", 1), Var("n", "int32")
    temporary = flat("temporary", n)
    checked = AssertStmt(n < 100, StringImm("too many"), store(out, 0, load(temporary, 0)))
    compiled = compile_function(primfunc([out, n], within(temporary, n, seq(store(temporary, 0, 3.0), checked))))
    assert compiled.text.count("call void @free") == 2
    result = np.zeros(1, np.float32)
    assert compiled(result, 5) == 0 and result[0] == 3.0
    assert compiled.signature.errors[compiled(result, 100) - 1] == "too many"


def test_a_negative_constant_size_is_refused() -> None:
    out, temporary = flat("out", 1), flat("temporary", 1)
    with pytest.raises(CodegenError, match="the allocation of temporary has -3 elements"):
        compile_function(primfunc([out], within(temporary, -3, store(out, 0, 1.0))))
