"""Packed and unpacked functions, and what packed calls and allocations become."""

from __future__ import annotations

import pytest

from tensorexpr.errors import LoweringError
from tensorexpr.lower.passes import Pass
from tensorexpr.script import from_source
from tensorexpr.target import Target
from tensorexpr.tir import IRModule, transform

HOST = Target("llvm", host="llvm")
DEVICE = '    T.attr("default", "device_id", 0)\n    T.attr("default", "device_type", {device})\n'


def lines(one: Pass, text: str, target: Target | None = HOST) -> list[str]:
    """The lines of function "main" after the pass."""
    func = from_source(f"@T.prim_func\n{text}").with_attr("global_symbol", "main")
    if target is not None:
        func = func.with_attr("target", target)
    return [line.strip() for line in one(IRModule({"main": func})).script().splitlines()]  # type: ignore[dict-item]


ADD = "def main(a: T.handle, b: T.handle, n: T.int32, x: T.float32):\n    m = T.int32()\n    A = T.match_buffer(a, (m, 4))\n"
ADD += "    B = T.match_buffer(b, (m * 2,), strides=(2,), elem_offset=4)\n    A[n, 0] = B[n] + x\n"


def test_a_packed_function_checks_and_takes_apart_its_arguments() -> None:
    text = lines(transform.MakePackedAPI(), ADD)
    signature = next(line for line in text if line.startswith("def "))
    assert signature.endswith('out_ret_tcode: T.handle("int32"), resource_handle: T.handle) -> T.int32:')
    for line in (
        'assert num_args == 4, "main: num_args should be 4"',
        'assert x_code == 2, "main: Expect arg[3] to be float"',
        'n: T.int32 = T.Cast("int32", T.tvm_struct_get(args, 2, 12, "int64"))',
        'm: T.int32 = T.Cast("int32", main_a_shape_1[0])',
        'T.attr("default", "device_id", dev_id)',
        "if not T.isnullptr(main_a_strides):",
        "return 0",
    ):
        assert line in text, line
    checks = [line for line in text if line.startswith("assert") and "main.b" in line]
    assert len(checks) == 9
    assert any("Argument main.b.shape[0] has an unsatisfied constraint: m * 2 == " in line for line in checks)
    assert any("Argument main.b.byte_offset has an unsatisfied constraint: T.uint64(16) == " in line for line in checks)


def test_what_a_packed_function_returns_is_stored_for_its_caller() -> None:
    text = lines(transform.MakePackedAPI(), "def main(n: T.int32) -> T.float32:\n    T.ret(T.float32(1) * T.Cast('float32', n))")
    assert "out_ret_tcode_1[0] = 2" in text
    assert any(line.startswith('out_ret_value_1[0] = T.Cast("float64", ') for line in text)


def test_calls_between_packed_functions_go_through_the_runtime() -> None:
    text = """
@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main", "target": T.target("llvm", host="llvm")})
        M.public(A.data)
        M.private(A.data)
    @T.prim_func
    def public(p: T.handle("float32")):
        T.func_attr({"global_symbol": "public", "target": T.target("llvm", host="llvm")})
        T.evaluate(0)
    @T.prim_func(private=True)
    def private(p: T.handle("float32")):
        T.func_attr({"target": T.target("llvm", host="llvm")})
        T.evaluate(0)
"""
    made = transform.MakePackedAPI()(from_source(text)).script()
    assert 'T.call_cpacked("public", A, T.reinterpret("handle", T.uint64(0)))' in made
    assert "Module.private(A)" in made
    assert 'def private(p: T.handle("float32")):' in made


def test_functions_without_a_host_stay() -> None:
    func = from_source(f"@T.prim_func\n{ADD}").with_attr("global_symbol", "main").with_attr("target", Target("llvm"))
    mod = IRModule({"main": func})  # type: ignore[dict-item]
    for one in (transform.MakePackedAPI(), transform.MakeUnpackedAPI()):
        assert one(mod)["main"] is func


@pytest.mark.parametrize("one", [transform.MakePackedAPI(), transform.MakeUnpackedAPI()])
def test_a_calling_convention_is_that_of_a_target(one: Pass) -> None:
    with pytest.raises(LoweringError, match="BindTarget"):
        lines(one, ADD, target=None)


def test_an_unpacked_function_takes_pointers() -> None:
    text = lines(transform.MakeUnpackedAPI(), ADD)
    assert 'def main(A: T.handle("float32"), B: T.handle("float32"), n: T.int32, x: T.float32) -> T.int32:' in text
    assert 'T.attr("default", "device_type", 1)' in text
    assert text[-1] == "return 0"


def test_arguments_of_packed_calls_are_stored_with_their_kinds() -> None:
    head = 'def main(A: T.Buffer((4,), "float32"), n: T.int32):\n' + DEVICE.format(device=1)
    text = lines(transform.LowerTVMBuiltin(), head + '    T.evaluate(T.tvm_call_packed("f", n, T.float32(1), "s", A.data))')
    body = text[text.index("stack_tcode_1[0] = 0") :]
    assert 'stack_value: T.handle = T.tvm_stack_alloca("arg_value", 5)' in text
    assert body[1:5] == [
        'T.tvm_struct_set(stack_value, 1, 12, T.Cast("float64", T.float32(1.0)))',
        "stack_tcode_1[1] = 2",
        'T.tvm_struct_set(stack_value, 2, 12, "s")',
        "stack_tcode_1[2] = 11",
    ]
    assert body[-1] == 'T.call_packed_lowered("f", stack_value, stack_tcode, 0, 4)'
    assert not any("device_type" in line for line in text)


