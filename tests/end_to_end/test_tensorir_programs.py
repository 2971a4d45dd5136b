"""Programs as courses and papers on TensorIR write them: parsed, scheduled, built, run and compared with NumPy.

Python evaluates their annotations here, as in most programs: there is no `from __future__ import annotations`.
"""

# mypy: disable-error-code="valid-type, name-defined, attr-defined, arg-type, index, misc, return-value"

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.ir.module import IRModule
from tensorexpr.script import ir as I
from tensorexpr.script import tir as T
from tensorexpr.tir.tensor_intrin import x86

N = 32


@tvm.script.ir_module
class MatmulRelu:
    @T.prim_func
    def mm_relu(A: T.Buffer[(32, 32), "float32"], B: T.Buffer[(32, 32), "float32"], C: T.Buffer[(32, 32), "float32"]) -> None:  # noqa: F821
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((32, 32), dtype="float32")
        for i, j, k in T.grid(32, 32, 32):
            with T.block("Y"):
                vi = T.axis.spatial(32, i)
                vj = T.axis.spatial(32, j)
                vk = T.axis.reduce(32, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(32, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


@I.ir_module
class Gemm:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]


def random(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


def assert_product(mod: IRModule, transposed: bool = False) -> None:
    """The module's `main` multiplies 64 x 64 matrices."""
    a, b, c = random(64, 64), random(64, 64), np.zeros((64, 64), "float32")
    tvm.build(mod, target="llvm")["main"](a, b, c)
    np.testing.assert_allclose(c, a @ (b.T if transposed else b), rtol=1e-4, atol=1e-4)


def test_a_product_is_tiled_joined_with_its_consumer_and_timed() -> None:
    sch = tvm.tir.Schedule(MatmulRelu)
    block = sch.get_block("Y", func_name="mm_relu")
    _, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at(sch.get_block("C", "mm_relu"), j0)
    sch.decompose_reduction(block, k)

    lib = tvm.build(sch.mod, target="llvm")
    a, b = tvm.nd.array(random(N, N)), tvm.nd.array(random(N, N) - 0.5)
    c = tvm.nd.empty((N, N), dtype="float32")
    lib["mm_relu"](a, b, c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a.numpy() @ b.numpy(), 0), rtol=1e-4, atol=1e-4)
    timer = lib.time_evaluator("mm_relu", tvm.cpu(), number=2)
    assert timer(a, b, c).mean > 0
    assert "sch.reverse_compute_at(block=b6, loop=l4, preserve_unit_loops=False, index=-1)" in str(sch.trace)


def test_show_prints_the_module_and_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    sch = tir.Schedule(MatmulRelu)
    sch.get_block("Y", "mm_relu")
    sch.show()
    shown = capsys.readouterr().out
    assert "class Module:" in shown and 'b0 = sch.get_block(name="Y", func_name="mm_relu")' in shown
    sch.trace.show()
    MatmulRelu.show(show_meta=False)
    assert capsys.readouterr().out.count("def ") == 2


def test_what_is_printed_is_read_back() -> None:
    again = tvm.script.from_source(MatmulRelu.script())
    tvm.ir.assert_structural_equal(again, MatmulRelu)
    assert tvm.ir.structural_hash(again) == tvm.ir.structural_hash(MatmulRelu)
    assert not tvm.ir.structural_equal(MatmulRelu, Gemm)


def test_tensor_expressions_become_the_same_program() -> None:
    a, b = te.placeholder((N, N), "float32", name="A"), te.placeholder((N, N), "float32", name="B")
    k = te.reduce_axis((0, N), "k")
    y = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="Y")
    c = te.compute((N, N), lambda i, j: tir.max(y[i, j], tir.const(0, "float32")), name="C")
    func = te.create_prim_func([a, b, c]).with_attr({"global_symbol": "mm_relu"})
    tvm.ir.assert_structural_equal(IRModule({"mm_relu": func}), MatmulRelu, map_free_vars=True)


