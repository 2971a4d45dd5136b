"""What is said about functions: purity, copies of memory, the scopes of accesses, limits of kernels, memory."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError
from tensorexpr.script import tir as T
from tensorexpr.tir import analysis
from tensorexpr.tir.stmt import For


@T.prim_func
def rows(A: T.Buffer((8, 16), "float32"), B: T.Buffer((128,), "float32")) -> None:  # type: ignore[valid-type]
    for i, j in T.grid(8, 16):
        B[i * 16 + j] = A[i, j]


@T.prim_func
def blocks(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32")) -> None:  # type: ignore[valid-type]
    D = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("first"):
            vi = T.axis.spatial(16, i)
            D[vi] = A[vi, 0]
    for i, k in T.grid(16, 16):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * D[vi]


@T.prim_func
def kernel(B: T.Buffer((64,), "float32")) -> None:  # type: ignore[valid-type]
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[b * 32 + t] = T.float32(1)


def test_copies_of_memory() -> None:
    outer, inner = analysis.identify_memcpy(rows.body)
    assert str(outer) == "(A[0:8, 0:16], B[0:128])"
    assert str(inner) == "(A[i, 0:16], B[i * 16:i * 16 + 16])"
    i = tir.Var("i")
    buffers = [tir.decl_buffer((64,), name=name) for name in "AB"]

    def reason(at: Any, value: Any) -> str:
        loop = For(i, tir.const(0), tir.const(8), tir.ForKind.SERIAL, tir.BufferStore(buffers[1], value, (tir.convert(at),)))
        (found,) = analysis.identify_memcpy(loop)
        assert isinstance(found, tir.StringImm)
        return found.value

    assert "8) and number of src indices touched (15" in reason(i, buffers[0][i * 2])
    assert "does not form a bijective transform" in reason(0, buffers[0][i])
    assert "different source" in reason(i, buffers[0][7 - i])
    assert "to be BufferLoad" in reason(i, buffers[0][i] + 1.0)
    # A[0] is handed on to all elements.
    assert "that they load later" in reason(i + 1, buffers[1][i])
    masked = tir.BufferLoad(buffers[0], (i,), i < 4)
    assert "a mask" in reason(i, masked)


def test_a_span_with_holes_is_no_copy() -> None:
    i, j, k = (tir.Var(name) for name in "ijk")
    a, b = (tir.decl_buffer((64,), name=name) for name in "AB")

    def copied(*steps: int) -> Any:
        at = i * steps[0] + j * steps[1] + k * steps[2]
        body: tir.Stmt = tir.BufferStore(b, a[at], (at,))
        for var in (k, j, i):
            body = For(var, tir.const(0), tir.const(2), tir.ForKind.SERIAL, body)
        return analysis.identify_memcpy(body)[0]

    assert str(copied(4, 2, 1)) == "(A[0:8], B[0:8])" == str(copied(1, 4, 2))
    # 0, 1, 3, 4, 3, 4, 6, 7: a span of 8 elements, of which 2 and 5 are missing
    assert "bijective" in copied(1, 3, 3).value


def test_purity() -> None:
    assert not analysis.is_pure_function(rows)
    with pytest.raises(AssertionError, match="it writes B"):
        analysis.assert_pure_function(rows)
    call = tir.call_extern("int32", "f", 1)
    assert not analysis.is_pure_function(tir.PrimFunc((), tir.Evaluate(call)))
    assert analysis.assert_pure_function(tir.PrimFunc((), tir.Evaluate(tir.call_pure_extern("int32", "f", 1))))


def test_scopes_of_accesses() -> None:
    found = {buffer.name: stmt for buffer, stmt in analysis.detect_buffer_access_lca(blocks).items()}
    root = blocks.body.block  # type: ignore[attr-defined]
    assert found["A"] is root and found["D"] is root
    assert found["C"].name_hint == "sum"  # type: ignore[union-attr]
    (launch,) = analysis.detect_buffer_access_lca(kernel).values()
    assert isinstance(launch, For) and launch.loop_var.name == "b"


def test_the_anchor_reduces() -> None:
    from tensorexpr import IRModule

    anchor = analysis.find_anchor_block(IRModule({"main": blocks}))
    assert anchor is not None and anchor.name_hint == "sum"
    assert analysis.find_anchor_block(IRModule({"main": rows})) is None


def test_limits_of_kernels() -> None:
    assert analysis.verify_gpu_code(kernel, {"max_threads_per_block": 32, "max_kernels": 1})
    assert not analysis.verify_gpu_code(kernel, {"max_threads_per_block": 16})
    assert not analysis.verify_gpu_code(kernel, {"max_thread_x": 31})
    with pytest.raises(DeclarationError, match="no limit 'max_luck'"):
        analysis.verify_gpu_code(kernel, {"max_luck": 1})
    assert analysis.verify_memory(rows) and analysis.verify_memory(kernel.with_attr("target", "cuda"))
    assert not analysis.verify_memory(rows.with_attr("target", "cuda"))


def test_bytes() -> None:
    data = [tir.Var(name, "handle", tir.PointerType(tir.PrimType("int8"))) for name in "pq"]
    inner = tir.Allocate(data[1], "int8", (tir.const(3),), tir.const(True), tir.Evaluate(tir.const(0)))
    func = tir.PrimFunc((), tir.Allocate(data[0], "int8", (tir.const(5),), tir.const(True), inner))
    assert analysis.calculate_workspace_bytes(func, 1) == 8 and analysis.calculate_workspace_bytes(func, 16) == 32
    assert analysis.calculate_constant_bytes(func, 16) == 0


def test_a_let_has_one_value() -> None:
    x = tir.Var("x")
    one, two = (tir.Let(x, tir.const(n), x + n) for n in (1, 2))
    assert analysis.verify_ssa(tir.PrimFunc((), tir.Evaluate(one + one)))
    assert not analysis.verify_ssa(tir.PrimFunc((), tir.Evaluate(one * two)))


def test_regions_of_handed_buffers() -> None:
    A, B = (tir.decl_buffer((16,), name=name) for name in "AB")
    calls = tir.stmt_seq(tir.Evaluate(A.access_ptr("r")), tir.Evaluate(B.data))
    block = tir.Block((), (), (), "b", calls)
    reads, writes = analysis.get_block_read_write_region(block, {A.data: A, B.data: B})
    assert (str(reads), str(writes)) == ("[A[0:16], B[0:16]]", "[B[0:16]]")
