"""tensorize: intrinsics in place of loops, with and without reductions around them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import nd, te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.trace import Trace
from tensorexpr.script import tir as T
from tensorexpr.te.intrinsics.integer_dots import GROUPS
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.rewriting import walk
from tests.intrinsics import gemm, gemv, loop_intrin, vector_add

Program = tuple[Schedule, list[Tensor]]


def transposed_matmul(m: int = 6, n: int = 16, length: int = 12) -> list[Tensor]:
    """C = A x B transposed."""
    a, b = te.placeholder((m, length), name="A"), te.placeholder((n, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")]


def tiled(parts: str, factor: int | None, order: str = "outside") -> Program:
    """A matmul by gemv of 8 outputs, over the whole reduction or `factor` of it at a time."""
    args = transposed_matmul()
    c = args[-1]
    s = create_schedule(c.op)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    jo, ji = s[c].split(j, factor=8)
    if factor is None:
        s[c].reorder(i, jo, ji, k)
    else:
        ko, ki = s[c].split(k, factor=factor)
        s[c].reorder(*((i, ko, jo, ji, ki) if order == "outside" else (ko, i, jo, ji, ki)))
    s[c].tensorize(ji, gemv(8, factor or 12, parts))
    return s, args


@pytest.mark.parametrize("order", ["outside", "outermost"])
@pytest.mark.parametrize("factor", [None, 4, 12])
@pytest.mark.parametrize("parts", ["body init update", "body update", "init update", "update"])
def test_reductions_inside_and_around(parts: str, factor: int | None, order: str) -> None:
    assert_schedule_correct(*tiled(parts, factor, order))


@pytest.mark.parametrize("order", ["outside", "outermost"])
def test_a_reduction_of_one_step_outside_starts_and_adds(order: str) -> None:
    """As in TVM: programs for matrix units give a body that only adds, which left their accumulators without a start."""
    assert_schedule_correct(*tiled("adds body init update", 12, order))


def test_a_body_alone_serves_a_reduction_that_lies_inside() -> None:
    assert_schedule_correct(*tiled("body", None))


def test_the_loops_are_gone() -> None:
    s, args = tiled("body init update", 4)
    func = lower(s, args, upto=0)["main"]
    binds = [node for node in walk(func.body) if isinstance(node, tir.BufferBind)]
    assert [b.buffer.name for b in binds].count("c") == 2  # where it starts and where it adds
    assert not any(isinstance(n, tir.Var) and n.name in ("j.inner", "k.inner") for n in walk(func.body))


def test_rows_of_an_elementwise_computation() -> None:
    a, b = te.placeholder((4, 24), name="A"), te.placeholder((4, 24), name="B")
    c = te.compute((4, 24), lambda i, j: b[i, j] + a[i, j], name="C")  # in the other order than the intrinsic
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[1], factor=8)[1], vector_add(8))
    assert_schedule_correct(s, [a, b, c])


def test_the_same_tensor_twice() -> None:
    a = te.placeholder((24,), name="A")
    c = te.compute((16,), lambda i: a[i] + a[i + 8], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], factor=8)[1], vector_add(8))
    assert_schedule_correct(s, [a, c])


def test_a_stencil_reads_one_input_at_two_places() -> None:
    x = te.placeholder((10,), name="x")
    blur = loop_intrin(te.compute((8,), lambda i: x[i] + x[i + 1] * x[i + 2], name="y"), "blur")
    a = te.placeholder((3, 18), name="A")
    c = te.compute((3, 16), lambda i, j: a[i, j] + a[i, j + 1] * a[i, j + 2], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[1], factor=8)[1], blur)
    assert_schedule_correct(s, [a, c])


def test_three_loops_at_once_with_what_is_computed_around_them() -> None:
    """The product is computed in tiles of its reader, its second operand is copied there, and gemm does the work."""
    a, b = te.placeholder((8, 12), name="A"), te.placeholder((12, 16), name="B")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((8, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((8, 16), lambda i, j: c[i, j] * 2.0, name="D")
    s = create_schedule(d.op)
    _io, jo, _, _ = s[d].tile(d.op.axis[0], d.op.axis[1], 4, 8)
    s[c].compute_at(s[d], jo)
    (ci, cj), (ck,) = c.op.axis, c.op.reduce_axis
    ko, ki = s[c].split(ck, factor=6)
    s[c].reorder(ko, ci, cj, ki)
    copy = s.cache_read(b, "local", c)
    s[copy].compute_at(s[c], ko)
    s[c].tensorize(ci, gemm(4, 8, 6))
    assert_schedule_correct(s, [a, b, d])


def test_a_cache_of_the_result_is_tensorized() -> None:
    args = transposed_matmul()
    c = args[-1]
    s = create_schedule(c.op)
    cached = s.cache_write(c, "local")
    _io, jo, _, _ = s[c].tile(c.op.axis[0], c.op.axis[1], 3, 8)
    s[cached].compute_at(s[c], jo)
    i, j = s[cached].op.axis
    s[cached].reorder(i, j, *s[cached].op.reduce_axis)
    s[cached].tensorize(j, gemv(8, 12))
    assert_schedule_correct(s, args)


def test_a_fused_loop_over_tiles_runs_in_parallel() -> None:
    s, args = tiled("body", None)
    c = args[-1]
    i, jo = s[c].leaf_iter_vars[:2]
    s[c].parallel(s[c].fuse(i, jo))
    assert_schedule_correct(s, args)


def test_a_tail_outside_the_region_keeps_its_guard() -> None:
    args = transposed_matmul(m=5)
    c = args[-1]
    s = create_schedule(c.op)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    io, ii = s[c].split(i, factor=2)
    jo, ji = s[c].split(j, factor=8)
    s[c].reorder(io, jo, ii, ji, k)
    s[c].tensorize(ji, gemv(8, 12))
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("parts", ["init update", "update", "body update"])
def test_tails_outside_the_region_guard_the_first_value_too(parts: str) -> None:
    """Rows and a reduction with tails, both outside: the first value is wanted for every row, whatever the reduction does."""
    a, b = te.placeholder((5, 7, 4), name="A"), te.placeholder((8, 7, 4), name="B")
    k, r = te.reduce_axis((0, 7), name="k"), te.reduce_axis((0, 4), name="r")
    c = te.compute((5, 8), lambda i, j: te.sum(a[i, k, r] * b[j, k, r], axis=[k, r]), name="C")
    inner_a, inner_b = te.placeholder((1, 1, 4), name="a"), te.placeholder((8, 1, 4), name="b")
    inner = te.reduce_axis((0, 4), name="r")
    out = te.compute((1, 8), lambda i, j: te.sum(inner_a[0, 0, inner] * inner_b[j, 0, inner], axis=inner), name="c")
    for order in ("rows first", "reduction first"):
        s = create_schedule(c.op)
        io, ii = s[c].split(c.op.axis[0], factor=2)
        ko, ki = s[c].split(k, factor=3)
        s[c].reorder(*((io, ii, ko, ki) if order == "rows first" else (ko, io, ki, ii)), c.op.axis[1], r)
        s[c].tensorize(c.op.axis[1], loop_intrin(out, "rows", parts))
        assert_schedule_correct(s, [a, b, c])


def test_products_that_fit_only_in_the_other_order() -> None:
    """The first try takes B for x before it sees that the constants differ; the second starts afresh."""
    x, y = te.placeholder((8,), name="x"), te.placeholder((8,), name="y")
    weighted = loop_intrin(te.compute((8,), lambda i: x[i] * 2.0 + y[i] * 3.0, name="z"), "weighted")
    a, b = te.placeholder((16,), name="A"), te.placeholder((16,), name="B")
    c = te.compute((16,), lambda i: b[i] * 3.0 + a[i] * 2.0, name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], factor=8)[1], weighted)
    assert_schedule_correct(s, [a, b, c])


def test_symbolic_rows() -> None:
    n = te.size_var("n")
    a, b = te.placeholder((n, 12), name="A"), te.placeholder((8, 12), name="B")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((n, 8), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[1], gemv(8, 12))
    assert_schedule_correct(s, [a, b, c], sizes=({n: 1}, {n: 7}))


def test_a_value_to_start_from_is_kept() -> None:
    a, b = te.placeholder((6, 12), name="A"), te.placeholder((8, 12), name="B")
    bias = te.placeholder((8,), name="bias")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((6, 8), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k, init=bias[j]), name="C")
    for factor in (None, 4):
        s = create_schedule(c.op)
        (i, j), (k0,) = s[c].op.axis, s[c].op.reduce_axis
        if factor is not None:
            ko, ki = s[c].split(k0, factor=factor)
            s[c].reorder(i, ko, j, ki)
        s[c].tensorize(j, gemv(8, factor or 12))
        assert_schedule_correct(s, [a, b, bias, c])


def test_scalar_parameters_take_the_value_of_the_place() -> None:
    factor = te.var("factor", "float32")
    x = te.placeholder((8,), name="x")
    scale = loop_intrin(te.compute((8,), lambda i: x[i] * factor, name="y"), "scale", scalars=[factor])
    a, weights = te.placeholder((4, 16), name="A"), te.placeholder((4,), name="W")
    c = te.compute((4, 16), lambda i, j: a[i, j] * weights[i], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[1], factor=8)[1], scale)
    assert_schedule_correct(s, [a, weights, c])


def test_a_strided_parameter_and_a_free_stride() -> None:
    s, args = tiled("init update", 4)
    _a, b, _c = args
    strided = tir.decl_buffer(b.shape, b.dtype, "B", strides=[20, 1])
    func = lower(s, args, binds={b: strided}, upto=3)["main"]
    rng = np.random.default_rng(0)
    x, y, z = rng.random((6, 12), np.float32), rng.random((16, 20), np.float32)[:, :12], np.zeros((6, 16), np.float32)
    interpret(func, [x, y, z])
    np.testing.assert_allclose(z, x @ y.T, rtol=1e-5)


def test_a_c_function_does_the_work() -> None:
    """It is handed pointers to the boxes and the stride of one, as the buffers are bound; the product is computed in its reader."""
    a, b = te.placeholder((4,), name="a"), te.placeholder((8, 4), name="b")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    rows = tir.decl_buffer(b.shape, b.dtype, "b", offset_factor=1, strides=[te.var("s1"), 1])

    def fcompute(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> Any:
        reset = tir.call_extern("int32", "reset", outs[0].access_ptr("w"))
        pointers = (outs[0].access_ptr("rw"), ins[0].access_ptr("r"), ins[1].access_ptr("r"), ins[1].strides[0])
        return None, reset, tir.call_extern("int32", "update", *pointers)

    intrin = te.decl_tensor_intrin(c.op, fcompute, "by_hand", {b: rows})
    args = transposed_matmul()
    product = args[-1]
    doubled = te.compute((6, 16), lambda i, j: product[i, j] * 2.0, name="D")
    s = create_schedule(doubled.op)
    jo, _ = s[doubled].split(doubled.op.axis[0], factor=3)
    s[product].compute_at(s[doubled], jo)
    (i, j), (k0,) = product.op.axis, product.op.reduce_axis
    jo, ji = s[product].split(j, factor=8)
    ko, ki = s[product].split(k0, factor=4)
    s[product].reorder(i, jo, ko, ji, ki)
    s[product].tensorize(ji, intrin)

    def reset(out: Any) -> int:
        out[:8] = 0
        return 0

    def update(out: Any, x: Any, y: Any, stride: int) -> int:
        for n in range(8):
            out[n] += x @ y[n * stride : n * stride + 4]
        return 0

    rng = np.random.default_rng(0)
    x, y = rng.random((6, 12), np.float32), rng.random((16, 12), np.float32)
    for phase in range(4):
        found = np.zeros((6, 16), np.float32)
        interpret(lower(s, [*args[:2], doubled], upto=phase)["main"], [x, y, found], externs={"reset": reset, "update": update})
        np.testing.assert_allclose(found, 2 * (x @ y.T), rtol=1e-5)


def test_json_and_python_round_trip() -> None:
    s, args = tiled("body init update", 4)
    trace = Trace.from_json(json.loads(json.dumps(s.trace.to_json())))
    again = Schedule(s.outputs, trace)
    assert again.trace == s.trace
    names: dict[str, Any] = {t.name: t for t in args}
    fresh = create_schedule(args[-1].op)
    exec(s.as_python(), {"te": te, "s": fresh, **names})  # the program that the schedule prints
    assert fresh.trace == s.trace
    assert lower(again, args)["main"].script() == lower(s, args)["main"].script()


def test_it_is_drawn_and_explained() -> None:
    s, _ = tiled("body", None)
    assert "tensorize" in str(s)
    assert "j.inner: tensorized with gemv" in s.explain()


def test_the_last_of_a_name_is_what_the_name_means() -> None:
    first, second = gemv(4, 4, name="twice"), gemv(8, 4, name="twice")
    assert te.TensorIntrin.get("twice") is second
    assert te.TensorIntrin.get("twice", first.digest) is first
    assert gemv(4, 4, name="twice").digest == first.digest != second.digest


def test_built_ins_are_known_by_name() -> None:
    found = te.TensorIntrin.get("dot_16x4_vnni")
    assert found is te.intrinsics.dot_16x4_vnni()
    assert str(found.op.output(0).dtype) == "int32"


@pytest.mark.parametrize("name", ["dot_16x4_vnni", "dot_16x2_avx512_bf16", *(group.name for group in GROUPS)])
def test_what_a_built_in_says_is_what_it_does(name: str) -> None:
    """Its description, evaluated, against its statements, interpreted: everything at once, and first value then update."""
    intrin = te.TensorIntrin.get(name)
    rng = np.random.default_rng(3)
    inputs = {t: _random(rng, t) for t in intrin.inputs}
    out = intrin.op.output(0)
    from tensorexpr.te.reference import evaluate

    (wanted,) = evaluate([out], inputs)
    assert intrin.body is not None and intrin.reduce_init is not None and intrin.reduce_update is not None
    whole, parts = np.full_like(wanted, 7), np.full_like(wanted, 9)
    arrays = list(inputs.values())
    interpret(intrin.body, [*arrays, whole])
    interpret(intrin.reduce_init, [*arrays, parts])
    interpret(intrin.reduce_update, [*arrays, parts])
    interpret(intrin.reduce_update, [*arrays, parts])
    np.testing.assert_allclose(whole, wanted, rtol=1e-6)
    with np.errstate(over="ignore"):  # sums wrap
        np.testing.assert_allclose(parts, 2 * wanted, rtol=1e-6)


def _random(rng: np.random.Generator, tensor: Tensor) -> Any:
    shape = tuple(int(str(n)) for n in tensor.shape)
    if tensor.dtype == "bfloat16":
        import ml_dtypes

        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    info = np.iinfo(tensor.dtype)
    return rng.integers(info.min, info.max, shape, tensor.dtype, endpoint=True)


DOTS = {
    "dot_16x4_vnni": ("uint8", "int8", "int32", 4, "avx512vnni"),
    "dot_16x2_avx512_bf16": ("bfloat16", "bfloat16", "float32", 2, "avx512bf16"),
}


def packed_gemm(name: str, m: int, n: int, length: int) -> Program:
    """A register tile of 8 rows by 2 vectors of 16 columns, accumulated over all of the reduction."""
    left, right, out, group, _ = DOTS[name]
    a, b = te.placeholder((m, length), left, name="A"), te.placeholder((n // 16, length // group, 16, group), right, name="B")
    k = te.reduce_axis((0, length), name="k")
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, k].astype(out) * b[j // 16, k // group, j % 16, k % group].astype(out), axis=k), name="C"
    )
    s = create_schedule(c.op)
    (i, j), (k0,) = c.op.axis, c.op.reduce_axis
    jo, ji = s[c].split(j, factor=16)
    ko, ki = s[c].split(k0, factor=group)
    io, ii = s[c].split(i, factor=8)
    joo, joi = s[c].split(jo, factor=2)
    s[c].reorder(joo, io, ko, ii, joi, ji, ki)
    s[c].unroll(ii)
    s[c].unroll(joi)
    s[c].tensorize(ji, te.TensorIntrin.get(name))
    return s, [a, b, c]


@pytest.mark.parametrize("name", DOTS)
def test_dot_products_in_every_phase(name: str) -> None:
    native = DOTS[name][-1] in tensorexpr.target.Target("llvm").features
    assert_schedule_correct(*packed_gemm(name, 16, 32, 16), compiled=native)


@pytest.mark.parametrize("name", DOTS)
def test_accumulators_live_in_registers_over_the_whole_reduction(name: str) -> None:
    s, args = packed_gemm(name, 16, 64, 64)
    func = lower(s, args)["main"]
    loops = [node for node in walk(func.body) if isinstance(node, tir.For) and node.loop_var.name == "k.outer"]
    stores = [node for node in walk(loops[0].body) if isinstance(node, tir.BufferStore)]
    assert len(stores) == 16 and {store.buffer.scope() for store in stores} == {"register"}


@pytest.mark.parametrize("name", DOTS)
def test_the_machine_code_has_no_spills(name: str) -> None:
    from tensorexpr.codegen.spills import count_spills

    s, args = packed_gemm(name, 16, 64, 64)
    asm = tensorexpr.build(s, args, "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver5").get_source("asm")
    assert count_spills(asm).total == 0
    word = "vpdpbusd" if "vnni" in name else "vdpbf16ps"
    assert asm.count(word) >= 16


def test_compiled_dot_products_equal_interpreted_ones_bit_for_bit() -> None:
    import ml_dtypes

    if "avx512bf16" not in tensorexpr.target.Target("llvm").features:
        pytest.skip("the instruction is executed, and this CPU has no avx512bf16")
    s, args = packed_gemm("dot_16x2_avx512_bf16", 8, 32, 32)
    rng = np.random.default_rng(5)
    special = np.array([0.0, -0.0, 1e-40, 3e38, -3e38, np.inf, 1.0, -1.0], np.float32)
    for scale in (1.0, 1e-19, 1e15):
        a = (rng.standard_normal((8, 32)) * scale).astype(ml_dtypes.bfloat16)
        b = (rng.standard_normal((2, 16, 16, 2)) * scale).astype(ml_dtypes.bfloat16)
        a[:, 5] = special.astype(ml_dtypes.bfloat16)
        wanted = np.zeros((8, 32), np.float32)
        interpret(lower(s, args)["main"], [a, b, wanted])
        out = nd.empty((8, 32))
        tensorexpr.build(s, args)(nd.array(a), nd.array(b), out)
        found = out.numpy()
        both = np.isnan(wanted) & np.isnan(found)
        assert (both | (found.view(np.int32) == wanted.view(np.int32))).all()


@T.prim_func
def ramped(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32", offset_factor=1)
    B = T.match_buffer(b, (8,), "int32", offset_factor=1)
    C = T.match_buffer(c, (8,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(A[0:8], B[0:8])
        T.writes(C[0:8])
        for i in range(8):
            with T.block("update"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] * B[vi] + (vi * 2 + 2)


@pytest.mark.parametrize(("step", "fits"), [(2, True), (3, False)])
def test_blocks_match_as_stages_do(step: int, fits: bool) -> None:
    """The order of factors and terms doesn't matter, and an integer that is computed in another way is the same."""
    tir.TensorIntrin.register("test_ramped", ramped, ramped, override=True)
    a, b = te.placeholder((8,), "int32", "A"), te.placeholder((8,), "int32", "B")
    sch = tir.Schedule(te.create_prim_func([a, b, te.compute((8,), lambda i: (i + 1) * step + b[i] * a[i], "C")]))
    if fits:
        sch.tensorize(sch.get_loops("C")[0], "test_ramped")
        assert "T.match_buffer(B[0:8]" in sch.mod.script()
        return
    with pytest.raises(ScheduleError, match="stands where the description has"):
        sch.tensorize(sch.get_loops("C")[0], "test_ramped")
