"""What primitives on nests, reductions and memory refuse, with the reason; the schedule stays as it was."""

# mypy: disable-error-code="valid-type, no-untyped-def, name-defined, type-arg"

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError, ScheduleError
from tensorexpr.script import tir as T
from tensorexpr.tir.structural import structural_equal
from tests import loop_programs as programs

Request = Callable[[tir.Schedule], object]


@T.prim_func
def two_in_a_loop(A: T.Buffer((8, 12), "float32"), D: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            T.reads(C[0:8])
            D[vi] = C[T.max(vi - 1, 0)]
        for k in range(12):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def differences(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = A[vi, vk] - C[vi]


@T.prim_func
def from_five(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(5)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def between(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[7 - vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = A[vi]


@T.prim_func
def rotated(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, j, k in T.grid(8, 16, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, (vj + vk) % 16]


@T.prim_func
def carried(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((9,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi + 1] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def loop(sch: tir.Schedule, block: str, place: int = -1) -> tir.schedule.LoopRV:
    """A loop of a block."""
    return sch.get_loops(block)[place]


def partly_reduced(sch: tir.Schedule) -> object:
    """The second part of a reduction, whose init runs in the first."""
    parts = sch.loop_partition(loop(sch, "C"), [4, None])
    return sch.decompose_reduction("C_k1", parts[1])


def partly_factored(sch: tir.Schedule) -> object:
    """The same for rfactor."""
    return sch.rfactor(sch.loop_partition(loop(sch, "C"), [4, None])[1], 0)


def empty_partial(sch: tir.Schedule) -> object:
    """The last of 14 partial results has no term."""
    return sch.rfactor(sch.split(loop(sch, "C"), [14, 1])[0], 0)


def split_unevenly(sch: tir.Schedule) -> object:
    """Tiles of 5 of 12 columns."""
    return sch.blockize(sch.split(loop(sch, "B"), [None, 5])[1])


def shrunk(sch: tir.Schedule) -> object:
    """Fused loops divided inside of one of them."""
    i, j = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 2])
    sch.reorder(i1, i0, j)
    return sch.blockize(sch.fuse(i0, j))


def by_intrinsic(block: str, factor: int = 4) -> Request:
    """The inner tile of a block by the products of 4 x 4."""

    def request(sch: tir.Schedule) -> object:
        pairs = [sch.split(one, [None, factor]) for one in sch.get_loops(block)]
        sch.reorder(*(pair[0] for pair in pairs), *(pair[1] for pair in pairs))
        return sch.tensorize(pairs[0][1], programs.register_dot())

    return request


CASES: list[tuple[tir.PrimFunc, Request, str]] = [
    (programs.matmul, lambda s: s.add_unit_loop(s.get_block("root")), "no loop can stand around the root block"),
    (programs.matmul, lambda s: s.reorder_block_iter_var(s.get_block("C"), [0, 0, 1]), "isn't an order of the 3 axes of C (vi, vj, vk)"),
    (carried, lambda s: s.parallel(loop(s, "B")), "C may read of B what B writes in another iteration of i"),
    (programs.chain, lambda s: s.merge(loop(s, "B")), "at least two loops"),
    (programs.chain, lambda s: s.merge(loop(s, "B", 0), loop(s, "B", 1)), "loops beside each other, not one in another"),
    (programs.chain, lambda s: s.merge(loop(s, "B", 0), loop(s, "C", 1)), "equal depth, not 1 and 2"),
    (programs.biased, lambda s: s.merge(loop(s, "E"), loop(s, "C")), "loops"),
    (programs.reversed_sum, lambda s: s.merge(loop(s, "B"), loop(s, "C")), "may need of B what a later one"),
    (programs.shifted, lambda s: s.merge(loop(s, "B"), loop(s, "C")), "may need of B what a later one"),
    (between, lambda s: s.merge(loop(s, "B"), loop(s, "D")), "a statement between the nests depends on B"),
    (programs.chain, lambda s: s.loop_partition(loop(s, "B"), [12]), "leave nothing of the extent 12 of j"),
    (programs.chain, lambda s: s.loop_partition(loop(s, "B"), [None, None]), "at most one is None"),
    (programs.chain, lambda s: s.decompose_reduction("B", loop(s, "B")), "B is none: it has no init"),
    (programs.chain, lambda s: s.decompose_reduction("B", loop(s, "C")), "is no loop around B; loops around it: i, j"),
    (programs.matmul, lambda s: (s.reorder(*s.get_loops("C")[::-1]), s.decompose_reduction("C", loop(s, "C"))), "C reduces over k"),
    (two_in_a_loop, lambda s: s.decompose_reduction("C", loop(s, "C", 0)), "D stands in i before C and reads its result"),
    (programs.biased, lambda s: s.decompose_reduction("C", loop(s, "C", 0)), "the init of C reads what E writes in i"),
    (programs.matmul, partly_reduced, "begin its axis vk at 4, not at 0"),
    (programs.matmul, partly_factored, "begin its axis vk at 4, not at 0"),
    (programs.matmul, lambda s: s.rfactor(loop(s, "C", 0), 0), "C doesn't reduce over i"),
    (programs.matmul, lambda s: s.rfactor(loop(s, "C"), 3), "factor_axis is from -3 to 2"),
    (programs.matmul, lambda s: s.rfactor(s.fuse(*s.get_loops("C")[1:]), 0), "belongs both to spatial and to reduced axes"),
    (programs.matmul, empty_partial, "a partial result of C would have no value"),
    (differences, lambda s: s.rfactor(loop(s, "C"), 0), "isn't known to be associative and commutative"),
    (from_five, lambda s: s.rfactor(loop(s, "C"), 0), "isn't known to be associative and commutative"),
    (programs.tiles, lambda s: s.blockize(loop(s, "B", 0)), "m holds B, C; give the blocks as a list"),
    (programs.chain, split_unevenly, "is about loops inside and outside at once"),
    (programs.chain, shrunk, "doesn't come apart"),
    (between, lambda s: s.blockize([s.get_block("B"), s.get_block("D")]), "something else stands between the blocks"),
    (programs.matmul, lambda s: s.tensorize(loop(s, "C"), "nothing"), "no tensor intrinsic 'nothing' is registered; registered: "),
    (programs.matmul, by_intrinsic("C", 2), "runs over 0..4, i_1 of the block over 0..2"),
    (programs.chain, by_intrinsic("B"), "doesn't do what test_dot_4x4 describes"),
    (rotated, by_intrinsic("C"), "tensorize"),
    (programs.chain, lambda s: s.rolling_buffer("B", 0), "no loop is around B and all that read its result"),
    (programs.chain, lambda s: (s.compute_at("B", loop(s, "C", 0)), s.rolling_buffer("B", 0)), "has iterations that share elements of B"),
    (programs.chain, lambda s: s.rolling_buffer("C", 0), "C is a parameter"),
    (programs.chain, lambda s: s.set_scope("C", 0, "local"), "C is a parameter, which the caller allocates"),
    (programs.chain, lambda s: s.set_scope("B", 0, "moon"), "no memory is called 'moon'"),
    (programs.chain, lambda s: s.set_scope("B", 1, "local"), "B writes no buffer number 1; it writes 0: B"),
    (programs.chain, lambda s: s.storage_align("B", 0, 2, 32, 1), "B has 2 dimensions; there is no number 2"),
    (programs.chain, lambda s: s.storage_align("B", 0, 0, 0, 0), "the factor is positive"),
    (programs.chain, lambda s: s.unsafe_set_dtype("C", 0, "float16"), "C is a parameter"),
    (programs.chain, lambda s: s.unsafe_hide_buffer_access(s.get_block("B"), "read", [1]), "B reads 1 buffers; there is no number 1"),
    (programs.chain, lambda s: s.unsafe_hide_buffer_access(s.get_block("B"), "both", [0]), 'buf_type is "read" or "write"'),
    (
        programs.chain,
        lambda s: s.annotate_buffer_access(s.get_block("B"), 0, "read", lambda i, j: (i,)),
        "begin and end of the 2 dimensions",
    ),
    (programs.chain, lambda s: s.annotate_buffer_access(s.get_block("B"), 0, "both", lambda i, j: (i, j)), 'buf_type is "read" or "write"'),
    (programs.chain, lambda s: s.set_axis_separator("B", "B", [3]), "no increasing positions between its 2 dimensions"),
]


@pytest.mark.parametrize(("func", "request_", "message"), CASES, ids=[message[:40] for *_, message in CASES])
def test_refused(func: tir.PrimFunc, request_: Request, message: str) -> None:
    sch = tir.Schedule(func, error_render_level="fast")
    with pytest.raises(ScheduleError) as error:
        request_(sch)
    assert message in str(error.value)


def test_a_refusal_changes_nothing() -> None:
    sch = tir.Schedule(programs.reversed_sum)
    before, steps = sch.mod, len(sch.trace.insts) + 2 if sch.trace is not None else 0
    loops = [loop(sch, "B"), loop(sch, "C")]
    with pytest.raises(ScheduleError):
        sch.merge(*loops)
    assert structural_equal(sch.mod, before) and sch.trace is not None and len(sch.trace.insts) == steps + 2


def test_handles_follow_and_go() -> None:
    sch = tir.Schedule(programs.matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    init = sch.decompose_reduction(block, j)
    assert (sch.get(block).name_hint, sch.get(init).name_hint) == ("C_update", "C_init")
    assert [sch.get(one).loop_var.name for one in (*sch.get_loops(init), j, k)] == ["i", "j_init", "j", "k"]
    sch = tir.Schedule(programs.chain, error_render_level="fast")
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    sch.loop_partition(i, [2, None])
    with pytest.raises(ScheduleError, match="the block B is gone: loop_partition removed it"):
        sch.get_loops(block)
    with pytest.raises(ScheduleError, match="the loop over i is gone: loop_partition removed it"):
        sch.parallel(i)


def test_intrinsics_are_registered_once_and_for_equal_buffers() -> None:
    programs.register_dot()
    with pytest.raises(DeclarationError, match="is registered already"):
        tir.TensorIntrin.register("test_dot_4x4", programs.dot_description, programs.dot_implementation)
    with pytest.raises(DeclarationError, match="is registered already"):
        tir.TensorIntrin.register("dot_16x4_vnni", programs.dot_description, programs.dot_implementation)
    with pytest.raises(DeclarationError, match="dtype and shape must be equal"):
        tir.TensorIntrin.register("test_other", programs.dot_description, programs.matmul)
    assert tir.TensorIntrin.get("test_none", allow_missing=True) is None
    with pytest.raises(DeclarationError, match="no tensor intrinsic 'test_none'"):
        tir.TensorIntrin.get("test_none")
