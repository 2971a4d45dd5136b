"""Tiles of matrix units as choices of a search: what is drawn fits the chip and computes what is defined, and is counted as it runs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.preload import CandidateIndex
from tensorexpr.auto_scheduler.sketch.plans import KNOBS, unit_spaces
from tensorexpr.meta_schedule.space_generator import TensorSketches
from tensorexpr.schedule.trace import Trace
from tensorexpr.spaces.default import default_schedule
from tensorexpr.spaces.gpu.block import limits_of
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import emulator
from tensorexpr.tune.evolution import Candidate
from tensorexpr.tune.features.device import DEVICE_FEATURE_NAMES
from tensorexpr.tune.planned import Planned, without_knobs

TARGET = Target("cuda -arch=sm_80")


def product(n: int, m: int, k: int, dtype: str = "float16") -> list[Tensor]:
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((m, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=r), name="C")
    return [a, b, te.compute((n, m), lambda i, j: te.max(c[i, j], 0.0), name="D")]


@functools.cache
def space(n: int, m: int, k: int, arch: str = "sm_80") -> tuple[ComputeDAG, Planned]:
    """The tiles of a product."""
    dag = ComputeDAG(product(n, m, k))
    (found,) = unit_spaces(dag.outputs, dag.initial_tree, Target(f"cuda -arch={arch}"))
    return dag, found


def column(features: Any, name: str) -> Any:
    """A feature of the heaviest kernel, unscaled."""
    return 2.0 ** features[:, DEVICE_FEATURE_NAMES.index(f"k0.{name}")] - 1


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90a"])
def test_whatever_is_drawn_fits_the_chip(arch: str) -> None:
    target = Target(f"cuda -arch={arch}")
    limits = limits_of(target)
    _, tiles = space(4096, 4096, 4096, arch=arch)
    rng = np.random.default_rng(0)
    rows = tiles.sample(100, rng)
    changed = tiles.mutate(rows, rng)
    for drawn in (rows, changed, tiles.neighbours(rows[0])[0], tiles.drawn(20, rng, target)):
        seen = tiles.features(drawn, target)
        assert seen.valid.all() and len(drawn)
        threads, shared, registers = (column(seen.features, name) for name in ("threads", "shared_bytes", "registers"))
        assert threads.max() <= limits.threads + 0.5
        assert shared.max() <= limits.dynamic + 0.5
        assert (registers * threads).max() <= limits.registers + 0.5 and registers.max() <= 255.5
    assert (changed != rows).any()
    # children of two programs may be none; they are seen as such
    mixed = np.where(rng.random(rows.shape) < 0.5, rows, rng.permutation(rows))
    assert not tiles.features(mixed, target).valid.all()


@pytest.mark.parametrize("sizes, arch", [((1024, 1024, 1024), "sm_80"), ((128, 128, 8192), "sm_80"), ((4096, 4096, 4096), "sm_90a")])
def test_the_first_program_is_the_schedule_by_rules(sizes: tuple[int, int, int], arch: str) -> None:
    dag, tiles = space(*sizes, arch=arch)
    assert tiles.preferred_row is not None
    program = tiles.program(tiles.preferred_row)
    assert without_knobs(program) == default_schedule(dag.tensors, f"cuda -arch={arch}").trace
    assert tiles.find(Trace.from_json(program.to_json())) == tiles.preferred_row
    assert CandidateIndex([tiles]).find(program) == Candidate(0, tiles.preferred_row)
    assert tiles.find(without_knobs(program)) is None


CHOICES = [
    {"group": 0, "tile_m": 64, "tile_n": 32, "warp_m": 32, "warp_n": 16, "chunks": 2, "copies": 3, "parts": 1, "beside": 1},
    {"group": 0, "tile_m": 16, "tile_n": 64, "warp_m": 16, "warp_n": 32, "chunks": 4, "copies": 2, "parts": 1, "beside": 4},
]


@pytest.mark.parametrize("number", range(len(CHOICES)))
def test_what_is_counted_is_what_runs(number: int) -> None:
    dag, tiles = space(64, 64, 128)
    row = tuple(list(tiles.knobs[name]).index(CHOICES[number][name]) for name in KNOBS)
    seen = tiles.features(np.array([row]), TARGET)
    assert seen.valid.all()
    schedule, args = dag.schedule(tiles.program(row))
    module: Any = tvm.build(schedule, args, target=TARGET)
    rng, device = np.random.default_rng(1), emulator()
    a, b = (rng.integers(-3, 4, (64, 128)).astype("float16") for _ in "AB")
    out = tvm.nd.empty((64, 64), "float32", device)
    module(tvm.nd.array(a, device), tvm.nd.array(b, device), out)
    assert np.array_equal(out.numpy(), np.maximum(a.astype("float32") @ b.T.astype("float32"), 0))
    blocks, warps = column(seen.features, "blocks")[0], column(seen.features, "threads")[0] / 32
    counters = device.counters
    units = 64 * 64 * 128 // (16 * 8 * 16)
    assert counters.by_name["mma"] == units
    assert counters.bank_conflicts == 0
    # of each block, all operands of its tile, and the results
    assert counters.global_transactions == pytest.approx(column(seen.features, "sectors")[0] * warps * blocks)
    asked = 64 * 128 * 2 // 16 // 32 * sum(64 // CHOICES[number][name] for name in ("tile_m", "tile_n"))
    requests = column(seen.features, "shared_requests")[0] * warps * blocks
    # where there are fewer rows to copy than threads, some warps have nothing to do
    assert requests == pytest.approx(counters.by_name["ldmatrix"] + asked, rel=0.12)


def test_few_results_of_many_terms_are_cut_by_the_best_programs() -> None:
    _, tiles = space(128, 128, 8192)
    rows = tiles.sample(500, np.random.default_rng(0))
    cycles, parts = tiles.features(rows, TARGET).cycles, np.array([tiles.choice(row)[KNOBS.index("parts")] for row in rows])
    assert parts[np.argsort(cycles)[:20]].min() > 1
    assert cycles[parts > 1].min() < 0.8 * cycles[parts == 1].min()


def test_the_rule_is_not_far_from_the_best_by_the_same_counts() -> None:
    _, tiles = space(4096, 4096, 4096)
    rows = tiles.sample(500, np.random.default_rng(0))
    own = tiles.features(np.array([tiles.preferred_row]), TARGET).cycles[0]
    best, middle = np.quantile(tiles.features(rows, TARGET).cycles, [0.0, 0.5])
    assert own < 1.15 * best and own < middle


def test_a_policy_searches_tiles_beside_sketches() -> None:
    task = auto_scheduler.SearchTask(compute_dag=product(512, 512, 512), target=TARGET)
    policy = auto_scheduler.SketchPolicy(task, params={"evolutionary_search_population": 128})
    assert [one.name for one in policy.spaces()] == ["Tiles(C)", "sketch1:Plain"]  # type: ignore[attr-defined]
    ranked = policy.evolutionary_search((), 2)
    assert len(ranked) == 2 and all("knob" in str(state.trace.to_json()) for state in ranked)
    assert without_knobs(policy.best_predicted()) == default_schedule(task.compute_dag.tensors, TARGET).trace


def test_other_targets_and_products_have_no_tiles() -> None:
    for target, sizes in (("llvm", (64, 64, 64)), ("cuda -arch=sm_75", (64, 64, 64)), ("cuda -arch=sm_80", (8, 64, 64))):
        dag = ComputeDAG(product(*sizes))
        assert not unit_spaces(dag.outputs, dag.initial_tree, Target(target))


def test_programs_of_blocks_have_the_same_tiles() -> None:
    function = te.create_prim_func(product(64, 64, 64))
    found = TensorSketches.of(tvm.IRModule({"main": function}), TARGET)
    assert found is not None and isinstance(found.sketches[0], Planned)
    assert found.sketches[0].preferred_row is not None
    sch = found.to_schedule(Candidate(0, found.sketches[0].preferred_row))
    assert sch is not None and "ptx_mma" in str(sch.mod)
