"""Hand-written loop nests: what each method emits, run by the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tensorexpr.tir.ir_builder import IRBuilder, create


def run(body: tir.Stmt, *buffers: tir.Buffer, arrays: list[Any]) -> None:
    handles = {tir.Var(buffer.name, "handle"): buffer for buffer in buffers}
    func = tir.PrimFunc(tuple(handles), body, None, handles)
    assert not tir.verify.violations(func)
    interpret(func, arrays)


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_loops_conditions_and_else() -> None:
    a, b = tir.decl_buffer((6,), name="a"), tir.decl_buffer((6,), name="b")
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 6, name="i") as i:
        with ib.if_scope(ib.likely(i > 2)):
            y[i] = x[i] * 2
        with ib.else_scope():
            y[i] = 1
    out = np.zeros(6, np.float32)
    run(ib.get(), a, b, arrays=[floats(6), out])
    assert out.tolist() == [1, 1, 1, 6, 8, 10]


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorize", "vectorized", "unroll", "unrolled"])
def test_kinds_of_loops(kind: str) -> None:
    ib = create()
    with ib.for_range(2, 5, name="i", kind=kind) as i:
        ib.emit(tir.call_extern("int32", "f", i))
    loop = ib.get()
    assert isinstance(loop, tir.For)
    assert loop.kind.name.lower().startswith(kind[:5])
    assert (loop.min, loop.extent) == (tir.const(2), tir.const(3))


def test_the_loop_variable_has_the_wanted_dtype() -> None:
    ib = create()
    with ib.for_range(0, 3, name="i", dtype="int64") as i:
        ib.emit(tir.call_extern("int32", "f", i))
    loop = ib.get()
    assert isinstance(loop, tir.For)
    assert i.dtype == loop.min.dtype == loop.extent.dtype == "int64"


def test_a_single_index_counts_row_by_row() -> None:
    a, b = tir.decl_buffer((2, 3, 2), name="a"), tir.decl_buffer((12,), name="b")
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 12, name="i") as i:
        y[11 - i] = x[i]
    x[1, 2, 0] = -1.0
    given, out = floats(2, 3, 2), np.zeros(12, np.float32)
    run(ib.get(), a, b, arrays=[given, out])
    assert out.tolist() == list(range(11, -1, -1))
    assert given[1, 2, 0] == -1


def test_vectors_at_flat_and_full_indices() -> None:
    a, b = tir.decl_buffer((2, 4), name="a"), tir.decl_buffer((2, 4), name="b")
    ib = create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    four = tir.const(0), tir.const(1), 4
    y[1, 0] = x[0, tir.Ramp(*four)]
    y[0, tir.Ramp(*four)] = x[1, tir.Ramp(*four)] + 1.0
    flat = create()
    fx, fy = flat.buffer_ptr(a), flat.buffer_ptr(b)
    fy[0] = fx[tir.Ramp(tir.const(0), tir.const(1), 8)]
    out = np.zeros((2, 4), np.float32)
    run(ib.get(), a, b, arrays=[floats(2, 4), out])
    assert out.tolist() == [[5, 6, 7, 8], [0, 1, 2, 3]]
    run(flat.get(), a, b, arrays=[floats(2, 4), out])
    assert out.tolist() == floats(2, 4).tolist()


def test_allocations_lets_asserts_and_attributes_last_to_the_end_of_their_scope() -> None:
    b = tir.decl_buffer((3,), "int32", name="b")
    ib = create()
    y = ib.buffer_ptr(b)
    with ib.new_scope():
        kept = ib.allocate("int32", (2, 2), name="kept", scope="local")
        kept[1, 1] = 5
        seven = ib.let("seven", kept[3] + 2)
        ib.assert_scope(seven == 7, "seven is seven")
        ib.scope_attr(y, "pragma_note", "text")
        y[0] = seven
    y[1] = 8
    body = ib.get()
    assert isinstance(body, tir.SeqStmt)
    first = body.seq[0]
    assert isinstance(first, tir.Allocate)
    assert "seven is seven" in str(body)
    out = np.zeros(3, np.int32)
    run(body, b, arrays=[out])
    assert out.tolist() == [7, 8, 0]


def test_a_failing_assertion_stops() -> None:
    b = tir.decl_buffer((1,), "int32", name="b")
    ib = create()
    ib.assert_scope(ib.buffer_ptr(b)[0] > 0, "positive")
    ib.buffer_ptr(b)[0] = 9
    out = np.zeros(1, np.int32)
    with pytest.raises(InterpreterError, match="positive"):
        run(ib.get(), b, arrays=[out])
    assert out[0] == 0


def test_while() -> None:
    b = tir.decl_buffer((2,), "int32", name="b")
    ib = create()
    y = ib.buffer_ptr(b)
    with ib.while_loop(y[0] < 10):
        y[0] = y[0] + 3
        y[1] = y[1] + 1
    out = np.zeros(2, np.int32)
    run(ib.get(), b, arrays=[out])
    assert out.tolist() == [12, 4]


def test_another_shape_of_a_buffer() -> None:
    b = tir.decl_buffer((6,), name="b")
    ib = create()
    ib.buffer_ptr(b, shape=(2, 3))[1, 0] = 4
    out = np.zeros(6, np.float32)
    run(ib.get(), b, arrays=[out])
    assert out.tolist() == [0, 0, 0, 4, 0, 0]


def test_pointers_know_their_type() -> None:
    pointer = create().pointer("int8", name="p")
    assert pointer.dtype == "int8"
    assert pointer.asobject() is pointer.buffer and pointer.buffer.data is pointer.data
    assert pointer.data.dtype == "handle"


def test_nothing_is_emitted_by_a_scope_that_raises() -> None:
    ib = create()
    with pytest.raises(KeyError), ib.for_range(0, 3):
        raise KeyError("x")
    assert ib.get() is tir.stmt_seq()


def indexed(ib: IRBuilder, shape: tuple[int, ...], index: Any) -> Any:
    return ib.buffer_ptr(tir.decl_buffer(shape, name="a"))[index]


def test_refusals() -> None:
    ib = create()
    strided = tir.decl_buffer((2, 3), name="a", strides=[4, 1])
    with pytest.raises(DeclarationError, match="right after"), ib.else_scope():
        pass
    with pytest.raises(DeclarationError, match="no kind 'fast'; kinds: serial"), ib.for_range(0, 3, kind="fast"):
        pass
    with pytest.raises(DeclarationError, match="bounds are integers"), ib.for_range(0, 3.5):
        pass
    with pytest.raises(DeclarationError, match="call it after the outermost"), ib.new_scope():
        ib.get()
    with pytest.raises(DeclarationError, match="takes a statement or an expression, not 3"):
        ib.emit(3)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="a has 3 dimensions, indexed with 2"):
        indexed(ib, (2, 3, 4), (0, 1))
    with pytest.raises(DeclarationError, match="Python slice"):
        indexed(ib, (2, 3), (slice(None), 1))
    with pytest.raises(DeclarationError, match="has strides, so a vector needs an index per dimension"):
        ib.buffer_ptr(strided)[tir.Ramp(tir.const(0), tir.const(1), 4)]
    with pytest.raises(DeclarationError, match="has strides, so its elements can't be taken in another shape"):
        ib.buffer_ptr(strided, shape=(6,))
    with pytest.raises(TypeMismatchError, match=r"whose elements are float32; convert it with .astype\('float32'\)"):
        ib.buffer_ptr(tir.decl_buffer((2,), name="a"))[0] = tir.const(1, "int32")
