"""Grids of threads: a schedule with bound loops keeps its program's meaning, as the interpreter's threads and as loops of a CPU."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.testing.check import assert_schedule_correct
from tests.gpu_programs import product, row_sums

FEW = settings(max_examples=3, deadline=None, derandomize=True)


@FEW
@given(n=st.integers(5, 12), tile=st.sampled_from([4, 8]), step=st.integers(1, 4), double=st.booleans())
def test_tiles_in_shared_memory(n: int, tile: int, step: int, double: bool) -> None:
    assert_schedule_correct(*product(n, tile, 2, step, vector=False, double=double), phases=(1,))


@FEW
@example(1, 1, 1, True, True)
@given(st.integers(1, 7), st.integers(1, 20), st.integers(1, 9), st.booleans(), st.booleans())
def test_reductions_over_threads(rows: int, length: int, threads: int, factored: bool, one_stores: bool) -> None:
    assert_schedule_correct(*row_sums(rows, length, threads, factored, one_stores), phases=(1,))
