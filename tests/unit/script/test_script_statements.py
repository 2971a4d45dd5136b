"""Statements of scripts: each construct against the program built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorexpr import tir
from tensorexpr.script import parse
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import pointer_var
from tensorexpr.tir.structural_difference import assert_structural_equal

TRUE = tir.const(True)
A = tir.decl_buffer((16,), name="A")
N = tir.decl_buffer((4, 4), "int32", "N")
n, x, p = tir.Var("n"), tir.Var("x", "float32"), tir.Var("p", "handle")
HEADER = '@T.prim_func\ndef main(A: T.Buffer((16,), "float32"), N: T.Buffer((4, 4), "int32"), n: T.int32, x: T.float32, p: T.handle):\n'


def function(body: tir.Stmt) -> tir.PrimFunc:
    """The function that `HEADER` begins."""
    handles = [tir.Var("var_A", "handle"), tir.Var("var_N", "handle")]
    return tir.PrimFunc((*handles, n, x, p), body, None, dict(zip(handles, (A, N), strict=True)), FrozenMap({"global_symbol": "main"}))


def check(text: str, body: tir.Stmt) -> None:
    """The statements of `text` are `body`."""
    indented = "\n".join("    " + line for line in text.split("\n"))
    assert_structural_equal(parse(HEADER + indented), function(body))


def store(value: object, *indices: object, to: tir.Buffer = A) -> tir.Stmt:
    return tir.BufferStore(to, tir.convert(value), tuple(map(tir.convert, indices)))


def loop(var: tir.Var, extent: object, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL, low: object = 0, **notes: object) -> tir.For:
    first = tir.const(low, var.dtype) if isinstance(low, int) else tir.convert(low)
    return tir.For(
        var, first, tir.const(extent, var.dtype) if isinstance(extent, int) else tir.convert(extent), kind, body, None, FrozenMap(notes)
    )


i, j, big = tir.Var("i"), tir.Var("j"), tir.Var("l", "int64")
SET = store(tir.const(1.0), i)


@pytest.mark.parametrize(
    ("header", "made"),
    [
        ("for i in range(8)", loop(i, 8, SET)),
        ("for i in range(2, 8)", loop(i, 6, SET, low=2)),
        ("for i in range(n, n + 4)", loop(i, 4, SET, low=n)),
        ("for i in range(n, 8)", loop(i, 8 - n, SET, low=n)),
        ("for i in range(n)", loop(i, n, SET)),
        ("for i in T.serial(8)", loop(i, 8, SET)),
        ("for i in T.serial(0, 8, annotations={'a': 1, 'b': T.bool(True)})", loop(i, 8, SET, a=1, b=True)),
        ("for i in T.parallel(8)", loop(i, 8, SET, tir.ForKind.PARALLEL)),
        ("for i in T.vectorized(8)", loop(i, 8, SET, tir.ForKind.VECTORIZED)),
        ("for i in T.unroll(8)", loop(i, 8, SET, tir.ForKind.UNROLLED)),
        ("for i in T.grid(8)", loop(i, 8, SET)),
    ],
)  # fmt: skip
def test_loops(header: str, made: tir.Stmt) -> None:
    check(f"{header}:\n    A[i] = 1.0", made)


def test_grids_and_loops_of_64_bits() -> None:
    body = store(tir.const(0), i, j, to=N)
    check("for i, j in T.grid(4, n):\n    N[i, j] = 0", loop(i, 4, loop(j, n, body)))
    check("for l in range(T.int64(8)):\n    A[l] = 1.0", loop(big, 8, store(tir.const(1.0), big)))


@pytest.mark.parametrize(
    "header", ['T.thread_binding(8, thread="threadIdx.x")', 'T.thread_binding(0, 8, "threadIdx.x")', 'T.thread_binding(8, "threadIdx.x")']
)
def test_threads(header: str) -> None:
    axis = tir.IterVar(None, tir.Var("threadIdx.x"), tir.IterVar.THREAD_INDEX, "threadIdx.x")
    check(f"for i in {header}:\n    A[i] = 1.0", replace(loop(i, 8, SET, tir.ForKind.THREAD_BINDING), thread_binding=axis))


def test_stores_convert_what_they_are_given() -> None:
    check("A[0] = 3", store(tir.const(3.0), 0))
    check("A[0] = n", store(n.astype("float32"), 0))
    check("N[1, 2] = 3", store(tir.const(3), 1, 2, to=N))
    check("A[n] += 1", store(A[n] + 1.0, n))
    ramp = tir.Ramp(tir.const(4), tir.const(1), 8)
    check("A[4:12] = 2", store(tir.Broadcast(tir.const(2.0), 8), ramp))
    check("A[4:12] = x", store(tir.Broadcast(x, 8), ramp))
    mask = tir.LT(ramp, tir.Broadcast(n, 8))
    check(
        "A.vstore([T.Ramp(4, 1, 8)], x, predicate=T.Ramp(4, 1, 8) < T.Broadcast(n, 8))",
        tir.BufferStore(A, tir.Broadcast(x, 8), (ramp,), mask),
    )


def test_branches() -> None:
    check("if n < 3:\n    A[0] = x", tir.IfThenElse(n < 3, store(x, 0)))
    check("if n:\n    A[0] = x\nelse:\n    A[1] = x", tir.IfThenElse(tir.NE(n, tir.const(0)), store(x, 0), store(x, 1)))
    inner = tir.IfThenElse(n < 4, store(x, 1), store(x, 2))
    check("if n < 3:\n    A[0] = x\nelif n < 4:\n    A[1] = x\nelse:\n    A[2] = x", tir.IfThenElse(n < 3, store(x, 0), inner))


def test_a_branch_that_is_known_is_taken() -> None:
    check("if 2 > 1:\n    A[0] = x\nelse:\n    A[1] = x", store(x, 0))
    check("if 2 < 1:\n    A[0] = x\nA[2] = x", store(x, 2))
    check("if T.bool(True):\n    A[0] = x", tir.IfThenElse(TRUE, store(x, 0)))


def test_while() -> None:
    check("while N[0, 0] < 3:\n    N[0, 0] += 1", tir.While(N[0, 0] < 3, store(N[0, 0] + 1, 0, 0, to=N)))


def test_variables() -> None:
    y = tir.Var("y")
    made = tir.LetStmt(y, n * 2, store(y, 0, 0, to=N))
    for text in ("y: T.int32 = n * 2\n", "y = n * 2\n", "y: T.let[T.int32] = n * 2\n"):
        check(text + "N[0, 0] = y", made)
    for header in ("with T.LetStmt(n * 2) as y", "y = T.int32()\nwith T.LetStmt(n * 2, var=y)", "y = T.var('int32')\nwith T.let(y, n * 2)"):
        check(header + ":\n    N[0, 0] = y\nN[0, 1] = n", tir.stmt_seq(made, store(n, 0, 1, to=N)))
    z = tir.Var("z", "float32")
    check("z: T.float32 = 1\nA[0] = z", tir.LetStmt(z, tir.const(1.0), store(z, 0)))
    check("z = T.meta_var(x + x)\nA[0] = z", store(x + x, 0))
    first, second = tir.Var("a"), tir.Var("a")
    check("a = n\nb = a + 1\nN[0, 0] = b", tir.LetStmt(first, n, tir.LetStmt(second, first + 1, store(second, 0, 0, to=N))))


def test_pointer_variables() -> None:
    q = pointer_var("q", "float32", "shared")
    made = tir.LetStmt(q, p, tir.Evaluate(tir.call_extern("int32", "f", q)))
    check('q: T.handle("float32", "shared") = p\nT.call_extern("int32", "f", q)', made)
    check('with T.LetStmt(p, T.handle("float32", "shared")) as q:\n    T.call_extern("int32", "f", q)', made)


def test_allocations_and_views() -> None:
    data = pointer_var("D", "int8", "local")
    view = tir.decl_buffer((16,), "int8", "D", data)
    body = tir.BufferStore(view, tir.const(1, "int8"), (n,))
    made = tir.Allocate(data, "int8", (tir.const(4), tir.const(4)), n < 3, body, FrozenMap({"k": [1, 2]}))
    arguments = 'T.allocate([4, 4], "int8", "local", n < 3, annotations={"k": [1, 2]})'
    inside = 'V = T.Buffer((16,), "int8", data=D, scope="local")\n{0}V[n] = 1'
    check(f"D = {arguments}\n{inside.format('')}", made)
    check(f"with {arguments} as D:\n    {inside.format('    ')}", made)
    check(f"D = {arguments}\n{inside.format('').replace('T.Buffer', 'T.decl_buffer')}", replace(made, body=tir.DeclBuffer(view, body)))
    plain = tir.Allocate(data, "int8", (tir.const(16),), TRUE, tir.DeclBuffer(view, body))
    check('V = T.decl_buffer((16,), "int8", scope="local")\nV[n] = 1', plain)


def test_all_options_of_a_buffer() -> None:
    offset, step = tir.Var("o"), tir.Var("s")
    view = tir.decl_buffer((4,), "int32", "V", N.data, [2], 3, data_alignment=128, offset_factor=4)
    check('V = T.decl_buffer((4,), "int32", data=N.data, strides=(2,), elem_offset=3, align=128, offset_factor=4)\nV[0] = 1',
          tir.DeclBuffer(view, tir.BufferStore(view, tir.const(1), (tir.const(0),))))  # fmt: skip
    box = tir.BufferRegion(A, (tir.Range.from_min_extent(n, tir.const(4)),))
    part = tir.decl_buffer((4,), name="P", strides=[step], elem_offset=offset)
    made = tir.BufferBind(part, box, tir.BufferStore(part, part[step] + offset.astype("float32"), (tir.const(0),)))
    check(
        'P = T.match_buffer(A[n:n + 4], (4,), strides=("s",), elem_offset="o")\nP[0] = P[P.strides[0]] + T.Cast("float32", P.elem_offset)',
        made,
    )
    whole = tir.decl_buffer((4,), name="P")
    check("with T.match_buffer(A[n:n + 4]) as P:\n    P[0] = x", tir.BufferBind(whole, box, tir.BufferStore(whole, x, (tir.const(0),))))


def test_realization() -> None:
    made = tir.decl_buffer((8, 8), name="R", scope="local")
    body = tir.BufferStore(made, x, (n, n))
    bounds = (tir.Range.from_min_extent(n, tir.const(1)), tir.Range.from_min_extent(tir.const(0), tir.const(8)))
    stmt = tir.BufferRealize(made, bounds, n < 3, body, FrozenMap({"double_buffer_scope": 1}))
    declared = 'R = T.Buffer((8, 8), scope="local")\n'
    arguments = 'R[n, 0:8], condition=n < 3, annotations={"double_buffer_scope": 1}'
    check(f"{declared}T.realize({arguments})\nR[n, n] = x", stmt)
    check(f"{declared}with T.realize({arguments.replace('], ', '], ' + chr(34) + 'local' + chr(34) + ', ')}):\n    R[n, n] = x", stmt)


def test_attributes_asserts_and_evaluation() -> None:
    after = store(x, 0)
    check('T.attr(A, "key", 3)\nA[0] = x', tir.AttrStmt(A, "key", tir.const(3), after))
    check('with T.attr(A.data, "key", "v"):\n    A[0] = x', tir.AttrStmt(A.data, "key", tir.StringImm("v"), after))
    check('T.attr("name", "key", n)\nA[0] = x', tir.AttrStmt("name", "key", n, after))
    check('assert n < 3, "small"\nA[0] = x', tir.AssertStmt(n < 3, tir.StringImm("small"), after))
    check("assert n < 3\nA[0] = x", tir.AssertStmt(n < 3, tir.StringImm(""), after))
    check('with T.Assert(n < 3, "small"):\n    A[0] = x', tir.AssertStmt(n < 3, tir.StringImm("small"), after))
    check('T.evaluate(n)\nT.call_extern("int32", "f", n)', tir.stmt_seq(tir.Evaluate(n), tir.Evaluate(tir.call_extern("int32", "f", n))))
    check("pass", tir.Evaluate(tir.const(0)))
    check('"""A docstring."""\n# and a comment\nA[0] = x', after)


@pytest.mark.parametrize(("tag", "key"), [("threadIdx.x", "thread_extent"), ("vthread", "virtual_thread")])
def test_launched_threads(tag: str, key: str) -> None:
    axis = tir.IterVar(None, tir.Var("t"), tir.IterVar.THREAD_INDEX, tag)
    made = tir.AttrStmt(axis, key, tir.const(4), store(x, axis.var))
    check(f't = T.launch_thread("{tag}", 4)\nA[t] = x', made)
    check(f'with T.launch_thread("{tag}", 4) as t:\n    A[t] = x', made)
    check(f't = T.env_thread("{tag}")\nwith T.launch_thread(t, 4):\n    A[t] = x', made)
    check(f't = T.int32()\nT.attr(T.iter_var(t, None, "ThreadIndex", "{tag}"), "{key}", 4)\nA[t] = x', made)


def test_what_a_block_of_statements_defines_ends_with_it() -> None:
    k = tir.Var("k")
    inner = tir.LetStmt(k, n, store(k, 0, 0, to=N))
    check("if n < 3:\n    k = n\n    N[0, 0] = k\nN[0, 1] = n", tir.stmt_seq(tir.IfThenElse(n < 3, inner), store(n, 0, 1, to=N)))


def test_a_thousand_definitions_do_not_nest_the_reader() -> None:
    text = "\n".join(f'    A_{k} = T.allocate([4], "float32", "global")' for k in range(1500))
    func = parse(f'@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n{text}\n    A[0] = 1.0')
    assert isinstance(func, tir.PrimFunc)
    depth, stmt = 0, func.body
    while isinstance(stmt, tir.Allocate):
        depth, stmt = depth + 1, stmt.body
    assert depth == 1500
