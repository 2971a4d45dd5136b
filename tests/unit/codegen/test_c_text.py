"""C text: what functions look like, and what has no C. No compiler is needed; `runtime/test_c_module.py` runs such text."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.codegen.c_module import emit_c
from tensorexpr.codegen.c_types import Names, float_literal, int_literal
from tensorexpr.codegen.c_unused import without_unused
from tensorexpr.errors import ArgumentError, CodegenError
from tensorexpr.target import Target
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import Broadcast, Call, IntImm, PrimExpr, Shuffle, StringImm, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import AssertStmt, Evaluate, ForKind, Stmt, seq

from .harness import flat, load, loop, primfunc, ramp, store

A, B, OUT = (flat(name, 16) for name in ("a", "b", "out"))
C = Target("c")


def body_of(func: PrimFunc) -> str:
    """The lines between the parameters and the end of the only function."""
    text = emit_c({"f": func}, C).text
    head = r"\{\n(?:  [^\n]*(?:\(\(TVMValue\*\)args\)|_handle\)\[0\])[^\n]*\n)*"
    found = re.search(rf"{head}(.*)  return 0;\n\}}", text[text.rindex("int32_t f(") :], re.DOTALL)
    assert found is not None, text
    return found[1]


def body(stmt: Stmt, *params: Any) -> str:
    return body_of(primfunc(params or (A, B, OUT), stmt))


def value(expr: PrimExpr) -> str:
    """How an expression is written where it is stored."""
    out = flat("out", 16, expr.dtype)
    return body(store(out, 0, expr), A, B, out).strip().removeprefix("out[0] = ").removesuffix(";")


def test_a_product_reads_like_a_program() -> None:
    k = te.reduce_axis((0, 4), "k")
    a, b = te.placeholder((2, 4), name="A"), te.placeholder((4, 3), name="B")
    c = te.compute((2, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    module = tvm.build(te.create_schedule(c.op), [a, b, c], "c", name="product")
    source = module.get_source()
    assert source.startswith("// target: c -keys=cpu\n")
    assert (
        "TVM_DLL int32_t product(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, "
        "void* resource_handle) {\n"
        "  void* A_handle = (((TVMValue*)args)[0].v_handle);\n"
        "  void* B_handle = (((TVMValue*)args)[1].v_handle);\n"
        "  void* C_handle = (((TVMValue*)args)[2].v_handle);\n"
        "  float* restrict A = (float*)(((DLTensor*)A_handle)[0].data);\n"
        "  float* restrict B = (float*)(((DLTensor*)B_handle)[0].data);\n"
        "  float* restrict C = (float*)(((DLTensor*)C_handle)[0].data);\n"
        "  for (int32_t i = 0; i < 2; ++i) {\n"
        "    for (int32_t j = 0; j < 3; ++j) {\n"
        "      float C_1;\n"
        "      C_1 = 0.0f;\n"
        "      for (int32_t k = 0; k < 4; ++k) {\n"
        "        C_1 = C_1 + A[i * 4 + k] * B[k * 3 + j];\n"
        "      }\n"
        "      C[i * 3 + j] = C_1;\n"
        "    }\n"
        "  }\n"
        "  return 0;\n"
        "}\n"
    ) in source
    assert (module.type_key, module.format, module.imported_modules, module.is_dso_exportable) == ("c", "c", [], True)
    assert module.get_source("c") == source
    with pytest.raises(ArgumentError, match="there is 'c'; for 'll' and 'asm' build for target llvm"):
        module.get_source("ll")


def test_a_lowered_module_and_a_micro_target_are_built_alike() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    targets = ("c", tvm.target.Target("c", host="llvm"), tvm.target.Target("c -keys=arm_cpu,cpu -mcpu=cortex-m4"), tvm.target.micro("host"))
    loops = {tvm.build(tvm.lower(s, [a, b], name="f"), target=target).get_source().split("\n", 1)[1] for target in targets}
    assert len(loops) == 1
    assert "B[i] = A[i] + 1.0f;" in loops.pop()


def test_vectors_are_loops_over_lanes() -> None:
    index = ramp(0, 8)
    assert body(store(OUT, index, load(A, index) + Broadcast(load(B, 3), 8))) == (
        "  for (int32_t lane = 0; lane < 8; ++lane) {\n    out[lane] = a[lane] + b[3];\n  }\n"
    )


def test_lanes_that_read_what_others_write_are_computed_first() -> None:
    moved = body(store(OUT, ramp(1, 4), load(OUT, ramp(0, 4))))
    assert moved == (
        "  float out_1[4];\n"
        "  for (int32_t lane = 0; lane < 4; ++lane) {\n    out_1[lane] = out[lane];\n  }\n"
        "  for (int32_t lane = 0; lane < 4; ++lane) {\n    out[lane + 1] = out_1[lane];\n  }\n"
    )


def test_lanes_that_are_picked_are_statements() -> None:
    turned = Shuffle((load(A, ramp(0, 2)), load(B, ramp(4, 2))), (3, 0))
    assert body(store(OUT, ramp(0, 2), turned)) == "  out[0] = b[5];\n  out[1] = a[0];\n"


def test_a_store_under_a_mask_reads_only_where_it_writes() -> None:
    index, size = ramp(0, 8), Var("n", "int32")
    inside = ramp(0, 8) < Broadcast(size, 8)
    text = body(store(OUT, index, load(A, index, inside), inside), A, OUT, size)
    assert text == "  for (int32_t lane = 0; lane < 8; ++lane) {\n    if (lane < n) {\n      out[lane] = a[lane];\n    }\n  }\n"


def test_operators_have_the_parentheses_that_they_need() -> None:
    x, y, z = (load(A, i) for i in range(3))
    assert value(x - (y - z)) == "a[0] - (a[1] - a[2])"
    assert value((x + y) * z / x) == "(a[0] + a[1]) * a[2] / a[0]"
    assert value(tir.And(x < y, tir.Or(y < z, tir.Not(x < z)))) == "a[0] < a[1] && (a[1] < a[2] || !(a[0] < a[2]))"
    assert value(tir.Select(x < y, x, y) + z) == "(a[0] < a[1] ? a[0] : a[1]) + a[2]"


def test_division_is_an_operator_where_it_means_the_same() -> None:
    out, n = flat("out", 64, "int32"), Var("n", "int32")
    inside = body(loop("i", 64, lambda i: store(out, i, tir.floordiv(i, 4) + tir.floormod(i, 4))), out)
    assert "out[i] = i / 4 + i % 4;" in inside
    assert body(store(out, 0, tir.floordiv(n, 4)), out, n) == "  out[0] = floordiv_int32(n, 4);\n"
    assert body(store(out, 0, tir.truncdiv(n, 4)), out, n) == "  out[0] = n / 4;\n"
    assert body(store(out, 0, tir.truncdiv(n, n)), out, n) == "  out[0] = div_int32(n, n);\n"


def test_what_is_large_and_used_twice_gets_a_name() -> None:
    x = load(A, 0)
    large = intrin.exp(x * x + x * 3.0 + load(B, 1) * 2.0)
    assert body(store(OUT, 0, large * large)) == ("  const float t = expf(a[0] * a[0] + a[0] * 3.0f + b[1] * 2.0f);\n  out[0] = t * t;\n")
    # Under a condition it is computed there: elsewhere it may read what isn't there.
    chosen = body(store(OUT, 0, intrin.if_then_else(x < 1.0, large * large, 0.0)))
    assert chosen.index("if (a[0] < 1.0f) {") < chosen.index("const float t =")


def test_calls_that_do_something_keep_their_order() -> None:
    called = [Call("float32", "tir.call_extern", (StringImm(name), load(A, 0))) for name in ("first", "second")]
    assert body(store(OUT, 0, load(A, 1) + called[0] + called[1])) == (
        "  const float t = a[1];\n  const float t_1 = a[0];\n  const float t_2 = first(t_1);\n"
        "  const float t_3 = a[0];\n  const float t_4 = second(t_3);\n  out[0] = t + t_2 + t_4;\n"
    )


def test_foreign_functions_are_declared_unless_source_that_came_along_has_them() -> None:
    call = Call("int32", "tir.call_extern", (StringImm("scale"), A.data, IntImm("int32", 3)))
    plain = primfunc((A,), Evaluate(call))
    assert "int32_t scale(void*, int32_t);" in emit_c({"f": plain}, C).text
    source = "static int32_t scale(float* x, int32_t n) { return 0; }"
    brought = primfunc((A,), tir.AttrStmt(Var("i", "int32"), "pragma_import_c", StringImm(source), Evaluate(call)))
    text = emit_c({"f": brought}, C).text
    assert source in text
    assert "int32_t scale(void*, int32_t);" not in text
    assert "  scale(a, 3);\n" in text


def test_parallel_loops_are_those_of_openmp() -> None:
    text = body(loop("i", 16, lambda i: store(OUT, i, load(A, i)), ForKind.PARALLEL))
    assert text.startswith("#ifdef _OPENMP\n#pragma omp parallel for\n#endif\n  for (int32_t i = 0; i < 16; ++i) {\n")


def test_failures_give_back_memory_and_their_number() -> None:
    n = Var("n", "int32")
    space = flat("space", n)
    check = AssertStmt(n > 2, StringImm("too few"), store(space, 0, load(A, 0)))
    func = primfunc((A, n), tir.Allocate(space.data, "float32", (n,), IntImm("bool", 1), check))
    emitted = emit_c({"f": func}, C)
    assert emitted.signatures["f"].errors == ("out of memory: no workspace for space", "too few")
    assert "    free(space);\n    return 2;  /* too few */\n" in emitted.text


def test_a_failure_within_a_parallel_loop_is_returned_behind_it() -> None:
    def checked(i: Var) -> Stmt:
        return AssertStmt(load(A, i) > 0.0, StringImm("not positive"), store(OUT, i, load(A, i)))

    text = body(loop("i", 16, checked, ForKind.PARALLEL))
    for line in ("failed_next_i = 1;  /* not positive */", "goto next_i;", "next_i:;", "return failed_next_i;"):
        assert line in text
    assert "return 1;" not in text


def test_unused_definitions_go_with_what_only_they_use() -> None:
    lines = ["  const int a = f(x);", "  const int b = a + 1;", "  int c;", "  c = 2;", "  float* p = (float*)(q);", "  p[0] = d;"]
    assert without_unused(lines, set()) == ["  int c;", "  (void)c;", "  c = 2;", "  float* p = (float*)(q);", "  p[0] = d;"]
    assert without_unused(lines[:2], {"a"}) == ["  f(x);"]


def test_constants_are_what_they_were() -> None:
    assert [float_literal(x, "float32") for x in (0.1, 1.0, -0.0, 1e30, float("inf"))] == ["0.1f", "1.0f", "-0.0f", "1e+30f", "INFINITY"]
    assert float_literal(0.1, "float64") == "0.1"
    assert int_literal(-(1 << 31), "int32") == "(-2147483647 - 1)"
    assert int_literal((1 << 64) - 1, "uint64") == "18446744073709551615ull"


def test_names_are_those_of_c() -> None:
    names = Names()
    assert [names.fresh(hint) for hint in ("x.outer", "x_outer", "int", "3d", "log")] == ["x_outer", "x_outer_1", "_int", "_3d", "log_1"]


@pytest.mark.parametrize(
    ("stmt", "message"),
    [
        (store(flat("w", 16, "int4"), 0, Call("int4", "tir.clz", (load(flat("w", 16, "int4"), 0),))), "int4 has no C: cast it"),
        (Evaluate(Call("int32", "tir.call_llvm_intrin", (StringImm("llvm.x86.rdtsc"),))), "an intrinsic of LLVM"),
        (loop("i", 4, lambda i: store(OUT, i, 0.0), ForKind.UNROLLED), "which is unrolled, has no C; build for target llvm"),
        (store(OUT, 0, Var("m", "float32")), "the variable m is used, but nothing defines it"),
    ],
)
def test_what_has_no_c_is_refused_by_name(stmt: Stmt, message: str) -> None:
    with pytest.raises((CodegenError, tvm.TVMError), match=message):
        body(stmt, OUT, flat("w", 16, "int4"))


def test_names_that_are_none_of_c_are_refused() -> None:
    with pytest.raises(CodegenError, match="a C function can't be called 'my-f': set a global_symbol"):
        emit_c({"my-f": primfunc((A,), seq(), name="my-f")}, C)
