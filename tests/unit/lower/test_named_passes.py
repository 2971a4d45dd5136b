"""Passes that exist by name alone, on programs as TVM has them: what goes in, what comes out."""

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr.errors import LoweringError, PassError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass
from tensorexpr.lower.transform import function_pass
from tensorexpr.script import from_source
from tensorexpr.target import Target
from tensorexpr.tir import IRModule, transform


def applied(one: Pass, text: str, **config: Any) -> str:
    """The body of the function after the pass, without the lines in front of it."""
    func = from_source(f"@T.prim_func\n{text}")
    with PassContext(config={key.replace("__", "."): value for key, value in config.items()}):
        lines = one(IRModule({"main": func}))["main"].script().splitlines()  # type: ignore[dict-item]
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[start + 1 :])


SVE = "llvm -mtriple=aarch64-linux-gnu -mattr=+sve"
HEAD = 'def main(A: T.Buffer((16,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):\n'
CASES: list[tuple[str, Pass, str, str]] = [
    (
        "an index in an arm of a Select, which is evaluated whatever the condition is",
        transform.Simplify(),
        HEAD + "    for i in range(16):\n        A[i] = T.Select(i < 2, B[(i * 3 + 20) % 64], B[0])",
        "for i in range(16):\n    A[i] = T.Select(i < 2, B[(i * 3 + 20) % 64], B[0])",
    ),
    (
        "lanes along the second last dimension",
        transform.VectorizeLoop(),
        'def main(A: T.Buffer((4, 3), "float32")):\n    for i in T.vectorized(4):\n        A[i, 2] = T.float32(1)',
        "A[0:4, 2] = T.Broadcast(T.float32(1.0), 4)",
    ),
    (
        "a branch that differs between lanes is a loop",
        transform.VectorizeLoop(),
        HEAD + "    for i in T.vectorized(4):\n        if i < n:\n            A[i] = T.float32(1)",
        "for i_s in range(4):\n    if i_s < n:\n        A[i_s] = T.float32(1.0)",
    ),
    (
        "storage in a vector loop has a slot for each lane",
        transform.VectorizeLoop(),
        HEAD + '    for i in T.vectorized(4):\n        t = T.allocate([2], "float32", "local")\n'
        '        b = T.Buffer((2,), "float32", data=t, scope="local")\n        b[1] = B[i]\n        A[i] = b[1]',
        't = T.allocate([8], "float32", "local")\nb = T.Buffer((8,), data=t, scope="local")\nb[4:8] = B[0:4]\nA[0:4] = b[4:8]',
    ),
    (
        "flat bool memory is bytes",
        transform.FlattenBuffer(),
        'def main(A: T.Buffer((4, 4), "bool")):\n    for i, j in T.grid(4, 4):\n        A[i, j] = A[j, i]',
        'for i, j in T.grid(4, 4):\n    A_1 = T.Buffer((16,), "int8", data=A.data)\n'
        '    A_1[i * 4 + j] = T.Cast("int8", T.Cast("bool", A_1[j * 4 + i]))',
    ),
    (
        "an index that doesn't fit stays wide",
        transform.NarrowDataType(16),
        'def main(B: T.Buffer((90000,), "float32")):\n    for i, j in T.grid(300, 300):\n        B[i * 300 + j] = T.float32(0)',
        "for i, j in T.grid(300, 300):\n    B[i * 300 + j] = T.float32(0.0)",
    ),
    (
        "an index that fits gets narrower, what it is compared with too",
        transform.NarrowDataType(32),
        HEAD + "    for i in T.serial(T.int64(16)):\n        if i < T.int64(3):\n            A[i] = T.float32(0)",
        "for i in range(16):\n    if i < 3:\n        A[i] = T.float32(0.0)",
    ),
    (
        "a condition leaves the loops around others",
        transform.HoistIfThenElse(),
        HEAD + "    for i, j in T.grid(4, 4):\n        if i > 1:\n            if n > 2:\n                A[i] = B[j]",
        "if 2 < n:\n    for i in range(4):\n        if 1 < i:\n            for j in range(4):\n                A[i] = B[j]",
    ),
    (
        "the parts of a condition leave one loop each, the parts of a value with what holds otherwise",
        transform.HoistExpression(),
        'def main(A: T.Buffer((4, 4), "float32"), n: T.int32):\n    for i, j in T.grid(4, 4):\n        if i < 2 and j < 3:\n'
        "            A[i, j] = T.if_then_else(n < 7, T.float32(1), T.float32(2))",
        "if n < 7:\n    for i in range(4):\n        if i < 2:\n            for j in range(4):\n                if j < 3:\n"
        "                    A[i, j] = T.float32(1.0)\n"
        "else:\n    for i in range(4):\n        if i < 2:\n            for j in range(4):\n                if j < 3:\n"
        "                    A[i, j] = T.float32(2.0)",
    ),
    (
        "bindings leave loops, as does what is made of them; divisions that may trap stay",
        transform.HoistExpression(),
        'def main(A: T.Buffer((4, 4), "float32"), n: T.int32):\n    for i, j in T.grid(4, 4):\n'
        '        x: T.float32 = T.cast(i, "float32")\n        if 8 // n < 3:\n            A[i, j] = x * x',
        'for i in range(4):\n    x: T.float32 = T.Cast("float32", i)\n'
        '    for j in range(4):\n        if 8 // n < 3:\n            A[i, j] = x * x',
    ),
    (
        "a condition on what the loop writes stays",
        transform.HoistIfThenElse(),
        HEAD + "    for i in range(4):\n        if A[3] > T.float32(0):\n            A[i] = T.float32(0)",
        "for i in range(4):\n    if T.float32(0.0) < A[3]:\n        A[i] = T.float32(0.0)",
    ),
    (
        "a condition on threads stays in the loops inside of them, and out of none around",
        transform.HoistIfThenElse(),
        HEAD + '    for t in T.thread_binding(4, thread="threadIdx.x"):\n        for i in range(4):\n            if t < 3:\n'
        "                if n > 2:\n                    A[i] = B[t]",
        'for t in T.thread_binding(4, thread="threadIdx.x"):\n    if 2 < n:\n        for i in range(4):\n            if t < 3:\n'
        "                A[i] = B[t]",
    ),
    (
        "threads of one kernel are bound once, around it",
        transform.UnifyThreadBinding(),
        'def main(A: T.Buffer((4, 8), "float32")):\n    for b in T.thread_binding(4, thread="blockIdx.x"):\n'
        '        for i in T.thread_binding(8, thread="threadIdx.x"):\n            A[b, i] = T.float32(0)\n'
        '        for j in T.thread_binding(8, thread="threadIdx.x"):\n            A[b, j] = T.float32(1)',
        'for blockIdx_x in T.thread_binding(4, thread="blockIdx.x"):\n    for threadIdx_x in T.thread_binding(8, thread="threadIdx.x"):\n'
        "        A[blockIdx_x, threadIdx_x] = T.float32(0.0)\n        A[blockIdx_x, threadIdx_x] = T.float32(1.0)",
    ),
    (
        "virtual threads have storage of their own",
        transform.Sequential([transform.InjectVirtualThread(), transform.Simplify()]),
        HEAD + '    v = T.launch_thread("vthread", 2)\n    t = T.allocate([2], "float32", "shared")\n'
        '    b = T.Buffer((2,), "float32", data=t, scope="shared")\n'
        "    for i in range(2):\n        b[i] = B[i + v]\n        A[i + v * 2] = b[i]",
        't = T.allocate([4], "float32", "shared")\nfor i in range(2):\n    b = T.Buffer((4,), data=t, scope="shared")\n    b[i] = B[i]\n'
        "    b[i + 2] = B[i + 1]\n    A[i] = b[i]\n    A[i + 2] = b[i + 2]",
    ),
    (
        "selects of loads are lazy",
        transform.RewriteUnsafeSelect(),
        HEAD + "    A[0] = T.Select(n < 64, B[n], T.float32(0))",
        "A[0] = T.if_then_else(n < 64, B[n], T.float32(0.0))",
    ),
    (
        "assumptions go, and loops that did nothing else",
        transform.RemoveAssume(),
        HEAD + "    for i in range(16):\n        T.evaluate(T.assume(A[i] == T.float32(0)))\n    A[0] = T.float32(1)",
        "A[0] = T.float32(1.0)",
    ),
    (
        "stores of nothing in particular go",
        transform.RemoveStoreUndef(),
        HEAD + '    for i in range(16):\n        A[i] = T.undef(dtype="float32")\n    A[0] = T.float32(1)',
        "A[0] = T.float32(1.0)",
    ),
    (
        "vectors of one width are elements, single elements lanes of them",
        transform.PointerValueTypeRewrite(),
        'def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):\n    for i in range(4):\n'
        "        A[i * 4:i * 4 + 4] = T.Broadcast(B[i], 4)",
        "for i in range(4):\n    A[T.Div(i * 4, 4)] = T.Broadcast(B[i], 4)",
    ),
    (
        "stores of what is there already go, integers that are let stand where they are used",
        transform.Simplify(),
        'def main(A: T.Buffer((16,), "int32"), n: T.int32):\n    A[0] = A[0]\n    x: T.int32 = n + 1\n    A[1] = x - 1',
        "A[1] = n",
    ),
    (
        "what a call that is let does still happens",
        transform.RemoveNoOp(),
        'def main(A: T.Buffer((16,), "int32")):\n    for i in range(16):\n        A[i] = A[i] + 0\n'
        '    with T.LetStmt(T.call_extern("int32", "f", 3)) as v:\n        T.evaluate(0)',
        'T.call_extern("int32", "f", 3)',
    ),
    (
        "a branch that would change nothing is always taken",
        transform.ReduceBranchingThroughOvercompute(),
        'def main(A: T.Buffer((1,), "int32")):\n    for i in range(16):\n        if i > 0:\n            A[0] = A[0] + i * i',
        "for i in range(16):\n    A[0] = A[0] + i * i",
    ),
    (
        "a branch that would change something is not",
        transform.ReduceBranchingThroughOvercompute(),
        'def main(A: T.Buffer((1,), "int32")):\n    for i in range(16):\n        if i > 1:\n            A[0] = A[0] + i * i',
        "for i in range(16):\n    if i > 1:\n        A[0] = A[0] + i * i",
    ),
    (
        "a branch that keeps an access inside its buffer is not",
        transform.ReduceBranchingThroughOvercompute(),
        'def main(A: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):\n    for i in range(5):\n        if i < 4:\n'
        "            A[0] = A[0] + B[i] * 0",
        "for i in range(5):\n    if i < 4:\n        A[0] = A[0] + B[i] * 0",
    ),
    (
        "floored divisions by truncated ones and shifts",
        transform.LowerIntrin(),
        'def main(A: T.Buffer((64,), "int32"), n: T.int32):\n    for i in range(16):\n        A[i] = i // 3 + n // 8 + n % 8',
        "for i in range(16):\n    A[i] = T.Div(i, 3) + T.shift_right(n, 3) + T.bitwise_and(n, 7)",
    ),
    (
        "barriers stand between writers and readers",
        transform.ThreadSync("shared"),
        'def main(A: T.Buffer((64,), "float32")):\n    tx = T.launch_thread("threadIdx.x", 16)\n'
        '    t = T.allocate([16], "float32", "shared")\n'
        '    s = T.Buffer((16,), "float32", data=t, scope="shared")\n    s[tx] = A[tx]\n    A[tx] = s[15 - tx]',
        'tx = T.launch_thread("threadIdx.x", 16)\nt = T.allocate([16], "float32", "shared")\ns = T.Buffer((16,), data=t, scope="shared")\n'
        's[tx] = A[tx]\nT.tvm_storage_sync("shared")\nA[tx] = s[15 - tx]',
    ),
    (
        "shared memory is one allocation, whose parts are shared when they can be",
        transform.MergeSharedMemoryAllocations(),
        'def main(A: T.Buffer((32,), "float32")):\n    tx = T.launch_thread("threadIdx.x", 32)\n'
        '    p = T.allocate([32], "float32", "shared.dyn")\n    q = T.allocate([32], "float16", "shared.dyn")\n'
        '    r = T.allocate([64], "int8", "shared.dyn")\n    s = T.Buffer((32,), "float32", data=p, scope="shared.dyn")\n'
        '    t = T.Buffer((32,), "float16", data=q, scope="shared.dyn")\n    u = T.Buffer((64,), "int8", data=r, scope="shared.dyn")\n'
        '    s[tx] = A[tx]\n    t[tx] = T.cast(s[31 - tx], "float16")\n    A[tx] = T.cast(t[tx], "float32")\n    u[tx] = T.int8(1)\n'
        '    T.call_extern("int32", "f", u.data)',
        'tx = T.launch_thread("threadIdx.x", 32)\nbuf_dyn_shmem = T.allocate([192], "uint8", "shared.dyn")\n'
        's = T.Buffer((32,), data=buf_dyn_shmem, scope="shared.dyn")\ns[tx] = A[tx]\n'
        't = T.Buffer((32,), "float16", data=buf_dyn_shmem, scope="shared.dyn")\nt[tx + 64] = T.Cast("float16", s[31 - tx])\n'
        'A[tx] = T.Cast("float32", t[tx + 64])\nu = T.Buffer((64,), "int8", data=buf_dyn_shmem, scope="shared.dyn")\nu[tx] = T.int8(1)\n'
        'buf_dyn_shmem_1 = T.Buffer((1,), "uint8", data=buf_dyn_shmem, scope="shared.dyn")\n'
        'T.call_extern("int32", "f", T.address_of(buf_dyn_shmem_1[0]))',
    ),
    (
        "an access of 16 bytes finds its part of merged memory where it may be",
        transform.MergeSharedMemoryAllocations(),
        'def main(A: T.Buffer((32,), "float32")):\n    tx = T.launch_thread("threadIdx.x", 8)\n'
        '    p = T.allocate([20], "int8", "shared.dyn")\n    q = T.allocate([32], "float32", "shared.dyn")\n'
        '    t = T.Buffer((20,), "int8", data=p, scope="shared.dyn")\n    s = T.Buffer((32,), "float32", data=q, scope="shared.dyn")\n'
        "    t[tx] = T.int8(1)\n    s[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4]\n    A[tx] = s[tx] + T.cast(t[tx], \"float32\")",
        'tx = T.launch_thread("threadIdx.x", 8)\nbuf_dyn_shmem = T.allocate([160], "uint8", "shared.dyn")\n'
        't = T.Buffer((20,), "int8", data=buf_dyn_shmem, scope="shared.dyn")\nt[tx] = T.int8(1)\n'
        's = T.Buffer((32,), data=buf_dyn_shmem, scope="shared.dyn")\ns[tx * 4 + 8:tx * 4 + 8 + 4] = A[tx * 4:tx * 4 + 4]\n'
        'A[tx] = s[tx + 8] + T.Cast("float32", t[tx])',
    ),
    (
        "asynchronous copies go to their place in merged memory; the pass has an older name",
        transform.MergeDynamicSharedMemoryAllocations(),
        'def main(A: T.Buffer((32,), "float32")):\n    tx = T.launch_thread("threadIdx.x", 32)\n'
        '    p = T.allocate([32], "float32", "shared.dyn")\n    q = T.allocate([32], "float32", "shared.dyn")\n'
        '    s = T.Buffer((32,), "float32", data=p, scope="shared.dyn")\n    t = T.Buffer((32,), "float32", data=q, scope="shared.dyn")\n'
        '    T.ptx_cp_async("float32", p, tx, A.data, tx, 4)\n    T.ptx_cp_async("float32", q, tx, A.data, tx, 4)\n'
        "    A[tx] = s[tx] + t[tx]",
        'tx = T.launch_thread("threadIdx.x", 32)\nbuf_dyn_shmem = T.allocate([256], "uint8", "shared.dyn")\n'
        'T.ptx_cp_async("float32", buf_dyn_shmem, tx, A.data, tx, 4)\n'
        'T.ptx_cp_async("float32", buf_dyn_shmem, tx + 32, A.data, tx, 4)\n'
        "s = T.Buffer((32,), data=buf_dyn_shmem, scope=\"shared.dyn\")\n"
        "t = T.Buffer((32,), data=buf_dyn_shmem, scope=\"shared.dyn\")\nA[tx] = s[tx] + t[tx + 32]",
    ),
    (
        "copies of 4, 8 or 16 bytes into shared memory don't wait",
        transform.InjectPTXAsyncCopy(),
        'def main(A: T.Buffer((64,), "float16"), n: T.int32):\n    p = T.allocate([64], "float16", "shared")\n'
        '    s = T.Buffer((64,), "float16", data=p, scope="shared")\n    with T.attr("default", "async_scope", 1):\n'
        "        s[n:n + 4] = A[0:4]\n        s[n] = A[n]\n"
        '        s[0:8] = T.if_then_else(n < 8, A[n:n + 8], T.Broadcast(T.float16(0), 8), dtype="float16x8")',
        'p = T.allocate([64], "float16", "shared")\nT.ptx_cp_async("float16", p, n, A.data, 0, 8)\n'
        's = T.Buffer((64,), "float16", data=p, scope="shared")\ns[n] = A[n]\n'
        'T.ptx_cp_async("float16", p, 0, A.data, n, 16, n < 8)',
    ),
    (
        "quotients of split loops by their outer index",
        transform.RenormalizeSplitPattern(),
        HEAD + "    for i, j in T.grid(16, 4):\n        if i * 4 + j < 32:\n            A[(i * 4 + j) // 8] = B[(i * 4 + j) % 16 // 4]",
        "for i, j in T.grid(16, 4):\n    if (i + j // 4) // 8 < 1:\n        A[(i + j // 4) // 2] = B[(i + j // 4) % 4]",
    ),
    (
        "physical axes survive flattening",
        transform.FlattenBuffer(),
        'def main(B: T.Buffer((4,), "float32")):\n    A = T.decl_buffer((2, 3, 5), "float32", axis_separators=[2])\n'
        "    for i in range(2):\n        A[i, 1, i] = B[i]",
        'A = T.allocate([6, 5], "float32", "global")\nfor i in range(2):\n    A_1 = T.Buffer((6, 5), data=A, axis_separators=[1])\n'
        "    A_1[i * 3 + 1, i] = B[i]",
    ),
    (
        "the indices of a loop over all elements of a symbolic shape are that loop",
        transform.FlattenBuffer(),
        'def main(a: T.handle, n: T.int32, m: T.int32):\n    A = T.match_buffer(a, (8, n, m), "float32")\n'
        "    for i in range(n * m * 8):\n        A[i // (n * m), i % (n * m) // m, i % m] = T.float32(0)",
        "A = T.match_buffer(a, (8, n, m))\n"
        "for i in range(n * m * 8):\n    A_1 = T.Buffer((n * m * 8,), data=A.data)\n    A_1[i] = T.float32(0.0)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "one", "before", "after"), CASES, ids=[case[0] for case in CASES])
def test_what_comes_out(name: str, one: Pass, before: str, after: str) -> None:
    assert applied(one, before) == after


def _copied(source: Any, into: Any, before: Any, after: Any, padding: Any) -> Any:
    ends = (*source.shape, *source.strides, source.elem_offset, *into.shape, *into.strides, into.elem_offset)
    return tvm.tir.Evaluate(
        tvm.tir.call_extern("int32", "copy", source.data, into.data, *ends, *before, *after, 0 if padding is None else padding)
    )


@pytest.mark.parametrize(
    ("index", "value", "call"),
    [
        ("i * 4 + j", "A[j * 2 + n]", 'copy", A.data, B.data, 8, 4, 0, 2, n, 8, 4, 4, 1, 0, 0'),
        (
            "i * 4 + j",
            'T.if_then_else(i >= 2 and j < n, A[i * 4 + j - 8], T.float32(1), dtype="float32")',
            'copy", A.data, B.data, 6, 4 - T.max(4 - n, 0), 4, 1, 0, 8, 4, 4, 1, 0, 2, 0, 0, T.max(4 - n, 0), T.float32(1.0)',
        ),
    ],
)
def test_a_marked_copy_is_what_the_user_makes_of_it(index: str, value: str, call: str) -> None:
    text = HEAD + f'    with T.attr(0, "pragma_memcpy", 1):\n        for i, j in T.grid(8, 4):\n            B[{index}] = {value}'
    assert call in applied(transform.InjectCopyIntrin("memcpy", _copied), text)


@pytest.mark.parametrize(
    ("store", "reason"),
    [("B[i] = A[i] + T.float32(1)", "which isn't loaded"), ("B[i * i] = A[i]", "isn't linear"), ("T.evaluate(i)", "isn't one store")],
)
def test_what_is_no_copy_is_told(store: str, reason: str) -> None:
    text = HEAD + f'    with T.attr(0, "pragma_memcpy", 1):\n        for i in range(8):\n            {store}'
    with pytest.raises(LoweringError, match=f"Cannot match copy pattern: .*{reason}"):
        applied(transform.InjectCopyIntrin("memcpy", _copied), text)


def test_the_context_says_what_is_hoisted() -> None:
    text = HEAD + "    for i, j in T.grid(4, 4):\n        if i < 2 and n < 3:\n            A[i] = B[j]"
    names = transform.HoistedConditionals

    def hoisted(conditionals: transform.HoistedConditionals) -> str:
        return applied(transform.HoistExpression(), text, tir__HoistExpression={"hoisted_conditionals": conditionals.value})

    assert hoisted(names.Never).startswith("for i, j in")
    assert hoisted(names.IfElseStmt).startswith("for i in range(4):\n    if i < 2 and n < 3:\n")
    assert hoisted(names.All).startswith("if n < 3:\n")


def test_lanes_are_switched_off_by_predicates_where_the_context_allows_it() -> None:
    text = (
        HEAD
        + "    for i in range(4):\n        for j in T.vectorized(4):\n            if i * 4 + j < n:\n                A[i * 4 + j] = B[j]"
    )
    masked = applied(transform.VectorizeLoop(), text, tir__enable_buffer_level_predication=True)
    assert masked.count('predicate=T.get_active_lane_mask("uint1x4", i * 4, n)') == 2
    assert "j_s" in applied(transform.VectorizeLoop(), text)


def test_scalable_vectors_need_a_machine_that_has_them() -> None:
    text = HEAD + "    for i in T.vectorized(T.vscale() * 4):\n        A[i] = B[i] + T.float32(1)"
    with Target(SVE):
        assert "A[0:T.vscale() * 4] = B[0:T.vscale() * 4] + T.Broadcast(T.float32(1.0), T.vscale() * 4)" in applied(
            transform.VectorizeLoop(), text
        )
    with pytest.raises(LoweringError, match=r"Failed to vectorize loop with extent .* vectors have a constant number of lanes"):
        applied(transform.VectorizeLoop(), text)


def test_a_while_loop_has_no_vector_form() -> None:
    text = HEAD + "    for i in T.vectorized(4):\n        while A[i] < T.float32(3):\n            A[i] = A[i] + T.float32(1)"
    with pytest.raises(LoweringError, match="A while loop inside a vectorized loop not supported"):
        applied(transform.VectorizeLoop(), text)


def test_an_undefined_index() -> None:
    with pytest.raises(LoweringError, match=r"T.undef\(\) in its index|T.undef\(\) is used in an index"):
        applied(transform.RemoveStoreUndef(), HEAD + '    A[T.undef(dtype="int32")] = T.float32(1)\n    A[0] = B[T.undef(dtype="int32")]')


def test_shapes_are_narrowed_with_the_indices_into_them() -> None:
    func = from_source("""@T.prim_func
def main(A: T.Buffer((T.int64(4),), "float32")):
    B = T.alloc_buffer((T.int64(4),), "float32")
    for i in range(T.int64(4)):
        with T.block("b"):
            vi = T.axis.spatial(T.int64(4), i)
            B[vi] = A[vi]
""")
    found = transform.ForceNarrowIndexToInt32()(IRModule({"main": func})).script()  # type: ignore[dict-item]
    assert "A: T.Buffer((4,)" in found and "B = T.alloc_buffer((4,))" in found and "int64" not in found


def test_64_bit_values_may_be_indices() -> None:
    with pytest.raises(LoweringError, match="buffer A holds int64"):
        applied(transform.ForceNarrowIndexToInt32(), 'def main(A: T.Buffer((4,), "int64")):\n    A[0] = T.int64(1)')


def test_one_kernel_has_one_number_of_threads() -> None:
    text = (
        'def main(A: T.Buffer((8,), "float32")):\n    for b in T.thread_binding(2, thread="blockIdx.x"):\n'
        '        for i in T.thread_binding(8, thread="threadIdx.x"):\n            A[i] = T.float32(0)\n'
        '        for i in T.thread_binding(4, thread="threadIdx.x"):\n            A[i] = T.float32(1)'
    )
    with pytest.raises(LoweringError, match=r"threadIdx\.x is bound with extent 8 and with 4"):
        applied(transform.UnifyThreadBinding(), text)


def test_profiles_of_neighbouring_loops() -> None:
    text = (
        HEAD
        + "    for i in range(4):\n        for j in range(4):\n            for k in range(2):\n                A[i] = B[j]\n"
        + ("        for j in range(4):\n            A[j] = B[j]")
    )
    body = applied(
        transform.InstrumentProfileIntrinsics(), text, tir__instrument_lwp=True, tir__reset_start_id=True, tir__lwp_disable_func_prof=True
    )
    assert body.splitlines()[1] == "    T.start_profile_intrinsic(2)"
    assert body.count("start_profile_intrinsic") == 1  # the second neighbour holds no loop


MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), n: T.int32):
        T.func_attr({"target": T.target("cuda", host="llvm")})
        tx = T.launch_thread("threadIdx.x", n)
        A[tx] = T.float32(0)
