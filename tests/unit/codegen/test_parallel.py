"""Parallel loops: shares of the threads, what goes in, and how errors come out. With a real OpenMP runtime."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tensorexpr.lower.pragmas import PARALLEL_FROM
from tensorexpr.target import Target
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import intrin
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.expr import IntImm, StringImm, Var
from tensorexpr.tir.stmt import Allocate, AssertStmt, For, ForKind, LetStmt, Stmt, seq

from .harness import compile_function, flat, load, loop, primfunc, store

TRUE = IntImm("bool", 1)
PARALLEL = ForKind.PARALLEL


@pytest.mark.parametrize("extent", (0, 1, 2, 3, 7, 100, 1001))
def test_every_iteration_runs_once(extent: int) -> None:
    n = Var("n", "int32")
    out = flat("out", n, "int32")
    compiled = compile_function(primfunc([out], loop("i", n, lambda i: store(out, i, load(out, i) + i + 1), PARALLEL)))
    assert "GOMP_parallel" in compiled.text
    result = np.zeros(extent, np.int32)
    assert compiled(result) == 0
    assert result.tolist() == list(range(1, extent + 1))


@pytest.mark.parametrize("threads", (1, 2, 3, 5))
def test_shares_are_contiguous_and_balanced(threads: int) -> None:
    """Each iteration notes its thread; a target that names its cores gets as many threads."""
    out = flat("out", 17, "int32")
    who = intrin.call_extern("int32", "omp_get_thread_num")
    func = primfunc([out], loop("i", 17, lambda i: store(out, i, who), PARALLEL))
    result = np.zeros(17, np.int32)
    compile_function(func, Target(f"llvm -num-cores={threads}"))(result)
    assert result.tolist() == sorted(result)
    shares = [result.tolist().count(thread) for thread in range(threads)]
    assert sum(shares) == 17 and max(shares) - min(shares) <= 1


@pytest.mark.parametrize(("extent", "threads"), [(0, set()), (7, {0}), (8, {0, 1}), (100, {0, 1})])
def test_few_iterations_of_a_symbolic_extent_run_on_the_callers_thread(extent: int, threads: set[int]) -> None:
    """The loop says from how many iterations on threads are worth their start."""
    n = Var("n", "int32")
    out = flat("out", n, "int32")
    nest = loop("i", n, lambda i: store(out, i, intrin.call_extern("int32", "omp_get_thread_num")), PARALLEL)
    assert isinstance(nest, For)
    result = np.zeros(extent, np.int32)
    compile_function(primfunc([out], replace(nest, annotations=FrozenMap({PARALLEL_FROM: 8}))), Target("llvm -num-cores=2"))(result)
    assert set(result.tolist()) == threads


def test_values_of_every_type_go_in() -> None:
    dtypes = ("int8", "int32", "uint32", "int64", "bool", "float32", "float64", "float16", "bfloat16")
    scalars = [Var(f"s{i}", dtype) for i, dtype in enumerate(dtypes)]
    out, scale, offset = flat("out", 64, "float64"), Var("scale", "float64"), Var("offset", "int32")

    def body(i: Var) -> Stmt:
        total = ops.cast(i + offset, "float64") * scale
        for scalar in scalars:
            total = total + ops.cast(scalar, "float64")
        return store(out, i, total)

    values = (-3, 7, 4_000_000_000, -(1 << 40), 1, 1.5, 0.25, -2.5, 3.0)
    nest = LetStmt(scale, ops.const(2.0, "float64"), LetStmt(offset, IntImm("int32", 4) * scalars[1], loop("i", 64, body, PARALLEL)))
    result = np.zeros(64)
    compiled = compile_function(primfunc([out, *scalars], nest))
    assert compiled(result, *values) == 0
    assert result.tolist() == [(i + 28) * 2.0 + sum(values) for i in range(64)]
    promises = []
    for function in compiled.text.split("\ndefine ")[1:]:
        places = dict(re.findall(r"(%\S+) = getelementptr i8, ptr %shared\S*, i64 (\d+)", function))
        aligned = re.findall(r"ptr (%\S+), align (\d+)", function)
        promises += [(int(places[pointer]), int(alignment)) for pointer, alignment in aligned if pointer in places]
    assert len(promises) > 2 * len(dtypes) and all(offset % alignment == 0 for offset, alignment in promises)


def test_loops_around_and_inside() -> None:
    a, out = flat("a", 4 * 10 * 8, "int32"), flat("out", 4 * 10 * 8, "int32")

    def rows(o: Var) -> Stmt:
        return loop(
            "i", 10, lambda i: loop("j", 8, lambda j: store(out, o * 80 + i * 8 + j, load(a, o * 80 + i * 8 + j) + o * j)), PARALLEL
        )

    data, result = np.arange(320, dtype=np.int32), np.zeros(320, np.int32)
    assert compile_function(primfunc([a, out], loop("o", 4, rows)))(data, result) == 0
    assert (result.reshape(4, 10, 8) == data.reshape(4, 10, 8) + np.arange(4)[:, None, None] * np.arange(8)).all()


def test_a_start_that_is_not_zero() -> None:
    out, start = flat("out", 20, "int32"), Var("start", "int32")
    i = Var("i", "int32")
    body = For(i, start, IntImm("int32", 9), PARALLEL, store(out, i, i))
    result = np.zeros(20, np.int32)
    compile_function(primfunc([out, start], body))(result, 5)
    assert result.tolist() == [j if 5 <= j < 14 else 0 for j in range(20)]


def test_private_workspaces() -> None:
    """Each thread has its own, allocated once for its whole share."""
    size, out = 40_000, flat("out", 16)

    def body(i: Var) -> Stmt:
        private = flat("private", size)
        fill = loop("j", size, lambda j: store(private, j, ops.cast(i, "float32")))
        total = seq(store(out, i, 0.0), loop("k", size, lambda k: store(out, i, load(out, i) + load(private, k))))
        return Allocate(private.data, "float32", (IntImm("int32", size),), TRUE, seq(fill, total))

    compiled = compile_function(primfunc([out], loop("i", 16, body, PARALLEL)))
    assert compiled.text.count("call noalias ptr @aligned_alloc") == 1
    result = np.zeros(16, np.float32)
    assert compiled(result) == 0
    assert (result == np.arange(16) * size).all()


def test_two_loops_in_a_row_see_each_others_results() -> None:
    a, b = flat("a", 100, "int32"), flat("b", 100, "int32")
    first = loop("i", 100, lambda i: store(a, i, load(a, i) + 1), PARALLEL)
    second = loop("i", 100, lambda i: store(b, i, load(a, IntImm("int32", 99) - i)), PARALLEL)
    x, y = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    compile_function(primfunc([a, b], seq(store(b, 0, load(a, 0)), first, second, store(b, 1, load(a, 0)))))(x, y)
    assert y[0] == 100 and y[1] == 1 and (y[2:] == np.arange(98, 0, -1)).all()


def test_errors_of_any_thread_come_out() -> None:
    out, limit = flat("out", 50, "int32"), Var("limit", "int32")
    body = loop("i", 50, lambda i: AssertStmt(i < limit, StringImm("beyond the limit"), store(out, i, i)), PARALLEL)
    compiled = compile_function(primfunc([out, limit], AssertStmt(limit > 0, StringImm("no limit"), body)))
    result = np.zeros(50, np.int32)
    assert compiled(result, 50) == 0
    for bad in (49, 20, 1):
        assert compiled.signature.errors[compiled(result, bad) - 1] == "beyond the limit"
    assert compiled.signature.errors[compiled(result, 0) - 1] == "no limit"


def test_a_body_that_cannot_fail_has_no_error_path() -> None:
    out = flat("out", 8)
    text = compile_function(primfunc([out], loop("i", 8, lambda i: store(out, i, 1.0), PARALLEL))).text
    assert "atomic" not in text and "failed" not in text


def test_one_core_and_nested_loops_run_serially() -> None:
    out = flat("out", 64, "int32")
    nest = loop("i", 8, lambda i: loop("j", 8, lambda j: store(out, i * 8 + j, i + j), PARALLEL), PARALLEL)
    serial = compile_function(primfunc([out], nest), Target("llvm -num-cores=1"))
    assert "GOMP" not in serial.text
    nested = compile_function(primfunc([out], nest))
    assert nested.text.count("call void @GOMP_parallel") == 1
    for compiled in (serial, nested):
        result = np.zeros(64, np.int32)
        compiled(result)
        assert (result.reshape(8, 8) == np.arange(8)[:, None] + np.arange(8)).all()


def test_pointers_keep_their_promise_not_to_overlap() -> None:
    a, out = flat("a", 8), flat("out", 8)
    body = loop("i", 8, lambda i: store(out, i, load(a, i)), PARALLEL)
    text = compile_function(primfunc([a, out], body)).text
    head = next(line for line in text.splitlines() if "f_parallel_0_body(" in line and line.startswith("define"))
    assert head.count("ptr noalias") == 2
    assert "define internal void @f_parallel_0(ptr %shared)" in text
    overlapping = compile_function(primfunc([a, out], body, noalias=False)).text
    assert "noalias" not in overlapping
