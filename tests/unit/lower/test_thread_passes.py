"""The passes on loops over threads: default schedules, reductions over threads, what kernels share."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.errors import LoweringError, ScheduleError
from tensorexpr.lower.passes import Pass
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret

GPU = tvm.target.Target("cuda -max_threads_per_block=8")


def parsed(text: str) -> PrimFunc:
    func = from_source(f"@T.prim_func\n{text}")
    assert isinstance(func, PrimFunc)
    return func


def through(one: Pass, func: PrimFunc) -> PrimFunc:
    result = one(IRModule({"main": func}))["main"]
    assert isinstance(result, PrimFunc)
    return result


def lines(func: PrimFunc) -> list[str]:
    return [line.strip() for line in func.script().splitlines()]


TWO = parsed("""def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    C = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(4, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, vj] * 2.0
""")


def test_functions_for_gpus_get_a_grid() -> None:
    func = through(transform.DefaultGPUSchedule(), TWO.with_attr("target", GPU))
    assert func.attrs["tir.is_scheduled"]
    text = lines(func)
    assert text.count('for i_j_fused_0 in T.thread_binding(4, thread="blockIdx.x"):') == 2
    assert text.count('for i_j_fused_1 in T.thread_binding(8, thread="threadIdx.x"):') == 2
    a, before, after = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    interpret(TWO, [a, before])
    interpret(func, [a, after])
    np.testing.assert_array_equal(before, after)


def test_loops_of_data_are_bound_whatever_their_extents_are() -> None:
    func = parsed("""def main(A: T.Buffer((3, 7), "float32"), B: T.Buffer((3, 7), "float32")):
    for i, j in T.grid(3, 7):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
""")
    made = through(transform.DefaultGPUSchedule(), func.with_attr("target", GPU))
    assert 'for i_j_fused_1 in T.thread_binding(8, thread="threadIdx.x"):' in lines(made)
    a, b = np.arange(21, dtype=np.float32).reshape(3, 7), np.zeros((3, 7), np.float32)
    interpret(made, [a, b])
    np.testing.assert_array_equal(b, a + 1)


def test_what_is_scheduled_or_for_another_device_stays() -> None:
    one = transform.DefaultGPUSchedule()
    for func in (TWO, TWO.with_attr("target", tvm.target.Target("llvm")), TWO.with_attrs({"target": GPU, "tir.is_scheduled": True})):
        assert through(one, func) is func
    with GPU:
        assert "tir.is_scheduled" in through(one, TWO).attrs


def test_a_gpu_has_to_say_how_many_threads_it_has() -> None:
    silent = tvm.target.Target({"kind": "ext_dev", "keys": ["gpu"]})
    with pytest.raises(LoweringError, match="max_threads_per_block"):
        through(transform.DefaultGPUSchedule(), TWO.with_attr("target", silent))


def row_sum(body: str = "B[vi] = B[vi] + A[vi, vk]", where: str = "True", scope: str = "global", tail: str = "") -> PrimFunc:
    return parsed(f"""def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4,), scope="{scope}")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for ko in range(2):
            for k in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(8, ko * 4 + k)
                    T.where({where})
                    with T.init():
                        B[vi] = 0.0
                    {body}
{tail}""")


def test_threads_reduce_parts_and_combine_them() -> None:
    text = lines(through(transform.LowerCrossThreadReduction(), row_sum(where="ko * 4 + k < 7")))
    position = [
        text.index(line)
        for line in (
            'for k in T.thread_binding(4, thread="threadIdx.x"):', "in_thread_B[0] = T.float32(0.0)", "for ko in range(2):",
            "T.where(ko * 4 + k < 7)", "in_thread_B[0] = in_thread_B[0] + A[vi, vk]",
            "T.tvm_thread_allreduce(T.uint32(1), in_thread_B[0], T.bool(True), cross_thread_B[0], k)", "T.where(k == 0)",
            "B[vi] = cross_thread_B[0]",
        )
    ]  # fmt: skip
    assert position == sorted(position)


def test_local_results_belong_to_every_thread_and_later_blocks_run_in_one() -> None:
    tail = """        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi]
