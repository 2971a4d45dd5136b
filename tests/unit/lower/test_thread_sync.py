"""Barriers in shared memory: where threads need one, where they don't, and where all of them meet."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.errors import LoweringError
from tensorexpr.tir import transform
from tensorexpr.tir.interpreter import interpret

from .test_thread_passes import lines, parsed, through


def shared(body: str) -> list[str]:
    text = lines(
        through(
            transform.ThreadSync("shared"),
            parsed(f"""def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 8)
    ty = T.launch_thread("threadIdx.y", 2)
    s_data = T.allocate([64], "float32", "shared")
    s = T.Buffer((64,), data=s_data, scope="shared")
{body}"""),
        )
    )
    return text[text.index('ty = T.launch_thread("threadIdx.y", 2)') + 3 :]


SYNC = 'T.tvm_storage_sync("shared")'


@pytest.mark.parametrize(
    "write, read, needed",
    [
        ("ty * 32 + tx * 4 + i", "ty * 32 + tx * 4 + i", False),
        ("ty * 32 + tx * 4 + i", "ty * 32 + tx * 4 + 3 - i", False),
        ("bx * 8 + ty * 32 + tx * 4 + i", "bx * 8 + ty * 32 + tx * 4 + i", False),
        ("ty * 32 + tx * 4 + i", "ty * 32 + tx * 4 + i + 1", True),
        ("ty * 32 + tx * 4 + i", "tx * 4 + i", True),
        ("ty * 16 + tx * 4 + i", "ty * 16 + tx * 4 + i", True),
        ("tx * 4 + i", "tx * 4 + i", True),
    ],
)
def test_no_barrier_between_accesses_of_a_thread_to_its_own(write: str, read: str, needed: bool) -> None:
    body = f"    for i in range(4):\n        s[{write}] = A[i]\n    for i in range(4):\n        B[i] = s[{read}]\n"
    assert (SYNC in shared(body)) is needed


def test_what_other_variables_decide_may_be_anywhere() -> None:
    own = "    s[ty * 8 + tx] = A[tx]\n"
    assert SYNC not in shared(own + "    B[tx] = s[ty * 8 + tx]\n")
    assert SYNC in shared(own + "    k: T.int32 = tx * 3\n    B[tx] = s[ty * 8 + tx + k]\n")
    assert SYNC in shared(own + '    T.call_extern("int32", "f", T.tvm_access_ptr(T.type_annotation("float32"), s_data, 0, 1, 1))\n')


OWN, OTHER = "s[ty * 8 + tx] = A[tx]\n", "s[15 - ty * 8 - tx]"
TURN = "s[k % 2 * 32 + 15 - ty * 8 - tx]"


@pytest.mark.parametrize(
    ("body", "barriers"),
    [
        # Two stores of one thread, and the vectors of a loop.
        ("    for i in range(2):\n        for v in T.vectorized(4):\n            s[ty * 32 + tx * 4 + v] = A[v + i]\n", 0),
        ("    s[ty * 32 + tx * 4:ty * 32 + tx * 4 + 4] = A[0:4]\n    s[ty * 32 + tx * 4 + 1] = A[1]\n", 0),
        ("    s[ty * 32 + tx * 4:ty * 32 + tx * 4 + 4] = A[0:4]\n    s[ty * 32 + tx * 4 + 4] = A[1]\n", 1),
        ("    s[ty * 8 + tx] = A[tx]\n    s[32 + ty * 8 + tx] = A[tx]\n", 0),
        ("    s[ty * 8 + tx] = A[tx]\n    s[32 + tx * 2 + ty] = A[tx]\n", 0),
        ("    s[ty * 8 + tx] = A[tx]\n    s[15 + tx * 2 + ty] = A[tx]\n", 1),
        # The halves of a buffer.
        ("    for k in range(4):\n        for i in range(2):\n            s[k % 2 * 32 + i * 16 + ty * 8 + tx] = A[k]\n", 0),
        ("    for k in range(4):\n        for i in range(2):\n            s[k % 2 * 8 + i * 16 + ty * 8 + tx] = A[k]\n", 1),
        # Copies that take turns: other threads are waited for once in an iteration.
        (f"    for k in range(4):\n        s[(k + 1) % 2 * 32 + ty * 8 + tx] = A[k]\n        B[tx] = {TURN}\n", 1),
        (f"    for k in range(4):\n        s[k % 2 * 32 + ty * 8 + tx] = A[k]\n        B[tx] = {TURN}\n", 1),
        (f"    for k in range(4):\n        s[(k + 1) % 2 * 8 + ty * 8 + tx] = A[k]\n        B[tx] = {TURN}\n", 2),  # they overlap
        (f"    for k in range(4):\n        s[ty * 8 + tx] = A[k]\n        B[tx] = {OTHER}\n", 2),
        (f"    for k in range(4):\n        {SYNC}\n        s[(k + 1) % 2 * 32 + ty * 8 + tx] = A[k]\n        B[tx] = {TURN}\n", 0),
        (
            f"    for k in range(4):\n        s[k % 3 * 16 + tx] = A[k]\n        if bx < k:\n            {SYNC}\n        B[0] = s[tx]\n",
            2,
        ),
        # Quotients and remainders of threads: the same ones, and others.
        ("    s[tx % 4 * 16 + tx // 4 * 2 + ty] = A[tx]\n    B[tx] = s[tx % 4 * 16 + tx // 4 * 2 + ty]\n", 0),
        ("    s[tx % 4 * 16 + tx // 4 * 2 + ty] = A[tx]\n    B[tx] = s[tx // 4 * 16 + tx % 4 * 2 + ty]\n", 1),
        # Of the threads that a condition leaves.
        ("    if ty < 1:\n        for i in range(2):\n            s[i * 8 + tx] = A[i]\n", 0),
        ("    for i in range(2):\n        if T.likely(ty == 0) and tx < 7:\n            s[i * 8 + tx] = A[i]\n", 0),
        ("    for i in range(2):\n        if ty == 1:\n            s[i * 8 + tx] = A[i]\n", 1),
        # Beside barriers of the program, also where they stand deeper or are those of dynamic shared memory.
        (f"    for k in range(4):\n        {SYNC}\n        s[tx] = A[k]\n        {SYNC}\n        B[tx] = s[7 - tx]\n", 0),
        (f"    for k in range(4):\n        for i in range(2):\n            {SYNC}\n            s[tx] = A[k]\n", 0),
        ("    s[tx] = A[tx]\n    " + SYNC.replace("shared", "shared.dyn") + "\n    B[tx] = s[7 - tx]\n", 0),
    ],
)
def test_no_barrier_too_many(body: str, barriers: int) -> None:
    assert shared(body).count(SYNC) == barriers + body.count(SYNC)


@pytest.mark.parametrize(
    ("body", "barriers"),
    [
        # Two halves of 4 bytes' places, of which each thread takes its own, or those of others.
        ("    s[ty * 8 + tx] = A[tx]\n    h[(ty * 8 + tx) * 2 + 1] = T.float16(1)\n", 0),
        ("    s[ty * 8 + tx] = A[tx]\n    h[(ty * 8 + tx) * 2 + 2] = T.float16(1)\n", 1),
        ("    s[ty * 8 + tx] = A[tx]\n    h[ty * 8 + tx] = T.float16(1)\n", 1),
        ("    s[ty * 8 + tx] = A[tx]\n    h[32 + ty * 8 + tx] = T.float16(1)\n", 0),
        ("    s[ty * 8 + tx] = A[tx]\n    h[31 + ty * 8 + tx] = T.float16(1)\n", 1),
        ("    s[ty * 8 + tx] = A[tx]\n    h[ty * 16 + tx * 2:ty * 16 + tx * 2 + 2] = T.broadcast(T.float16(1), 2)\n", 0),
        # Elements of 16 bytes.
        ("    v[ty * 8 + tx] = T.broadcast(T.float32(1), 4)\n    s[ty * 32 + tx * 4 + 3] = A[tx]\n", 0),
        ("    v[ty * 8 + tx] = T.broadcast(T.float32(1), 4)\n    s[ty * 8 + tx] = A[tx]\n", 1),
        # Copies that take turns.
        ("    for k in range(4):\n        s[(k + 1) % 2 * 32 + ty * 8 + tx] = A[k]\n        C[tx] = h[k % 2 * 64 + 15 - ty * 8 - tx]\n", 1),
        ("    for k in range(4):\n        s[(k + 1) % 2 * 32 + ty * 8 + tx] = A[k]\n        C[tx] = h[k % 2 * 8 + 15 - ty * 8 - tx]\n", 2),
    ],
)
def test_views_of_other_elements(body: str, barriers: int) -> None:
    views = """    c_data = T.allocate([8], "float16", "local")
    C = T.Buffer((8,), "float16", data=c_data, scope="local")
    h = T.Buffer((128,), "float16", data=s_data, scope="shared")
    v = T.Buffer((16,), "float32x4", data=s_data, scope="shared")
