"""The builder of scripts makes what the text of the same program makes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError
from tensorexpr.script import from_source
from tensorexpr.script.ir_builder import IRBuilder
from tensorexpr.script.ir_builder import ir as I
from tensorexpr.script.ir_builder import tir as T
from tensorexpr.tir.structural_difference import assert_structural_equal


def test_a_function_of_blocks() -> None:
    with IRBuilder() as ib, T.prim_func():
        T.func_name("matmul")
        T.func_attr({"tir.noalias": True})
        A = T.arg("A", T.Buffer((16, 8), "float32"))
        handle = T.arg("b", T.handle())
        B = ib.name("B", T.match_buffer(handle, (16,), "float32"))
        n = T.arg("n", T.int32())
        T.func_ret(None)
        with T.grid(16, 8) as (i, j):
            ib.name_many(["i", "j"], [i, j])
            with T.block("sum"):
                vi, vj = ib.name_many(["vi", "vj"], T.axis.remap("SR", [i, j]))
                T.where(i < n)
                T.block_attr({"a": 1})
                with T.init():
                    T.buffer_store(B, T.float32(0), [vi])
                T.buffer_store(B, B[vi] + A[vi, vj], [vi])
    text = """@T.prim_func
def matmul(A: T.Buffer((16, 8), "float32"), b: T.handle, n: T.int32):
    T.func_attr({"tir.noalias": True})
    B = T.match_buffer(b, (16,), "float32")
    for i, j in T.grid(16, 8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(i < n)
            T.block_attr({"a": 1})
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
"""
    assert_structural_equal(ib.get(), from_source(text))
    assert ib.get().script() == from_source(text).script()


def test_statements_that_surround_the_rest() -> None:
    with IRBuilder() as ib, T.prim_func():
        T.func_name("main")
        A = T.arg("A", T.Buffer((16,), "float32"))
        with T.allocate([4], "float32", "local") as data, T.decl_buffer((4,), "float32", data=data) as D:
            with T.LetStmt(A[0] + 1.0) as x, T.attr("key", "pragma", 1), T.Assert(x < 3.0, "small"):
                T.buffer_store(D, x, [0])
            with T.If(D[0] < 1.0):
                with T.Then():
                    T.evaluate(T.call_extern("int32", "f"))
                with T.Else(), T.While(D[0] < 2.0):
                    T.buffer_store(D, 2.0, 0)
            with T.launch_thread("threadIdx.x", 4) as thread, T.thread_binding(4, thread="threadIdx.y"), T.parallel(2, 4):
                T.buffer_store(A, D[thread], [thread])
    text = """@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    with T.allocate([4], "float32", "local") as data:
        with T.decl_buffer((4,), "float32", data=data) as D:
            with T.LetStmt(A[0] + 1.0) as x:
                with T.attr("key", "pragma", 1):
                    with T.Assert(x < 3.0, "small"):
                        D[0] = x
            if D[0] < 1.0:
                T.call_extern("int32", "f")
            else:
                while D[0] < 2.0:
                    D[0] = 2.0
            with T.launch_thread("threadIdx.x", 4) as t:
                for y in T.thread_binding(4, thread="threadIdx.y"):
                    for z in T.parallel(2, 4):
                        A[t] = D[t]
"""
    assert_structural_equal(ib.get(), from_source(text))


def test_a_module_of_functions() -> None:
    with IRBuilder() as ib, I.ir_module():
        I.module_attrs({"a": 1})
        I.module_set_attr("b", 2)
        assert I.module_get_attr("b") == 2 and I.module_get_attr("c") is None
        var = I.decl_function("f")
        for name in ("f", "g"):
            with T.prim_func(is_private=name == "g"):
                T.func_name(name)
                T.evaluate(0)
        I.def_function("h", tir.PrimFunc((), tir.Evaluate(tir.const(1))))
    module = ib.get()
    assert [v.name_hint for v in module.get_global_vars()] == ["f", "g", "h"] and var.name_hint == "f"
    assert dict(module.attrs) == {"a": 1, "b": 2} and "global_symbol" not in module["g"].attrs


def test_one_statement_by_itself() -> None:
    with IRBuilder() as ib:
        assert IRBuilder.is_in_scope() and IRBuilder.current() is ib
        with pytest.raises(DeclarationError, match="nothing has been built yet"):
            ib.get()
        T.evaluate(3)
        with pytest.raises(DeclarationError, match="a builder has one result"):
            T.evaluate(4)
    assert isinstance(ib.get(), tir.Evaluate) and not IRBuilder.is_in_scope()


def test_frames_without_with_end_with_the_one_around() -> None:
    with IRBuilder() as ib, T.serial(4) as i:
        T.Assert(i < 3, "low").__enter__()
        T.evaluate(i)
    loop: Any = ib.get()
    assert isinstance(loop, tir.For) and isinstance(loop.body, tir.AssertStmt) and isinstance(loop.body.body, tir.Evaluate)


def test_callbacks_run_when_the_frame_is_left() -> None:
    said: list[str] = []
    with IRBuilder(), T.serial(4):
        frame = T.serial(8)
        frame.add_callback(lambda: said.append("left"))
        with frame:
            T.evaluate(1)
            assert not said
        assert said == ["left"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: T.reads(), "T.reads stands outside of a block"),
        (lambda: T.Then().__enter__(), None),
        (lambda: I.module_get_attr("a"), "I.module_get_attr stands outside of"),
        (lambda: T.func_name("f"), "outside of a function"),
        (lambda: T.arg("x", 3), "a parameter is a variable or a buffer"),
        (lambda: T.block(3), "T.block takes a name"),
    ],
)
def test_words_in_the_wrong_place(build: Any, message: str | None) -> None:
    with IRBuilder():
        if message is None:
            build()
            return
        with pytest.raises(DeclarationError, match=message):
            build()


def test_words_without_a_builder() -> None:
    with pytest.raises(DeclarationError, match="can't be called outside of a script or an IRBuilder"):
        T.block("x")
    with pytest.raises(DeclarationError, match="no IRBuilder is active"):
        T.prim_func()


def test_slices_of_stores_have_steps() -> None:
    with IRBuilder() as ib, T.prim_func():
        T.func_name("main")
        A = T.arg("A", T.Buffer((16,), "float32"))
        T.buffer_store(A, T.Broadcast(T.float32(1), 4), [slice(0, 8, 2)])
        T.buffer_store(A, T.Broadcast(T.float32(2), 8), [slice(None, None, 2)])
        with pytest.raises(DeclarationError, match="positive constant"):
            T.buffer_store(A, T.Broadcast(T.float32(1), 4), [slice(8, 0, -2)])
    text = """@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    A[0:8:2] = T.Broadcast(T.float32(1), 4)
    A[0:16:2] = T.Broadcast(T.float32(2), 8)
"""
    assert_structural_equal(ib.get(), from_source(text))
