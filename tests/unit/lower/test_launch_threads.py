"""Threads as they are launched: what `lower` gives of kernels, and how it runs before barriers are planned."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import LoweringError
from tensorexpr.lower.context import PassContext
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret
from tests.gpu_blocks import product

DATA = np.random.default_rng(0).random(64, np.float32)


def reversed_rows() -> tuple[te.Schedule, list[te.Tensor]]:
    """B is A with every row turned round, by way of shared memory that 8 threads fill; two virtual threads share it."""
    a = te.placeholder((4, 16), name="A")
    b = te.compute((4, 16), lambda i, j: a[i, 15 - j], name="B")
    s = te.create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    i, j = s[b].op.axis
    v, j = s[b].split(j, nparts=2)
    s[b].bind(i, te.thread_axis("blockIdx.x"))
    s[b].bind(v, te.thread_axis("vthread"))
    s[b].bind(j, te.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[b], i)
    _, t = s[copy].split(s[copy].op.axis[1], factor=8)
    s[copy].bind(t, te.thread_axis("threadIdx.x"))
    return s, [a, b]


@pytest.mark.parametrize("upto", (0, 1, 2, 3))
def test_every_phase_computes_the_same(upto: int) -> None:
    func = tvm.lower(*reversed_rows(), upto=upto)["main"]
    lines = [line.strip() for line in func.script().splitlines()]
    assert ('blockIdx_x = T.launch_thread("blockIdx.x", 4)' in lines) is (upto > 0)
    assert lines.count('threadIdx_x = T.launch_thread("threadIdx.x", 8)') == min(upto, 1)
    seen = np.zeros((4, 16), np.float32)
    interpret(func, [DATA.reshape(4, 16), seen])
    np.testing.assert_array_equal(seen, DATA.reshape(4, 16)[:, ::-1])


def test_a_lowered_module_is_built_like_its_schedule() -> None:
    made = np.zeros((4, 16), np.float32)
    for lowered in (tvm.lower(*reversed_rows()), tvm.lower(tvm.lower(*reversed_rows(), upto=1))):
        tvm.build(lowered, target="llvm")(DATA.reshape(4, 16), made)
        np.testing.assert_array_equal(made, DATA.reshape(4, 16)[:, ::-1])


def test_passes_of_the_user_see_launches_and_those_behind_them_loops() -> None:
    seen: list[str] = []

    @tir.transform.prim_func_pass(opt_level=0)
    def look(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        seen.append(func.script())
        return func

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(phase, look) for phase in range(4)]}):
        lowered = tvm.lower(*reversed_rows())
    assert ["T.launch_thread" in text for text in seen] == [False, True, True, True]
    assert "T.thread_binding(4" in seen[0]
    tvm.ir.assert_structural_equal(lowered, tvm.lower(*reversed_rows()))


def test_blocks_share_what_their_threads_write_even_one_element_each() -> None:
    func = from_source("""@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), scope="shared")
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(16, "threadIdx.x"):
            with T.block("S"):
                v = T.axis.spatial(64, bx * 16 + tx)
                S[v] = A[v]
            with T.block("B"):
                v = T.axis.spatial(64, bx * 16 + tx)
                B[v] = S[v]
""")
    assert isinstance(func, PrimFunc)
    assert 'S = T.allocate([16], "float32", "shared")' in tvm.lower(func, upto=1).script()
    made = np.zeros(64, np.float32)
    tvm.build(func, target="llvm")(DATA.copy(), made)
    np.testing.assert_array_equal(made, DATA)


def test_a_tile_that_all_threads_read_is_as_large_as_one_step_of_the_loop() -> None:
    func, _ = product(16)
    text = tvm.lower(func, upto=1).script()
    assert 'T.allocate([32], "float32", "shared")' in text and 'T.allocate([64], "float32", "shared")' in text


def kernel(*lines: str) -> PrimFunc:
    func = from_source(
        "\n    ".join(
            [
                '@T.prim_func\ndef main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):',
                'tx = T.launch_thread("threadIdx.x", 64)', 'S_data = T.allocate([64], "float32", "shared")',
                'S = T.Buffer((64,), data=S_data, scope="shared")', *lines,
            ]
        )
    )  # fmt: skip
    assert isinstance(func, PrimFunc)
    return func


def test_before_barriers_are_planned_each_statement_waits_and_loops_that_differ_do_not() -> None:
    seen = np.zeros(64, np.float32)
    interpret(kernel("S[tx] = A[tx]", "B[tx] = S[63 - tx]"), [DATA.copy(), seen])
    np.testing.assert_array_equal(seen, DATA[::-1])
    start, body = "S[tx] = 0.0", ("    S[tx] = S[tx] + A[tx]", "    B[tx] = S[tx]")
    for loop in (("for i in range(tx % 3):", *body), ("while S[tx] < A[tx] * (tx % 3):", *body)):
        seen[...] = 0.0
        interpret(kernel(start, *loop), [DATA.copy(), seen])
        np.testing.assert_allclose(seen, DATA * (np.arange(64) % 3), rtol=1e-6)


def test_memory_that_one_kernel_hands_on_to_another() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[7 - i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    for stage in (copy, b):
        s[stage].bind(stage.op.axis[0], te.thread_axis("blockIdx.x"))
    for upto in range(4):
        seen = np.zeros(8, np.float32)
        interpret(tvm.lower(s, [a, b], upto=upto)["main"], [DATA[:8].copy(), seen])
        np.testing.assert_array_equal(seen, DATA[7::-1] + 1)


def test_a_kernel_has_one_number_of_threads() -> None:
    func = from_source("""@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(2, "blockIdx.x"):
        for tx in T.thread_binding(32, "threadIdx.x"):
            A[bx * 32 + tx] = 1.0
        for tx in T.thread_binding(16, "threadIdx.x"):
            A[bx * 32 + tx] = 2.0
""")
    with pytest.raises(LoweringError, match=r"threadIdx\.x is bound with extent 32 and with 16"):
        tvm.lower(func)
