"""Blocks that can't be computed elsewhere are refused with the reason, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.structural import structural_equal
from tests import placement_programs as programs

Declared = Callable[[], Sequence[Tensor] | tir.PrimFunc]
Request = Callable[[tir.Schedule], object]


def at(block: str, other: str, loop: int, index: int = -1) -> Request:
    """compute_at a loop of another block."""
    return lambda sch: sch.compute_at(block, sch.get_loops(other)[loop], index=index)


def back(block: str, other: str, loop: int) -> Request:
    """reverse_compute_at a loop of another block."""
    return lambda sch: sch.reverse_compute_at(block, sch.get_loops(other)[loop])


def inline(block: str) -> Request:
    """compute_inline."""
    return lambda sch: sch.compute_inline(block)


def back_inline(block: str) -> Request:
    """reverse_compute_inline."""
    return lambda sch: sch.reverse_compute_inline(block)


def reduced_at_once(sch: tir.Schedule) -> None:
    """A reduction behind a loop whose iterations run at once."""
    sch.parallel(sch.get_loops("scaled")[1])
    sch.reverse_compute_at("C", sch.get_loops("scaled")[1])


def uncovered(sch: tir.Schedule) -> None:
    """C reads B at two places; a tile of B lacks one."""
    sch.reverse_compute_at("C", sch.split(sch.get_loops("B")[0], [None, 4])[0])


def places_swapped(sch: tir.Schedule) -> None:
    """B must come before C in the loop."""
    sch.compute_at("C", sch.get_loops("D")[0])
    sch.compute_at("B", sch.get_loops("D")[0], index=1)


def diagonals_in_tiles(sch: tir.Schedule) -> object:
    """B is written along diagonals, in tiles of which the last is cut."""
    i, j = sch.get_loops("B")
    sch.split(j, [None, 2])
    return sch.reverse_compute_at("C", i)


CASES: list[tuple[Declared, Request, str]] = [
    (
        programs.chain,
        at("C", "B", 0),
        "compute_at: C is an output block, which writes C, a result; only what is computed on the way",
    ),
    (programs.chain, at("B", "B", 0), "compute_at: B stands in the loop i already, an ancestor of block B; give a loop of another block"),
    (programs.chain, at("root", "B", 0), "compute_at takes a block inside of the root block, not the root itself"),
    (
        programs.diamond,
        at("B", "C", 0),
        "compute_at requires all the consumers of a block to stand in the loop; missing: D",
    ),
    (
        programs.diamond,
        back("D", "C", 0),
        "reverse_compute_at requires all the producers of a block to stand in the loop; missing: B",
    ),
    (programs.chain, back("B", "C", 0), "B can't go into i: it has no producers"),
    (programs.overlapping, diagonals_in_tiles, "C would read parts of B that B hasn't written yet"),
    (programs.diamond, places_swapped, "index 1 is no place for it; places: 0 to 0, or -1 for the last and -2 for the first"),
    (
        programs.written_twice,
        at("B", "C", 0),
        "a complete block or a reduction block; B is not complete: B is also written by start",
    ),
    (programs.matmul_relu, back("D", "C", 2), "D stands in the loop k, over which C reduces what it reads"),
    (programs.scaled_matmul, reduced_at_once, "it would reduce over j, whose iterations run at once"),
    (programs.two_places, uncovered, "C would read parts of B that B hasn't written yet"),
    (programs.carried, at("B", "C", 0), "what it reads changes on the way: keep may write an element of last more than once"),
    (programs.carried, inline("B"), "what it reads changes on the way: keep may write an element of last more than once"),
    (programs.prefix_sums, inline("B"), "B stands in the loop k, over which total reduces what it reads"),
    (programs.updated, inline("B"), "B can't be computed elsewhere: A writes A after it is read"),
    (programs.guarded, at("B", "C", 0), "its predicate i < 15 leaves out points of its axes"),
    (programs.guarded, back("C", "B", 0), "it doesn't run at each point of its axes now (its loops don't run its axis vi from 0 to 15)"),
    (programs.conditional, back("C", "B", 0), "C can't be computed elsewhere: a IfThenElse decides where it runs"),
    (programs.repeated, back("C", "B", 0), "it doesn't run at each point of its axes now (the loop j repeats it)"),
    (programs.loose, inline("B"), "it uses the loop variable i itself; bind it to an axis"),
    (
        programs.chain,
        inline("C"),
        "compute_inline: C is an output block, which writes C, a result; only what is computed on the way",
    ),
    (programs.matmul_relu, inline("C"), "compute_inline needs a complete block; C is none: its axis v_k is not spatial"),
    (programs.halves, inline("B"), "compute_inline: B is more than one store of a value"),
    (programs.overlapping, inline("B"), "B may write an element of B more than once"),
    (programs.diamond, back_inline("D"), "reverse_compute_inline: D must read what one block makes; its producers: B, C"),
    (programs.diamond, back_inline("C"), "reverse_compute_inline: what B writes is also read by D"),
    (
        programs.matmul_relu,
        back_inline("D"),
        "the producer C must be complete: its axis v_k is not spatial; reverse_compute_at puts",
    ),
    (programs.two_places, back_inline("C"), "C reads B at 2 different places"),
    (programs.surrounded, back_inline("C"), "C has points at which it reads nothing of B: padding"),
    (programs.shortened, back_inline("C"), "where C runs isn't told by what is written: C would read parts of B that B hasn't written yet"),
    (programs.shortened, back("C", "B", 0), "C can't go into i: where it runs isn't told by what is written"),
    (programs.broadcast, back_inline("C"), "C reads B where its axes can't be told from it"),
]


@pytest.mark.parametrize(("declared", "request_", "message"), CASES, ids=[message[:60] for _, _, message in CASES])
def test_refused_with_the_reason(declared: Declared, request_: Request, message: str) -> None:
    made = declared()
    sch = tir.Schedule(made if isinstance(made, tir.PrimFunc) else te.create_prim_func(made), error_render_level="fast")
    with pytest.raises(ScheduleError) as caught:
        request_(sch)
    assert message in str(caught.value)
    assert sch.trace is not None
    again = tir.Schedule(made if isinstance(made, tir.PrimFunc) else te.create_prim_func(made))
    sch.trace.apply_to_schedule(again, False)
    assert structural_equal(sch.mod, again.mod), "a refusal left its mark"


def test_the_program_is_shown_with_the_loop_marked() -> None:
    sch = tir.Schedule(te.create_prim_func(programs.diamond()))
    with pytest.raises(ScheduleError, match="missing: D\nThe program is:") as caught:
        sch.compute_at("B", sch.get_loops("C")[0])
    assert "# tir.For#0\n            for i in range(16):\n            ^^^^" in str(caught.value)


def test_a_place_that_is_no_loop() -> None:
    sch = tir.Schedule(te.create_prim_func(programs.chain()), error_render_level="fast")
    with pytest.raises(ScheduleError, match="the decision is -2, -1 or the number of a loop"):
        sch.sample_compute_location("B", decision="0")
    with pytest.raises(ScheduleError, match="compute_at takes a loop, as get_loops gives it, not a block"):
        sch.compute_at("B", sch.get_block("C"))


def test_the_start_of_a_sum_stays_inside_a_loop_that_repeats_it() -> None:
    sch = tir.Schedule(programs.repeated())
    outer, again, inner = sch.get_loops(sch.get_block("C"))
    for loop in (outer, again):
        with pytest.raises(ScheduleError, match="j is no part of an axis of C, each of its iterations makes the first values again"):
            sch.decompose_reduction("C", loop)
    assert sch.get_sref(sch.decompose_reduction("C", inner)) is not None
