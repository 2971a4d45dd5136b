"""Symbolic bounds of what varies."""

from __future__ import annotations

import pytest

from tensorexpr.arith import Interval, extent_bound, relax
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.tir import arithmetic as op
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import BufferLoad, Cast, PrimExpr, Range, SizeVar, Var

n = SizeVar("n")
fo, fi, f, x, i, j = (Var(name) for name in ("fo", "fi", "f", "x", "i", "j"))


def bounds(expr: PrimExpr, *domain: tuple[Var, object, object]) -> tuple[str, str, int | None] | None:
    """The texts of the bounds, and the bound of the extent."""
    analyzer = Analyzer()
    found = relax(expr, {var: Range.from_min_extent(low, extent) for var, low, extent in domain}, analyzer)
    return None if found is None else (str(found.min), str(found.max), extent_bound(found, analyzer))


@pytest.mark.parametrize(
    ("expr", "domain", "expected"),
    [
        ((fo * 32 + fi) // 32, [(fi, 0, 32)], ("fo", "fo", 1)),
        ((fo * 32 + fi) % 32, [(fi, 0, 32)], ("0", "31", 32)),
        ((fo * 5 + fi) // 32, [(fi, 0, 5)], ("fo * 5 // 32", "(fo * 5 + 4) // 32", 2)),
        ((x + fi) // 32, [(fi, 0, 24)], ("x // 32", "(x + 23) // 32", 2)),
        ((x + fi) // 32, [(fi, 0, 34)], ("x // 32", "(x + 1) // 32 + 1", 3)),
        (fo * -3 + fi * 2 - 7, [(fi, 0, 24), (fo, 1, 3)], ("-16", "36", 53)),
        (fo * 32 + fi, [(fi, 0, 32)], ("fo * 32", "fo * 32 + 31", 32)),
        (fi - fo * 2, [(fo, 0, n), (fi, fo * 2, 4)], ("0", "3", 4)),
        (f // 32 * 32 + f % 32, [(f, 0, 100)], ("0", "99", 100)),
        (op.minimum(i * 2, n - 1), [(i, 0, 10)], ("T.min(n - 1, 0)", "T.min(n - 1, 18)", 19)),
        (intrin.if_then_else(i < 4, i, 8 - i), [(i, 0, 10)], ("-1", "4", 6)),
        (intrin.if_then_else(i < n, i, 0), [(i, 0, 10)], ("0", "T.max(T.min(n - 1, 9), 0)", 10)),
        (i * n + j, [(i, 0, 3), (j, 0, n)], ("0", "n * 3 - 1", None)),
        (Cast("int64", i + 1), [(i, 0, 3)], ("T.int64(1)", "T.int64(3)", 3)),
        (x % n, [(x, 0, 5)], ("0", "n - 1", None)),
        (x + n, [(i, 0, 5)], ("x + n", "x + n", 1)),
        (i * x, [(i, 0, 5)], None),
        (Cast("int32", Var("b", "uint8")) + i, [(i, 0, 5)], ('T.Cast("int32", b)', 'T.Cast("int32", b) + 4', 5)),
    ],
)
def test_relax(expr: PrimExpr, domain: list[tuple[Var, object, object]], expected: tuple[str, str, int | None] | None) -> None:
    assert bounds(expr, *domain) == expected


def test_loads_are_unbounded_unless_their_type_is_small() -> None:
    from tensorexpr.tir.buffer import decl_buffer

    wide, narrow = decl_buffer((8,), "int32", "W"), decl_buffer((8,), "uint8", "N")
    assert bounds(BufferLoad(wide, (i,)), (i, 0, 8)) is None
    assert bounds(Cast("int32", BufferLoad(narrow, (i,))), (i, 0, 8)) == ("0", "255", 256)


def test_a_condition_on_the_varying_variable_ends_with_its_range() -> None:
    analyzer = Analyzer({i: Range.from_min_extent(0, 4)})
    with analyzer.constraint_scope(i < 2):
        found = relax(i + x, {i: Range.from_min_extent(0, 8)}, analyzer)
    assert found is not None
    assert (str(found.min), str(found.max)) == ("x", "x + 7")


def test_bindings_of_fixed_variables_bound_the_extent() -> None:
    analyzer = Analyzer({n: Range.from_min_extent(1, 64)})
    assert extent_bound(Interval(x, x + n - 1), analyzer) == 64
    assert extent_bound(Interval(x, x + n), Analyzer()) is None


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_that_a_size_fits_int32_bounds_no_extent(dtype: str) -> None:
    # Lowering says so of each size: a box of int64 extents was allocated with 2^31 elements.
    size, analyzer = Var("n", dtype), Analyzer()
    analyzer.bind(size, Range.from_min_extent(op.const(0, dtype), op.const((1 << 31) - 1, dtype)))
    assert extent_bound(Interval(op.const(0, dtype), size - 2), analyzer) is None