def packed(body: str) -> list[str]:
    head = 'def main(A: T.Buffer((4,), "int32"), n: T.int32):\n' + DEVICE.format(device=1)
    text = lines(transform.LowerTVMBuiltin(), head + body)
    return [
        line
        for line in text[next(i for i, line in enumerate(text) if "alloca" in line) :]
        if "T.Buffer" not in line and "alloca" not in line
    ]


def test_calls_of_one_statement_have_places_of_their_own() -> None:
    text = packed('    A[0] = T.tvm_call_packed("f", 1, dtype="int32") + T.tvm_call_packed("g", 2, dtype="int32")\n')
    assert [line for line in text if "struct_set" in line] == [
        'T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", 1))',
        'T.tvm_struct_set(stack_value, 2, 12, T.Cast("int64", 2))',  # 1 is for f's result
    ]
    assert '("f", stack_value, stack_tcode, 0, 1)' in text[-1] and '("g", stack_value, stack_tcode, 2, 3)' in text[-1]
    # One after the other they may share, and the result of an argument is stored before the next one is computed.
    text = packed('    T.evaluate(T.tvm_call_packed("f", 1))\n    T.evaluate(T.tvm_call_packed("g", 2))\n')
    assert sum(line.startswith("T.tvm_struct_set(stack_value, 0,") for line in text) == 2


def test_a_condition_of_a_loop_stores_its_arguments_each_time() -> None:
    text = packed('    while T.tvm_call_packed("f", A[0], dtype="int32") > 0:\n        A[0] = A[0] - 1\n')
    stored = 'T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", A[0]))'
    first, between = text.index(stored), text.index("A[0] = A[0] - 1")
    assert first < between < text.index(stored, between)


def test_arguments_of_a_call_that_is_not_made_are_not_read() -> None:
    text = packed('    for i in range(8):\n        A[0] = T.if_then_else(i < 4, T.tvm_call_packed("f", A[i], dtype="int32"), 0)\n')
    assert text[text.index("for i in range(8):") + 1 :][:2] == ["if i < 4:", 'T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", A[i]))']
    with pytest.raises(LoweringError, match="bind it by a statement"):
        packed('    A[0] = T.Let(T.tvm_call_packed("f", x, dtype="int32"), where={x: A[1]})\n')


def test_arrays_for_calls_are_made_on_the_stack() -> None:
    head = 'def main(A: T.Buffer((4,), "int8"), n: T.int32):\n' + DEVICE.format(device=1)
    call = "T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(2, n), 0, 2, T.int8(0), 3)"
    text = lines(transform.LowerTVMBuiltin(), head + f'    T.evaluate(T.tvm_call_packed("f", {call}))')
    assert 'stack_shape: T.handle("int64") = T.tvm_stack_alloca("shape", 2)' in text
    assert 'stack_shape_1[1] = T.Cast("int64", n)' in text
    assert "T.tvm_struct_set(stack_array, 0, 8, T.uint64(3))" in text
    assert "stack_tcode_1[0] = 7" in text


def test_large_allocations_come_from_the_workspace() -> None:
    head = 'def main(A: T.Buffer((4,), "float32"), n: T.int32):\n'
    body = '    p = T.allocate([{size}], "float32", "global")\n    B = T.Buffer(({size},), data=p)\n    B[0] = A[0]\n'
    text = lines(transform.LowerTVMBuiltin(), head + DEVICE.format(device=1) + body.format(size="n"))
    assert 'p: T.handle("float32") = T.TVMBackendAllocWorkspace(1, 0, T.uint64(4) * T.Cast("uint64", n), 2, 32)' in text
    assert text[-2:] == ["if T.TVMBackendFreeWorkspace(1, 0, p) != 0:", "T.tvm_throw_last_error()"]
    small = lines(transform.LowerTVMBuiltin(), head + DEVICE.format(device=1) + body.format(size=16))
    assert any(line.startswith("p = T.allocate([16]") for line in small)
    with pytest.raises(LoweringError, match="unknown device id"):
        lines(transform.LowerTVMBuiltin(), head + body.format(size=4096))


def test_memory_of_kernels_is_no_workspace() -> None:
    text = """def main(A: T.handle("float32")):
    B = T.decl_buffer((32,), data=A)
    p = T.allocate([32], "float32", "shared")
    S = T.Buffer((32,), data=p, scope="shared")
    with T.launch_thread("threadIdx.x", 32) as tx:
        S[tx] = B[tx]
        B[tx] = S[31 - tx]
"""
    made = lines(transform.LowerTVMBuiltin(), text, Target("cuda -arch=sm_80"))
    assert 'p = T.allocate([32], "float32", "shared")' in made and not any("Workspace" in line for line in made)