"""


def test_a_kernel_leaves_its_host() -> None:
    mod = from_source(MODULE)
    assert isinstance(mod, IRModule)
    split = transform.Sequential([transform.AnnotateDeviceRegions(), transform.SplitHostDevice()])(mod)
    kernel = split["main_kernel"]
    assert [param.name for param in kernel.params] == ["A", "n"]
    assert kernel.attrs["tir.is_global_func"] and kernel.attrs["target"].host is None
    assert "Module.main_kernel(A.data, n)" in split.script()
    host = IRModule({**dict(split.functions_items()), "main": split["main"].with_attr("target", Target("llvm"))})
    launched = transform.LowerDeviceKernelLaunch()(host)
    assert launched["main_kernel"].attrs["tir.kernel_launch_params"] == ("threadIdx.x",)
    assert 'T.call_packed("main_kernel", A.data, n, n)' in launched["main"].script()


def test_private_functions_are_inlined_and_gone() -> None:
    mod = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32")):
        for i in range(8):
            Module.row(T.address_of(A[i, 0]), 3)

    @T.prim_func(private=True)
    def row(a: T.handle("float32"), n: T.int32):
        R = T.decl_buffer((4,), "float32", data=a)
        for j in range(n):
            R[j] = T.float32(1)
""")
    assert isinstance(mod, IRModule)
    inlined = transform.InlinePrivateFunctions()(mod)
    assert [var.name_hint for var, _ in inlined.functions_items()] == ["main"]
    assert "for j in range(3):" in inlined["main"].script() and "T.address_of(A[i, 0])" in inlined["main"].script()


