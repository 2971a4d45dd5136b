"""Copies, layouts and padding that would change a result are refused with the reason, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.tir.structural import structural_equal
from tests import caching_programs as programs
from tests.block_programs import BY_HAND
from tests.caching_programs import Request, function

Declared = Callable[[], tir.PrimFunc]


def updated_before() -> tir.PrimFunc:
    """C reads A before D writes it."""
    return function("""def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)
""")


def every_other() -> tir.PrimFunc:
    """C writes every other element of a parameter."""
    return function("""def main(A: T.Buffer((8,)), C: T.Buffer((16,))):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi * 2] = A[vi]
""")


def sometimes() -> tir.PrimFunc:
    """C writes where A is positive."""
    return function("""def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(C[vi])
            if A[vi] > T.float32(0):
                C[vi] = A[vi]
""")


def blocks_in_a_block() -> tir.PrimFunc:
    """B in tiles, each a block with a block inside."""
    sch = tir.Schedule(programs.chain())
    sch.blockize(sch.split(sch.get_loops("B")[1], [None, 2])[1])
    made = sch.mod["main"]
    assert isinstance(made, tir.PrimFunc)
    return made


def by_pointer() -> tir.PrimFunc:
    """A call gets the pointer of A."""
    return function("""def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = T.call_extern("float32", "f", A.data, vi)
""")


def symbolic() -> tir.PrimFunc:
    """The size is that of A and B."""
    return function("""def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
