"""Loops that can't run at once: each message says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tensorexpr.errors import ScheduleError
from tests import placement_programs as programs


def last_of_all() -> tir.PrimFunc:
    """All points write one element."""
    return programs.function("""
def main(A: T.Buffer((8,)), C: T.Buffer((1,))):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[0] = A[vi] + 1.0
""")


def neighbours() -> tir.PrimFunc:
    """Sums that start from the sum of the next element."""
    return programs.function("""
def main(A: T.Buffer((8, 4)), C: T.Buffer((9,))):
    for i, k in T.grid(8, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi + 1] + A[vi, vk]
""")


def counted() -> tir.PrimFunc:
    """A result that grows from block to block, in memory that nobody else uses."""
    return programs.function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    total = T.alloc_buffer((1,))
    with T.block("start"):
        total[0] = 0.0
    for i in range(8):
        with T.block("grow"):
            vi = T.axis.opaque(8, i)
            T.reads(total[0], A[vi])
            T.writes(total[0])
            total[0] = total[0] + A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = total[0]
""")


def grown() -> tir.PrimFunc:
    """The same, each block reading what the one before has left."""
    return programs.function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    total = T.alloc_buffer((1,))
    for i in range(8):
        with T.block("grow"):
            vi = T.axis.spatial(8, i)
            T.reads(total[0], A[vi])
            T.writes(total[0])
            total[0] = total[0] + A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = total[0]
""")


def in_pairs() -> tir.PrimFunc:
    """Sums that grow over the outer loop, two blocks' in one place."""
    return programs.function("""
def main(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
    total = T.alloc_buffer((4,))
    for k, i in T.grid(4, 8):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi // 2] = 0.0
            total[vi // 2] = total[vi // 2] + A[vi, vk]
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi, vk] = total[vi // 2]
""")


def met_again() -> tir.PrimFunc:
    """Sums whose axis is 0 at two iterations, so that their init runs at both."""
    return programs.function("""
def main(A: T.Buffer((8, 8)), C: T.Buffer((8,))):
    for i, k in T.grid(8, 4):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, k * k // 2)
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]
""")


CASES: list[tuple[Callable[[], tir.PrimFunc], str, int, str]] = [
    (last_of_all, "C", 0, "iterations of i may write the same elements: C may write an element of C more than once"),
    (programs.overlapping, "B", 0, "iterations of i may write the same elements: B may write an element of B more than once"),
    (programs.repeated, "C", 1, "C has no axis bound to j, which repeats it"),
    (neighbours, "C", 0, "it is no reduction: it reads C, which it writes, elsewhere than where it writes it"),
    (programs.prefix_sums, "B", 0, "total reduces over k (its axis vk); use rfactor to make partial results"),
    (grown, "C", 0, "it is no reduction: it has no init"),
    (in_pairs, "C", 1, "total may write an element of total more than once"),
    (met_again, "C", 0, "needs axes that are made of loops by splitting and fusing; C: "),
    (counted, "C", 0, "grow needs the iterations of i one after another (its axis vi is not spatial)"),
]


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "bind"])
@pytest.mark.parametrize(("func", "block", "place", "message"), CASES, ids=[message[:40] for *_, message in CASES])
def test_refused(func: Callable[[], tir.PrimFunc], block: str, place: int, message: str, kind: str) -> None:
    sch = tir.Schedule(func(), error_render_level="fast")
    loop = sch.get_loops(sch.get_block(block))[place]
    with pytest.raises(ScheduleError) as error:
        sch.bind(loop, "threadIdx.x") if kind == "bind" else getattr(sch, kind)(loop)
    assert message in str(error.value)
    assert str(error.value).startswith(kind)
