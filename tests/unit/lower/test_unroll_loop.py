"""unroll_loop: what is expanded, by request, by pragma and by option, and what is refused."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.errors import LoweringError
from tensorexpr.lower import transform
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.unroll_loop import unroll_loop
from tensorexpr.lower.pragmas import KEEP_LOOP
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.expr import IntImm, Range, Var
from tensorexpr.tir.stmt import AttrStmt, For, ForKind, LetStmt, ProducerRealize, ProducerStore, SeqStmt, Stmt, seq

from .builder import SERIAL, allocate, applied, flat, func, guard, load, loop, loops, parallel, statements, store, stores, unrolled

A, B = flat("A", 64), flat("B", 64)


def test_requested() -> None:
    result = applied(unroll_loop, func(unrolled("i", 3, lambda i: store(B, load(A, i * 2) + 1.0, i)), A, B))
    assert stores(result) == [f"B[{i}] = A[{2 * i}] + T.float32(1.0)" for i in range(3)]


def test_nested_and_with_another_start() -> None:
    body = loop("i", 2, lambda i: unrolled("j", 2, lambda j: store(B, 1.0, i * 8 + j)), ForKind.UNROLLED, low=3)
    assert stores(applied(unroll_loop, func(body, B))) == [f"B[{i}] = T.float32(1.0)" for i in (24, 25, 32, 33)]


def test_copies_have_loops_lets_and_storage_of_their_own() -> None:
    def body(i: Var) -> Stmt:
        t = Var("t", "float32")

        def inside(buffer: object) -> Stmt:
            fill = loop("k", 4, lambda k: store(buffer, t + load(A, k), k))  # type: ignore[arg-type]
            return seq(fill, loop("k", 4, lambda k: store(B, load(buffer, k), i * 4 + k)))  # type: ignore[arg-type]

        return LetStmt(t, load(A, i), allocate("T", 4, inside))

    result = applied(unroll_loop, func(unrolled("i", 3, body), A, B))
    assert len({stmt.loop_var for stmt in statements(result, For)}) == 6


def test_conditions_are_decided() -> None:
    result = applied(unroll_loop, func(unrolled("i", 4, lambda i: guard(i * 3 < 7, store(B, 1.0, i))), B))
    assert len(stores(result)) == 3


def test_pragma() -> None:
    def nest(limit: int) -> list[str]:
        body = loop("i", 4, lambda i: loop("j", 4, lambda j: store(B, 1.0, i * 4 + j)), auto_unroll_max_step=limit)
        return loops(applied(unroll_loop, func(body, B)))

    assert nest(16) == []
    assert nest(15) == ["i 0:4"]
    assert nest(3) == ["i 0:4", "j 0:4"]


def test_pragma_holds_below_it_only() -> None:
    below = loop("j", 2, lambda j: store(B, 1.0, j), auto_unroll_max_step=8)
    result = applied(unroll_loop, func(seq(below, loop("k", 2, lambda k: store(B, 2.0, k))), B))
    assert loops(result) == ["k 0:2"]
    assert not any(stmt.annotations for stmt in statements(result, For))


def test_pragma_counts_statements() -> None:
    body = loop("i", 4, lambda i: seq(store(A, 1.0, i), store(B, 1.0, i)), auto_unroll_max_step=7)
    assert loops(applied(unroll_loop, func(body, A, B))) == ["i 0:4"]


def test_loops_around_a_loop_that_stays_are_not_unrolled_unasked() -> None:
    body = loop("i", 2, lambda i: loop("j", Var("n"), lambda j: store(B, 1.0, j)), auto_unroll_max_step=64)
    assert len(loops(unroll_loop(func(body, B), PassContext()))) == 2


def test_pragma_unroll_explicit() -> None:
    body = loop("i", 2, lambda i: store(B, 1.0, i), auto_unroll_max_step=64, unroll_explicit=False)
    assert loops(applied(unroll_loop, func(body, B))) == ["i 0:2"]


def test_parallel_loops_are_not_unrolled_unasked() -> None:
    start = func(parallel("i", 2, lambda i: store(B, 1.0, i)), B)
    assert loops(applied(unroll_loop, start, config={"tir.UnrollLoop": {"auto_max_step": 64}})) == ["i 0:2 PARALLEL"]


@pytest.mark.parametrize(
    ("option", "left"),
    [
        ({"auto_max_step": 8}, []),
        ({"auto_max_step": 7}, ["i 0:2"]),
        ({"auto_max_extent": 2}, ["i 0:2", "j 0:4"]),
        ({"auto_max_extent": 4}, []),
        ({"auto_max_step": 8, "auto_max_depth": 0}, ["i 0:2"]),
    ],
)
def test_options(option: dict[str, int], left: list[str]) -> None:
    start = func(loop("i", 2, lambda i: loop("j", 4, lambda j: store(B, 1.0, i * 4 + j))), B)
    assert loops(applied(unroll_loop, start, config={"tir.UnrollLoop": option})) == left


def test_switched_off() -> None:
    start = func(unrolled("i", 3, lambda i: store(B, 1.0, i)), B)
    assert loops(applied(unroll_loop, start, config={"tir.UnrollLoop": {"explicit_unroll": False}})) == ["i 0:3"]


def test_symbolic_loops_become_serial() -> None:
    n = Var("n")
    result = unroll_loop(func(unrolled("i", n, lambda i: store(B, 1.0, i)), B, n), PassContext())
    assert loops(result) == ["i 0:n"]


def test_empty_loops() -> None:
    assert not stores(applied(unroll_loop, func(unrolled("i", 0, lambda i: store(B, 1.0, i)), B)))


def test_single_iterations_disappear() -> None:
    start = func(loop("i", 1, lambda i: store(B, 1.0, i)), B)
    assert not loops(applied(unroll_loop, start))
    assert loops(applied(unroll_loop, start, config={"tir.debug_keep_trivial_loop": 1})) == ["i 0:1"]


def test_the_reduction_of_a_register_tile_stays() -> None:
    body = For(Var("k"), IntImm("int32", 0), IntImm("int32", 4), SERIAL, store(B, 1.0, 0), annotations=FrozenMap({KEEP_LOOP: True}))
    result = applied(unroll_loop, func(body, B), config={"tir.UnrollLoop": {"auto_max_step": 64}})
    assert loops(result) == ["k 0:4"]
    assert not statements(result, For)[0].annotations


def test_huge_unrolling_is_refused_quickly() -> None:
    start = func(unrolled("i", 1 << 30, lambda i: unrolled("j", 8, lambda j: store(B, 1.0, j))), B)
    with pytest.raises(  # were they made first, the test would hang
        LoweringError, match=r"unrolling the loop i of extent 1073741824 makes 8589934592 statements; .* explicit_max_step=16384"
    ):
        unroll_loop(start, PassContext())


def test_the_limit_can_be_moved() -> None:
    start = func(unrolled("i", 40, lambda i: store(B, 1.0, i)), B)
    with (
        pytest.raises(LoweringError, match="explicit_max_step=39"),
        PassContext(config={"tir.UnrollLoop": {"explicit_max_step": 39}}) as ctx,
    ):
        unroll_loop(start, ctx)


def test_functions_without_such_loops_stay_as_they_are() -> None:
    start = func(loop("i", 3, lambda i: store(B, 1.0, i)), B)
    assert unroll_loop(start, PassContext()) is start


def test_a_loop_that_turned_serial_stays_too() -> None:
    n = Var("n")
    body = loop("i", 2, lambda i: unrolled("j", n, lambda j: store(B, 1.0, j)), auto_unroll_max_step=64)
    assert loops(unroll_loop(func(body, B, n), PassContext())) == ["i 0:2", "j 0:n"]


def test_loops_over_local_memory_are_unrolled_where_the_option_says_so() -> None:
    mod = from_source("""