"""
    text = lines(through(transform.LowerCrossThreadReduction(), row_sum(scope="local", tail=tail)))
    assert "T.where(k == 0)" not in text
    assert text[-6:-4] == ['with T.block("C"):', 'vi, vj = T.axis.remap("SS", [i, j])'] and "T.where(tx == 0)" in text


def test_reductions_that_threads_cannot_do() -> None:
    beside = """            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, ko])
                C[vi, vk] = 1.0
"""
    with pytest.raises(ScheduleError, match="known to be associative"):
        through(transform.LowerCrossThreadReduction(), row_sum("B[vi] = B[vi] * B[vi] + A[vi, vk]"))
    with pytest.raises(ValueError, match="isn't alone"):
        through(transform.LowerCrossThreadReduction(), row_sum(tail=beside))
    bound = row_sum().script().replace("threadIdx.x", "blockIdx.y")
    func = from_source(bound)
    assert isinstance(func, PrimFunc)
    with pytest.raises(ScheduleError, match="use threadIdx"):
        through(transform.LowerCrossThreadReduction(), func)


@pytest.mark.parametrize("scope, rows", [("global", 8), ("shared", 4), ("warp", 2), ("local", 1)])
def test_a_compact_buffer_holds_what_all_threads_that_share_it_access(scope: str, rows: int) -> None:
    func = parsed(f"""def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for v in T.thread_binding(2, thread="vthread"):
            for t in T.thread_binding(2, thread="threadIdx.x"):
                with T.block():
                    T.reads(A[b * 4 + v * 2 + t, 0:4])
                    T.writes(C[b * 4 + v * 2 + t, 0:4])
                    B = T.alloc_buffer((8, 4), scope="{scope}")
                    for j in range(4):
                        B[b * 4 + v * 2 + t, j] = A[b * 4 + v * 2 + t, j]
                    for j in range(4):
                        C[b * 4 + v * 2 + t, j] = B[b * 4 + v * 2 + t, j]
""")
    text = "\n".join(lines(through(transform.CompactBufferAllocation(), func)))
    kind = "" if scope == "global" else f', scope="{scope}"'
    assert f"B = T.alloc_buffer(({rows}, 4){kind})" in text


def test_a_box_of_known_size_is_taken_of_a_shape_that_is_not() -> None:
    func = parsed("""def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n * 4,))
    for i in range(n):
        with T.block():
            T.reads()
            T.writes(A[i * 4:i * 4 + 4])
            B = T.alloc_buffer((n * 4,))
            for j in range(4):
                B[i * 4 + j] = 1.0
                A[i * 4 + j] = B[i * 4 + j]
""")
    assert "B = T.alloc_buffer((4,))" in lines(through(transform.CompactBufferAllocation(), func))


def test_a_box_may_be_larger_than_the_shape_where_nobody_is_strict() -> None:
    func = parsed("""def main(A: T.Buffer((4,), "float32")):
    with T.block():
        T.reads()
        T.writes(A[0:4])
        B = T.alloc_buffer((2,))
        for i in range(4):
            B[i] = 1.0
            A[i] = B[i]
""")
    assert "B = T.alloc_buffer((2,))" in lines(through(transform.CompactBufferAllocation(), func))
    assert "B = T.alloc_buffer((4,))" in lines(through(transform.CompactBufferAllocation(is_strict=False), func))


def test_annotations_stay_with_what_a_bound_loop_became() -> None:
    func = parsed("""def main(A: T.Buffer((4, 2), "float32")):
    for i in T.thread_binding(4, thread="blockIdx.x", annotations={"outer": 1}):
        for j in T.thread_binding(2, thread="threadIdx.x", annotations={"inner": 1}):
            A[i, j] = 1.0
