"""The passes on blocks in TVM's forms, and common subexpressions: what goes in, what comes out, and that it computes the same."""

from __future__ import annotations

import numpy as np

from tensorexpr.lower.passes import Pass
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret


def through(one: Pass, func: PrimFunc) -> PrimFunc:
    result = one(IRModule({"main": func}))["main"]
    assert isinstance(result, PrimFunc)
    return result


def parsed(text: str) -> PrimFunc:
    func = from_source(f"@T.prim_func\n{text}")
    assert isinstance(func, PrimFunc)
    return func


def lines(func: PrimFunc) -> list[str]:
    return [line.strip() for line in func.script().splitlines()]


ROWS = parsed("""def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("row"):
            T.reads(X[i, 0:8])
            T.writes(Y[i, 0:8])
            P = T.alloc_buffer((4, 8), scope="local")
            T.block_attr({"pragma_note": 1})
            for j in range(6):
                P[i, j + 2] = X[i, j] * 2.0
            for j in T.serial(6, annotations={"keep": 1}):
                with T.block("part"):
                    T.where(j < 5)
                    T.reads(P[i, j + 2])
                    T.writes(Y[i, j])
                    V = T.match_buffer(P[i, j + 2:j + 3], (1,), offset_factor=1)
                    Y[i, j] = V[0] + 1.0
            for one in range(1):
                Y[i, one + 5] = P[i, 7]
""")


def run(func: PrimFunc) -> np.ndarray:
    x, y = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    interpret(func, [x, y])
    return y


def test_views_are_what_they_view() -> None:
    func = through(transform.LowerMatchBuffer(), ROWS)
    assert "Y[i, j] = P[i, j + 2] + T.float32(1.0)" in lines(func)
    np.testing.assert_array_equal(run(func), run(ROWS))


def test_all_views_of_a_block_go_those_of_views_too() -> None:
    func = parsed("""def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    with T.block("both"):
        T.reads(X[0:4, 0:8])
        T.writes(Y[0:4, 0:8])
        x = T.match_buffer(X[0:4, 4:8], (4, 4), strides=(8, 1), offset_factor=1)
        y = T.match_buffer(Y[0:4, 0:4], (4, 4), strides=(8, 1), offset_factor=1)
        z = T.match_buffer(x[1:2, 0:4], (4,), offset_factor=1)
        for j in range(4):
            y[0, j] = x[0, j] + z[j]
""")
    found = lines(through(transform.LowerMatchBuffer(), func))
    assert "Y[0, j] = X[0, j + 4] + X[1, j + 4]" in found and not any("match_buffer" in line for line in found)


def test_compact_buffers_begin_at_zero() -> None:
    func = through(transform.CompactBufferAllocation(), ROWS)
    assert 'P = T.alloc_buffer((1, 6), scope="local")' in lines(func)
    assert "P[i - i, j + 2 - 2] = X[i, j] * T.float32(2.0)" in lines(func)
    assert "T.reads(P[i - i, j + 2 - 2])" in lines(func)
    np.testing.assert_array_equal(run(func), run(ROWS))


def test_aligned_strides_are_those_of_compact_buffers() -> None:
    text = """def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    with T.block("all"):
        P = T.alloc_buffer((4, 8))
        with T.block("fill"):
            T.reads(X[0:4, 0:6])
            T.writes(P[0:4, 0:6])
            T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})
            for i, j in T.grid(4, 6):
                P[i, j] = X[i, j]
        for i, j in T.grid(4, 6):
            Y[i, j] = P[i, j]
"""
    func = through(transform.CompactBufferAllocation(), parsed(text))
    assert "P = T.alloc_buffer((4, 6), strides=(9, 1))" in lines(func)
    np.testing.assert_array_equal(run(func), run(parsed(text)))


def test_opaque_blocks_are_statements() -> None:
    func = through(transform.LowerOpaqueBlock(), through(transform.LowerMatchBuffer(), ROWS))
    text = lines(func)
    assert 'P = T.decl_buffer((4, 8), scope="local")' in text
    assert 'T.attr(0, "pragma_note", 1)' in text
    assert any(line.endswith('in T.serial(6, annotations={"keep": 1}):') for line in text)
    assert "Y[i, T.Add(0, 5)] = P[i, 7]" in text  # nothing is folded
    assert not any("T.block" in line for line in text)
    np.testing.assert_array_equal(run(func), run(ROWS))


