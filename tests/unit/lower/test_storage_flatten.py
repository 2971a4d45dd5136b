"""storage_flatten: indices of one dimension, for parameters as declared and for intermediates row by row."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.errors import InternalError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase1.storage_flatten import storage_flatten
from tensorexpr.tir.arithmetic import minimum
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.expr import BufferLoad, IntImm, Ramp, Range, SizeVar, Var
from tensorexpr.tir.stmt import Allocate, BufferRealize, BufferStore, DeclBuffer, Stmt, seq

from .builder import applied, check_kept, flat, func, load, loop, realize, statements, store


def test_row_major_parameters() -> None:
    a, b = decl_buffer((3, 4, 5), "float32", "A"), decl_buffer((5, 4, 3), "float32", "B")
    body = loop("i", 3, lambda i: loop("j", 4, lambda j: loop("k", 5, lambda k: store(b, load(a, i, j, k), k, j, i))))
    result = applied(storage_flatten, func(body, a, b))
    (stored,) = statements(result, BufferStore)
    assert str(stored.indices[0]) == "k * 12 + j * 3 + i"
    assert stored.buffer.shape[0].value == 60
    assert stored.buffer.data is b.data
    assert result.buffer_map[result.params[1]] is b


def test_strided_parameters() -> None:
    a = decl_buffer((3, 4), "float32", "A", strides=(10, 2))
    b = decl_buffer((3, 4), "float32", "B")
    start = func(loop("i", 3, lambda i: loop("j", 4, lambda j: store(b, load(a, i, j), i, j))), a, b)
    big = np.arange(30, dtype=np.float32).reshape(3, 10)
    args = [big[:, :8:2], np.zeros((3, 4), np.float32)]
    result = storage_flatten(start, PassContext())
    check_kept(start, result, args, phase=1)
    (stored,) = statements(result, BufferStore)
    assert str(stored.value.indices[0]) == "i * 10 + j * 2"
    assert stored.value.buffer.shape[0].value == 27


def test_symbolic_strides_and_offset() -> None:
    n, stride, offset = SizeVar("n"), Var("stride"), Var("offset")
    a = decl_buffer((n, 4), "float32", "A", strides=(stride, 1), elem_offset=offset)
    b = decl_buffer((n, 4), "float32", "B")
    start = func(loop("i", n, lambda i: loop("j", 4, lambda j: store(b, load(a, i, j), i, j))), a, b)
    args = [np.arange(50, dtype=np.float32).reshape(5, 10)[:, :4], np.zeros((5, 4), np.float32)]
    check_kept(start, storage_flatten(start, PassContext()), args, phase=1)


def test_storage_of_intermediates_starts_at_their_box() -> None:
    out = decl_buffer((4, 6), "float32", "O")

    def inside(t: Buffer) -> Stmt:
        make = loop("i", 4, lambda i: loop("j", 6, lambda j: store(t, i * 10.0 + j, i + 3, j - 2)))
        return seq(make, loop("i", 4, lambda i: loop("j", 6, lambda j: store(out, load(t, i + 3, j - 2), i, j))))

    result = applied(storage_flatten, func(realize("T", [(3, 4), (-2, 6)], inside, shape=(99, 99)), out))
    (allocated,) = statements(result, Allocate)
    assert [extent.value for extent in allocated.extents] == [24]
    assert not statements(result, BufferRealize)


def test_bounded_symbolic_extents_become_constants() -> None:
    out = flat("O", 10)

    def tile(io: Var) -> Stmt:
        width = minimum(4, 10 - io * 4)
        return realize(
            "T",
            [(io * 4, width)],
            lambda t: seq(
                loop("i", width, lambda i: store(t, 2.0, io * 4 + i)),
                loop("i", width, lambda i: store(out, load(t, io * 4 + i), io * 4 + i)),
            ),
            shape=(10,),
        )

    result = applied(storage_flatten, func(loop("io", 3, tile), out))
    (allocated,) = statements(result, Allocate)
    assert allocated.constant_size() == 4


def test_strides_of_intermediates_are_kept() -> None:
    out = decl_buffer((3, 4), "float32", "O")
    padded = decl_buffer((3, 4), "float32", "T", strides=(5, 1))
    bounds = tuple(Range.from_min_extent(IntImm("int32", 0), IntImm("int32", n)) for n in (3, 4))
    copy = loop("i", 3, lambda i: loop("j", 4, lambda j: store(out, load(padded, i, j), i, j)))
    make = loop("i", 3, lambda i: loop("j", 4, lambda j: store(padded, 1.0, i, j)))
    start = func(BufferRealize(padded, bounds, IntImm("bool", 1), seq(make, copy)), out)
    result = storage_flatten(start, PassContext())
    check_kept(start, result, phase=1)
    (allocated,) = statements(result, Allocate)
    assert allocated.constant_size() == 14


def test_large_buffers_are_indexed_in_64_bits() -> None:
    big = decl_buffer((1 << 16, 1 << 16), "int8", "A")
    start = func(loop("i", 1 << 16, lambda i: store(big, load(big, i, 5), i, 7)), big)
    (stored,) = statements(storage_flatten(start, PassContext()), BufferStore)
    assert stored.indices[0].dtype == "int64"
    assert str(stored.indices[0]) == 'T.Cast("int64", i) * T.int64(65536) + T.int64(7)'


def test_symbolic_products_are_indexed_in_64_bits() -> None:
    n, m = SizeVar("n"), SizeVar("m")
    a = decl_buffer((n, m), "float32", "A")
    start = func(loop("i", n, lambda i: store(a, 1.0, i, 0)), a)
    (stored,) = statements(storage_flatten(start, PassContext()), BufferStore)
    assert stored.indices[0].dtype == "int64"
    check_kept(start, storage_flatten(start, PassContext()), [np.zeros((3, 5), np.float32)], phase=1)


def test_rank_zero() -> None:
    a, b = decl_buffer((), "float32", "A"), decl_buffer((), "float32", "B")
    start = func(BufferStore(b, BufferLoad(a, ()) + 1.0, ()), a, b)
    args = [np.array(3, np.float32), np.zeros((), np.float32)]
    check_kept(start, storage_flatten(start, PassContext()), args, phase=1)


def test_empty_parameters() -> None:
    a = decl_buffer((0, 4), "float32", "A")
    start = func(loop("i", 0, lambda i: store(a, 1.0, i, 0)), a)
    check_kept(start, storage_flatten(start, PassContext()), [np.zeros((0, 4), np.float32)], phase=1)


def test_vectors_stay_ramps() -> None:
    a, b = decl_buffer((3, 8), "float32", "A"), decl_buffer((3, 8), "float32", "B")
    lanes = Ramp(IntImm("int32", 0), IntImm("int32", 1), 8)
    start = func(loop("i", 3, lambda i: BufferStore(b, BufferLoad(a, (i, lanes)), (i, lanes))), a, b)
    result = applied(storage_flatten, start)
    (stored,) = statements(result, BufferStore)
    assert isinstance(stored.indices[0], Ramp)
    assert str(stored.indices[0].base) == "i * 8"


def test_views_of_parameters() -> None:
    a, b = decl_buffer((4, 4), "float32", "A"), flat("B", 4)
    diagonal = decl_buffer((4,), "float32", "D", data=a.data, strides=(5,))
    start = func(DeclBuffer(diagonal, loop("i", 4, lambda i: store(b, load(diagonal, i), i))), a, b)
    result = applied(storage_flatten, start)
    assert not statements(result, DeclBuffer)


def test_flat_functions_stay_as_they_are() -> None:
    a = flat("A", 8)
    start = func(loop("i", 8, lambda i: store(a, load(a, i) + 1.0, i)), a)
    assert storage_flatten(start, PassContext()).body is start.body


def test_wrong_rank_is_found() -> None:
    a = decl_buffer((4, 4), "float32", "A")
    flat_a = Buffer(a.data, "float32", (IntImm("int32", 16),))
    realized = decl_buffer((4,), "float32", "T")
    two = (Range.from_min_extent(IntImm("int32", 0), IntImm("int32", 2)),) * 2
    body = BufferRealize(realized, two, IntImm("bool", 1), store(flat_a, load(realized, 0), 0))
    with pytest.raises(InternalError, match="T has 2 dimensions, but is accessed with 1 indices"):
        storage_flatten(func(body, a), PassContext())
