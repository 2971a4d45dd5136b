"""Expressions of scripts: each form makes the node that it names."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.script import parse
from tensorexpr.script import tir as T
from tensorexpr.script.parser import TIR
from tensorexpr.tir import arithmetic, foreign
from tensorexpr.tir.intrin import INTRINSICS
from tensorexpr.tir.pointers import type_annotation

HEADER = """@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), F: T.Buffer((64,), "float32"), N: T.Buffer((16,), "int32"), S: T.Buffer((), "float32"),
         i: T.int32, j: T.int32, l: T.int64, x: T.float32, y: T.float32, b: T.bool, c: T.bool, p: T.handle):
"""


def read(text: str) -> tuple[tir.PrimExpr, Any]:
    """The expression, and what its names stand for."""
    func = parse(f"{HEADER}    T.evaluate({text})")
    assert isinstance(func, tir.PrimFunc) and isinstance(func.body, tir.Evaluate)
    names: dict[str, Any] = {var.name: var for var in func.params}
    names.update({buffer.name: buffer for buffer in func.buffer_map.values()})
    return func.body.value, SimpleNamespace(**names)


def call(dtype: str, name: str, *args: Any) -> tir.PrimExpr:
    """A call with its operands as they are."""
    return tir.Call(dtype, f"tir.{name}", tuple(map(tir.convert, args)))


def ramp(base: Any, stride: int, lanes: int) -> tir.PrimExpr:
    """base, base + stride, ..."""
    first = tir.convert(base)
    return tir.Ramp(first, tir.const(stride, first.dtype), lanes)


one, two, true = tir.const(1), tir.const(2), tir.const(True)
Make = Callable[[Any], Any]
CASES: dict[str, Make] = {
    # Python's operators make the node that is written: nothing is folded or reordered.
    "i + j * 2": lambda v: tir.Add(v.i, tir.Mul(v.j, two)),
    "(i + j) * 2": lambda v: tir.Mul(tir.Add(v.i, v.j), two),
    "2 * i": lambda v: tir.Mul(two, v.i),
    "i + 0": lambda v: tir.Add(v.i, tir.const(0)),
    "i - j - 1": lambda v: tir.Sub(tir.Sub(v.i, v.j), one),
    "i // 2 % j": lambda v: tir.FloorMod(tir.FloorDiv(v.i, two), v.j),
    "x / y": lambda v: tir.Div(v.x, v.y),
    "x * 2": lambda v: tir.Mul(v.x, tir.const(2.0)),
    "l + 1": lambda v: tir.Add(v.l, tir.const(1, "int64")),
    "l + i": lambda v: tir.Add(v.l, tir.Cast("int64", v.i)),
    "-i": lambda v: tir.Sub(tir.const(0), v.i),
    "-x": lambda v: tir.Mul(v.x, tir.const(-1.0)),
    "+i": lambda v: v.i,
    "x ** y": lambda v: call("float32", "pow", v.x, v.y),
    "i << 2": lambda v: call("int32", "shift_left", v.i, 2),
    "i >> 2": lambda v: call("int32", "shift_right", v.i, 2),
    "i & j | 1 ^ j": lambda v: call("int32", "bitwise_or", call("int32", "bitwise_and", v.i, v.j), call("int32", "bitwise_xor", 1, v.j)),
    "~i": lambda v: call("int32", "bitwise_not", v.i),
    "b and c or not b": lambda v: tir.Or(tir.And(v.b, v.c), tir.Not(v.b)),
    "b and c and b": lambda v: tir.And(tir.And(v.b, v.c), v.b),
    "b and (c and b)": lambda v: tir.And(v.b, tir.And(v.c, v.b)),
    "i and b": lambda v: tir.And(tir.NE(v.i, tir.const(0)), v.b),
    "i < j": lambda v: tir.LT(v.i, v.j),
    "i >= 3": lambda v: tir.GE(v.i, tir.const(3)),
    "3 > i": lambda v: tir.GT(tir.const(3), v.i),
    "i == j": lambda v: tir.EQ(v.i, v.j),
    "i != j": lambda v: tir.NE(v.i, v.j),
    "0 <= i < 8": lambda v: tir.And(tir.LE(tir.const(0), v.i), tir.LT(v.i, tir.const(8))),
    "b + b": lambda v: tir.Add(tir.Cast("int32", v.b), tir.Cast("int32", v.b)),
    # Numbers calculate.
    "2 + 3 * 4": lambda v: tir.const(14),
    "7 // 2 - 7 % 4": lambda v: tir.const(0),
    "2 ** 40": lambda v: tir.const(1 << 40, "int64"),
    "1.5": lambda v: tir.const(1.5),
    "True": lambda v: true,
    "i + (2 if 3 > 2 else 5)": lambda v: tir.Add(v.i, two),
    "max(2, 3) + min(1, 4) + abs(-2) + len((1, 2))": lambda v: tir.const(8),
    "int(2.5) + float(2)": lambda v: tir.const(4.0),
    "max(i, j)": lambda v: tir.Max(v.i, v.j),
    # Nodes by name.
    "T.Add(1, 2)": lambda v: tir.Add(one, two),
    "T.FloorDiv(7, 2)": lambda v: tir.FloorDiv(tir.const(7), two),
    "T.EQ(1, 2)": lambda v: tir.EQ(one, two),
    "T.And(b, c)": lambda v: tir.And(v.b, v.c),
    "T.Not(b)": lambda v: tir.Not(v.b),
    "T.Div(i, 2)": lambda v: tir.Div(v.i, two),
    "T.truncmod(i, 2)": lambda v: tir.Mod(v.i, two),
    "T.floordiv(i, 2)": lambda v: tir.FloorDiv(v.i, two),
    "T.ceildiv(i, 4)": lambda v: tir.FloorDiv(tir.Add(v.i, tir.const(3)), tir.const(4)),
    "T.min(i, 3)": lambda v: tir.Min(v.i, tir.const(3)),
    "T.max(x, 0)": lambda v: tir.Max(v.x, tir.const(0.0)),
    "T.Select(b, x, 0)": lambda v: tir.Select(v.b, v.x, tir.const(0.0)),
    "T.if_then_else(i < 3, x, y)": lambda v: call("float32", "if_then_else", tir.LT(v.i, tir.const(3)), v.x, v.y),
    "T.likely(i < 3)": lambda v: call("bool", "likely", tir.LT(v.i, tir.const(3))),
    "T.all(b, c, i < 2)": lambda v: tir.And(tir.And(v.b, v.c), tir.LT(v.i, two)),
    "T.any(b, c)": lambda v: tir.Or(v.b, v.c),
    "T.Cast('float32', i)": lambda v: tir.Cast("float32", v.i),
    "T.Cast('float32', 3)": lambda v: tir.Cast("float32", tir.const(3)),
    "T.Ramp(i, 2, 8)": lambda v: ramp(v.i, 2, 8),
    "T.Broadcast(x, 4)": lambda v: tir.Broadcast(v.x, 4),
    "T.Shuffle([T.Broadcast(x, 4)], [3, 0])": lambda v: tir.Shuffle((tir.Broadcast(v.x, 4),), (3, 0)),
    # Types.
    "T.float32(0)": lambda v: tir.const(0.0),
    "T.float32('-inf')": lambda v: tir.const(float("-inf")),
    "T.float32(i)": lambda v: tir.Cast("float32", v.i),
    "T.int64(5)": lambda v: tir.const(5, "int64"),
    "T.uint8(255)": lambda v: tir.const(255, "uint8"),
    "T.bool(True)": lambda v: true,
    "T.float32x4(x)": lambda v: tir.Broadcast(v.x, 4),
    "i.astype('float32')": lambda v: tir.Cast("float32", v.i),
    # Functions.
    "T.exp(x) + T.sqrt(y)": lambda v: tir.Add(call("float32", "exp", v.x), call("float32", "sqrt", v.y)),
    "T.exp(i)": lambda v: call("float32", "exp", tir.Cast("float32", v.i)),
    "T.pow(x, 2)": lambda v: call("float32", "pow", v.x, 2.0),
    "T.fma(x, y, 1)": lambda v: call("float32", "fma", v.x, v.y, 1.0),
    "T.isnan(x)": lambda v: call("bool", "isnan", v.x),
    "T.fabs(x)": lambda v: call("float32", "fabs", v.x),
    "T.abs(i)": lambda v: call("int32", "fabs", v.i),
    "T.popcount(i)": lambda v: call("int32", "popcount", v.i),
    "T.bitwise_and(i, 7)": lambda v: call("int32", "bitwise_and", v.i, 7),
    "T.bitwise_and(b, c)": lambda v: tir.And(v.b, v.c),
    "T.shift_left(i, j)": lambda v: call("int32", "shift_left", v.i, v.j),
    "T.ldexp(x, i)": lambda v: call("float32", "ldexp", v.x, v.i),
    "T.reinterpret('int32', x)": lambda v: call("int32", "reinterpret", v.x),
    "T.reinterpret(x, dtype='int32')": lambda v: call("int32", "reinterpret", v.x),
    "T.cast(i, 'float32')": lambda v: tir.Cast("float32", v.i),
    "T.sqrt(x, dtype='float32')": lambda v: call("float32", "sqrt", v.x),
    "T.broadcast(x, 4)": lambda v: tir.Broadcast(v.x, 4),
    "T.ramp(i, 1, 4)": lambda v: tir.Ramp(v.i, tir.const(1), 4),
    "T.call_llvm_pure_intrin(T.llvm_lookup_intrinsic_id('llvm.sqrt.f32'), T.uint32(1), x, dtype='float32')": lambda v: call(
        "float32", "call_llvm_pure_intrin", "llvm.sqrt.f32", v.x
    ),
    "T.max_value('int8')": lambda v: tir.const(127, "int8"),
    "T.min_value('int8')": lambda v: tir.const(-128, "int8"),
    "T.infinity('float32')": lambda v: tir.const(float("inf")),
    "T.call_extern('int32', 'f', A.data, A, x)": lambda v: call("int32", "call_extern", "f", v.A.data, v.A.data, v.x),
    "T.call_pure_extern('float32', 'sinf', x)": lambda v: call("float32", "call_pure_extern", "sinf", v.x),
    "T.call_intrin('float32', 'tir.exp', x)": lambda v: call("float32", "exp", v.x),
    "T.call_llvm_pure_intrin('float32', 'llvm.sqrt.f32', x)": lambda v: call("float32", "call_llvm_pure_intrin", "llvm.sqrt.f32", v.x),
    "T.call_packed('g', A, i)": lambda v: call("int32", "tvm_call_packed", "g", foreign.array_argument(v.A), v.i),
    "T.tvm_call_trace_packed('g', i, x)": lambda v: call("float32", "tvm_call_trace_packed", "g", v.i, v.x),
    "T.address_of(F[3])": lambda v: call("handle", "address_of", v.F[3]),
    "T.tvm_access_ptr(T.type_annotation('float32'), F.data, 0, 64, 1)": lambda v: call(
        "handle", "tvm_access_ptr", type_annotation("float32"), v.F.data, 0, 64, 1
    ),
    "F.access_ptr('r')": lambda v: v.F.access_ptr("r"),
    "T.isnullptr(p)": lambda v: call("bool", "isnullptr", v.p),
    "T.atomic_add(N[0], 2)": lambda v: call("int32", "atomic_add", call("handle", "address_of", v.N[0]), 2),
    "T.atomic_add(T.address_of(N[0]), 2)": lambda v: call("int32", "atomic_add", call("handle", "address_of", v.N[0]), 2),
    "T.assume(i < 3)": lambda v: call("bool", "assume", tir.LT(v.i, tir.const(3))),
    # Buffers.
    "A[i, j]": lambda v: v.A[v.i, v.j],
    "S[()]": lambda v: v.S[()],
    "A[i, N[j]]": lambda v: v.A[v.i, v.N[v.j]],
    "F[0:16]": lambda v: v.F[ramp(0, 1, 16)],
    "F[i:i + 8]": lambda v: v.F[ramp(v.i, 1, 8)],
    "F[i * 8:(i + 1) * 8]": lambda v: v.F[ramp(tir.Mul(v.i, tir.const(8)), 1, 8)],
    "F[i:i + 32:4]": lambda v: v.F[ramp(v.i, 4, 8)],
    "F[i:i + 1]": lambda v: v.F[v.i],
    "A[i, 4:8] * 2": lambda v: tir.Mul(v.A[v.i, ramp(4, 1, 4)], tir.Broadcast(tir.const(2.0), 4)),
    "F.vload([i], 'float32x4')": lambda v: v.F[ramp(v.i, 1, 4)],
    "F.vload([T.Ramp(i, 1, 4)], predicate=T.Ramp(i, 1, 4) < T.Broadcast(9, 4))": lambda v: tir.BufferLoad(
        v.F, (ramp(v.i, 1, 4),), tir.LT(ramp(v.i, 1, 4), tir.Broadcast(tir.const(9), 4))
    ),
    "A.shape[0] + A.elem_offset": lambda v: tir.Add(tir.const(16), tir.const(0)),
    "A.dtype": lambda v: tir.StringImm("float32"),
}


@pytest.mark.parametrize("text", CASES)
def test_expression(text: str) -> None:
    found, names = read(text)
    assert found is CASES[text](names), f"{found!r}"


def test_let_binds_its_variable_in_the_body_alone() -> None:
    found, names = read("T.Let(i * k + k, where={k: j + 1})")
    assert isinstance(found, tir.Let)
    assert found.value is tir.Add(names.j, one)
    assert found.body is tir.Add(tir.Mul(names.i, found.var), found.var)


def test_a_not_a_number_is_read() -> None:
    found, _ = read("T.float32('nan')")
    assert found is tir.FloatImm("float32", float("nan"))


@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_every_intrinsic_has_a_name(name: str) -> None:
    assert TIR.find(name.removeprefix("tir.")) is not None


def test_expressions_also_work_outside_of_scripts() -> None:
    assert T.float32(0) is tir.const(0.0)
    assert T.exp(T.float32(1)) is call("float32", "exp", 1.0)
    assert isinstance(T.int32(), tir.Var) and T.int64().dtype == "int64"
    assert isinstance(T.Buffer[(8, 8), "int8"], tir.Buffer) and T.Buffer((4,)).dtype == "float32"
    assert T.handle("float32", "local").type_annotation.storage_scope == "local"
    assert arithmetic.is_const_int(T.max(2, 3), 3) is False, "the node, as in a script"