def test_threads_and_pragmas_of_loops_are_attributes() -> None:
    func = through(
        transform.LowerOpaqueBlock(),
        parsed("""def main(A: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for i in T.serial(2, annotations={"pragma_note": 3}):
            with T.block(""):
                A[t] = 1.0
"""),
    )
    text = lines(func)
    assert 't = T.launch_thread("threadIdx.x", 4)' in text
    assert 'T.attr(i, "pragma_note", 3)' in text


REPEATED = parsed("""def main(A: T.Buffer((64,), "int32"), x: T.int32, y: T.int32):
    A[0] = (x + y) * (x + y) + 1
    A[1] = (x + y) * (x + y)
    for i in range(4):
        A[i * 4 + x] = A[i * 4 + x] + x // y
    if y != 0:
        A[2] = x // y + A[3] * A[3]
""")


def test_what_is_repeated_is_named_where_its_variables_are() -> None:
    func = through(transform.CommonSubexprElimTIR(), REPEATED)
    text = lines(func)
    body = text[next(n for n, line in enumerate(text) if line.startswith("def ")) + 1 :]
    assert body == [
        "cse_var_2: T.int32 = x + y",
        "cse_var_1: T.int32 = cse_var_2 * cse_var_2",
        "A[0] = cse_var_1 + 1",
        "A[1] = cse_var_1",
        "for i in range(4):",
        "cse_var_3: T.int32 = i * 4 + x",
        "A[cse_var_3] = A[cse_var_3] + x // y",
        "if y != 0:",
        "A[2] = x // y + A[3] * A[3]",  # neither memory nor what may divide by zero
    ]
    found, wanted = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32)
    interpret(func, [found, 3, 2])
    interpret(REPEATED, [wanted, 3, 2])
    np.testing.assert_array_equal(found, wanted)


def test_what_a_let_in_an_expression_binds_has_no_value_in_front_of_the_statement() -> None:
    func = parsed("""def main(A: T.Buffer((4,), "int32"), x: T.int32, y: T.int32):
    v = T.int32()
    A[0] = T.Let(v * y + (3 + v * y) + (x + y) * (x + y), where={v: x + 1})
""")
    named = through(transform.CommonSubexprElimTIR(), func)
    assert "cse_var_1: T.int32 = x + y" in lines(named)
    found, wanted = np.zeros(4, np.int32), np.zeros(4, np.int32)
    interpret(named, [found, 3, 2])
    interpret(func, [wanted, 3, 2])
    np.testing.assert_array_equal(found, wanted)


def test_equivalent_terms_count_as_the_same_on_request() -> None:
    func = parsed('def main(A: T.Buffer((4,), "int32"), x: T.int32, y: T.int32):\n    A[0] = x * 2 + y\n    A[1] = y + x + x\n')
    assert "cse_var" not in through(transform.CommonSubexprElimTIR(), func).script()
    assert lines(through(transform.CommonSubexprElimTIR(identify_equiv_terms=True), func))[-2:] == ["A[0] = cse_var_1", "A[1] = cse_var_1"]
    assert through(transform.CommonSubexprElimTIR(enable_cse_tir=False), REPEATED) is REPEATED


def test_an_init_stands_in_its_block_where_the_reduction_starts() -> None:
    func = parsed("""def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    for i in range(4):
        for k in range(2, 8):
            with T.block("sum"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce((2, 8), k)
                with T.init():
                    Y[vi, 0] = 1.0
                Y[vi, 0] = Y[vi, 0] + X[vi, vk]
""")
    lowered = through(transform.LowerInitBlock(), func)
    text = lines(lowered)
    assert text[text.index("if vk == 2:") + 1] == "Y[vi, 0] = T.float32(1.0)"
    np.testing.assert_array_equal(run(lowered), run(func))


