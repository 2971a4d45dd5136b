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
