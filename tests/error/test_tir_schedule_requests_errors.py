"""Requests to tir.Schedule that can't be meant: of the wrong type, or about loops of another nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import ScheduleError
from tests import placement_programs as programs


def two_products() -> tir.PrimFunc:
    """Two nests whose loops have the same names."""
    return programs.function("""
def main(A: T.Buffer((8, 8)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]
    for i, k in T.grid(8, 8):
        with T.block("D"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = 0.0
            D[vi] = D[vi] + A[vk, vi]
""")


Request = Callable[[Any, Any, Any], object]
# The loops are those of C and those of D.
CASES: list[tuple[Request, str]] = [
    (lambda s, c, d: s.split(c[0], 4), r"split takes the factors of a loop as a list, such as \[None, 4\], not 4"),
    (lambda s, c, d: s.split(c[0], [None, 2.5]), "split takes integers as factors, not 2.5"),
    (lambda s, c, d: s.fuse(c[0], d[1]), r"fuse .*; k \(around D\) doesn't in i \(around C\)"),
    (lambda s, c, d: s.reorder(c[0], d[0]), r"reorder takes loops of one nest; i \(around D\) isn't around i"),
    (lambda s, c, d: s.decompose_reduction("C", d[1]), r"k \(around D\) is no loop around C; loops around it: i, k"),
    (lambda s, c, d: s.rfactor(s.split(d[1], [2, None])[0], 7), "rfactor: factor_axis is from -2 to 1"),
    (lambda s, c, d: s.annotate(c[0], 3, 4), "annotate: the key of an annotation is a text, not 3"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_refused(number: int) -> None:
    request, message = CASES[number]
    sch = tir.Schedule(two_products())
    with pytest.raises(ScheduleError, match=message):
        request(sch, sch.get_loops("C"), sch.get_loops("D"))


def test_loops_of_two_types_are_not_fused() -> None:
    sch = tir.Schedule(
        programs.function("""
def main(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    for i, j in T.grid(n, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 1.0
""")
    )
    with pytest.raises(
        ScheduleError, match=r"fuse takes loops of one type, but i is int64 and j int32; write one extent as the other, as T\.int64\(16\)"
    ):
        sch.fuse(*sch.get_loops("A"))


def test_a_schedule_is_of_a_program() -> None:
    wrong: Any = 3
    with pytest.raises(ScheduleError, match=r"tir\.Schedule takes a PrimFunc or an IRModule, not int"):
        tir.Schedule(wrong)


@pytest.mark.parametrize("scale, message", [(8, "scale 8 doesn't follow from scale 1 with extent 16"), (16, "")])
def test_iterations_of_loops_of_any_length_are_told_apart(scale: int, message: str) -> None:
    sch = tir.Schedule(
        programs.function(f"""
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i, j in T.grid((n + 15) // 16, 16):
        with T.block("B"):
            vi = T.axis.spatial(n, i * {scale} + j)
            T.where(i * {scale} + j < n)
            B[vi] = A[vi] + B[vi]
""")
    )
    if not message:
        sch.parallel(sch.get_loops("B")[0])
    else:
        with pytest.raises(ScheduleError, match=message):
            sch.parallel(sch.get_loops("B")[0])
