"""Iterator maps with symbolic extents, predicates, padding, inverses and divisions."""

from __future__ import annotations

import pytest

from tensorexpr import arith, te
from tensorexpr.tir.expr import IntImm, Range, SizeVar
from tensorexpr.tir.rewriting import substitute

x, y, z, n, m = te.var("x"), te.var("y"), te.var("z"), SizeVar("n"), SizeVar("m")
floordiv, floormod = te.floordiv, te.floormod


def _domain(**extents: object) -> dict[object, Range]:
    return {{"x": x, "y": y, "z": z}[name]: Range.from_min_extent(0, extent) for name, extent in extents.items()}


@pytest.mark.parametrize(
    ("index", "domain", "extent", "base"),
    [
        (x * 3 + y, _domain(x=4, y=3), "12", "0"),
        (x * 8 + y + 5, _domain(x=n, y=8), "n * 8", "5"),
        (floordiv(x, 3), _domain(x=24), "8", "0"),
        (floordiv(x * 3 + y, 4), _domain(x=8, y=3), "6", "0"),
        (floordiv(x, 4), _domain(x=10), "3", "0"),  # padded
        (x * 2 + y, _domain(x=4, y=4), "10", "0"),  # values overlap, none is left out
    ],
)
def test_one_fused_iterator(index: object, domain: dict[object, Range], extent: str, base: str) -> None:
    found = arith.detect_iter_map([index], domain)
    assert not found.errors
    (total,) = found.indices
    assert (str(total.args[0].extent), str(total.base)) == (extent, base)


@pytest.mark.parametrize(
    ("indices", "domain", "level"),
    [
        ([x * 4 + y], _domain(x=4, y=3), "surjective"),  # 3, 7, ... are left out
        ([x, x], _domain(x=4), "surjective"),
        ([floordiv(x, 4), floormod(x, 4)], _domain(x=10), "surjective"),
        ([floordiv(x, 3)], _domain(x=24), "bijective"),
        ([x * x], _domain(x=4), "nocheck"),
        ([x * y], _domain(x=4, y=4), "nocheck"),
    ],
)
def test_what_is_no_map(indices: list[object], domain: dict[object, Range], level: str) -> None:
    found = arith.detect_iter_map(indices, domain, check_level=level)
    assert not found.indices
    assert found.errors


def test_predicates_cut_extents() -> None:
    found = arith.detect_iter_map([x * 4 + y, z], _domain(x=4, y=4, z=5), te.all(x * 4 + y < 13, z < 4))
    assert [str(total.args[0].extent) for total in found.indices] == ["13", "4"]
    assert arith.detect_iter_map([x, y], _domain(x=4, y=4), x * 4 + y < 13).errors


def test_levels_have_names() -> None:
    assert arith.IterMapLevel.from_str("bijective") is arith.IterMapLevel.Bijective
    with pytest.raises(ValueError, match="surjective"):
        arith.IterMapLevel.from_str("loose")


@pytest.mark.parametrize("inner", [1, 2, 4])
def test_inverses_by_enumeration(inner: int) -> None:
    """Each point goes through the map and comes back."""
    outputs = te.var("a"), te.var("b")
    indices = [floordiv(x * 8 + y, inner), floormod(x * 8 + y, inner)]
    found = arith.detect_iter_map(indices, _domain(x=4, y=8))
    back = arith.inverse_affine_iter_map(found.indices, outputs)
    analyzer = arith.Analyzer()
    for i in range(4):
        for j in range(8):
            flat = i * 8 + j
            values = {outputs[0]: IntImm("int32", flat // inner), outputs[1]: IntImm("int32", flat % inner)}
            assert [int(analyzer.simplify(substitute(back[var], values))) for var in (x, y)] == [i, j]  # type: ignore[call-overload]


def test_divisions() -> None:
    (outer, inner), (above, below) = arith.subspace_divide([x * 12 + y * 3 + z], _domain(x=3, y=4, z=3), [z])
    text = [str(arith.normalize_iter_map_to_expr(mark)) for mark in (outer, inner)]
    assert (text, str(outer.extent), str(inner.extent)) == (["x * 4 + y", "z"], "12", "3")
    assert str(above.extent) == str(below.extent) == "T.bool(True)"
    assert arith.subspace_divide([x * 12 + y * 3 + z], _domain(x=3, y=4, z=3), [y]) == []


def test_sums_with_larger_scales_first() -> None:
    found = arith.normalize_to_iter_sum(y * 8 + x * 4 + z * 16 + 2, _domain(x=3, y=4, z=5))
    assert [str(split.scale) for split in found.args] == ["16", "8", "4"]
    assert str(found.base) == "2"
    assert str(arith.iter_map_simplify([floordiv(x, 4) * 4 + floormod(x, 4)], _domain(x=16))[0]) == "x // 4 * 4 + x % 4"
