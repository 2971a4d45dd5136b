"""Tiles of products by `mma`: the space, a program of it on a CPU and the emulator, and the rule among those of tensor cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.schedule_rule.multi_level_tiling_tensor_core import MultiLevelTilingTensorCore
from tensorexpr.schedule.blocks import Schedule, Trace
from tensorexpr.target import Target
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir.tensor_intrin.cuda import get_mma_tiles_intrin_group

from .test_tensor_core_rules import product, rule

TARGET = Target("cuda -arch=sm_80 -max_threads_per_block=1024 -thread_warp_size=32 -max_shared_memory_per_block=49152")
GROUPS = [get_mma_tiles_intrin_group(out) for out in ("f16", "f32")]
DECISIONS = [[1, 1, 1, 1, 2], [1, 1, 1, 1, 4], [4, 2, 1]]  # a warp of 32 x 32 results, four parts of the sum


def mma_rule() -> MultiLevelTilingTensorCore:
    write = ms.schedule_rule.ReuseType(req="no", levels=[2], scope="shared.dyn")
    return rule(intrin_groups=GROUPS, reuse_write=write, use_software_pipeline=True)


def context(by: MultiLevelTilingTensorCore, target: Target = TARGET) -> ms.TuneContext:
    generator = ms.space_generator.PostOrderApply(sch_rules=[by], postprocs=ms.Postproc.create("cuda-tensorcore"), mutator_probs={})
    return ms.TuneContext(product(32, 32, 64), target=target, space_generator=generator, rand_state=1)


def program(by: MultiLevelTilingTensorCore, decisions: list[Any]) -> tuple[tvm.IRModule, list[str]]:
    """A program of the rule's space after the postprocessors, and which samples it takes."""
    task = context(by)
    (space,) = task.generate_design_space()
    assert isinstance(space, Schedule) and space.trace is not None and task.space_generator is not None and task.mod is not None
    samples = [inst for inst in space.trace.insts if inst.kind.startswith("Sample")]
    sch = Schedule(task.mod)
    Trace(space.trace.insts, dict(zip(samples, decisions, strict=True))).apply_to_schedule(sch, remove_postproc=False)
    for postproc in task.space_generator.postprocs:
        postproc.initialize_with_tune_context(task)
        assert postproc.apply(sch)
    return sch.mod, [str(inst.kind) for inst in samples]


def check(mod: tvm.IRModule) -> tuple[Any, Any]:
    """The product by a CPU, and by the emulator: its module and what was counted."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype("float16") for shape in ((32, 64), (64, 32)))
    found = np.zeros((32, 32), np.float32)
    tvm.build(mod, target="llvm")(x, y, found)
    np.testing.assert_array_equal(found, x.astype("float32") @ y.astype("float32"))
    device = emulator()
    module: Any = tvm.build(mod, target=TARGET)
    result = tvm.nd.empty((32, 32), "float32", device)
    module(tvm.nd.array(x, device), tvm.nd.array(y, device), result)
    np.testing.assert_array_equal(result.numpy(), found)
    return module, device.counters


def test_a_program_of_the_space_computes_the_product() -> None:
    mod, samples = program(mma_rule(), DECISIONS)
    assert samples == ["SamplePartitionedTile", "SamplePartitionedTile", "SamplePerfectTile"]
    module, counters = check(mod)
    assert counters.bank_conflicts == 0 and counters.by_name["cp"]  # fetched ahead, into permuted rows
    # Three versions of 32 x 16 and 16 x 32 halves: what an iteration needs, not whole operands.
    assert max(info.dynamic_shared for info in module.code.kernels.values()) == 3 * 2 * 32 * 16 * 2


def test_fragments_of_a_pipeline_through_registers() -> None:
    by = rule(intrin_groups=rule().intrin_groups[:1], use_software_pipeline=True)
    mod, _ = program(by, [[1, 1, 1, 1, 2], [1, 1, 1, 1, 2], [2, 2, 1], 2, 2, 2])
    check(mod)


def test_chips_without_asynchronous_copies_fetch_an_iteration_ahead() -> None:
    old = Target("cuda -arch=sm_75 -max_threads_per_block=1024 -thread_warp_size=32 -max_shared_memory_per_block=49152")
    (sch,) = context(mma_rule(), old).generate_design_space()
    text = sch.mod.script()  # type: ignore[union-attr]
    assert "software_pipeline_async_stages" not in text and '"software_pipeline_stage": [0, 0, 0, 1, 1]' in text


def test_sums_of_fragments_alone_need_shared_memory() -> None:
    assert mma_rule().intrin_groups == GROUPS
    with pytest.raises(TuningError, match="reuse_write is ReuseType"):
        rule(
            intrin_groups=[*GROUPS, *rule().intrin_groups], reuse_write=ms.schedule_rule.ReuseType(req="no", levels=[2], scope="shared.dyn")
        )


def test_tensor_cores_of_the_default_rules_have_both() -> None:
    rules = [one for one in ms.ScheduleRule.create("cuda-tensorcore") if isinstance(one, MultiLevelTilingTensorCore)]
    assert [one.intrin_groups[0]["compute"][:3] for one in rules] == ["wmm", "mma"]
