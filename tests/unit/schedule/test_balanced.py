"""Balanced splits: which iterations each tile has, what stages inside a tile compute, and what lowering makes of two sizes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.balanced import ShortTile
from tensorexpr.schedule.domain import StageDomain, full_region, stage_domain
from tensorexpr.schedule.steps import BalancedSplit, SampleCategorical
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int, const
from tensorexpr.tir.expr import PrimExpr, Var
from tensorexpr.tir.rewriting import substitute


def row(extent: int) -> tuple[Schedule, Tensor, Tensor]:
    """One loop over `extent` elements."""
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    return create_schedule(b.op), a, b


def domain_of(s: Schedule, tensor: Tensor) -> StageDomain:
    """The domain of a stage over its whole region."""
    node = s.tree[s[tensor].id]
    return stage_domain(node, full_region(node), Analyzer())


def at(expr: PrimExpr, values: dict[Var, int]) -> int:
    """An expression's value."""
    value = as_int(Analyzer().simplify(substitute(expr, {var: const(v, var.dtype) for var, v in values.items()})))
    assert value is not None
    return value


def tiles_of(s: Schedule, tensor: Tensor) -> list[list[int]]:
    """The elements that each tile visits, by evaluating values and guards at every point of the loops."""
    domain = domain_of(s, tensor)
    outer, inner = domain.stage.leaf
    result = []
    for o in range(at(domain.extents[outer], {})):
        point = {domain.stage.axes[outer].var: o}
        tile = []
        for i in range(at(domain.extents[inner], {})):
            point[domain.stage.axes[inner].var] = i
            if all(at(guard.condition, point) for guard in domain.guards):
                tile.append(at(domain.values[0], point))
        result.append(tile)
    return result