@T.prim_func
def main(B: T.Buffer((4,), "float32")):
    t = T.allocate([4], "float32", "local")
    local = T.Buffer((4,), "float32", data=t, scope="local")
    for i in range(4):
        local[i] = B[0]
    for i in range(4):
        B[i] = T.float32(1)
""")
    assert isinstance(mod, PrimFunc)
    with PassContext(config={"tir.UnrollLoop": {"unroll_local_access": True}}):
        assert [loop.split()[0] for loop in loops(transform.UnrollLoop()(IRModule({"main": mod}))["main"])] == ["i"]


def test_loops_are_marked_where_unrolling_is_left_to_others() -> None:
    mod = IRModule({"main": func(loop("i", 4, lambda i: store(flat("B", 8), 1.0, i)))})
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": False}}):
        marked = transform.UnrollLoop()(mod)["main"].body
    assert isinstance(marked, For) and marked.kind is ForKind.UNROLLED


def test_a_pragma_around_a_loop() -> None:
    inner = loop("i", 4, lambda i: store(flat("B", 8), 1.0, i))
    body = AttrStmt(IntImm("int32", 0), "pragma_auto_unroll_max_step", IntImm("int32", 8), inner)
    assert loops(transform.UnrollLoop()(IRModule({"main": func(body)}))["main"]) == []


def test_stores_of_tensors_are_unrolled_too() -> None:
    tensor = te.placeholder((4,), "float32", "T")
    i = Var("i", "int32")
    body = ProducerStore(tensor, tensor[i] + 1.0, (i,))
    nest = For(i, IntImm("int32", 0), IntImm("int32", 2), ForKind.UNROLLED, body)
    whole = ProducerRealize(tensor, (Range(0, 4),), IntImm("bool", 1), nest)
    after = transform.UnrollLoop()(IRModule({"main": PrimFunc((), whole)}))["main"].body
    assert isinstance(after, ProducerRealize) and isinstance(after.body, SeqStmt)
    assert [one.indices[0].value for one in after.body.seq] == [0, 1]  # type: ignore[attr-defined]
