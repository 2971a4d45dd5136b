"""Sets with symbolic ends, bounds solved from conditions, regions, conditions made independent of variables."""

from __future__ import annotations

import pytest

from tensorexpr import arith, te, tir
from tensorexpr.arith.int_set import neg_inf, pos_inf, union_lower_bound
from tensorexpr.script import tir as T
from tensorexpr.tir.expr import CmpExpr, Range

x, y, z = te.var("x"), te.var("y"), te.var("z")
Interval = arith.IntervalSet


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (x * 2 - y, "-3", "19"),
        (x + z, "z", "z + 10"),
        (te.floormod(x, 16), "0", "10"),
        (te.floormod(x, 3), "0", "2"),
        (te.floordiv(x, -3), "-4", "0"),
        (te.max(x, 3), "3", "10"),
        (tir.Select(x > z, x - 1, x + 1), "-1", "11"),
        (x * y, "0", "30"),
    ],
)
def test_sets_of_expressions(expr: object, low: str, high: str) -> None:
    found = arith.Analyzer().int_set(expr, {x: Interval(0, 10), y: Interval(1, 3)})  # type: ignore[arg-type]
    assert (str(found.min_value), str(found.max_value)) == (low, high)


def test_ends_may_be_open_or_missing() -> None:
    half = arith.Analyzer().int_set(te.floordiv(x, 3) + 1, {x: Interval(0, pos_inf())})
    assert str(half) == "IntervalSet[1, pos_inf]"
    assert Interval(neg_inf(), pos_inf()).is_everything()
    assert Interval(pos_inf(), neg_inf()).is_nothing()
    assert Interval(3, 2).is_nothing()
    assert arith.PresburgerSet().is_everything()
    assert arith.PresburgerSet(te.all(x > 3, x < 2)).is_nothing()
    assert str(arith.IntSet.vector(tir.Ramp(x, tir.IntImm("int32", 2), 4))) == "IntervalSet[x, x + 6]"


def test_unions_without_a_gap() -> None:
    assert str(union_lower_bound([Interval(0, 3), Interval(4, 6)])) == "IntervalSet[0, 6]"
    assert str(union_lower_bound([Interval(0, 3), Interval(6, 8)])) == "IntervalSet[0, 3]"


@pytest.mark.parametrize("scale", [-7, -3, 2, 5])
@pytest.mark.parametrize("kind", [tir.LT, tir.LE, tir.GT, tir.GE])
def test_a_deduced_bound_is_tight(scale: int, kind: type[CmpExpr]) -> None:
    """Against enumeration: the bound holds for all values of what is relaxed, and the next integer doesn't."""
    domain = {y: Interval(1, 4)}
    condition = kind(y * 3 + x * scale, tir.const(11, "int32"))
    found = arith.deduce_bound(x, condition, domain, domain)
    compare = {tir.LT: int.__lt__, tir.LE: int.__le__, tir.GT: int.__gt__, tir.GE: int.__ge__}[kind]
    good = [v for v in range(-60, 60) if all(compare(w * 3 + v * scale, 11) for w in range(1, 5))]
    if found.max_value is pos_inf():
        assert int(found.min_value) == min(good)  # type: ignore[call-overload]
    else:
        assert found.min_value is neg_inf()
        assert int(found.max_value) == max(good)  # type: ignore[call-overload]


def test_conditions_without_a_solution_give_nothing() -> None:
    assert arith.deduce_bound(x, x + y, {}, {}).is_nothing()
    assert arith.deduce_bound(x, x * x < 3, {}, {}).is_nothing()
    assert arith.deduce_bound(x, te.floormod(x, 4) < 3, {}, {}).is_nothing()


def test_linear_equations_and_clips() -> None:
    assert [str(k) for k in arith.detect_linear_equation(x * (z + 4) + x + y * 8 + 7, [x, y])] == ["z + 5", "8", "7"]
    assert arith.detect_linear_equation(x * y, [x, y]) == []
    assert [str(end) for end in arith.detect_clip_bound(te.all(x < z, x > 3), [x])] == ["4", "z - 1"]
    assert arith.detect_clip_bound(x * 2 < z, [x]) == []
    assert list(arith.detect_common_subexpr(te.min(x * 8 + y, 10) + (x * 8 + y) * 3, 2).values()) == [2]


def test_narrowed_conditions_imply_the_original_ones() -> None:
    free = {y: Range(0, 8)}
    assert str(arith.narrow_predicate_expression(x + y < 16, free)) == "x + 7 < 16"
    assert str(arith.narrow_predicate_expression(tir.Not(x - y < 16), free)) == "x - 7 >= 16"


def test_regions() -> None:
    domain = {x: Range(0, 8)}
    gaps, whole = Range.from_min_extent(x * 4, 3), Range.from_min_extent(x * 4, 6)
    assert arith.estimate_region_lower_bound([gaps], domain, True) is None
    assert str(arith.estimate_region_upper_bound([gaps], domain, True)) == "[IntervalSet[0, 30]]"
    assert str(arith.estimate_region_strict_bound([whole], domain, True)) == "[IntervalSet[0, 33]]"
    assert arith.estimate_region_strict_bound([Range(x, x + 1)] * 2, domain, True) is None


def test_the_box_that_a_statement_touches() -> None:
    @T.prim_func
    def shifted(a: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (128, 128), "float32")
        for i, j in T.grid(n, 4):
            A[i, j * 2] = A[i - 1, j] * T.float32(2)

    buffer = shifted.buffer_map[shifted.params[0]]
    read, written, both = (
        [(str(dom.min), str(dom.extent)) for dom in arith.domain_touched(shifted.body, buffer, *sides)]
        for sides in ((True, False), (False, True), (True, True))
    )
    assert read == [("-1", "n"), ("0", "4")]
    assert written == [("0", "n"), ("0", "7")]
    assert both == [("-1", "n + 1"), ("0", "7")]
