"""unroll_register_tile: which loops are marked, and when the tile is too large for that."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.unroll_register_tile import unroll_register_tile
from tensorexpr.lower.phase2.vectorize_loop import vectorize_loop
from tensorexpr.lower.pragmas import KEEP_LOOP
from tensorexpr.target import Target
from tensorexpr.tir.expr import Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import For, Stmt, seq

from .builder import allocate, applied, flat, func, load, loop, loops, matmul, parallel, statements, store, vectorized

A, B = flat("A", 256), flat("B", 256)


def _marked(function: PrimFunc) -> list[str]:
    return loops(unroll_register_tile(vectorize_loop(function, PassContext()), PassContext()))


def test_tile_and_its_init() -> None:
    nest = ["i 0:8 UNROLLED", "j 0:2 UNROLLED"]
    assert _marked(matmul(16, 64, 4, 8, 32, 16)) == ["jo 0:2 PARALLEL", "io 0:2", *nest, "k 0:4", *nest]


@pytest.mark.parametrize(
    ("mr", "nr", "fits"), [(14, 32, True), (15, 32, False), (8, 48, True), (9, 48, True), (10, 48, False), (6, 64, True), (7, 64, False)]
)
def test_tiles_fit_the_register_file(mr: int, nr: int, fits: bool) -> None:
    """MR*NV accumulators, NV vectors and a broadcast in 32 registers."""
    assert (f"i 0:{mr} UNROLLED" in _marked(matmul(mr, nr, 4, mr, nr, 16))) is fits


def test_the_target_says_how_many_registers_there_are() -> None:
    start = matmul(8, 32, 4, 8, 32, 8).with_attr("target", Target("llvm -mcpu=haswell"))
    assert "i 0:8 UNROLLED" not in _marked(start)  # 32 of 16 registers
    small = matmul(6, 16, 4, 6, 16, 8).with_attr("target", Target("llvm -mcpu=haswell"))
    assert "i 0:6 UNROLLED" in _marked(small)  # 12 + 2 + 1


def test_the_reduction_around_a_large_tile_stays_a_loop() -> None:
    def kept(mr: int) -> bool:
        result = unroll_register_tile(vectorize_loop(matmul(mr, 32, 4, mr, 32, 16), PassContext()), PassContext())
        return any(KEEP_LOOP in stmt.annotations for stmt in statements(result, For))

    assert kept(14)
    assert not kept(4)


def test_loops_of_local_buffers() -> None:
    def inside(t: Any) -> Stmt:
        make = loop("i", 4, lambda i: store(t, load(A, i), i))
        return seq(make, loop("k", 8, lambda k: loop("j", 4, lambda j: store(B, load(t, 3 - j), k * 4 + j))))

    assert _marked(func(allocate("T", 4, inside), A, B)) == ["i 0:4 UNROLLED", "k 0:8", "j 0:4 UNROLLED"]


def test_large_local_buffers_stay() -> None:
    def inside(t: Any) -> Stmt:
        return seq(loop("i", 64, lambda i: store(t, load(A, i), i)), loop("j", 64, lambda j: store(B, load(t, j), j)))

    assert not any("UNROLLED" in text for text in _marked(func(allocate("T", 64, inside), A, B)))


def test_local_buffers_with_symbolic_indices_stay() -> None:
    n = Var("n")

    def inside(t: Any) -> Stmt:
        return seq(loop("i", 4, lambda i: store(t, load(A, i), i)), store(B, load(t, n), 0))

    assert not any("UNROLLED" in text for text in _marked(func(allocate("T", 4, inside), A, B, n)))


def test_buffers_shared_by_threads_stay() -> None:
    def inside(t: Any) -> Stmt:
        return seq(
            loop("i", 4, lambda i: store(t, load(A, i), i)),
            parallel("p", 4, lambda p: loop("j", 4, lambda j: store(B, load(t, j), p * 4 + j))),
        )

    assert not any("UNROLLED" in text for text in _marked(func(allocate("T", 4, inside), A, B)))


def test_a_scalar_accumulator_has_no_loops_to_mark() -> None:
    start = func(loop("i", 4, lambda i: seq(store(B, 0.0, i), loop("k", 8, lambda k: store(B, load(B, i) + load(A, i * 8 + k), i)))), A, B)
    assert unroll_register_tile(start, PassContext()) is start


def test_meaning_is_kept() -> None:
    applied(unroll_register_tile, matmul(8, 64, 4, 4, 32, 16))


def test_an_init_of_more_than_the_tile_stays_a_loop() -> None:
    init = loop("x", 64, lambda x: vectorized("v", 4, lambda v: store(B, 0.0, x * 4 + v)))

    def tile(o: Var) -> Stmt:
        return loop(
            "k",
            8,
            lambda k: loop(
                "i", 4, lambda i: vectorized("v", 4, lambda v: store(B, load(B, o * 16 + i * 4 + v) + load(A, k), o * 16 + i * 4 + v))
            ),
        )

    assert _marked(func(seq(init, loop("o", 16, tile)), A, B))[0] == "x 0:64"
