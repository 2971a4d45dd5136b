"""Detecting split and fuse maps."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.arith.iter_map import detect_iter_map, inverse_affine_iter_map, to_expr
from tensorexpr.tir.expr import IntImm, PrimExpr, Range, Var
from tensorexpr.tir.rewriting import substitute

i, j, k, a, b = (Var(name) for name in "ijkab")


def ranges(**extents: int) -> dict[Var, Range]:
    """Ranges from 0 of the variables named."""
    return {{"i": i, "j": j, "k": k}[name]: Range.from_min_extent(0, extent) for name, extent in extents.items()}


def inverse(indices: list[PrimExpr], iters: dict[Var, Range], predicate: PrimExpr | None = None) -> dict[str, str]:
    """The iterators' texts in terms of outputs a, b."""
    found = detect_iter_map(indices, iters, predicate)
    assert found.indices, found.errors
    return {str(var): str(expr) for var, expr in inverse_affine_iter_map(found, [a, b][: len(indices)]).items()}


def test_fused() -> None:
    assert inverse([i * 4 + j], ranges(i=8, j=4)) == {"i": "a // 4", "j": "a % 4"}


def test_split() -> None:
    assert inverse([i // 4, i % 4], ranges(i=8)) == {"i": "a * 4 + b"}


def test_fused_and_split_elsewhere() -> None:
    found = detect_iter_map([(i * 4 + j) // 8, (i * 4 + j) % 8], ranges(i=8, j=4))
    assert [str(to_expr(total)) for total in found.indices] == ["i // 2", "i % 2 * 4 + j"]
    assert inverse([(i * 4 + j) // 8, (i * 4 + j) % 8], ranges(i=8, j=4)) == {"i": "a * 2 + b // 4", "j": "b % 4"}


def test_offsets_strides_and_trivial_iterators() -> None:
    iters = {i: Range.from_min_extent(3, 4), j: Range.from_min_extent(0, 3), k: Range.from_min_extent(7, 1)}
    assert inverse([i + 5, j * 2 + k], iters) == {"i": "a - 5", "j": "(b + 1) // 2 - 4", "k": "7"}


def test_a_predicate_cuts_a_fused_extent() -> None:
    fused = i * 3 + j
    assert inverse([fused // 5, fused % 5], ranges(i=4, j=3), fused < 10) == {"i": "(a * 5 + b) // 3", "j": "(a * 2 + b) % 3"}


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), threads=st.integers(1, 40))
@example(rows=30, columns=40, threads=1024)
@settings(deadline=None)
def test_rows_and_columns_of_a_fused_loop_that_was_cut_by_any_factor(rows: int, columns: int, threads: int) -> None:
    blocks = -(-rows * columns // threads)
    flat = i * threads + j
    # The remainder is one of i * (threads % columns) + j, too, in which the fused loop can't be seen.
    indices, guard = [flat // columns, flat % columns], flat < rows * columns
    found = detect_iter_map(indices, ranges(i=blocks, j=threads), guard)
    if columns > 1 and rows * columns > 1 and (blocks == 1 or threads > 1):
        assert found.indices, found.errors
    if found.indices:
        back = inverse_affine_iter_map(found, [a, b])
        for at in range(rows * columns):
            values = {a: IntImm("int32", at // columns), b: IntImm("int32", at % columns)}
            first, second = (Analyzer().simplify(substitute(back[var], values)) if var in back else IntImm("int32", 0) for var in (i, j))
            assert (first, second) == (IntImm("int32", at // threads), IntImm("int32", at % threads))


@pytest.mark.parametrize(
    ("indices", "predicate", "reason"),
    [
        ([i // 4, i % 2, j], None, "the splits of i overlap or leave a gap at 2"),
        ([i // 4, j], None, "the splits of i overlap or leave a gap at 1"),
        ([i], None, "j isn't used"),
        ([i // 3, i % 3, j], None, "the extent 8 is no multiple of 3"),
        ([i * 3 + j], None, "scale 3 doesn't follow from scale 1 with extent 4"),
        ([i * i, j], None, "i * i is neither an iterator"),
        ([i, i, j], None, "the splits of i overlap"),
        ([i, j], i + j > 2, "is no upper bound of a fused sum"),
    ],
)
def test_refused_with_the_reason(indices: list[PrimExpr], predicate: PrimExpr | None, reason: str) -> None:
    found = detect_iter_map(indices, ranges(i=8, j=4), predicate)
    assert not found.indices
    assert reason in found.errors[0]


def test_symbolic_ranges_are_refused() -> None:
    assert "isn't constant" in detect_iter_map([i], {i: Range.from_min_extent(0, j)}).errors[0]


def test_a_predicate_bounds_an_iterator() -> None:
    assert inverse([i, j], ranges(i=4, j=3), i < 3) == {"i": "a", "j": "b"}
    assert inverse([i - 1, j], ranges(i=4, j=3), i > 0) == {"i": "a + 1", "j": "b"}
    assert inverse([i * 3 + j], ranges(i=4, j=5), j < 3) == {"i": "a // 3", "j": "a % 3"}