""")
    text = lines(through(transform.UnifyThreadBinding(), func))
    assert 'for blockIdx_x in T.thread_binding(4, thread="blockIdx.x", annotations={"outer": 1}):' in text
    assert 'for var in T.serial(1, annotations={"inner": 1}):' in text


def test_loops_of_one_tag_become_one_in_the_innermost_loop_around_them() -> None:
    func = parsed("""def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for k in range(2):
            with T.block("fill"):
                T.reads()
                T.writes(A[b, 0:8], B[b, 0:8])
                for i in T.thread_binding(8, thread="threadIdx.x", annotations={"first": 1, "both": 1}):
                    A[b, i] = 1.0
                if k < 1:
                    for j in T.thread_binding(8, thread="threadIdx.x", annotations={"both": 2}):
                        B[b, j] = 2.0
        for y in T.thread_binding(2, thread="threadIdx.y"):
            A[b, y] = 3.0
""")
    text = lines(through(transform.LiftThreadBinding(), func))
    at = text.index('for blockIdx_x in T.thread_binding(4, thread="blockIdx.x"):')
    assert text[at + 1] == "for k in range(2):"
    assert text[at + 2] == 'for threadIdx_x in T.thread_binding(8, thread="threadIdx.x", annotations={"both": 2, "first": 1}):'
    assert text[at + 3] == 'with T.block("fill"):' and text[at + 6 : at + 9] == [
        "A[blockIdx_x, threadIdx_x] = T.float32(1.0)", "if k < 1:", "B[blockIdx_x, threadIdx_x] = T.float32(2.0)",
    ]  # fmt: skip
    # One that is alone stays where it is.
    assert text[at + 9 :] == [
        'for threadIdx_y in T.thread_binding(2, thread="threadIdx.y"):',
        "A[blockIdx_x, threadIdx_y] = T.float32(3.0)",
    ]


def test_threads_that_are_alone_are_bound_and_not_counted() -> None:
    func = parsed("""def main(A: T.Buffer((4,), "float32")):
    for i in T.thread_binding(1, thread="threadIdx.x"):
        for j in range(4):
            with T.block():
                T.reads()
                T.writes(A[i + j])
                A[i + j] = 1.0
""")
    text = lines(through(transform.LowerOpaqueBlock(), func))
    assert 'i = T.launch_thread("threadIdx.x", 1)' in text and "A[0 + j] = T.float32(1.0)" in text


WARP = tvm.target.Target("cuda -thread_warp_size=4")


def warp(body: str, threads: int = 4, size: int = 8) -> PrimFunc:
    func = parsed(f"""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    w_data = T.allocate([{size}], "float32", "warp")
    w = T.Buffer(({size},), data=w_data, scope="warp")
    tx = T.launch_thread("threadIdx.x", {threads})
{body}""")
    return func.with_attr("target", WARP)


def test_threads_of_a_warp_hold_what_they_store_and_shuffle_the_rest() -> None:
    body = """    for j in range(2):
        w[tx * 2 + j] = A[tx * 2 + j]
    B[tx] = w[(tx * 2 + 3) % 8]
    B[tx + 4] = w[tx * 2 + 1]
"""
    text = lines(through(transform.LowerWarpMemory(), warp(body)))
    assert any(line.endswith('T.allocate([2], "float32", "local")') for line in text)
    shuffle = "T.tvm_warp_shuffle(T.tvm_warp_activemask(), w_1[1], (tx * 2 + 3) % 8 // 2, 4, 4)"
    assert [line.replace("w_data", "w") for line in text[-4:]] == [
        "for j in range(2):", "w[j] = A[tx * 2 + j]", f"B[tx] = {shuffle.replace('w_1', 'w')}", "B[tx + 4] = w[1]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body, threads, message",
    [
        ("    w[tx] = A[tx]", 8, "no multiple of 8"),
        ("    w[tx] = A[tx]\n    w[tx * 2] = A[tx]", 4, "one constant step"),
        ("    w[tx] = A[tx]\n    w[tx + 1] = A[tx]", 4, "another thread"),
        ("    w[tx] = A[tx]\n    B[tx] = w[tx * 4 % 8]", 4, "another place"),
        ("    w[tx] = A[tx]\n    B[tx] = w[(tx + 1) % 8]", 4, "another place"),
    ],
)
def test_accesses_that_threads_of_a_warp_cannot_do(body: str, threads: int, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        through(transform.LowerWarpMemory(), warp(body, threads))


def test_access_pointers_become_addresses() -> None:
    func = parsed("""def main(A: T.Buffer((8,), "float32")):
    T.call_extern("int32", "f", T.tvm_access_ptr(T.type_annotation("float32"), A.data, 4, 2, 1))
