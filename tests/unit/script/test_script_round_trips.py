"""Every kind of statement and expression reads back as it is printed, with sugar and without."""

from __future__ import annotations

import pytest

from tensorexpr.script import from_source
from tensorexpr.tir.structural_difference import assert_structural_equal

HEADER = '@T.prim_func\ndef f(a: T.handle, B: T.Buffer((16, 16), "float32"), n: T.int32):\n'
BODIES = [
    "A = T.match_buffer(a, (16, 16), axis_separators=[1])\nA[0, 0] = 1.0",
    'A = T.match_buffer(a, (16, 16), buffer_type="auto")\nA[0, 0] = 1.0',
    'A = T.match_buffer(a, (n, n), strides=[T.int32(), 1], elem_offset=T.int32(), offset_factor=8, align=128, scope="shared")\n'
    "A[0, 0] = 1.0",
    'A = T.match_buffer(a, (16,), "e4m3_float8")\nA[0] = T.e4m3_float8(1)',
    'A = T.match_buffer(a, (16,), "bfloat16")\nA[0] = T.bfloat16(1)',
    'A = T.match_buffer(a, (16,), "int4")\nA[0] = T.int4(1)',
    "B[0, 0:T.vscale() * 4] = B[1, 0:T.vscale() * 4]",
    'T.attr(0, "hexagon", 1)\nB[0, 0] = 1.0',
    'T.attr({"a": 1}, "x", 1)\nB[0, 0] = 1.0',
    'T.attr(T.iter_var(T.int32(), None, "ThreadIndex", "threadIdx.x"), "thread_extent", 4)\nB[0, 0] = 1.0',
    'tx = T.env_thread("threadIdx.x")\nT.launch_thread(tx, 32)\nB[0, tx] = 1.0',
    'x = T.launch_thread("vthread.x", 2)\nB[0, x] = 1.0',
    'T.call_packed("f", B.data, n)\nT.call_extern("void", "g", T.tvm_access_ptr(T.type_annotation("float32"), B.data, 0, 16, 1))',
    'p: T.handle("float32") = T.call_extern("handle", "malloc", 4)\nC = T.decl_buffer((4,), data=p)\nC[0] = 1.0',
    'with T.LetStmt(T.address_of(B[0, 0])) as q:\n    T.call_extern("int32", "f", q)',
    'T.evaluate(T.reinterpret("int32", B[0, 0]))',
    "T.evaluate(T.Shuffle([B[0, 0:4], B[1, 0:4]], [0, 5]))",
    'T.evaluate(T.tvm_struct_get(a, 0, 1, "handle"))\nT.evaluate(T.tvm_struct_set(a, 0, 1, n))',
    'T.func_attr({"tir.noalias": True, "x": [1, "a", 2.0], "y": {"b": None}, "target": T.target("llvm", host="llvm"), "z": T.int64(3)})\n'
    'B[0, 0] = T.float32("-inf")',
    'B[0, 0] = T.min_value("float32") + T.infinity("float32") + T.max(1.0, B[0, 0])',
    'for i in T.thread_binding(4, thread="blockIdx.x", annotations={"a": 1}):\n'
    '    for j in T.serial(2, n, annotations={"b": "c"}):\n'
    "        B[i, j] = 1.0",
    "for i, j in T.grid(n, (1, 4)):\n    B[i, j] = 1.0",
    'with T.block("x"):\n    T.where(n < 3)\n    T.block_attr({"a": T.bool(True), "b": [1, 2]})\n    B[0, 0] = 1.0',
    "for i in range(4):\n"
    '    with T.block("x"):\n'
    "        v = T.axis.opaque(4, i)\n"
    "        w = T.axis.scan((1, 5), i + 1)\n"
    '        C = T.match_buffer(B[v, 0:16], (16,), strides=("s",), elem_offset="o")\n'
    "        C[w] = 1.0",
    'assert n < 4, "small"\nwhile n < 3:\n    T.evaluate(0)\nif n == 1:\n    pass\nelse:\n    T.evaluate(1)',
    'T.realize(B[0:4, 0:4], "local", n > 1)\nB[0, 0] = 1.0',
    'with T.allocate([4], "float32", "local", n < 3, annotations={"a": 1}) as p:\n    T.evaluate(p)',
    "x: T.bool = n < 3\nT.evaluate(x)",
    "T.evaluate(T.Let(n + x, where={x: n * 2}))",
    'y = T.uint32(4294967295)\nT.evaluate(T.cast(y, "uint64") + T.uint64(1))',
    "T.evaluate(T.truncdiv(n, 2) + T.truncmod(n, 3) + n // 2 - n % 3)",
    "T.evaluate(T.if_then_else(n < 3, n, 2))\nT.evaluate(~n)\nT.evaluate(n << 2 | 3 ^ n & 1)",
    "T.evaluate(-n + (-1) + T.int8(-3))\nT.evaluate(not (n < 3))\nT.evaluate(n < 3 and (n > 1 or n == 7))",
    'T.evaluate(T.ceildiv(n, 4))\nT.evaluate(T.popcount(n))\nT.evaluate(T.call_intrin("int32", "tir.clz", n))',
    "T.assume(n > 3)\nT.evaluate(T.undef())\nT.evaluate(T.tvm_tuple(n, n))",
    'T.evaluate(T.lookup_param("p0"))\nT.evaluate(T.TVMBackendAllocWorkspace(1, 0, T.uint64(4), 2, 32))',
    "T.evaluate(T.dp4a(n, n, n))\nT.evaluate(T.start_profile_intrinsic(3))\nT.evaluate(T.isnan(B[0, 0]))",
    'T.evaluate("a\\nb")\nT.evaluate(T.StringImm("x"))',
    'C = T.Buffer((16,), data=B.data, elem_offset=n)\nC[0] = 1.0\nT.evaluate(B.access_ptr("rw"))',
]


@pytest.mark.parametrize("body", BODIES)
def test_it_reads_back(body: str) -> None:
    func = from_source(HEADER + "".join(f"    {line}\n" for line in body.split("\n")))
    assert_structural_equal(from_source(func.script()), func)
    assert_structural_equal(from_source(func.script(syntax_sugar=False)), func)
