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


def test_a_schedule_is_of_a_program() -> None:
    with pytest.raises(ScheduleError, match="tir.Schedule takes a PrimFunc or an IRModule, not int"):
        tir.Schedule(3)  # type: ignore[arg-type]