""")
    assert 'T.call_extern("int32", "f", T.address_of(A_1[4]))' in lines(through(transform.LowerDeviceStorageAccessInfo(), func))


def test_constants_move_to_the_module_once() -> None:
    def reading(name: str, values: str) -> PrimFunc:
        return parsed(f"""def {name}(A: T.Buffer((2,), "int32")):
    k_data = T.allocate_const({values}, "int32", [2])
    k = T.Buffer((2,), "int32", data=k_data)
    A[0] = k[1]
""")

    mod = IRModule({"a": reading("a", "[1, 2]"), "b": reading("b", "[3, 4]"), "c": reading("c", "[1, 2]")})
    result = transform.ExtractPrimFuncConstants()(mod)
    assert [array.numpy().tolist() for array in result.attrs["constants"]] == [[1, 2], [3, 4]]
    assert [result[name].body.irmod_storage_idx for name in "abc"] == [0, 1, 0]
    again = transform.ExtractPrimFuncConstants()(result)
    assert len(again.attrs["constants"]) == 2


def staged(tail: str = "", kind: str = "range(2)") -> PrimFunc:
    return parsed(f"""def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("around"):
            T.reads(A[0:8])
            T.writes(C[0:8])
            B = T.alloc_buffer((8,), scope="shared")
            for j in {kind}:
                with T.block("copy"):
                    T.reads(A[tx * 2 + j])
                    T.writes(B[tx * 2 + j])
                    T.block_attr({{"tir.manifest_shared_memory_local_stage": 1}})
                    B[tx * 2 + j] = A[tx * 2 + j]
{tail}            for j in range(2):
                C[tx * 2 + j] = B[tx * 2 + j]
""")


def test_copies_into_shared_memory_go_through_registers() -> None:
    func = through(transform.ManifestSharedMemoryLocalStage(), staged())
    text = lines(func)
    assert 'B_local = T.alloc_buffer((2,), scope="local")' in text
    assert text.index("B_local[j] = A[tx * 2 + j]") < text.index("B[tx * 2 + j] = B_local[j]")
    assert "local_stage" not in func.script()
    a, before, after = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    interpret(staged(), [a, before])
    interpret(func, [a, after])
    np.testing.assert_array_equal(before, after)


def test_a_stage_needs_loops_that_count_its_registers() -> None:
    with pytest.raises(ScheduleError, match="neither serial nor vectorised"):
        through(transform.ManifestSharedMemoryLocalStage(), staged(kind="T.unroll(2)"))


def test_contexts_are_asked_for_once_in_each_thread_of_control() -> None:
    func = parsed("""def main(n: T.int32):
    T.func_attr({"tir.is_host_func": 1})
    for i in range(n):
        T.call_extern("int32", "f", T.tvm_thread_context(T.call_extern("handle", "ctx", 0)))
        for j in T.parallel(4):
            T.call_extern("int32", "g", T.tvm_thread_context(T.call_extern("handle", "ctx", 0)))
            T.call_extern("int32", "h", T.tvm_thread_context(T.call_extern("handle", "ctx", j)))
    T.call_extern("int32", "f", T.tvm_thread_context(T.call_extern("handle", "ctx", 0)))
""")
    text = lines(through(transform.CombineContextCall(), func))
    assert sum(line.startswith("ctx_cache_") for line in text) == 2
    assert text.index('T.call_extern("int32", "g", ctx_cache__1)') > text.index("for j in T.parallel(4):")
    assert 'T.call_extern("int32", "h", T.tvm_thread_context(T.call_extern("handle", "ctx", j)))' in text  # of what the loop defines
    assert through(transform.CombineContextCall(), func.without_attr("tir.is_host_func")).body is func.body


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