@pytest.mark.parametrize("extent", [0, 1, 2, 7, 12, 13, 30])
@pytest.mark.parametrize("given", ["factor", "nparts"])
@pytest.mark.parametrize("value", [1, 2, 3, 5, 7, 14, 40])
def test_11_every_element_once_in_tiles_that_differ_by_one(extent: int, given: str, value: int) -> None:
    s, _, b = row(extent)
    s[b].split(b.op.axis[0], value if given == "factor" else None, value if given == "nparts" else None, balanced=True)
    tiles = tiles_of(s, b)
    assert [i for tile in tiles for i in tile] == list(range(extent))
    sizes = [len(tile) for tile in tiles]
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)
    assert len(tiles) == value if given == "nparts" else len(tiles) == max(1, -(-extent // value))


def test_few_tiles_not_a_thin_one() -> None:
    s, _, b = row(1009)
    s[b].split(b.op.axis[0], factor=14, balanced=True)
    assert [len(tile) for tile in tiles_of(s, b)] == [14] * 60 + [13] * 13


def test_a_split_that_divides_has_no_guard() -> None:
    s, _, b = row(12)
    s[b].split(b.op.axis[0], factor=4, balanced=True)
    assert domain_of(s, b).guards == ()
    assert "split of i: 3 tiles of 4, no guard" in s.explain()


def test_the_guard_of_a_short_tile_is_one_affine_comparison() -> None:
    tile, inner = Var("tile", "int32"), Var("inner", "int32")
    condition = ShortTile(const(4), tile, const(3), const(7)).condition(inner)
    for t in range(7):
        assert [at(condition, {tile: t, inner: i}) for i in range(5)] == [1, 1, 1, 1, int(t < 3)]


def matmul(m: int, n: int, k: int) -> tuple[Schedule, list[Tensor], Tensor]:
    """A product in a local cache at its row tiles."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = create_schedule(c.op)
    return s, [a, b, c], s.cache_write(c, "local")


def register_tiled(m: int, n: int, k: int, rows: int) -> tuple[Schedule, list[Tensor]]:
    """Balanced row tiles, two vectors a row, columns in parallel."""
    s, args, cached = matmul(m, n, k)
    c = args[-1]
    io, ii = s[c].split(c.op.axis[0], factor=rows, balanced=True)
    jo, ji = s[c].split(c.op.axis[1], factor=32)
    jv, jl = s[c].split(ji, factor=16)
    s[c].reorder(jo, io, ii, jv, jl)
    s[c].parallel(jo)
    s[c].vectorize(jl)
    s[cached].compute_at(s[c], io)
    (ci, cj), (ck,) = cached.op.axis, cached.op.reduce_axis
    cv, cl = s[cached].split(cj, factor=16)
    s[cached].reorder(ck, ci, cv, cl)
    s[cached].vectorize(cl)
    return s, args


def test_one_body_for_each_size_with_every_accumulator_in_a_register() -> None:
    s, args = register_tiled(29, 64, 9, 6)  # 4 tiles of 6 and one of 5
    text = tvm.lower(s, args, upto=2).script()
    assert re.findall(r"for (\w+) in T.parallel", text) == ["j_outer"]
    assert "if" not in text and "predicate" not in text and "T.min" not in text
    assert [int(n) for n in re.findall(r'allocate\(\[(\d+)\], "float32x16", "register"\)', text)] == [12, 10]
    assert text.count("for k in range(9)") == 2


def test_a_tail_is_a_body_of_constant_masks() -> None:
    s, args = register_tiled(29, 71, 9, 6)
    text = tvm.lower(s, args, upto=2).script()
    assert text.count("T.parallel") == 1 and text.count("if ") == 1
    main, tail = text.split("else:")
    assert "predicate" not in main
    masks = set(re.findall(r"predicate=(.*?)\)$|predicate=(T\.Ramp\(\d+, 1, 16\) < T\.Broadcast\(\d+, 16\))", tail))
    assert masks and all("Ramp(64, 1, 16) < T.Broadcast(71, 16)" in "".join(mask) for mask in masks)
    assert "C_local_1.vstore" not in text


def test_a_stage_at_the_tiles_computes_no_row_twice() -> None:
    s, args = register_tiled(1009, 64, 3, 14)
    assert tvm.lower(s, args, upto=0).script().count("i_c * 13 + i_outer < 229") == 1


@pytest.mark.parametrize("shape", [(17, 23, 13), (29, 71, 9), (1, 1, 1), (5, 33, 2), (13, 16, 4)])
def test_awkward_products(shape: tuple[int, int, int]) -> None:
    s, args = register_tiled(*shape, 6)
    assert_schedule_correct(s, args)


def test_splits_in_splits() -> None:
    s, a, b = row(101)
    outer, inner = s[b].split(b.op.axis[0], nparts=3, balanced=True)
    s[b].split(outer, factor=2)
    middle, _ = s[b].split(inner, factor=8, balanced=True)
    s[b].split(middle, factor=3)
    assert_schedule_correct(s, [a, b])


def test_a_reduction_in_balanced_parts_with_rfactor() -> None:
    s, args, cached = matmul(5, 6, 23)
    _, inner = s[cached].split(cached.op.reduce_axis[0], factor=4, balanced=True)
    s.rfactor(cached, inner)
    assert_schedule_correct(s, args)


def test_as_json_and_python() -> None:
    s, args = register_tiled(29, 71, 9, 6)
    again = Schedule(s.outputs, Trace.from_json(json.loads(json.dumps(s.trace.to_json()))))
    assert again.trace == s.trace and str(again) == str(s)
    assert "C_i_o, C_i_i = s[C].split(C_i, factor=6, balanced=True)" in s.as_python()
    names: dict[str, Any] = {"C": args[-1], "s": create_schedule(args[-1].op)}
    exec(s.as_python(), names)
    assert names["s"].trace == s.trace


def test_a_sampled_size() -> None:
    s, a, b = row(23)
    s.apply_step(SampleCategorical((3, 4, 5), 1))
    s.apply_step(BalancedSplit(s[b].id, 0, (None, (0, 0))))
    assert [len(tile) for tile in tiles_of(s, b)] == [4, 4, 4, 4, 4, 3]
    assert_schedule_correct(s, [a, b])


def test_an_open_size_leaves_the_tiles_open() -> None:
    s, _, b = row(23)
    s.apply_step(SampleCategorical((3, 4, 5)))
    s.apply_step(BalancedSplit(s[b].id, 0, (None, (0, 0))))
    domain = domain_of(s, b)
    (choice,) = s.tree.samples[0]
    assert isinstance(choice, Var)
    assert [[at(domain.extents[axis], {choice: size}) for axis in domain.stage.leaf] for size in (3, 4, 5)] == [[8, 3], [6, 4], [5, 5]]


def test_explained() -> None:
    s, _, b = row(23)
    s[b].split(b.op.axis[0], factor=5, balanced=True)
    assert "split of i: balanced, 5 tiles: the first 3 of 5, the others of 4, told apart by a guard" in s.explain()
