"""Spaces of configurations: candidates in the order that logs count them in, points without lists of them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import autotvm, te
from tensorexpr.autotvm.errors import LengthError, PointError
from tensorexpr.autotvm.task.space import ConfigEntity, ConfigSpace, FallbackConfigEntity, get_factors, get_pow2s
from tensorexpr.autotvm.template_space import TemplateSpace, point_of
from tensorexpr.errors import TensorExprError, TuningError
from tensorexpr.schedule.steps import Knob
from tensorexpr.schedule.te_schedule import Schedule
from tensorexpr.schedule.trace import Trace
from tensorexpr.te.tensor import Tensor
from tests.autotvm_templates import TARGET
from tests.effort import share_of

Space = ConfigSpace


def sizes(length: int, **options: object) -> list[list[int]]:
    cfg = ConfigSpace()
    cfg.define_split("x", length, **options)  # type: ignore[arg-type]
    return [entity.size for entity in cfg.space_map["x"].entities]


def test_candidates_of_splits_are_in_the_order_of_logs() -> None:
    assert sizes(12, num_outputs=2) == [[-1, 1], [-1, 2], [-1, 3], [-1, 4], [-1, 6], [-1, 12]]
    assert sizes(6, num_outputs=3)[:6] == [[-1, 1, 1], [-1, 2, 1], [-1, 3, 1], [-1, 6, 1], [-1, 1, 2], [-1, 3, 2]]
    assert sizes(12, policy="power2", num_outputs=2) == [[-1, 1], [-1, 2], [-1, 4], [-1, 8]]
    assert sizes(7, policy="verbose", num_outputs=2) == [[-1, 1], [-1, 2], [-1, 4], [-1, 7]]
    assert sizes(12, num_outputs=2, max_factor=4)[-1] == [-1, 4]
    assert sizes(12, policy="verbose", num_outputs=2, no_tail=True) == sizes(12, num_outputs=2)
    assert sizes(12, policy="candidate", num_outputs=2, candidate=[[3, 4], [-1, 6]]) == [[3, 4], [-1, 6]]
    assert sizes(12, num_outputs=2, filter=lambda entity: entity.size[-1] > 4) == [[-1, 6], [-1, 12]]
    assert (get_factors(12), get_pow2s(12)) == ([1, 2, 3, 4, 6, 12], [1, 2, 4, 8])


@settings(deadline=None, max_examples=share_of(40))
@given(st.integers(1, 60), st.integers(2, 4), st.sampled_from(["factors", "power2", "verbose"]))
def test_every_split_leaves_something_for_its_outermost_part(length: int, parts: int, policy: str) -> None:
    made = sizes(length, policy=policy, num_outputs=parts)
    inner = np.array(made)[:, 1:].prod(axis=1)
    assert (inner <= length).all() and len({tuple(size) for size in made}) == len(made)
    assert policy != "factors" or not (length % inner).any()


def orders(policy: str, spatial: list[int], reduce: list[int]) -> list[int]:
    cfg = ConfigSpace()
    axes = [cfg.axis(4) for _ in range(sum(spatial) + sum(reduce))]
    left = iter(axes)
    tiles = [[next(left) for _ in range(n)] for n in spatial], [[next(left) for _ in range(n)] for n in reduce]
    cfg.define_reorder("order", axes, policy, spatial=tiles[0], reduce=tiles[1])
    (entity,) = cfg.space_map["order"].entities
    return list(entity.perm)


def test_orders_of_tiles_end_at_the_same_level() -> None:
    assert orders("interleave", [3, 3], [2]) == [0, 3, 1, 4, 6, 2, 5, 7]
    assert orders("interleave", [2, 3], [1, 2]) == [2, 0, 3, 6, 1, 4, 5, 7]
    assert orders("interleave_cuda", [4, 4], [2, 2]) == [0, 4, 1, 5, 2, 6, 8, 10, 9, 11, 3, 7]
    cfg = ConfigSpace()
    axes = [cfg.axis(4) for _ in range(4)]
    cfg.define_reorder("middle", axes, "interval_all", interval=(1, 3))
    assert [entity.perm for entity in cfg.space_map["middle"].entities] == [(0, 1, 2, 3), (0, 2, 1, 3)]
    cfg.define_reorder("listed", axes, "candidate", candidate=[[axes[3], axes[0]]])
    assert cfg["listed"].perm == [3, 0]


def words(policy: str, loops: int, **options: object) -> list[list[object]]:
    cfg = ConfigSpace()
    cfg.define_annotate("an", [cfg.axis(4) for _ in range(loops)], policy, **options)
    return [list(entity.anns) for entity in cfg.space_map["an"].entities]


def test_annotations_have_one_vector_at_most() -> None:
    assert words("try_vec", 2) == [["none", "none"], ["none", "vec"], ["vec", "none"]]
    assert len(words("try_unroll_vec", 2)) == 8
    assert words("unroll", 2) == [["unroll", "unroll"]]
    assert words("locate_cache", 3, num_anchor=2) == [[0, 1], [0, 2], [1, 2]]
    assert words("bind_gpu", 5) == [["fuse", "blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]]
    assert words("bind_gpu_virtual", 3) == [["blockIdx.x", "vthread", "threadIdx.x"]]


def test_entities_schedule() -> None:
    a = te.placeholder((4, 16, 3), "float32", name="A")
    c = te.compute(a.shape, lambda i, j, k: a[i, j, k] + 1.0, name="C")
    s = te.create_schedule(c.op)
    cfg = ConfigSpace()
    cfg.define_split("y", c.op.axis[1], policy="candidate", num_outputs=3, candidate=[[-1, 2, 4]])
    parts = cfg["y"].apply(s, c, c.op.axis[1])
    assert [part.var.name for part in parts] == ["j.outer", "j.inner.outer", "j.inner.inner"]
    cfg.define_reorder("re", parts, "all")
    cfg.get(5)["re"].apply(s, c, parts)
    cfg.define_annotate("an", [c.op.axis[2]], "unroll")
    cfg["an"].apply(s, c, [c.op.axis[2]], axis_lens=[3], max_unroll=4)
    assert [axis.var.name for axis in s[c].leaf_iter_vars] == ["i", "j.inner.inner", "j.inner.outer", "j.outer", "k"]
    point = cfg.get(0)
    point["an"].apply(s, c, [c.op.axis[2]], axis_lens=[300], max_unroll=4, cfg=point)
    assert not point.valid() and "300 iterations" in point.errors[0]


def test_points_are_never_listed() -> None:
    cfg = ConfigSpace()
    for n in range(9):
        cfg.define_split(f"tile{n}", 1 << 20, num_outputs=2)
    assert len(cfg) == cfg.range_length == 21**9
    last = cfg.get(21**9 - 1)
    assert last["tile8"].size == [-1, 1 << 20] and cfg.knob2point(cfg.point2knob(last.index)) == last.index
    assert len(set(cfg.sample_ints(20))) == 20
    other = cfg.random_walk(5)
    assert sum(a != b for a, b in zip(cfg.point2knob(5), cfg.point2knob(other), strict=True)) == 1


def test_filters_leave_points_out_and_keep_their_numbers() -> None:
    cfg = ConfigSpace()
    cfg.define_split("y", 128, num_outputs=2)
    cfg.define_split("x", 128, num_outputs=2)
    cfg.multi_filter(lambda point: 32 <= point["x"].size[1] * point["y"].size[1] < 1024)
    assert (len(cfg), cfg.range_length, cfg.subrange_length(16, 32)) == (34, 64, 10)
    assert cfg.get_next_index(0) == 5 and cfg.get_next_index(63, -2) == 57 and cfg.get_next_index(60, end=63) is None
    valid = [index for index in range(64) if cfg.is_index_valid(index)]
    assert cfg.get_rand_index(to_exclude=valid[:-1]) == valid[-1]
    with pytest.raises(IndexError, match="left out"):
        cfg.get(0)
    with pytest.raises(IndexError, match="no point"):
        cfg.get_rand_index(to_exclude=valid)


def test_fallbacks_take_the_largest_divisors_from_within() -> None:
    for length, limits, wanted in [(128, [-1, 8, 4], [4, 8, 4]), (49, [-1, 8, 4], [7, 7, 1]), (96, [4, -1, 8], [1, 12, 8])]:
        cfg = FallbackConfigEntity()
        cfg.define_split("x", length, num_outputs=3)
        cfg.fallback_split("x", limits)
        cfg.define_split("x", length, num_outputs=3)  # a template that is run again defines it again
        assert cfg["x"].size == wanted
    with pytest.raises(TensorExprError, match="constraints of at least 1"):
        cfg.fallback_split("x", [-1, 1, 0])


def test_configurations_are_json() -> None:
    cfg = ConfigSpace()
    cfg.define_split("tile_y", 8, num_outputs=2)
    cfg.define_knob("k", [True, False, "ab", 3])
    axes = [cfg.axis(2), cfg.axis(3)]
    cfg.define_reorder("re", axes, "all")
    cfg.define_annotate("an", axes, "try_unroll_vec")
    point = cfg.get(77)
    text = json.dumps(point.to_json_dict())
    entity = '[["tile_y", "sp", [-1, 2]], ["k", "ot", 3], ["re", "re", [0, 1]], ["an", "an", ["none", "vec"]]]'
    assert text == f'{{"index": 77, "code_hash": null, "entity": {entity}}}'
    assert str(point) == "[('tile_y', [-1, 2]), ('k', 3), ('re', (0, 1)), ('an', ['none', 'vec'])],None,77"
    assert ConfigEntity.from_json_dict(json.loads(text)) == point
    assert len(point.get_flatten_feature()) == 2 + 1 + 2 + 22 and point.get_other_option() == {"k": point["k"].val}


def test_knobs_are_decisions_of_traces() -> None:
    trace = Trace((Knob("a", 3, 2), Knob("b", 5, 4)))
    assert point_of(trace) == 2 + 3 * 4 and Trace.from_json(trace.to_json()) == trace
    a = te.placeholder((4,), "float32", name="A")
    s = te.create_schedule(te.compute((4,), lambda i: a[i] + 1.0, name="C").op)
    assert trace.apply(s.tree) is s.tree
    with pytest.raises(TensorExprError, match="no number 3"):
        Knob("a", 3, 3).apply(s.tree)


def test_features_of_a_population_are_those_of_its_programs() -> None:
    from tensorexpr import autotvm

    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    space = TemplateSpace(task, "itervar")
    rows = space.sample(1000, np.random.default_rng(0))
    assert len(rows) == 50
    together = space.features(rows, task.target)
    for row, seen, cycles in zip(rows, together.features, together.cycles, strict=True):
        alone = TemplateSpace(task, "itervar").features(row[None], task.target)
        assert np.allclose(alone.features[0], seen) and np.isclose(alone.cycles[0], cycles)


@pytest.mark.parametrize("point", ["3", 1.5, None, [1], -1, 12])
def test_what_numbers_no_point_is_refused(point: object) -> None:
    cfg = ConfigSpace()
    cfg.define_knob("k", list(range(12)))
    assert cfg.get(np.int32(11))["k"].val == 11
    with pytest.raises(PointError, match="Index out of range" if type(point) is int else "a whole number"):
        cfg.get(point)  # type: ignore[arg-type]


def test_loops_without_iterations_have_no_knobs() -> None:
    with pytest.raises(TuningError, match="0 iterations"):
        ConfigSpace().define_split("x", 0, num_outputs=2)


def test_a_walk_moves_each_knob_as_often() -> None:
    cfg = ConfigSpace()
    cfg.define_knob("few", [0, 1])
    cfg.define_knob("many", list(range(20)))
    moves = [cfg.point2knob(cfg.random_walk(0)) for _ in range(400)]
    few = sum(bool(knobs[0]) for knobs in moves)
    assert 120 < few < 280  # 200 are expected; 80 more or less are eight standard deviations


@settings(deadline=None)
@given(st.integers(0, 40), st.booleans())
@example(16, True)
@example(15, False)
def test_a_space_of_any_size_says_how_large_it_is(knobs: int, filtered: bool) -> None:
    """16 knobs of 16 values make 2 to the 64 points, more than `len` of any object may be."""
    space = ConfigSpace()
    for number in range(knobs):
        space.define_knob(f"k{number}", list(range(16)))
    if filtered:
        space.multi_filter(lambda point: True)
    assert space and space.range_length == 16**knobs
    assert f"range_length={16**knobs}" in repr(space)
    if filtered and knobs > 2:
        return  # counted one by one
    assert space.size == 16**knobs
    if space.size <= sys.maxsize:
        assert len(space) == space.size
    else:
        with pytest.raises(LengthError, match=r"space\.size and space\.range_length"):
            len(space)


def test_no_point_no_truth() -> None:
    space = ConfigSpace()
    space.define_knob("a", [1, 2])
    space.multi_filter(lambda point: point["a"].val == 3)
    assert not space and space.size == len(space) == 0


@autotvm.template("tests/vast")
def vast(n: int) -> tuple[Schedule, list[Tensor]]:
    """A product whose space has more points than 64 bits can number."""
    cfg = autotvm.get_config()
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    for number in range(20):
        cfg.define_knob(f"k{number}", list(range(16)))
    return te.create_schedule(b.op), [a, b]


@pytest.mark.parametrize("kind", ["GATuner", "RandomTuner", "GridSearchTuner", "XGBTuner", "DropletTuner"])
def test_tuners_take_spaces_of_any_size(kind: str) -> None:
    task = autotvm.task.create("tests/vast", (16,), "llvm")
    assert task.config_space.size == 16**20
    tuner = getattr(autotvm.tuner, kind)(task)
    batch = tuner.next_batch(4)
    assert batch and all(0 <= one.index < 16**20 for one in batch)
    assert repr(task)


def test_logs_take_points_of_spaces_of_any_size() -> None:
    task = autotvm.task.create("tests/vast", (16,), "llvm")
    last = autotvm.MeasureInput(task.target, task, task.config_space.get(16**20 - 1))
    line = autotvm.record.encode(last, autotvm.MeasureResult((0.5,), 0, 1.0, 2.0))
    assert autotvm.record.decode(line)[0].config.index == 16**20 - 1
