"""Python around and inside of scripts: functions of the program, f-strings, comprehensions, lambdas, stars."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.script import from_source
from tensorexpr.script import tir as T
from tensorexpr.tir.structural_difference import assert_structural_equal

HEADER = '@T.prim_func\ndef main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((16,), "float32")):\n'


def same(body: str, plain: str, **names: Any) -> None:
    """`body` and `plain` are one program."""
    made = from_source(HEADER + "".join(f"    {line}\n" for line in body.split("\n")), names)
    wanted = from_source(HEADER + "".join(f"    {line}\n" for line in plain.split("\n")), names)
    assert_structural_equal(made, wanted)
    assert_structural_equal(from_source(made.script()), made)


def double(x: Any) -> Any:
    return x * 2


def test_functions_and_objects_of_the_program_around() -> None:
    config = SimpleNamespace(size=16, scale=double)
    same("for i in range(c.size):\n    B[i] = c.scale(B[i])", "for i in range(16):\n    B[i] = B[i] * T.float32(2)", c=config)
    same("B[f(3)] = 1.0", "B[6] = 1.0", f=double)

    @T.prim_func
    def captured(C: T.Buffer((4,), "float32")) -> None:
        for i in range(double(2)):
            C[i] = double(C[i])

    loop: Any = captured.body
    assert int(loop.extent) == 4 and str(loop.body.value) == "C[i] * T.float32(2.0)"


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("B[len([x for x in range(4) if x != 2])] = 1.0", "B[3] = 1.0"),
        ("B[sum([x * y for x, y in zip((1, 2), (3, 4))])] = 1.0", "B[11] = 1.0"),
        ("B[{k: v for k, v in [('a', 5)]}['a']] = 1.0", "B[5] = 1.0"),
        ("B[dims[1:][0]] = 1.0", "B[3] = 1.0"),
        ("B[3 if 'a' in ('a', 'b') and dims is not None else 1] = 1.0", "B[3] = 1.0"),
        ("i, *rest = 1, 2, 3\nB[rest[1]] = 1.0", "i = 1\nB[3] = 1.0"),
        ('T.evaluate(T.call_extern("int32", f"{\'f\'}_{dims[0]:02d}"))', 'T.evaluate(T.call_extern("int32", "f_02"))'),
        ("for i in T.grid(8, 8):\n    A[i] = 1.0", "for i, j in T.grid(8, 8):\n    A[i, j] = 1.0"),
        (
            "for *ij, k in T.grid(8, 8, 2):\n    A[ij] = T.cast(k, 'float32')",
            "for i, j, k in T.grid(8, 8, 2):\n    A[i, j] = T.cast(k, 'float32')",
        ),
        ("for ij in T.grid(*dims):\n    A[*ij] = 1.0", "for i, j in T.grid(2, 3):\n    A[i, j] = 1.0"),
        ("A[1, 4:] = A[0, :4]", "A[1, 4:8] = A[0, 0:4]"),
        ("B[0]", "T.evaluate(B[0])"),
        ("return B[0] > 1.0", "T.evaluate(T.ret(B[0] > 1.0))"),
        ("with T.While(B[0] < 3.0):\n    B[0] = 1.0", "while B[0] < 3.0:\n    B[0] = 1.0"),
        (
            "with T.If(B[0] < 3.0):\n    with T.Then():\n        B[0] = 1.0\n    with T.Else():\n        B[1] = 1.0",
            "if B[0] < 3.0:\n    B[0] = 1.0\nelse:\n    B[1] = 1.0",
        ),
        ("T.buffer_store(B, 1.0, [3])", "B[3] = 1.0"),
        ("T.evaluate((B[0:4] < 0) and (1 > 0))", "T.evaluate((B[0:4] < T.Broadcast(T.float32(0), 4)) and T.Broadcast(T.bool(True), 4))"),
    ],
)
def test_what_python_says_of_constants(body: str, plain: str) -> None:
    same(body, plain, dims=(2, 3))


def test_combiners_and_maps() -> None:
    func: Any = from_source(
        HEADER + '    T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0)))\n'
        '    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), B[0], T.bool(True), B.data, 0, dtype="handle"))'
    )
    assert isinstance(func.body.node, tir.CommReducer)
    assert_structural_equal(from_source(func.script()), func)
    made = T.index_map(lambda i, j: [j, i])
    assert [str(index) for index in made.final_indices] == ["j", "i"]


DEVICE = [
    'T.ptx_cp_async("float32", B.data, 0, A.data, 0, 16)',
    "T.ptx_commit_group()",
    "T.ptx_wait_group(0)",
    'T.tvm_storage_sync("shared")',
    "T.tvm_fill_fragment(B.data, 16, 16, 16, 0, T.float32(0.0))",
    "T.tvm_mma_sync(B.data, 0, A.data, 0, A.data, 0, B.data, 0)",
    'T.tvm_load_matrix_sync(B.data, 16, 16, 16, 0, A.data, 8, "row_major")',
    'T.tvm_struct_set(A.data, 0, 1, T.tvm_struct_get(A.data, 0, 2, "int32"))',
    "T.tvm_warp_shuffle(T.tvm_warp_activemask(), B[0], 0, 32, 32)",
    'T.mma_fill("float32", 8, B.data, 0)',
    "T.call_cpacked(\"f\", A.data)",
]  # fmt: skip


@pytest.mark.parametrize("text", DEVICE)
def test_calls_of_devices_read_as_they_print(text: str) -> None:
    func = from_source(f"{HEADER}    {text}\n    T.evaluate(0)")
    assert text in func.script()
    assert_structural_equal(from_source(func.script()), func)


def test_targets_are_attributes() -> None:
    func = from_source(HEADER + '    T.func_attr({"target": T.target({"kind": "llvm", "mcpu": "skylake"})})\n    B[0] = 1.0')
    assert func.attrs["target"].mcpu == "skylake" and 'T.target({"' in func.script()
    assert_structural_equal(from_source(func.script()), func)


def test_macros_with_all_kinds_of_parameters() -> None:
    @T.macro
    def add(i: Any, *args: Any, to: Any, by: float = 1.0, **rest: Any) -> None:
        to[i] = to[i] + args[0][i] * by
        rest["out"][i] = to[i]

    @T.prim_func(private=True)
    def expanded(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            add(i, A, to=B, out=C)

    @T.prim_func(private=True)
    def plain(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            B[i] = B[i] + A[i] * 1.0
            C[i] = B[i]

    assert_structural_equal(expanded, plain)


def test_objects_with_macros_and_buffers_of_their_own() -> None:
    class Staged:
        def __init__(self, source: Any) -> None:
            self.copy = T.alloc_buffer(source.shape, source.dtype)
            T.evaluate(0)

        @T.macro
        def load(self, source: Any) -> None:
            n, m = T.meta_var(self.copy.shape)
            for i, j in T.grid(n, m):
                self.copy[i, j] = source[i, j]

    @T.prim_func(private=True)
    def staged(A: T.Buffer((4, 8), "float32")) -> None:
        first = T.meta_var(Staged(A))
        first.load(A)

    @T.prim_func(private=True)
    def plain(A: T.Buffer((4, 8), "float32")) -> None:
        B = T.alloc_buffer((4, 8), "float32")
        T.evaluate(0)
        for i, j in T.grid(4, 8):
            B[i, j] = A[i, j]

    assert_structural_equal(staged, plain)


@pytest.mark.parametrize("declare", [T.decl_buffer, T.Buffer], ids=["decl_buffer", "Buffer"])
def test_a_function_that_passes_on_a_definition(declare: Any) -> None:
    def view(*args: Any, **kwargs: Any) -> Any:
        return declare(*args, **kwargs)

    @T.prim_func(private=True)
    def passed_on(A: T.Buffer((4,), "float32")) -> None:
        data = T.allocate_const([1.0, 2.0, 3.0, 4.0], dtype="float32", extents=[4])
        table = view([4], data=data)
        for i in range(4):
            A[i] = table[i]

    @T.prim_func(private=True)
    def written_out(A: T.Buffer((4,), "float32")) -> None:
        data = T.allocate_const([1.0, 2.0, 3.0, 4.0], dtype="float32", extents=[4])
        table = declare([4], data=data)
        for i in range(4):
            A[i] = table[i]

    assert_structural_equal(passed_on, written_out)
