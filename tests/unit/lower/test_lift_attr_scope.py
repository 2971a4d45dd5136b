"""Attributes around several statements: as far outside as they hold, and no further than what they speak of."""

from __future__ import annotations

import tensorexpr as tvm
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform


def lifted(body: str) -> list[str]:
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
{body}""")
    assert isinstance(func, PrimFunc)
    result = transform.LiftAttrScope("scope")(IRModule({"main": func}))["main"]
    assert isinstance(result, PrimFunc)
    tvm.tir.analysis.verify_ssa(result)
    lines = result.script().splitlines()
    return [line[4:] for line in lines[next(n for n, line in enumerate(lines) if "def main" in line) + 1 :]]


def test_around_a_loop_and_around_neighbours() -> None:
    assert lifted("""    for i in range(8):
        with T.attr(0, "scope", n):
            A[i] = 0.0
""")[-3:] == ['T.attr(0, "scope", n)', "for i in range(8):", "    A[i] = T.float32(0.0)"]


def test_not_out_of_what_defines_a_part_of_it() -> None:
    loop = lifted("""    for i in range(8):
        with T.attr(0, "scope", i):
            A[i] = 0.0
""")
    assert loop[-3:] == ["for i in range(8):", '    T.attr(0, "scope", i)', "    A[i] = T.float32(0.0)"]
    let = lifted("""    with T.LetStmt(n + 1) as m:
        with T.attr(0, "scope", m):
            A[0] = 0.0
""")
    assert "n + 1" in let[-3] and let[-2].strip() == 'T.attr(0, "scope", m)'


def test_a_value_from_memory_stays_where_it_is_read() -> None:
    loop = lifted("""    for i in range(7):
        with T.attr(0, "scope", T.int32(A[0])):
            A[i] = A[i + 1]
""")
    assert loop[-3] == "for i in range(7):"


def test_branches_keep_attributes_of_their_own() -> None:
    text = lifted("""    if n < 3:
        with T.attr(0, "scope", 1):
            A[0] = 0.0
    else:
        with T.attr(0, "scope", 2):
            A[0] = 1.0
""")
    assert [line.strip() for line in text if "attr" in line] == ['T.attr(0, "scope", 1)', 'T.attr(0, "scope", 2)']


def test_init_and_body_of_a_block_keep_theirs() -> None:
    text = lifted("""    for i in range(8):
        with T.block("b"):
            v = T.axis.reduce(8, i)
            with T.init():
                with T.attr(0, "scope", 1):
                    A[0] = 0.0
            with T.attr(0, "scope", 2):
                A[0] = A[0] + 1.0
""")
    assert [line.strip() for line in text if "attr" in line] == ['T.attr(0, "scope", 1)', 'T.attr(0, "scope", 2)']