def test_targets_and_entries() -> None:
    func = from_source("@T.prim_func(private=True)\ndef main():\n    T.evaluate(0)")
    mod = IRModule({"main": func})  # type: ignore[dict-item]
    both = Target("cuda", host="llvm")
    assert transform.BindTarget(both)(mod)["main"].attrs["target"].host is None
    public = IRModule({"main": mod["main"].with_attr("global_symbol", "main")})
    assert transform.BindTarget(both)(public)["main"].attrs["target"].host == Target("llvm")
    assert transform.AnnotateEntryFunc()(mod)["main"].attrs["tir.is_entry_func"]


def test_small_floats_become_wide_ones() -> None:
    text = 'def main(A: T.Buffer((4,), "bfloat16")):\n    A[0] = A[1] + A[2]'
    wide = applied(transform.BF16ComputeLegalize(), text)
    assert wide.count('T.reinterpret("float32", T.shift_left(T.Cast("uint32", T.reinterpret("uint16", A[') == 4
    stored = applied(transform.Sequential([transform.BF16ComputeLegalize(), transform.BF16StorageLegalize()]), text)
    assert "bfloat16" not in stored
    with pytest.raises(PassError, match="computes in float16 or float32, not 'float64'"):
        transform.FP8ComputeLegalize("float64")


def test_modules_by_the_names_that_programs_import() -> None:
    from tensorexpr.ir.instrument import PassTimingInstrument  # type: ignore[attr-defined]
    from tensorexpr.ir.transform import Sequential  # type: ignore[attr-defined]
    from tensorexpr.tir.transform import transform as again  # type: ignore[attr-defined]

    assert again.BindTarget is transform.BindTarget
    assert tvm.instrument.PassTimingInstrument is PassTimingInstrument
    assert tvm.transform.Sequential is Sequential
    assert isinstance(function_pass.prim_func_pass(lambda f, m, c: f, opt_level=0), function_pass.PrimFuncPass)
    assert tvm.driver.build_module.get_binds([])[1] == []