def test_blocks_state_nothing_of_buffers_that_moved_into_them() -> None:
    func = parsed("""def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((1,))
    for i, j in T.grid(4, 8):
        with T.block("outer"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(X[vi, vj], B[0])
            T.writes(Y[vi, vj], B[0])
            B[0] = X[vi, vj]
            with T.block("inner"):
                T.reads(B[0])
                T.writes(Y[vi, vj])
                Y[vi, vj] = B[0]
""")
    text = lines(through(transform.PlanAndUpdateBufferAllocationLocation(), func))
    outer, inner = text.index('with T.block("outer"):'), text.index('with T.block("inner"):')
    assert text[outer + 2 : outer + 5] == ["T.reads(X[vi, vj])", "T.writes(Y[vi, vj])", "B = T.alloc_buffer((1,))"]
    assert text[inner + 1] == "T.reads(B[0])"


def test_blocks_state_the_sources_of_their_views() -> None:
    func = parsed("""def main(Y: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4, 8))
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            T.writes(B[vi, 0:8])
            V = T.match_buffer(B[vi, 0:8], (8,))
            for j in range(8):
                V[j] = 1.0
""")
    text = lines(through(transform.PlanAndUpdateBufferAllocationLocation(), func))
    position = next(number for number, line in enumerate(text) if line.endswith("T.alloc_buffer((4, 8))"))
    assert position > text.index("T.writes(B[vi, 0:8])") > text.index('with T.block("outer"):')


def placed(text: str) -> list[str]:
    return lines(through(transform.PlanAndUpdateBufferAllocationLocation(), parsed(text)))


def test_what_nobody_writes_and_what_a_call_fills_stand_where_they_are_used() -> None:
    text = placed("""def main(B: T.Buffer((64,), "float32")):
    U = T.alloc_buffer((64,))
    F = T.alloc_buffer((64,))
    for i in range(8):
        with T.block("fill"):
            v = T.axis.spatial(8, i)
            T.reads()
            T.writes(F[v * 8:v * 8 + 8])
            T.evaluate(T.call_extern("int32", "fill", F.data, v))
        for j in range(8):
            with T.block("use"):
                v = T.axis.spatial(64, i * 8 + j)
                T.reads(F[v], U[v])
                T.writes(B[v])
                B[v] = F[v] + U[v]
""")
    # U in the loop of its one reader, F in that around both.
    assert text.index("F = T.alloc_buffer((64,))") > text.index("for i in range(8):")
    assert text.index("U = T.alloc_buffer((64,))") > text.index("for j in range(8):")


def test_buffers_stay_outside_of_loops_whose_iterations_need_those_before() -> None:
    source = """def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    C = T.alloc_buffer((4, 8), "int32")
    for i in range(4):
        for j in range(8):
            with T.block("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + 1
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.opaque(8, j)
                T.reads(C[vi, vj - 1:vj + 1])
                T.writes(B[vi, vj])
                B[vi, vj] = C[vi, vj] + T.if_then_else(0 < vj, C[vi, vj - 1], 0)
"""
    text = placed(source)
    # What is read of column -1 is behind a condition: a row has all that it needs.
    assert text.index("for i in range(4):") < text.index('C = T.alloc_buffer((4, 8), "int32")') < text.index("for j in range(8):")
    a, made = np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros((4, 8), np.int32)
    interpret(through(transform.PlanAndUpdateBufferAllocationLocation(), parsed(source)), [a, made])
    np.testing.assert_array_equal(made, a + 1 + np.pad(a + 1, ((0, 0), (1, 0)))[:, :8])


def test_loops_around_say_what_is_covered() -> None:
    text = placed("""def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    S = T.alloc_buffer((8, 8))
    for i in range(4):
        for k in range(8):
            for j in range(4):
                with T.block("s"):
                    vj, vk = T.axis.remap("SS", [j, k])
                    S[vj, vk] = A[vj, vk]
            with T.block("b"):
                vi, vk = T.axis.remap("SS", [i, k])
                B[vi, vk] = S[vi, vk]
""")
    # Row i is one of the four that every k stores.
    assert text.index("S = T.alloc_buffer((8, 8))") > text.index("for i, k in T.grid(4, 8):")