"""
    assert shared(views + body).count(SYNC) == barriers


def test_threads_meet_behind_a_wait_for_copies() -> None:
    waits = 'with T.attr(0, "async_wait_queue_scope", 0):'
    body = f"""    for k in range(4):
        {waits}
            with T.attr(0, "async_wait_inflight_count", 0):
                s[(k + 1) % 2 * 32 + ty * 8 + tx] = A[k]
                B[tx] = {TURN}
"""
    text = shared(body)
    store = next(number for number, line in enumerate(text) if line.startswith("s["))
    assert text.count(SYNC) == 1 and text.index(SYNC) < store
    assert "inflight" in " ".join(text[: text.index(SYNC)])


def test_fragments_are_read_where_threads_point() -> None:
    load = 'T.ptx_ldmatrix("float16", T.bool(False), 4, ".b16", f, 0, T.tvm_access_ptr(T.type_annotation("float16"), s_data, {}, 8, 1), 0)'

    def text(place: str) -> list[str]:
        script = f"""def main(A: T.Buffer((256,), "float16")):
    tx = T.launch_thread("threadIdx.x", 32)
    s_data = T.allocate([512], "float16", "shared")
    f = T.allocate([8], "float16", "local")
    s = T.Buffer((512,), "float16", data=s_data, scope="shared")
    s[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]
    {load.format(place)}