def test_functions_of_sizes_known_at_the_call_are_split_and_run_in_parallel_vectors() -> None:
    @I.ir_module
    class Pair:
        @T.prim_func
        def add(a: T.handle, b: T.handle, c: T.handle) -> None:
            n = T.int32()
            A = T.match_buffer(a, (n,), "float32")
            B = T.match_buffer(b, (n,), "float32")
            C = T.match_buffer(c, (n,), "float32")
            for i in range(n):
                with T.block("C"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = A[vi] + B[vi]

        @T.prim_func
        def relu(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")) -> None:
            for i in T.serial(8):
                with T.block("B"):
                    vi = T.axis.S(8, i)
                    B[vi] = T.max(A[vi], 0.0)

    sch = tir.Schedule(Pair)
    (i,) = sch.get_loops(sch.get_block("C", func_name="add"))
    i0, i1 = sch.split(i, [None, 16])
    sch.vectorize(i1)
    sch.parallel(i0)
    sch.work_on("relu")
    sch.unroll(sch.get_loops(sch.get_block("B"))[0])
    lib = tvm.build(sch.mod, "llvm")
    x, total = random(37), np.zeros(37, "float32")
    lib["add"](x, x, total)
    np.testing.assert_array_equal(total, 2 * x)
    y, positive = random(8), np.zeros(8, "float32")
    lib["relu"](y, positive)
    np.testing.assert_array_equal(positive, np.maximum(y, 0))


def test_loops_of_any_length_are_fused_and_split_again() -> None:
    @T.prim_func
    def relu(a: T.handle, b: T.handle) -> None:
        n = T.int64()
        A = T.match_buffer(a, (n, 48), "float32")
        B = T.match_buffer(b, (n, 48), "float32")
        for i, j in T.grid(n, T.int64(48)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    sch = tir.Schedule(relu)
    outer, lanes = sch.split(sch.fuse(*sch.get_loops("B")), [None, 16])
    sch.vectorize(lanes)
    sch.parallel(outer)
    x, y = random(7, 48), np.zeros((7, 48), "float32")
    tvm.build(sch.mod, "llvm")["relu"](x, y)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_functions_are_added_and_replaced_in_modules() -> None:
    mod = tvm.IRModule.from_expr(Gemm["main"])
    mod["other"] = Gemm["main"].with_attr("global_symbol", "other")
    mod.update_func(mod.get_global_var("main"), mod["main"].with_attr("note", 1))
    assert [var.name_hint for var in mod.get_global_vars()] == ["main", "other"]
    assert mod["main"].attrs["note"] == 1 and "note" not in Gemm["main"].attrs


def test_two_classes_of_one_name_are_two_programs() -> None:
    def first() -> IRModule:
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")) -> None:
                for i in range(4):
                    A[i] = 1.0

        return Module

    def second() -> IRModule:
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((8,), "float32")) -> None:
                for i in range(8):
                    A[i] = 2.0

        return Module

    first.__qualname__ = second.__qualname__
    made = [make()["main"] for make in (first, second)]
    assert [func.buffer_map[func.params[0]].shape[0].value for func in made] == [4, 8]


def test_a_guarded_block_is_fused() -> None:
    @T.prim_func
    def exponential(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")) -> None:
        T.func_attr({"global_symbol": "main"})
        for i0, i1 in T.grid(8, 4):
            with T.block("B"):
                vi = T.axis.spatial(30, i0 * 4 + i1)
                T.where(i0 * 4 + i1 < 30)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = T.exp(A[vi], dtype="float32")

    sch = tir.Schedule(exponential)
    sch.fuse(*sch.get_loops("B"))
    x, y = random(30), np.zeros(30, "float32")
    tvm.build(sch.mod["main"], target="llvm")(x, y)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)


def test_a_convolution_of_integers() -> None:
    @T.prim_func
    def conv(A: T.Buffer((1, 1, 8, 8), "int64"), W: T.Buffer((2, 1, 3, 3), "int64"), out: T.Buffer((1, 2, 6, 6), "int64")) -> None:
        for b, co, h, w, ci, kh, kw in T.grid(1, 2, 6, 6, 1, 3, 3):
            with T.block("out"):
                vb, vco, vh, vw, vci, vkh, vkw = T.axis.remap("SSSSRRR", [b, co, h, w, ci, kh, kw])
                with T.init():
                    out[vb, vco, vh, vw] = T.int64(0)
                out[vb, vco, vh, vw] += A[vb, vci, vh + vkh, vw + vkw] * W[vco, vci, vkh, vkw]

    sch = tir.Schedule(conv)
    *_, w, _, kh, _ = sch.get_loops("out")
    sch.reorder(kh, w)
    data, weight, out = np.arange(64).reshape(1, 1, 8, 8), np.arange(18).reshape(2, 1, 3, 3), np.zeros((1, 2, 6, 6), "int64")
    tvm.build(sch.mod, target="llvm")["conv"](data, weight, out)
    windows = np.lib.stride_tricks.sliding_window_view(data[0, 0], (3, 3))
    np.testing.assert_array_equal(out[0], np.einsum("hwyx,cyx->chw", windows, weight[:, 0]))


def register_tile_product() -> None:
    """C += A B^T of 16 x 16 tiles, anywhere in matrices of any row length."""

    @T.prim_func
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16, 16), "float32", offset_factor=1)
        B = T.match_buffer(b, (16, 16), "float32", offset_factor=1)
        C = T.match_buffer(c, (16, 16), "float32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            for i, j, k in T.grid(16, 16, 16):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

    @T.prim_func
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        sa, sb, sc = T.var("int32"), T.var("int32"), T.var("int32")
        A = T.match_buffer(a, (16, 16), "float32", offset_factor=1, strides=[sa, 1])
        B = T.match_buffer(b, (16, 16), "float32", offset_factor=1, strides=[sb, 1])
        C = T.match_buffer(c, (16, 16), "float32", offset_factor=1, strides=[sc, 1])
        with T.block("root"):
            T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            for i, k in T.grid(16, 16):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + A[i, k] * B[j, k]

    tir.TensorIntrin.register("product_16x16x16", description, implementation, override=True)


def test_tiles_are_done_by_a_registered_intrinsic() -> None:
    @T.prim_func
    def product(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vj, vk]

    register_tile_product()
    sch = tir.Schedule(product)
    tiles = [sch.split(loop, factors=[None, 16]) for loop in sch.get_loops("C")]
    (i0, i1), (j0, j1), (k0, k1) = tiles
    sch.reorder(i0, j0, k0, i1, j1, k1)
    tile = sch.blockize(i1)
    sch.decompose_reduction(tile, k0)
    sch.tensorize(tile, "product_16x16x16")
    assert "C_1[i, j] = C_1[i, j] + A_1[i, k] * B_1[j, k]" in str(sch.mod)
    assert_product(sch.mod, transposed=True)
    again = tir.Schedule(product)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_an_intrinsic_of_the_processor_is_written_as_in_scripts_of_2022() -> None:
    @T.prim_func
    def description(
        A: T.Buffer((4,), "uint8", offset_factor=1),
        B: T.Buffer((16, 4), "int8", offset_factor=1),
        C: T.Buffer((16,), "int32", offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            for i, k in T.grid(16, 4):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")

    @T.prim_func
    def implementation(
        A: T.Buffer((4,), "uint8", offset_factor=1),
        B: T.Buffer((16, 4), "int8", offset_factor=1),
        C: T.Buffer((16,), "int32", offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            a = T.reinterpret(A.vload([0], "uint8x4"), dtype="int32")
            b = T.reinterpret(B.vload([0, 0], dtype="int8x64"), dtype="int32x16")
            C[T.ramp(T.int32(0), 1, 16)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"),
                T.uint32(3),
                C.vload([0], dtype="int32x16"),
                T.broadcast(a, 16),
                b,
                dtype="int32x16",
            )

    tir.TensorIntrin.register("dot_of_2022", description, implementation, override=True)
    n = 32
    x, w = te.placeholder((n, n), "uint8", name="X"), te.placeholder((n // 16, n // 4, 16, 4), "int8", name="W")
    k = te.reduce_axis((0, n), name="k")
    y = te.compute(
        (n, n), lambda i, j: te.sum(x[i, k].astype("int32") * w[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k), name="Y"
    )
    sch = tir.Schedule(te.create_prim_func([x, w, y]))
    i, j, kk = sch.get_loops("Y")
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(kk, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction("Y", k0)
    sch.tensorize(j1, "dot_of_2022")
    rng = np.random.default_rng(1)
    data, weight = rng.integers(0, 255, (n, n)).astype("uint8"), rng.integers(-127, 127, (n, n)).astype("int8")
    packed, out = np.ascontiguousarray(weight.reshape(n // 4, 4, n // 16, 16).transpose(2, 0, 3, 1)), np.zeros((n, n), "int32")
    tir.interpreter.interpret(sch.mod["main"], [data, packed, out])
    np.testing.assert_array_equal(out, data.astype("int32") @ weight.astype("int32"))


def test_a_product_with_a_packed_operand_and_a_cached_result() -> None:
    sch = tir.Schedule(Gemm)
    block = sch.get_block("C")
    (i0, i1), (j0, j1), (k0, k1) = (
        sch.split(loop, factors=[None, size]) for loop, size in zip(sch.get_loops(block), (8, 16, 4), strict=True)
    )
    sch.reorder(i0, j0, k0, k1, i1, j1)
    packed = sch.cache_read(block, 1, "global")
    sch.transform_layout(block, ("read", 1), lambda k, j: (j // 16, k, j % 16))
    result = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(result, j0)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.parallel(i0)
    sch.vectorize(sch.get_loops(packed)[-1])
    sch.vectorize(sch.get_loops(sch.decompose_reduction(block, k0))[-1])
    assert "B_global = T.alloc_buffer((4, 64, 16))" in str(sch.mod)
    assert_product(sch.mod)
    again = tir.Schedule(Gemm)
    tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def stochastic(mod: IRModule, seed: int) -> tir.Schedule:
    sch = tir.Schedule(mod, seed=seed)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    factors = sch.sample_perfect_tile(loop=j, n=2)
    assert all(isinstance(factor, tvm.tir.expr.Var) for factor in factors)
    j0, j1 = sch.split(loop=j, factors=factors)
    sch.reorder(i, j0, k, j1)
    sch.annotate(i, "pragma_auto_unroll_max_step", sch.sample_categorical([0, 16], [0.5, 0.5]))
    sch.decompose_reduction(block, k)
    return sch


def test_a_search_at_random_by_hand() -> None:
    tried = [stochastic(Gemm, seed) for seed in (1, 2, 3)]
    for sch in tried:
        assert_product(sch.mod)
    decisions = [[sch.trace.get_decision(inst) for inst in sch.trace.insts if inst.kind.name == "SamplePerfectTile"] for sch in tried]
    assert all(len(found) == 1 and found[0][0] * found[0][1] == 64 for found in decisions)


def test_instructions_know_their_kind() -> None:
    kind = tir.schedule.InstructionKind.get("GetBlock")
    assert kind.is_pure and kind.name == "GetBlock" and not tir.schedule.InstructionKind.get("Split").is_pure
    with pytest.raises(tvm.errors.RecordError, match="no primitive is called 'Spilt'"):
        tir.schedule.InstructionKind.get("Spilt")


def test_the_names_of_intrinsics_for_x86_are_those_of_the_package() -> None:
    assert all(tir.TensorIntrin.get(name) for key, name in vars(x86).items() if key.endswith("INTRIN"))
    assert x86.VNNI_DOT_16x4_INTRIN == "dot_16x4_vnni"


def test_a_decision_is_replaced_and_the_trace_replayed() -> None:
    sch = stochastic(Gemm, 1)
    tile = next(inst for inst in sch.trace.insts if inst.kind.name == "SamplePerfectTile")
    other = tir.Schedule(Gemm)
    sch.trace.with_decision(tile, [4, 16], remove_postproc=False).apply_to_schedule(other, remove_postproc=False)
    assert "T.axis.spatial(64, j_0 * 16 + j_1)" in str(other.mod)
    assert_product(other.mod)


def test_a_reduction_is_divided_after_its_producers_moved_in() -> None:
    @I.ir_module
    class Sums:
        @T.prim_func
        def main(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16,), "float32")) -> None:
            B = T.alloc_buffer((16, 16), "float32")
            C = T.alloc_buffer((16, 16), "float32")
            for i, j in T.grid(16, 16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for i, j in T.grid(16, 16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + T.float32(1)
            for i, j in T.grid(16, 16):
                with T.block("D"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        D[vi] = 0.0
                    D[vi] = D[vi] + C[vi, vj]

    sch = tir.Schedule(Sums)
    sums = sch.get_block("D")
    assert [sch.get(block).name_hint for block in sch.get_producers(sums)] == ["C"]
    sch.compute_inline(sch.get_block("B"))
    i, j = sch.get_loops(sums)
    sch.compute_at(sch.get_block("C"), i)
    outer, _ = sch.split(j, [4, None])
    sch.rfactor(outer, 0)
    x, y = random(16, 16), np.zeros(16, "float32")
    tvm.build(sch.mod, "llvm")["main"](x, y)
    np.testing.assert_allclose(y, (2 * x + 1).sum(1), rtol=1e-4, atol=1e-4)


def test_mistakes_are_shown_where_they_are() -> None:
    text = MatmulRelu.script().replace("A[vi, vk] * B[vk, vj]", "A[vi, vk] * B[vk]").replace("T.reads(A[vi, vk], B[vk, vj])", "")
    with pytest.raises(tvm.errors.ParseError, match="buffer B has 2 dimensions, accessed with 1 indices") as parsing:
        tvm.script.from_source(text)
    line, column = parsing.value.line or 0, parsing.value.column or 0
    assert text.splitlines()[line - 1][column - 1 :].startswith("B[vk]")
    sch = tir.Schedule(MatmulRelu)
    with pytest.raises(tir.ScheduleError, match="Y reduces over k") as scheduling:
        sch.vectorize(sch.get_loops(sch.get_block("Y", "mm_relu"))[2])
    shown = str(scheduling.value).splitlines()
    place = next(number for number, text in enumerate(shown) if "^^^" in text)
    assert "for k in range(32):" in shown[place - 1] and "# tir.For#0" in shown[place - 2]
