"""A loop that may run at once has no race: the interpreter watches what the iterations of accepted loops touch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.testing import random_array
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tests import placement_programs as programs
from tests.effort import share_of

PLACES = ("vi", "vj", "vi + vj", "vi * 4 + vj", "vi * 2 + vj", "vi % 2", "vi // 2", "(vi * 4 + vj) // 2", "vj * 4 + vi", "0")
REDUCED = ("vi", "vj", "vi // 2", "0")
ELSEWHERE = ("vi", "vi + 1", "vj", "0", "vi * 4 + vj", "vi * 4 + vj + 1")


def run(func: tir.PrimFunc, phase: int) -> list[np.ndarray]:
    """All arrays after a run on random ones by the interpreter."""
    arrays = [
        random_array([as_int(extent) or 0 for extent in func.buffer_map[param].shape], func.buffer_map[param].dtype, seed)
        for seed, param in enumerate(func.params)
    ]
    interpret(tensorexpr.lower(func, upto=phase)["main"], arrays)
    return arrays


def function_of(sch: tir.Schedule) -> tir.PrimFunc:
    """What a schedule has made of its function."""
    made = sch.mod["main"]
    assert isinstance(made, tir.PrimFunc)
    return made


def accepted(func: tir.PrimFunc) -> list[tuple[str, int, tir.PrimFunc]]:
    """The loops around blocks that `parallel` takes, and the functions in which they are parallel."""
    found: list[tuple[str, int, tir.PrimFunc]] = []
    whole = tir.Schedule(func)
    blocks = [whole.get(block).name_hint for block in whole.get_child_blocks(whole.get_block("root"))]
    for name in blocks:
        for place in range(len(whole.get_loops(whole.get_block(name)))):
            sch = tir.Schedule(func, error_render_level="fast")
            try:
                sch.parallel(sch.get_loops(sch.get_block(name))[place])
            except ScheduleError:
                continue
            found.append((name, place, function_of(sch)))
    return found


def check(func: tir.PrimFunc) -> list[tuple[str, int]]:
    """The accepted loops, each of them without a race and with the results of before."""
    expected, loops = run(func, 0), accepted(func)
    for name, place, made in loops:
        for phase in (0, 2):
            for have, want in zip(run(made, phase), expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5, err_msg=f"{name} {place} phase {phase}")
    return [(name, place) for name, place, _ in loops]


def copying(place: str, extents: tuple[int, int], binding: str = "i") -> tir.PrimFunc:
    """A block over two axes that writes at a place, and a reader of it."""
    return programs.function(f"""
def main(A: T.Buffer((8, 8)), C: T.Buffer((64,))):
    for i, j in T.grid({extents[0]}, {extents[1]}):
        with T.block("C"):
            vi = T.axis.spatial(8, {binding})
            vj = T.axis.spatial(8, j)
            C[{place}] = A[vi, vj] + 1.0
""")


def reducing(place: str, kinds: str) -> tir.PrimFunc:
    """A sum over the axes that are reduced, into a place."""
    return programs.function(f"""
def main(A: T.Buffer((4, 6)), C: T.Buffer((8,))):
    for i, r, j in T.grid(4, 2, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("{kinds}", [i, j])
            with T.init():
                C[{place}] = 0.0
            C[{place}] = C[{place}] + A[vi, vj]
""")


def through_memory(place: str, taken: str) -> tir.PrimFunc:
    """Two blocks in one loop, the second one reading what the first one wrote there or elsewhere, and one after them."""
    return programs.function(f"""
def main(A: T.Buffer((8, 4)), B: T.Buffer((33,)), C: T.Buffer((8, 4))):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{place}] = A[vi, vj] * 2.0
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[{taken}]
""")


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(
    st.sampled_from(PLACES),
    st.sampled_from([(8, 4), (4, 8), (2, 3), (1, 5)]),
    st.sampled_from(["i", "i // 2", "i % 4", "(i + 3) % 8", "7 - i"]),
)
@example("0", (8, 4), "i")
@example("vi % 2", (8, 4), "i")
def test_copies(place: str, extents: tuple[int, int], binding: str) -> None:
    check(copying(place, extents, binding))


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(st.sampled_from(REDUCED), st.sampled_from(["SR", "RS", "RR"]))
def test_sums(place: str, kinds: str) -> None:
    axis = {"vi": "S" in kinds[0], "vj": "S" in kinds[1]}
    if all(axis[var] for var in axis if var in place):
        check(reducing(place, kinds))


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.sampled_from(PLACES), st.sampled_from(ELSEWHERE))
@example("vi * 4 + vj", "vi * 4 + vj")
@example("vi * 4 + vj", "vi * 4 + vj + 1")
def test_two_blocks_in_a_loop(place: str, taken: str) -> None:
    check(through_memory(place, taken))


PROGRAMS: dict[str, tuple[Callable[[], tir.PrimFunc], list[tuple[str, int]]]] = {
    "repeated": (programs.repeated, [("B", 0), ("B", 1), ("C", 0)]),
    "overlapping": (programs.overlapping, [("B", 1), ("C", 0)]),
    "carried": (programs.carried, [("keep", 0), ("B", 0), ("C", 0)]),  # each iteration has a `last` of its own
    "prefix_sums": (programs.prefix_sums, [("C", 0)]),
    "halves": (programs.halves, [("B", 0), ("C", 0)]),
    "last": (lambda: copying("0", (8, 4)), []),
    "tile": (lambda: copying("vi * 4 + vj", (8, 4)), [("C", 0), ("C", 1)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_accepted(name: str) -> None:
    func, loops = PROGRAMS[name]
    assert check(func()) == loops


def computed_in_tiles(tensors: list[te.Tensor]) -> tir.PrimFunc:
    """The producer computed in each tile of 4 of the consumer, so that tiles share elements of it."""
    sch = tir.Schedule(te.create_prim_func(tensors))
    outer, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
    sch.compute_at(sch.get_block("B"), outer)
    return function_of(sch)


@pytest.mark.parametrize("tensors", [programs.stencil, programs.padded, programs.part, programs.surrounded])
def test_tiles_with_a_buffer_of_their_own_run_at_once(tensors: Callable[[], list[te.Tensor]]) -> None:
    func = computed_in_tiles(tensors())
    assert check(func) == [("B", 0), ("B", 1), ("C", 0), ("C", 1)]
    for kind in ("vectorize", "bind"):
        sch = tir.Schedule(func)
        outer = sch.get_loops(sch.get_block("C"))[0]
        sch.vectorize(outer) if kind == "vectorize" else sch.bind(outer, "vthread.x")
        for have, want in zip(run(function_of(sch), 2), run(func, 0), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5, err_msg=kind)


def shared(tail: str, first: str = "B[vi % 2] = A[vi]") -> tir.PrimFunc:
    """B has two elements, which all iterations write and C reads; `tail` comes after."""
    return programs.function(f"""
def main(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((2,))):
    B = T.alloc_buffer((2,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            {first}
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi % 2]
    for i in range(2):
        with T.block("D"):
            vi = T.axis.spatial(2, i)
            D[vi] = {tail}
""")


def test_a_buffer_that_is_read_afterwards_is_shared() -> None:
    assert check(shared("A[vi]")) == [("B", 0), ("C", 0), ("D", 0)]
    assert check(shared("B[vi]")) == [("D", 0)]
