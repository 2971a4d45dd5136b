"""Buffers of scope "register": slots are SSA values through loops, branches and parallel bodies."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.codegen import control
from tensorexpr.codegen.emit import emit_module
from tensorexpr.codegen.spills import count_spills
from tensorexpr.errors import CodegenError
from tensorexpr.target import Target
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.expr import Broadcast, IntImm, PrimExpr, Var
from tensorexpr.tir.stmt import Allocate, ForKind, IfThenElse, Stmt, While, seq

from .harness import assembly, compile_function, flat, load, loop, primfunc, ramp, store

TRUE = IntImm("bool", 1)


def registers(slots: int, dtype: str = "float32") -> Buffer:
    """A buffer of slots."""
    return decl_buffer((slots,), dtype, "acc", scope="register")


def within(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` with the slots allocated around it."""
    return Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, body)


def test_no_memory_is_touched() -> None:
    acc, out = registers(2), flat("out", 2)
    body = seq(
        store(acc, 0, 1.0),
        store(acc, 1, 2.0),
        loop("i", 10, lambda i: seq(store(acc, 0, load(acc, 0) * 2.0), store(acc, 1, load(acc, 0) + load(acc, 1)))),
        store(out, 0, load(acc, 0)),
        store(out, 1, load(acc, 1)),
    )
    compiled = compile_function(primfunc([out], within(acc, body)))
    assert "alloca" not in compiled.text and "load" not in compiled.text and compiled.text.count("phi float") == 2
    result = np.zeros(2, np.float32)
    compiled(result)
    assert result.tolist() == [1024.0, 2048.0]


def test_only_slots_set_in_a_loop_get_phis() -> None:
    acc, out = registers(3), flat("out", 3)
    fill = seq(*(store(acc, i, float(i)) for i in range(3)))
    body = seq(fill, loop("i", 4, lambda i: store(acc, 1, load(acc, 1) + load(acc, 2))), *(store(out, i, load(acc, i)) for i in range(3)))
    compiled = compile_function(primfunc([out], within(acc, body)))
    assert compiled.text.count("phi float") == 1
    result = np.zeros(3, np.float32)
    compiled(result)
    assert result.tolist() == [0, 9, 2]


@pytest.mark.parametrize("extent", (0, 1, 5))
def test_loops_that_may_be_empty_keep_the_old_value(extent: int) -> None:
    acc, out, n = registers(1, "int32"), flat("out", 1, "int32"), Var("n", "int32")
    body = seq(store(acc, 0, 7), loop("i", n, lambda i: store(acc, 0, load(acc, 0) + i + 1)), store(out, 0, load(acc, 0)))
    result = np.zeros(1, np.int32)
    compile_function(primfunc([out, n], within(acc, body)))(result, extent)
    assert result[0] == 7 + extent * (extent + 1) // 2


def test_branches_merge() -> None:
    acc, out = registers(2, "int32"), flat("out", 40, "int32")

    def body(i: Var) -> Stmt:
        choose = IfThenElse(
            i % 3 < 1,
            seq(store(acc, 0, load(acc, 0) + 10), IfThenElse(i % 2 < 1, store(acc, 1, i))),
            store(acc, 0, load(acc, 0) - 1),
        )
        return seq(choose, store(out, i * 2, load(acc, 0)), store(out, i * 2 + 1, load(acc, 1)))

    result = np.zeros(40, np.int32)
    compile_function(primfunc([out], within(acc, seq(store(acc, 0, 0), store(acc, 1, -1), loop("i", 20, body)))))(result)
    first, second, expected = 0, -1, []
    for i in range(20):
        if i % 3 == 0:
            first += 10
            second = i if i % 2 == 0 else second
        else:
            first -= 1
        expected += [first, second]
    assert result.tolist() == expected


def test_nested_loops_and_while() -> None:
    acc, out = registers(2, "int32"), flat("out", 2, "int32")
    nest = loop("i", 3, lambda i: loop("j", 4, lambda j: seq(store(acc, 0, load(acc, 0) + i * j), store(acc, 1, load(acc, 0)))))
    body = seq(
        store(acc, 0, 0),
        store(acc, 1, 0),
        nest,
        While(load(acc, 0) < 100, store(acc, 0, load(acc, 0) * 2)),
        store(out, 0, load(acc, 0)),
        store(out, 1, load(acc, 1)),
    )
    result = np.zeros(2, np.int32)
    compile_function(primfunc([out], within(acc, body)))(result)
    assert result.tolist() == [144, 18]


