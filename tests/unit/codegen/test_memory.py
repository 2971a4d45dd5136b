"""Loads and stores of every shape, with and without masks; at the end of a page, so that a touch too far is fatal."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorexpr.codegen.emit import emit_module
from tensorexpr.errors import CodegenError
from tensorexpr.target import Target
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import intrin
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.expr import Add, Broadcast, BufferLoad, Call, IntImm, Mul, PrimExpr, Ramp, Shuffle, Var
from tensorexpr.tir.stmt import Stmt, seq

from .harness import Array, GuardedArray, compile_function, flat, host, load, loop, primfunc, ramp, store

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint16", "int32", "int64", "bool")
CPUS = ("llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64")


def _data(dtype: str, size: int) -> Array:
    values = np.arange(1, size + 1)
    return (values % 3 == 0) if dtype == "bool" else (values % 100).astype(to_numpy(dtype))


def _copy(dtype: str, lanes: int, index: PrimExpr, target: str, size: int = 64, predicate: PrimExpr | None = None) -> Array:
    """out[0:lanes] = a[index] where the predicate holds."""
    a, out = flat("a", size, dtype), flat("out", lanes, dtype)
    where = IntImm("int32", 0) if lanes == 1 else ramp(0, lanes)
    result = np.zeros(lanes, to_numpy(dtype))
    func = primfunc([a, out], store(out, where, load(a, index, predicate)))
    assert compile_function(func, Target(target))(GuardedArray(_data(dtype, size)).array, result) == 0
    return result


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_contiguous_strided_and_scattered(dtype: str, target: str) -> None:
    data = _data(dtype, 64)
    for lanes in (4, 7, 16):
        assert (_copy(dtype, lanes, ramp(64 - lanes, lanes), target) == data[64 - lanes :]).all()
        assert (_copy(dtype, lanes, ramp(1, lanes, 3), target) == data[1 : 1 + 3 * lanes : 3]).all()
        assert (_copy(dtype, lanes, ramp(63, lanes, -2), target) == data[63 : 63 - 2 * lanes : -2]).all()
        assert (_copy(dtype, lanes, Broadcast(IntImm("int32", 63), lanes), target) == data[63]).all()
        picked = Mul(ramp(0, lanes), ramp(0, lanes))
        wanted = [(i * i) % 64 for i in range(lanes)]
        assert (_copy(dtype, lanes, ops.floormod(picked, 64), target) == data[wanted]).all()


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_masks_read_only_their_lanes(dtype: str, target: str) -> None:
    """The last lanes lie beyond the page."""
    data = _data(dtype, 64)
    for lanes, valid in ((16, 5), (7, 6), (4, 0), (8, 8)):
        mask = ramp(0, lanes) < Broadcast(IntImm("int32", valid), lanes)
        got = _copy(dtype, lanes, ramp(64 - valid, lanes), target, predicate=mask)
        assert (got[:valid] == data[64 - valid :]).all() and not got[valid:].any()
        strided = _copy(dtype, lanes, ramp(63 - 3 * (valid - 1), lanes, 3), target, predicate=mask)
        assert (strided[:valid] == data[64 - 3 * valid + 2 :: 3][:valid]).all() and not strided[valid:].any()


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("dtype", ("float32", "int8", "bool", "float64", "bfloat16"))
def test_masks_known_at_run_time(dtype: str, target: str) -> None:
    lanes, size = 8, 64
    n = Var("n", "int32")
    a, out = flat("a", size, dtype), flat("out", 4 * lanes, dtype)
    mask = ramp(0, lanes) < Broadcast(n, lanes)
    start = IntImm("int32", size) - n
    anywhere = ops.minimum(Mul(ramp(0, lanes), ramp(0, lanes)), ramp(0, lanes)) + Broadcast(start, lanes)
    body = seq(
        store(out, ramp(0, lanes), load(a, ramp(start, lanes), mask)),
        store(out, ramp(lanes, lanes), load(a, ramp(IntImm("int32", size - 1), lanes, -1), mask)),
        store(out, ramp(2 * lanes, lanes), load(a, Broadcast(start, lanes), mask)),
        store(out, ramp(3 * lanes, lanes), load(a, anywhere, ramp(0, lanes) < Broadcast(n, lanes))),
    )
    data = _data(dtype, size)
    compiled = compile_function(primfunc([a, out, n], body), Target(target))
    for count in (0, 1, 3, 8):
        result = np.zeros(4 * lanes, to_numpy(dtype))
        compiled(GuardedArray(data).array, result, count) if count != 8 else compiled(np.concatenate([data, data]), result, count)
        got = result.reshape(4, lanes)
        source = np.concatenate([data, data])
        assert (got[0, :count] == source[size - count :][:count]).all() and not got[0, count:].any()
        assert (got[1, :count] == data[::-1][:count]).all() and not got[1, count:].any()
        assert (got[2, :count] == source[size - count]).all() and not got[2, count:].any()
        assert (got[3, :count] == source[size - count :][:count]).all() and not got[3, count:].any()


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_stores_contiguous_strided_scattered_and_masked(dtype: str, target: str) -> None:
    lanes, size = 8, 40
    n = Var("n", "int32")
    value = flat("value", lanes, dtype)
    outs = [flat(f"out{i}", size, dtype) for i in range(5)]
    v = load(value, ramp(0, lanes))
    dynamic = ramp(0, lanes) < Broadcast(n, lanes)
    constant = ramp(0, lanes) < Broadcast(IntImm("int32", 3), lanes)
    squares = ops.floormod(Mul(ramp(0, lanes), ramp(0, lanes)), 37)
    last = IntImm("int32", size)
    body = seq(
        store(outs[0], ramp(last - 3, lanes), v, constant),
        store(outs[1], ramp(last - n, lanes), v, dynamic),
        store(outs[2], ramp(1, lanes, 5), v),
        store(outs[3], squares, v),
        store(outs[4], ramp(39, lanes, -1), v, dynamic),
    )
    data = _data(dtype, lanes)
    compiled = compile_function(primfunc([value, *outs, n], body), Target(target))
    results = [GuardedArray(np.zeros(size, to_numpy(dtype))).array for _ in outs]
    assert compiled(data, *results, 5) == 0
    zero = np.zeros(size, to_numpy(dtype))
    expected = [zero.copy() for _ in outs]
    expected[0][-3:] = data[:3]
    expected[1][-5:] = data[:5]
    expected[2][1 : 1 + 5 * lanes : 5] = data
    for lane in range(lanes):
        expected[3][lane * lane % 37] = data[lane]
    expected[4][39:34:-1] = data[:5]
    for got, wanted in zip(results, expected, strict=True):
        assert (got == wanted).all()


def test_of_lanes_that_meet_the_last_stays() -> None:
    out = flat("out", 4, "int32")
    result = np.zeros(4, np.int32)
    compile_function(primfunc([out], store(out, Broadcast(IntImm("int32", 2), 8), ramp(10, 8))))(result)
    assert result.tolist() == [0, 0, 17, 0]


def test_scalar_access_under_a_scalar_predicate() -> None:
    n = Var("n", "int32")
    a, out = flat("a", 4), flat("out", 4)
    body = loop("i", 8, lambda i: store(out, i, load(a, i, i < n) + 1.0, i < n))
    result = GuardedArray(np.zeros(4, np.float32)).array
    assert compile_function(primfunc([a, out, n], body))(GuardedArray(np.arange(4, dtype=np.float32)).array, result, 3) == 0
    assert result.tolist() == [1, 2, 3, 0]


def test_vector_element_types() -> None:
    a, out = decl_buffer((4,), "float32x4", "a"), decl_buffer((4,), "float32x4", "out")
    data, result = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    body = seq(store(out, 3, load(a, 0)), store(out, ramp(0, 2), load(a, ramp(1, 2))))
    compile_function(primfunc([a, out], body))(data, result)
    assert result.tolist() == [*range(4, 12), 0, 0, 0, 0, *range(4)]
    with pytest.raises(CodegenError, match="don't lie side by side"):
        compile_function(primfunc([a, out], store(out, ramp(0, 2), load(a, ramp(0, 2, 2)))))


def test_an_index_vector_that_is_a_ramp_in_disguise_is_one_load() -> None:
    a, out, n = flat("a", 64), flat("out", 4), Var("n", "int32")
    index = Add(Mul(ramp(n, 4), Broadcast(IntImm("int32", 1), 4)), Broadcast(n, 4))
    compiled = compile_function(primfunc([a, out, n], store(out, ramp(0, 4), load(a, index))))
    assert "gather" not in compiled.text and compiled.text.count("load ") == 1
    result = np.zeros(4, np.float32)
    compiled(np.arange(64, dtype=np.float32), result, 20)
    assert result.tolist() == list(range(40, 44))


def test_several_registers_are_loaded_in_the_order_of_memory() -> None:
    """LLVM took a load of eight registers apart from the middle on, which no prefetcher followed: 16 MB took half as long again."""
    a, out = flat("a", 64), flat("out", 64)
    compiled = compile_function(primfunc([a, out], store(out, ramp(0, 64), load(a, ramp(0, 64)) * load(a, ramp(0, 64)))))
    register = host().vector_bits // 32
    loads = [line for line in compiled.text.splitlines() if f"load <{register} x float>" in line]
    assert len(loads) == 64 // register
    offsets = [int(found) for found in re.findall(r"getelementptr i8, ptr \S+, i64 (\d+)", compiled.text)]
    assert offsets[: len(loads) - 1] == [4 * register * part for part in range(1, len(loads))]
    result = np.zeros(64, np.float32)
    compiled(np.arange(64, dtype=np.float32), result)
    assert result.tolist() == [number**2 for number in range(64)]


def test_reads_are_repeated_after_a_store() -> None:
    a = flat("a", 4, "int32")
    body = seq(*(store(a, 0, load(a, 0) * 2 + load(a, 1)) for _ in range(3)), store(a, 1, load(a, 0)))
    for noalias in (True, False):
        result = np.array([1, 10, 0, 0], np.int32)
        compile_function(primfunc([a], body, noalias))(result)
        assert result.tolist() == [78, 78, 0, 0]


def test_pointers_that_may_overlap_are_reread() -> None:
    a, b = flat("a", 4, "int32"), flat("b", 4, "int32")
    body = seq(store(b, 0, load(a, 0) + 1), store(b, 1, load(a, 0) + 1))
    shared = np.zeros(4, np.int32)
    compiled = compile_function(primfunc([a, b], body, noalias=False))
    assert "noalias" not in compiled.text
    compiled(shared, shared)
    assert shared.tolist()[:2] == [1, 2]


def test_loads_in_a_loop_are_not_taken_from_before_it() -> None:
    a, b = flat("a", 8, "int32"), flat("b", 8, "int32")
    body = seq(store(b, 1, load(a, 0)), loop("i", 3, lambda i: store(a, 0, load(a, 0) + 1)), store(b, 2, load(a, 0)))
    first, second = np.zeros(8, np.int32), np.zeros(8, np.int32)
    compile_function(primfunc([a, b], body))(first, second)
    assert first[0] == 3 and second.tolist()[:3] == [0, 0, 3]


def test_an_index_read_from_memory_is_read_in_every_round() -> None:
    at, data, out = flat("at", 1, "int32"), flat("data", 8, "int32"), flat("out", 9, "int32")
    step = seq(store(at, 0, load(at, 0) + 1), store(out, load(at, 0), load(data, load(at, 0)) * 2))
    body = seq(store(out, 0, load(data, load(at, 0))), loop("i", 7, lambda i: step))
    result = np.zeros(9, np.int32)
    compile_function(primfunc([at, data, out], body))(np.zeros(1, np.int32), np.arange(1, 9, dtype=np.int32), result)
    assert result.tolist() == [1, 4, 6, 8, 10, 12, 14, 16, 0]


def test_indices_of_any_integer_type_and_sign() -> None:
    data = np.arange(64, dtype=np.float32)
    for dtype in ("int32", "int64", "uint32", "int16", "uint8"):
        a, out, n = flat("a", 64), flat("out", 4), Var("n", dtype)
        body = seq(store(out, 0, load(a, n + 3)), store(out, 1, load(a, n * 2)), store(out, 2, load(a, ops.const(60, dtype) - n)))
        result = np.zeros(4, np.float32)
        compile_function(primfunc([a, out, n], body))(data, result, 7)
        assert result.tolist() == [10, 14, 53, 0], dtype


def test_indices_beyond_32_bits_of_bytes() -> None:
    """An int32 index whose byte offset needs 64 bits."""
    a, i = flat("a", 1 << 30, "float64"), Var("i", "int32")
    out = flat("out", 1, "float64")
    compiled = compile_function(primfunc([a, out, i], store(out, 0, load(a, i + 5))))
    result = np.zeros(1)
    base = np.arange(8.0)
    # The base address is moved back by what the index adds: nothing but 64-bit arithmetic brings it home.
    index = (1 << 29) + 3
    assert compiled.function(base.ctypes.data - (index + 5) * 8 + 16, result.ctypes.data, index) == 0
    assert result[0] == 2.0


@pytest.mark.parametrize("lanes", (4, 16))
def test_if_then_else_guards_loads_lane_by_lane(lanes: int) -> None:
    n = Var("n", "int32")
    a, out = flat("a", 10), flat("out", lanes)
    index = ramp(n, lanes)
    inside = index < Broadcast(IntImm("int32", 10), lanes)
    value = intrin.if_then_else(inside, load(a, index) * 2.0, Broadcast(ops.const(-1.0), lanes))
    compiled = compile_function(primfunc([a, out, n], store(out, ramp(0, lanes), value)))
    data = GuardedArray(np.arange(10, dtype=np.float32)).array
    for start in (0, 3, 9, 10, 500):
        result = np.zeros(lanes, np.float32)
        compiled(data, result, start)
        assert result.tolist() == [2.0 * i if i < 10 else -1.0 for i in range(start, start + lanes)]


def test_guards_reach_broadcasts_gathers_shuffles_and_nested_conditionals() -> None:
    lanes, n = 8, Var("n", "int32")
    a, table, out = flat("a", 8), flat("table", 8, "int32"), flat("out", 4 * lanes)
    index = ramp(n, lanes)
    inside = index < Broadcast(IntImm("int32", 8), lanes)
    zero = Broadcast(ops.const(0.0), lanes)
    reversed_lanes = Shuffle((load(a, ramp(IntImm("int32", 0) - n, lanes)),), tuple(range(7, -1, -1)))
    # Lane i of the shuffle is a[7 - i - n].
    from_below = (ramp(IntImm("int32", 7) - n, lanes, -1)) >= Broadcast(IntImm("int32", 0), lanes)
    body = seq(
        store(out, ramp(0, lanes), intrin.if_then_else(inside, Broadcast(load(a, n), lanes), zero)),
        store(out, ramp(8, lanes), intrin.if_then_else(inside, load(a, load(table, index)), zero)),
        store(out, ramp(16, lanes), intrin.if_then_else(from_below, reversed_lanes, zero)),
        store(
            out,
            ramp(24, lanes),
            intrin.if_then_else(inside, intrin.if_then_else(index > Broadcast(IntImm("int32", 5), lanes), load(a, index), zero), zero),
        ),
    )
    data = GuardedArray(np.arange(8, dtype=np.float32))
    picks = GuardedArray(np.array([7, 6, 5, 4, 3, 2, 1, 0], np.int32))
    compiled = compile_function(primfunc([a, table, out, n], body))
    for start in (0, 3, 7, 8, 1000):
        result = np.full(4 * lanes, -5, np.float32)
        before = GuardedArray(np.arange(8, dtype=np.float32)).array if start else data.array
        compiled(before, picks.array, result, start)
        got = result.reshape(4, lanes).tolist()
        lane_indices = range(start, start + lanes)
        assert got[0] == [start if i < 8 else 0 for i in lane_indices]
        assert got[1] == [7 - i if i < 8 else 0 for i in lane_indices]
        assert got[2] == [max(7 - i - start, 0) for i in range(lanes)]
        assert got[3] == [i if 5 < i < 8 else 0 for i in lane_indices]


def test_scalar_conditionals_branch_around_loads() -> None:
    a, out = flat("a", 4), flat("out", 8)
    body = loop("i", 8, lambda i: store(out, i, intrin.if_then_else(i < 4, load(a, i), 9.0)))
    result = np.zeros(8, np.float32)
    compile_function(primfunc([a, out], body))(GuardedArray(np.arange(4, dtype=np.float32)).array, result)
    assert result.tolist() == [0, 1, 2, 3, 9, 9, 9, 9]


@pytest.mark.parametrize("lanes", (1, 8))
def test_and_or_guard_their_right_side(lanes: int) -> None:
    a, out = flat("a", 4, "int32"), flat("out", 16, "bool")

    def body(i: Var) -> object:
        index = i if lanes == 1 else ramp(i * lanes, lanes)
        four = ops.cast(4, index.dtype)
        both = ops.logical_and(index < four, load(a, index) > ops.cast(1, index.dtype))
        either = ops.logical_or(index >= four, load(a, index) > ops.cast(1, index.dtype))
        return seq(store(out, index, both), store(out, index + ops.cast(8, index.dtype), either))

    result = np.zeros(16, bool)
    data = GuardedArray(np.arange(4, dtype=np.int32)).array
    compile_function(primfunc([a, out], loop("i", 8 // lanes, body)))(data, result)  # type: ignore[arg-type]
    assert result.tolist() == [False, False, True, True] + [False] * 4 + [False, False, True, True] + [True] * 4


def test_shuffles() -> None:
    a, out = flat("a", 8, "int32"), flat("out", 64, "int32")
    low, high, two = load(a, ramp(0, 4)), load(a, ramp(4, 4)), load(a, ramp(2, 2))
    cases: list[tuple[PrimExpr, list[int]]] = [
        (Shuffle((low,), (3, 2, 1, 0)), [3, 2, 1, 0]),
        (Shuffle((low, high), (0, 4, 1, 5, 2, 6, 3, 7)), [0, 4, 1, 5, 2, 6, 3, 7]),
        (Shuffle((low, two, load(a, 7)), (6, 5, 4, 0)), [7, 3, 2, 0]),
        (Shuffle((load(a, 5), load(a, 1)), (1, 0, 1)), [1, 5, 1]),
        (Shuffle((low, high), tuple(range(8))), list(range(8))),
        (Shuffle((two, low), (0, 5)), [2, 3]),
    ]
    stores, expected, at = [], [], 0
    for shuffle, wanted in cases:
        stores.append(store(out, ramp(at, len(wanted)), shuffle))
        expected += wanted
        at += len(wanted)
    stores.append(store(out, at, Shuffle((low, high), (6,))))
    result = np.zeros(64, np.int32)
    compile_function(primfunc([a, out], seq(*stores)))(np.arange(8, dtype=np.int32), result)
    assert result.tolist()[: at + 1] == [*expected, 6]


def test_ramps_as_values() -> None:
    n, out = Var("n", "int32"), flat("out", 32, "int32")
    body = seq(
        store(out, ramp(0, 8), Ramp(n, IntImm("int32", 3), 8)),
        store(out, ramp(8, 8), Ramp(IntImm("int32", 5), n, 8)),
        store(out, ramp(16, 8), Ramp(IntImm("int32", 2), IntImm("int32", -1), 8)),
    )
    result = np.zeros(32, np.int32)
    compile_function(primfunc([out, n], body))(result, 7)
    assert result.tolist()[:24] == [7 + 3 * i for i in range(8)] + [5 + 7 * i for i in range(8)] + [2 - i for i in range(8)]
    floats = flat("floats", 4)
    got = np.zeros(4, np.float32)
    x = Var("x", "float32")
    compile_function(primfunc([floats, x], store(floats, ramp(0, 4), Ramp(x, ops.const(0.5), 4))))(got, 1.25)
    assert got.tolist() == [1.25, 1.75, 2.25, 2.75]


def test_prefetch_touches_nothing() -> None:
    a, out = flat("a", 8), flat("out", 1)
    from tensorexpr.tir.stmt import Evaluate

    body = seq(Evaluate(Call("int32", "tir.prefetch", (load(a, 7), IntImm("int32", 0)))), store(out, 0, 1.0))
    compiled = compile_function(primfunc([a, out], body))
    assert "llvm.prefetch.p0(ptr %" in compiled.text and "load" not in compiled.text
    assert compiled(np.zeros(8, np.float32), np.zeros(1, np.float32)) == 0


def test_a_buffer_that_is_not_flat_is_refused() -> None:
    a: Buffer = decl_buffer((4, 4), "float32", "a")
    zero = IntImm("int32", 0)
    with pytest.raises(CodegenError, match="accessed with 2 indices; lower the function through phase 1"):
        compile_function(primfunc([a], store(flat("b", 1), 0, BufferLoad(a, (zero, zero)))))


@pytest.mark.parametrize(
    ("target", "is_masked"), [("llvm -mcpu=haswell", False), ("llvm -mcpu=x86-64", False), ("llvm -mcpu=x86-64-v4", True)]
)
def test_lanes_that_a_mask_leaves_out_of_a_gather_read_the_first_element(target: str, is_masked: bool) -> None:
    lanes, n = 8, Var("n", "int32")
    table, out = flat("table", 8, "int32"), flat("out", 2 * lanes)
    mask = ramp(0, lanes) < Broadcast(n, lanes)

    def body(a: Buffer) -> Stmt:
        anywhere, strided = load(table, ramp(0, lanes)), ramp(n, lanes, 3)
        return seq(store(out, ramp(0, lanes), load(a, anywhere, mask)), store(out, ramp(lanes, lanes), load(a, strided, mask)))

    known, size = flat("a", 16), Var("size", "int32")
    text = emit_module({"f": primfunc([known, table, out, n], body(known))}, Target(target), 1000).text
    assert text.count("<8 x i1> splat (i1 true)") == (0 if is_masked else 2)
    # Of an array that may be empty there may be no first element.
    open_size = flat("a", size)
    text = emit_module({"f": primfunc([open_size, table, out, n], body(open_size))}, Target(target), 1000).text
    assert "<8 x i1> splat (i1 true)" not in text


def test_gathers_under_masks_touch_no_other_memory() -> None:
    lanes, n = 8, Var("n", "int32")
    a, table, out = flat("a", 16), flat("table", 8, "int32"), flat("out", 2 * lanes)
    mask = ramp(0, lanes) < Broadcast(n, lanes)
    body = seq(
        store(out, ramp(0, lanes), load(a, load(table, ramp(0, lanes)), mask)),
        store(out, ramp(lanes, lanes), load(a, ramp(n, lanes, 3), mask)),
    )
    compiled = compile_function(primfunc([a, table, out, n], body), Target("llvm -mcpu=x86-64"))
    data, picks = np.arange(1, 17, dtype=np.float32), np.array([3, 15, 0, 1 << 29, -(1 << 29), 1 << 30, -5, 40], np.int32)
    for count in range(4):
        result = np.full(2 * lanes, -5, np.float32)
        compiled(GuardedArray(data).array, picks, result, count)
        assert result[:lanes].tolist() == [*data[picks[:count]], *[0] * (lanes - count)]
        assert result[lanes:].tolist() == [*data[count : 4 * count : 3], *[0] * (lanes - count)]
