"""Forms of earlier releases that are gone, and wrong uses of those that aren't: the place, and what to write instead."""

from __future__ import annotations

import pytest

from tensorexpr.codegen.emit import emit_module
from tensorexpr.errors import CodegenError, DeclarationError, ParseError
from tensorexpr.lower.pipeline import lower
from tensorexpr.script import from_source
from tensorexpr.target import Target
from tensorexpr.tir import IRModule, PrimFunc

HEADER = """@T.macro
def forever(i):
    forever(i)

@T.macro
def one(x, i):
    x[i] = 1.0

@T.macro
def wrong(x):
    x[zzz] = 1.0

@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32):
"""
FIRST = HEADER.count("\n") + 1
CASES: list[tuple[str, int, str]] = [
    (
        "B = T.preflattened_buffer(A, (4, 4))",
        5,
        "T.preflattened_buffer belongs to earlier releases; a parameter has one buffer: leave this out",
    ),
    ('A[0] = T.load("float32", A.data, 0)', 8, "T.load belongs to earlier releases; name the memory"),
    ("T.store(A.data, 0, 1.0, True)", 1, "T.store belongs to earlier releases; name the memory"),
    ('with T.block([16], "C") as [vi]:\n    pass', 6, "T.block takes a name, and its axes are defined inside"),
    (
        'with T.block([T.reduce_axis(0, 16)], "C") as [vi]:\n    pass',
        15,
        "T.reduce_axis belongs to earlier releases; axes are defined inside",
    ),
    ('A[0] = T.exp(A[0], dtype="float64")', 8, "T.exp of these operands is float32, not float64; convert it with T.Cast"),
    ('A[0] = T.exp(A[0], dtype="real")', 8, "real"),
    ('A[0] = T.exp(A[0], kind="float32")', 8, "T.exp: got an unexpected keyword argument 'kind'"),
    ("p: T.Ptr(3) = A.data", 4, "T.Ptr takes the type of the elements, such as T.float32"),
    ("one(A)", 1, "the macro one(x, i): "),
    ("one(A, 1, i=2)", 1, "the macro one(x, i): "),
    ("A[0] = one(A, 1)", 8, "the macro one is a part of scripts"),
    ("forever(n)", 0, "macros are nested more than 32 deep; does forever use itself?"),
]


@pytest.mark.parametrize(("body", "column", "message"), CASES, ids=[case[0] for case in CASES])
def test_refused(body: str, column: int, message: str) -> None:
    text = HEADER + "\n".join(f"    {line}" for line in body.splitlines())
    with pytest.raises(ParseError) as error:
        from_source(text)
    assert message in str(error.value)
    if column:
        assert (error.value.line, error.value.column) == (FIRST, column + 4)


def test_an_error_in_a_macro_is_shown_there() -> None:
    with pytest.raises(ParseError, match="'zzz' is not defined here") as error:
        from_source(f"{HEADER}    wrong(A)")
    assert (error.value.line, error.value.column) == (11, 7)


def test_functions_of_a_module_call_each_other_in_programs_but_not_in_machine_code() -> None:
    mod = from_source("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def part(a: T.handle("float32")):
        A = T.decl_buffer((16,), data=a)
        A[0] = 1.0

    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        M.part(A.data)
        cls.part(A.data)
""")
    assert isinstance(mod, IRModule)
    assert mod.script().count("Module.part(A.data)") == 2
    with pytest.raises(
        (CodegenError, DeclarationError), match=r"a call of part, a function of the same module, is not compiled.*InlinePrivate"
    ):
        emit_module({"main": lower(mod["main"])["main"]}, Target("llvm"))


def test_threads_without_a_loop() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(tx, 16)
    A[tx] = 1.0
""")
    assert isinstance(func, PrimFunc)
    with pytest.raises(CodegenError, match=r"T\.launch_thread starts threadIdx\.x, and a CPU has no such threads"):
        emit_module({"main": lower(func)["main"]}, Target("llvm"))