def test_a_register_allocated_in_a_loop_is_its_own_in_each_round() -> None:
    acc, out = registers(1, "int32"), flat("out", 4, "int32")
    inner = seq(store(acc, 0, 0), loop("j", 3, lambda j: store(acc, 0, load(acc, 0) + j)))
    compiled = compile_function(primfunc([out], loop("i", 4, lambda i: within(acc, seq(inner, store(out, i, load(acc, 0) + i))))))
    assert compiled.text.count("phi i32") == 2  # one in the inner loop, one of the return code
    result = np.zeros(4, np.int32)
    compiled(result)
    assert result.tolist() == [3, 4, 5, 6]


def test_one_allocation_may_stand_in_two_places() -> None:
    """As when a loop is cut in two: what the first copy left in a slot is not defined in the second."""
    acc, out, n = registers(1, "int32"), flat("out", 8, "int32"), Var("n", "int32")

    def part(start: int) -> Stmt:
        def row(i: Var) -> Stmt:
            set_and_use = seq(store(acc, 0, i * 2), store(out, i + start, load(acc, 0) + 1))
            return within(acc, loop("j", n, lambda j: set_and_use))

        return loop("i", n, row)

    result = np.zeros(8, np.int32)
    compile_function(primfunc([out, n], seq(part(0), part(4))))(result, 3)
    assert result.tolist() == [1, 3, 5, 0, 1, 3, 5, 0]


def test_values_computed_from_registers_are_forgotten_on_a_store() -> None:
    acc, out, n = registers(1, "int32"), flat("out", 2, "int32"), Var("n", "int32")
    twice = load(acc, 0) * 2 + n
    body = seq(store(acc, 0, 5), store(out, 0, twice), store(acc, 0, 6), store(out, 1, twice))
    result = np.zeros(2, np.int32)
    compile_function(primfunc([out, n], within(acc, body)))(result, 1)
    assert result.tolist() == [11, 13]


def test_predicates_on_registers() -> None:
    acc, out, n = registers(1, "float32x8"), flat("out", 16), Var("n", "int32")
    mask = ramp(0, 8) < Broadcast(n, 8)

    def vector(value: float) -> PrimExpr:
        return Broadcast(ops.const(value), 8)

    body = seq(
        store(acc, 0, vector(1.0)),
        store(acc, 0, vector(5.0), mask),
        store(out, ramp(0, 8), load(acc, 0)),
        store(out, ramp(8, 8), load(acc, 0, mask)),
    )
    result = np.zeros(16, np.float32)
    compile_function(primfunc([out, n], within(acc, body)))(result, 3)
    assert result.tolist() == [5.0] * 3 + [1.0] * 5 + [5.0] * 3 + [0.0] * 5


def test_bool_and_mask_slots() -> None:
    acc, out = registers(1, "boolx4"), flat("out", 4, "bool")
    start = ramp(0, 4) < Broadcast(IntImm("int32", 2), 4)
    body = seq(
        store(acc, 0, start), loop("i", 3, lambda i: store(acc, 0, ops.logical_not(load(acc, 0)))), store(out, ramp(0, 4), load(acc, 0))
    )
    result = np.zeros(4, bool)
    compile_function(primfunc([out], within(acc, body)))(result)
    assert result.tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_16_bit_floats_cross_blocks_on_any_cpu(dtype: str) -> None:
    """As LLVM's own types they would be rounded by library calls at every edge."""
    from tensorexpr.target import Target
    from tensorexpr.tir.dtype import to_numpy

    acc, out, n = registers(1, f"{dtype}x4"), flat("out", 4, dtype), Var("n", "int32")
    one = Broadcast(ops.const(1.5, dtype), 4)
    body = seq(store(acc, 0, one), loop("i", n, lambda i: store(acc, 0, load(acc, 0) + one)), store(out, ramp(0, 4), load(acc, 0)))
    result = np.zeros(4, to_numpy(dtype))
    compiled = compile_function(primfunc([out, n], within(acc, body)), Target("llvm -mcpu=x86-64"))
    assert "call" not in compiled.text.replace("; ", "")
    compiled(result, 4)
    assert result.tolist() == [7.5] * 4


