"""LLVM's intrinsics by name and pointers as values: machine code against the interpreter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import nd, tir
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.llvm_intrin import LLVM_INTRINSICS, llvm_intrinsic

FEATURES = tensorexpr.target.Target("llvm").features
HAS_ALL = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids"
KINDS = {"i32": "int32", "float": "float32", "i16": "int16", "bfloat": "bfloat16", "i8": "int8"}


def vector(llvm_type: str) -> str:
    lanes, kind = llvm_type.strip("<>").split(" x ")
    return f"{KINDS[kind]}x{lanes}"


def one_call(name: str, types: list[str], result: str) -> tir.PrimFunc:
    """out[0] = name(a0[0], a1[0], ...), each a vector."""
    kinds = [t.rsplit("x", 1) for t in (*types, result)]
    buffers = [tir.decl_buffer((int(lanes),), dtype, f"a{n}") for n, (dtype, lanes) in enumerate(kinds)]
    loads = [b.vload([0], t) for b, t in zip(buffers, types, strict=False)]
    handles = [tir.Var(b.name, "handle") for b in buffers]
    body = buffers[-1].vstore([0], tir.call_llvm_pure_intrin(result, name, *loads))
    return tir.PrimFunc(tuple(handles), body, None, dict(zip(handles, buffers, strict=True)))


def random_bits(rng: np.random.Generator, buffer: tir.Buffer) -> Any:
    shape = (int(str(buffer.shape[0])),)
    if buffer.dtype in ("float32", "bfloat16"):
        return rng.standard_normal(shape).astype(to_numpy(buffer.dtype))
    info = np.iinfo(buffer.dtype)
    values = rng.integers(info.min, info.max, shape, buffer.dtype, endpoint=True)
    values[::5] = info.max  # so that sums reach the limits
    return values


@pytest.mark.parametrize("name", sorted(name for name in LLVM_INTRINSICS if name.startswith("llvm.x86.")))
def test_the_code_for_a_cpu_that_has_it_is_the_instruction(name: str) -> None:
    row = LLVM_INTRINSICS[name]
    func = one_call(name, [vector(t) for t in row.operands], vector(row.result))
    asm = tensorexpr.build(func, target=HAS_ALL).get_source("asm")
    word = name.split(".")[3].removeprefix("p").removeprefix("vp")
    assert re.search(rf"\bvp?{word}\w*\s.*%[xyz]mm", asm), asm


@pytest.mark.parametrize("name", sorted(name for name, row in LLVM_INTRINSICS.items() if set(row.features) <= FEATURES))
def test_the_machine_computes_what_the_interpreter_computes(name: str) -> None:
    """For those that this machine has."""
    row = LLVM_INTRINSICS[name]
    func = one_call(name, [vector(t) for t in row.operands], vector(row.result))
    compiled = tensorexpr.build(func, target="llvm")
    rng = np.random.default_rng(1)
    for _ in range(8):
        arrays = [random_bits(rng, buffer) for buffer in func.buffer_map.values()]
        wanted = arrays[-1].copy()
        interpret(func, [*arrays[:-1], wanted])
        given = [nd.array(array) for array in arrays]
        compiled(*given)
        np.testing.assert_array_equal(given[-1].numpy(), wanted)


@pytest.mark.parametrize("op", ["sqrt", "fabs", "floor", "ceil", "trunc", "rint"])
def test_overloaded_ones(op: str) -> None:
    func = one_call(f"llvm.{op}.v8f32", ["float32x8"], "float32x8")
    x = np.array([0.5, 1.5, 2.5, 4.0, 0.0, 100.25, 7.75, 3.0], np.float32)
    wanted = np.zeros(8, np.float32)
    interpret(func, [x, wanted])
    out = nd.array(np.zeros(8, np.float32))
    tensorexpr.build(func, target="llvm")(nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), wanted)


def test_a_leading_count_of_operands_is_left_out() -> None:
    one = tir.Broadcast(tir.FloatImm("float32", 2.0), 8)
    with_count = tir.call_llvm_pure_intrin("float32x8", "llvm.sqrt.v8f32", tir.const(1, "uint32"), one)
    assert with_count is tir.call_llvm_pure_intrin("float32x8", "llvm.sqrt.v8f32", one)


def test_pointers_are_handed_to_the_c_library() -> None:
    a, b = tir.decl_buffer((8,), name="a"), tir.decl_buffer((8,), name="b")
    copy = tir.call_extern("handle", "memcpy", tir.address_of(b.vload([4])), a.access_ptr("r", offset=2), tir.const(8, "int64"))
    after = b.vstore([0], b.vload([5]) + 1.0)  # reads what the function wrote
    handles = [tir.Var(n, "handle") for n in "ab"]
    body = tir.stmt_functor.stmt_seq(b.vstore([5], 0.0), tir.Evaluate(copy), after)
    func = tir.PrimFunc(tuple(handles), body, None, dict(zip(handles, (a, b), strict=True)))
    x, out = np.arange(8, dtype=np.float32), nd.array(np.zeros(8, np.float32))
    tensorexpr.build(func, target="llvm")(nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), [4, 0, 0, 0, 2, 3, 0, 0])


def test_an_array_whose_address_is_taken_stays_in_memory() -> None:
    """All its indices are constant, so it would become registers if nothing pointed to it."""
    local, out = tir.decl_buffer((4,), name="local", scope="local"), tir.decl_buffer((4,), name="out")
    stores = [local.vstore([n], float(n + 1)) for n in range(4)]
    copy = tir.Evaluate(
        tir.call_extern("handle", "memcpy", tir.address_of(out.vload([0])), tir.address_of(local.vload([0])), tir.const(16, "int64"))
    )
    size, true = tir.IntImm("int32", 4), tir.IntImm("bool", 1)
    handle = tir.Var("out", "handle")
    body = tir.Allocate(
        local.data, "float32", (size,), true, tir.stmt_functor.stmt_seq(*stores, copy, out.vstore([3], local.vload([3]) * 2.0))
    )
    given = nd.array(np.zeros(4, np.float32))
    tensorexpr.build(tir.PrimFunc((handle,), body, None, {handle: out}), target="llvm")(given)
    np.testing.assert_array_equal(given.numpy(), [1, 2, 3, 8])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_meaning_of_fma_rounds_once(dtype: str) -> None:
    evaluate = llvm_intrinsic("llvm.fma").evaluate  # type: ignore[union-attr]
    bits = np.finfo(dtype).nmant + 1
    a = np.array([1 + 2.0 ** (1 - bits)], dtype)
    # a * a = 1 + 2 e + e**2, of which e**2 alone is left
    c = np.array([-(1 + 2.0 ** (2 - bits))], dtype)
    assert evaluate(a, a, c)[0] == 2.0 ** (2 - 2 * bits)
    if dtype == "float32":
        # above the tie of 1 and the next one by less than float64 has
        args = [np.array([x], dtype) for x in (2.0**-24, 1 + 2.0**-22, 1.0)]
        assert evaluate(*args)[0] == np.float32(1 + 2.0**-23)
        assert evaluate(np.array([2.0**-80], dtype), np.array([1.0], dtype), np.array([1 + 2.0**-23], dtype))[0] == np.float32(1 + 2.0**-23)