""")


def greatest() -> tir.PrimFunc:
    """The greatest of products."""
    return function("""def main(A: T.Buffer((5, 6)), C: T.Buffer((5,))):
    for i, k in T.grid(5, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = T.max(C[vi], A[vi, vk])
""")


def around(declared: Declared, change: Request) -> Declared:
    """A function after another change."""

    def made() -> tir.PrimFunc:
        sch = tir.Schedule(declared())
        change(sch)
        found = sch.mod["main"]
        assert isinstance(found, tir.PrimFunc)
        return found

    return made


split_matmul = around(programs.matmul_relu, lambda sch: sch.split(sch.get_loops("C")[0], [None, 7]))
cached_in_part = around(BY_HAND["guarded_copy"], lambda sch: sch.reindex_cache_read("B", 0, "global", lambda i, j: (i, j)))
parallel_chain = around(programs.chain, lambda sch: sch.parallel(sch.get_loops("B")[0]))

CASES: list[tuple[Declared, Request, str]] = [
    (programs.chain, lambda s: s.cache_read("B", 1, "global"), "cache_read: B reads no buffer number 1; it reads 0: A"),
    (programs.chain, lambda s: s.cache_read("B", "Q", "global"), "the block B reads no buffer 'Q'; it reads A"),
    (programs.two_writers, lambda s: s.cache_read("C", 0, "global"), "B is written by 2 blocks (B0, B1); it must be written by one block"),
    (programs.accumulate, lambda s: s.cache_read("A", 0, "global"), "A reads and writes A; use cache_inplace to work on a copy"),
    (updated_before, lambda s: s.cache_read("C", 0, "global"), "C reads A before D writes it; choose consumer_blocks behind the writer"),
    (by_pointer, lambda s: s.cache_read("C", 0, "global"), "cache_read: A is used through its pointer; only loads and stores"),
    (programs.chain, lambda s: s.cache_read("B", 0, "global", ["C"]), "C doesn't read A, so it can't read a copy of it; those that do: B"),
    (programs.chain, lambda s: s.cache_write("B", 1, "global"), "cache_write: B writes no buffer number 1; it writes 0: B"),
    (programs.two_writers, lambda s: s.cache_write("B1", 0, "global"), "cache_write: B is written by 2 blocks (B0, B1)"),
    (programs.accumulate, lambda s: s.cache_write("A", 0, "global"), "A reads A, which it writes, and a copy wouldn't have the values"),
    (updated_before, lambda s: s.cache_write("D", 0, "global"), "cache_write: C reads A before D writes it"),
    (every_other, lambda s: s.cache_write("C", 0, "global"), "C may leave elements of C as they are, which copying back would overwrite"),
    (sometimes, lambda s: s.cache_write("C", 0, "global"), "C may leave elements of C as they are, which copying back would overwrite"),
    (programs.chain, lambda s: s.cache_write("B", 0, "global", ["B"]), "cache_write: B doesn't read B; consumer_blocks may be of: C"),
    (programs.chain, lambda s: s.cache_inplace("B", 0, "global"), "B reads A but doesn't write it; use cache_read for what is only read"),
    (programs.chain, lambda s: s.cache_index("B", "global"), "B has no index to compute; constants and single axes aren't computed"),
    (programs.resize, lambda s: s.cache_index("B", "global", 9), "B has nothing that occurs 9 times in its indices"),
    (
        programs.resize,
        lambda s: s.reindex("B", "A"),
        "B must use A at the same indices wherever it does; it does at: [vi // 4 + vj // 4, vj",
    ),
    (programs.conv, lambda s: s.reindex("P", "X"), "reindex: the index v_h - 1 may leave X (0 to 6), guarded by a condition in P"),
    (programs.nested, lambda s: s.reindex("outer", "A"), "reindex: outer has blocks inside; give one of these"),
    (programs.fused, lambda s: s.reindex("B", "A"), "B stands in loops with other blocks; do this before compute_at"),
    (programs.chain, lambda s: s.reindex("B", ("both", 0)), 'a buffer is given as ("read", number), ("write", number), a name or a buffer'),
    (
        cached_in_part,
        lambda s: s.reindex("A_global", ("write", 0)),
        "elements of A_global as they are, and the copy would read what nobody wrote",
    ),
    (programs.chain, lambda s: s.reindex("B", "C"), "the block B uses no buffer 'C'; it uses A, B"),
    (
        programs.matmul_relu,
        lambda s: s.reindex_cache_read("C", 0, "global", lambda i, j, k: (k,)),
        "the axis v_i of C doesn't occur in the index map",
    ),
    (
        programs.matmul_relu,
        lambda s: s.reindex_cache_write("C", 0, "global", lambda i, j, k: (i, j, k)),
        "the axis v_k of C doesn't occur in the indices of the buffer",
    ),
    (
        programs.chain,
        lambda s: s.reindex_cache_read("B", 0, "global", lambda i, j: [i + j]),
        "reindex_cache_read: the index map may give one place to several elements",
    ),
    (programs.chain, lambda s: s.reindex_cache_read("B", 0, "global", lambda i: [i]), "takes 1 indices, but there are 2 dimensions"),
    (
        programs.fused,
        lambda s: s.read_at(s.get_loops("D")[0], "C", 0, "global"),
        "read_at: i (around D) is no loop around C; loops around it: i0, i1, j",
    ),
    (programs.accumulate, lambda s: s.read_at(s.get_loops("A")[0], "A", 0, "global"), "A is written behind the copy, by A; use cache_read"),
    (
        programs.guarded,
        lambda s: s.read_at(s.get_loops("C")[0], "C", 0, "global"),
        "may not be inside of it (0 to 10); split the loop by a",
    ),
    (
        programs.chain,
        lambda s: s.transform_layout("B", "B", lambda i, j: (j // 5, i, j % 5)),
        "in the new layout of B, [3, 8, 5], nothing stands where",
    ),
    (programs.chain, lambda s: s.transform_layout("B", "B", lambda i, j: (i, j // 2)), "each element needs a place of its own"),
    (
        programs.chain,
        lambda s: s.transform_layout("B", "B", lambda i, j: (j // 5, i, j % 5), pad_value=lambda a, b, c: a + b),
        "transform_layout: B is float32, but pad_value is int32",
    ),
    (by_pointer, lambda s: s.transform_layout("C", "A", lambda i: (i // 2, i % 2)), "A is used through its pointer, which a new layout"),
    (
        symbolic,
        lambda s: s.transform_layout("A", ("write", 0), lambda i: (i // 2, i % 2), assume_injective_transform=True),
        "the size n is known from the shape of A alone, which becomes [(n - n % -2) // 2, 2]; make n a parameter",
    ),
    (programs.nested, lambda s: s.transform_layout("C", "C", lambda i, j: (i // 5, j, i % 5), pad_value=0.0), "from within another block"),
    (
        programs.chain,
        lambda s: s.transform_layout("B", ("read", 4), lambda i, j: (j, i)),
        "the block B has no buffer number 4; there are 0: A",
    ),
    (
        programs.matmul_relu,
        lambda s: s.transform_block_layout("C", lambda i, j, k: (i * 5 + k, j)),
        "is made of v_i and v_k, of which one is reduced and the other not",
    ),
    (programs.chain, lambda s: s.transform_block_layout("B", lambda i, j: (i // 3, j, i % 3)), "leaves padding where"),
    (split_matmul, lambda s: s.transform_block_layout("C", lambda i, j, k: (j, i, k)), "needs a loop for each axis of C, but these are"),
    (
        parallel_chain,
        lambda s: s.transform_block_layout("B", lambda i, j: (j, i)),
        "the loop over i runs PARALLEL; say how loops run after",
    ),
    (blocks_in_a_block, lambda s: s.cache_index("B_o", "global"), "B_o holds blocks, which load themselves; give one of these"),
    (programs.fused, lambda s: s.transform_block_layout("B", lambda i, j: (j, i)), "B stands in loops with other blocks"),
    (
        programs.matmul_relu,
        lambda s: s.pad_einsum("C", [4, 4]),
        "pad_einsum takes a positive number for each of the 3 axes of C, not [4, 4]",
    ),
    (programs.conv, lambda s: s.pad_einsum("Y", [1, 4, 4, 4, 4, 1, 1]), "Y is no einsum: it uses P at"),
    (greatest, lambda s: s.pad_einsum("C", [1, 4]), "padding vk with zeros would change C; it must add products of elements at it"),
    (programs.chain, lambda s: s.decompose_padding("B", s.get_loops("B")[0]), "B is no padding: it stores no if_then_else(inside, value"),
    (
        programs.conv,
        lambda s: s.decompose_padding("P", s.get_loops("Y")[0]),
        "decompose_padding: n (around Y) is no loop around P; loops around it: n, c, h, v",
    ),
    (programs.matmul_relu, lambda s: s.decompose_padding("C", s.get_loops("C")[0]), "decompose_padding needs a complete block; C is none"),
]


@pytest.mark.parametrize(("declared", "request_", "message"), CASES, ids=[f"{n}" for n in range(len(CASES))])
def test_refused(declared: Declared, request_: Request, message: str) -> None:
    func = declared()
    sch = tir.Schedule(func)
    before = sch.mod
    with pytest.raises(ScheduleError) as error:
        request_(sch)
    assert message in str(error.value)
    assert structural_equal(sch.mod, before)


def test_can_decompose_padding_says_no() -> None:
    sch = tir.Schedule(programs.conv())
    assert not sch.can_decompose_padding("Y", sch.get_loops("Y")[0])
    assert sch.can_decompose_padding("P", sch.get_loops("P")[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a saved graph is JSON"),
        ('{"root": 1}', "has the fields root, nodes"),
        ('{"root": 7, "nodes": [{"type_key": ""}]}', "has no node 7"),
        ('{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "tir.Evil", "attrs": {}}]}', "'tir.Evil' has no place here"),
    ],
)
def test_malformed_maps_in_traces(text: str, message: str) -> None:
    json_obj = [[["GetBlock", [], ["B", "main"], ["b0"]], ["TransformBlockLayout", ["b0"], [text], []]], []]
    with pytest.raises(RecordError, match=message):
        tir.schedule.Trace.apply_json_to_schedule(json_obj, tir.Schedule(programs.chain()))


@pytest.mark.parametrize(
    "request_it",
    [
        lambda sch, loop: sch.cache_read(loop, "A", "local"),
        lambda sch, loop: sch.reindex(loop, "A"),
        lambda sch, loop: sch.reindex_cache_read(loop, 0, "local", lambda i: i),
        lambda sch, loop: sch.annotate_buffer_access(loop, 0, "read", lambda i: (i, i + 1)),
        lambda sch, loop: sch.transform_block_layout(loop, lambda i: (i // 2, i % 2)),
    ],
)
def test_a_loop_is_no_block(request_it: Callable[[tir.Schedule, tir.schedule.LoopRV], object]) -> None:
    sch = tir.Schedule(every_other())
    loop = sch.get_loops("C")[0]
    with pytest.raises(ScheduleError, match="a block is needed here, as get_block gives it, not the loop over i"):
        request_it(sch, loop)