"""
        return lines(through(transform.ThreadSync("shared"), parsed(script)))

    assert SYNC not in text("tx * 8") and SYNC not in text("256 + tx % 16 * 8")
    assert SYNC in text("tx % 16 * 8 + tx // 16 * 128 - 8 * (tx % 2)")


def test_a_let_waits_for_what_other_threads_write() -> None:
    text = shared(f"    {OWN}    x: T.float32 = {OTHER}\n    B[tx] = x\n")
    assert text == [OWN.strip(), SYNC, f"x: T.float32 = {OTHER}", "B[tx] = x"]


def test_iterations_of_a_while_wait_for_each_other() -> None:
    text = shared(f"    while A[0] > 0.0:\n        B[tx] = {OTHER}\n        {OWN}")
    assert [line for line in text if " T.Buffer(" not in line] == [SYNC, f"B[tx] = {OTHER}", SYNC, OWN.strip()]
    # The condition is read again before the next iteration could wait.
    text = shared(f"    while {OTHER} > 0.0:\n        {OWN}")
    assert text == [f"while {OTHER} > T.float32(0.0):", SYNC, OWN.strip(), SYNC]


def test_threads_meet_in_a_branch_that_all_take() -> None:
    text = shared(f"    if bx < 1:\n        {OWN}        B[tx] = {OTHER}\n    {OWN}")
    assert text == ["if bx < 1:", OWN.strip(), SYNC, f"B[tx] = {OTHER}", SYNC, OWN.strip()]
    with pytest.raises(LoweringError, match="not all of them need to reach"):
        shared(f"    if tx < 5:\n        {OWN}        B[tx] = {OTHER}\n")
    assert SYNC not in shared(f"    if tx < 4:\n        {OWN}        B[tx] = s[ty * 8 + tx]\n")


def test_a_loop_of_no_iterations_has_no_barrier() -> None:
    def around(extent: str) -> list[str]:
        return shared(f"    {OWN}    for i in range({extent}):\n        {SYNC}\n        A[tx] = 0.0\n    B[tx] = {OTHER}\n")

    assert around("T.int32(A[0])")[-2:] == [SYNC, f"B[tx] = {OTHER}"]
    assert around("3")[-2:] == ["A[tx] = T.float32(0.0)", f"B[tx] = {OTHER}"]


def test_an_attribute_names_a_double_buffer_too() -> None:
    func = parsed("""def main(A: T.Buffer((32,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        B_data = T.allocate([4], "float32", "shared")
        B = T.Buffer((4,), data=B_data, scope="shared")
        with T.attr(B_data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i * 4 + j]
        C[i] = B[0] + B[3]
""")
    doubled = through(transform.InjectDoubleBuffer(), func)
    assert 'B_data = T.allocate([8], "float32", "shared")' in lines(doubled) and "double_buffer_scope" not in doubled.script()
    a, before, after = np.arange(32, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    interpret(func, [a, before])
    interpret(doubled, [a, after])
    np.testing.assert_array_equal(before, after)


def test_coupled_memory_has_an_end() -> None:
    func = parsed("""def main(A: T.Buffer((4,), "float32")):
    b_data = T.allocate([16], "float32", "global.vtcm")
    b = T.Buffer((16,), data=b_data, scope="global.vtcm")
    b[0] = A[0]
""")
    hexagon = tvm.target.Target("hexagon -vtcm-capacity=60")
    for one in (transform.VerifyVTCMLimit(60), transform.VerifyVTCMLimit(hexagon)):
        with pytest.raises(LoweringError, match="needs 64 bytes"):
            through(one, func)
    with pytest.raises(LoweringError, match="there are 60"):
        through(transform.VerifyVTCMLimit(), func.with_attr("target", hexagon))
    assert through(transform.VerifyVTCMLimit(64), func) is func and through(transform.VerifyVTCMLimit(), func) is func