@pytest.mark.parametrize(("extent", "count"), ((None, 8), (95, 8), (15, 1)))
def test_short_steps_on_tiles_are_written_one_behind_the_other(extent: int | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's own instructions are fewer; iterations that are left over, and no iteration, give the same sums in the same order."""
    acc, a, out, n = registers(1, "float32x8"), flat("a", 104), flat("out", 8), Var("n", "int32")
    zero, half = (Broadcast(ops.const(value, "float32"), 8) for value in (0.0, 0.5))
    step = loop("i", n if extent is None else extent, lambda i: store(acc, 0, load(acc, 0) * half + load(a, ramp(i, 8))))
    func = primfunc([a, out, n], within(acc, seq(store(acc, 0, zero), step, store(out, ramp(0, 8), load(acc, 0)))))
    for cpu, copies in (("haswell", count), ("skylake-avx512", 1), ("nehalem", 1)):
        text = emit_module({"f": func}, Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}")).text
        assert (f'"llvm.loop.unroll.count", i32 {copies}' in text) == (copies > 1), cpu
        assert ('"llvm.loop.unroll.disable"' in text) == (copies == 1), cpu
    monkeypatch.setattr(control, "_FEW_REGISTERS", 64)  # on this machine, whatever it has
    compiled, values = compile_function(func, optimise=True), np.arange(104, dtype=np.float32)
    for steps in (0, 1, 7, 8, 95) if extent is None else (extent,):
        result, wanted = np.zeros(8, np.float32), np.zeros(8, np.float32)
        compiled(values, result, steps)
        for i in range(steps):
            wanted = wanted * np.float32(0.5) + values[i : i + 8]
        np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_registers_go_into_parallel_bodies_but_not_out() -> None:
    acc, out = registers(2, "float32x4"), flat("out", 64)
    scale = Broadcast(ops.const(3.0), 4)
    inside = loop("i", 16, lambda i: store(out, ramp(i * 4, 4), load(acc, 0) * load(acc, 1)), ForKind.PARALLEL)
    result = np.zeros(64, np.float32)
    assert compile_function(primfunc([out], within(acc, seq(store(acc, 0, scale), store(acc, 1, scale), inside))))(result) == 0
    assert (result == 9.0).all()
    outside = loop("i", 16, lambda i: store(acc, 0, scale), ForKind.PARALLEL)
    with pytest.raises(CodegenError, match="the parallel loop over i sets a register that is allocated outside it"):
        compile_function(primfunc([out], within(acc, outside)))


def test_an_index_that_varies_is_refused() -> None:
    acc, out = registers(4), flat("out", 4)
    with pytest.raises(CodegenError, match=r"acc\[i\] is in registers, where every index is a constant; unroll"):
        compile_function(primfunc([out], within(acc, loop("i", 4, lambda i: store(acc, i, 1.0)))))


def _tile(rows: int, columns: int, depth: int) -> tuple[Buffer, Buffer, Buffer, Stmt]:
    """A register tile of a matrix product with B packed by columns."""
    width = 16 * columns
    a, b, c = flat("A", rows * depth), flat("B", depth * width), flat("C", rows * width)
    acc = registers(rows * columns, "float32x16")
    zero = Broadcast(ops.const(0.0), 16)

    def step(k: Var) -> Stmt:
        return seq(
            *(
                store(
                    acc,
                    i * columns + j,
                    load(acc, i * columns + j) + Broadcast(load(a, k + i * depth), 16) * load(b, ramp(k * width + j * 16, 16)),
                )
                for i in range(rows)
                for j in range(columns)
            )
        )

    last = [store(c, ramp(i * width + j * 16, 16), load(acc, i * columns + j)) for i in range(rows) for j in range(columns)]
    return a, b, c, within(acc, seq(*(store(acc, i, zero) for i in range(rows * columns)), loop("k", depth, step), *last))


def test_a_register_tile_multiplies_matrices_without_spills() -> None:
    a, b, c, body = _tile(6, 2, 40)
    compiled = compile_function(primfunc([a, b, c], body))
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(6, 40)).astype(np.float32), rng.normal(size=(40, 32)).astype(np.float32)
    result = np.zeros((6, 32), np.float32)
    assert compiled(left, right, result) == 0
    np.testing.assert_allclose(result, left @ right, rtol=1e-5, atol=1e-5)
    from tensorexpr.target import Target

    avx512 = Target("llvm -mcpu=x86-64-v4")
    from tensorexpr.codegen.emit import emit_module

    small, large = (
        count_spills(assembly(emit_module({"f": primfunc([a, b, c], body)}, avx512).text, avx512))
        for a, b, c, body in (_tile(12, 2, 64), _tile(10, 4, 64))
    )
    assert small.total == 0 < large.total
