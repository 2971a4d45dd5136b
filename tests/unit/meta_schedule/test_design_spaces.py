"""The design spaces that rules make, users' rules and spaces, mutators, and which space a program is of."""

from __future__ import annotations

import logging
from math import prod
from pathlib import Path

import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.meta_schedule.mutator import mutated
from tensorexpr.meta_schedule.search_strategy.population import Programs
from tensorexpr.schedule.blocks import BlockRV, Schedule, Trace
from tests.design_space_programs import PROGRAMS, program, spaces_of
from tests.meta_schedule_programs import matmul, tiles, tuned

spaces = ms.space_generator


def context(mod: tvm.IRModule, space: object = "post-order-apply") -> ms.TuneContext:
    """A task for four cores."""
    return ms.TuneContext(
        mod, target="llvm -mcpu=x86-64-v3 --num-cores=4", space_generator=space, search_strategy="replay-trace", rand_state=3
    )


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_as_many_design_spaces_as_tvm_makes(name: str) -> None:
    assert len(spaces_of(context(program(name)))) == PROGRAMS[name][1]


@pytest.mark.parametrize("seed", range(8))
def test_the_number_of_design_spaces_does_not_depend_on_what_is_drawn(seed: int) -> None:
    task = ms.TuneContext(program("pool"), target="llvm", space_generator="post-order-apply", rand_state=seed)
    assert len(spaces_of(task)) == 3


class Splits(ms.schedule_rule.PyScheduleRule):
    """Splits the rows of the product, in two ways."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if sch.get(block).name_hint != "C":
            return [sch]
        other = sch.copy()
        sch.split(sch.get_loops(block)[0], [None, 2])
        other.split(other.get_loops(block)[0], [None, 4])
        return [sch, other]


@ms.derived_object
class Refused(ms.schedule_rule.PyScheduleRule):
    """Asks for something that no block allows."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        sch.compute_inline(block)
        return [sch]


class Broken(ms.schedule_rule.PyScheduleRule):
    """A rule with a mistake."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        raise RuntimeError("a mistake")


def test_what_a_rule_gives_is_a_space_each() -> None:
    found = spaces_of(context(matmul(32), spaces.PostOrderApply(rules=[Splits()])))
    assert sorted(int(sch.get(sch.get_loops(sch.get_block("C"))[1]).extent) for sch in found) == [2, 4]


def test_a_rule_that_is_refused_is_left_out_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = spaces_of(context(matmul(32), spaces.PostOrderApply(sch_rules=[Refused(), *ms.ScheduleRule.create("llvm")])))
    assert len(found) == 3
    assert "Refused is left out for block C" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_mistake_in_a_rule_ends_the_search_and_the_log_says_where(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="a mistake"):
        spaces_of(context(matmul(32), spaces.PostOrderApply(sch_rules=[Broken()])))
    assert "the schedule rule Broken raised for block root" in caplog.text


def test_an_unknown_custom_rule_leaves_the_block_to_the_others(caplog: pytest.LogCaptureFixture) -> None:
    a, b = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs={"schedule_rule": "nowhere"})
    mod = tvm.IRModule({"main": te.create_prim_func([a, b, c])})
    assert len(spaces_of(context(mod))) == 3
    assert "no function is registered as nowhere or meta_schedule.cpu.nowhere" in caplog.text


def test_a_custom_rule_is_called_with_schedule_and_block() -> None:
    @tvm.register_func("meta_schedule.cpu.test_design_spaces.rows", override=True)
    def rows(sch: Schedule, block: BlockRV) -> list[Schedule]:
        sch.annotate(block, "seen", 1)
        return [sch]

    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="B", attrs={"schedule_rule": "test_design_spaces.rows"})
    (found,) = spaces_of(context(tvm.IRModule({"main": te.create_prim_func([a, b])})))
    annotations = found.get(found.get_block("B")).annotations
    assert "seen" in annotations
    assert "schedule_rule" not in annotations


def test_only_the_filtered_blocks_are_scheduled() -> None:
    (found,) = spaces_of(context(matmul(32), spaces.PostOrderApply(f_block_filter=lambda block: block.name_hint != "C")))
    assert len(found.get_loops(found.get_block("C"))) == 3


class Plain(spaces.PySpaceGenerator):
    """A generator as programs of TVM write it: it overrides the underscored name and never hears of lists."""

    def _initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        self.context = context

    def generate_design_space(self, mod: tvm.IRModule) -> list[Schedule]:
        return [Schedule(mod)]


def test_a_users_generator_gets_the_lists_of_the_target() -> None:
    task = context(matmul(32), Plain())
    assert isinstance(task.space_generator, Plain)
    assert task.space_generator.context is task
    assert [type(p) for p in task.space_generator.postprocs] == [type(p) for p in ms.Postproc.create("llvm")]


def knobs(sch: Schedule) -> None:
    """A template: one knob."""
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, sch.sample_categorical([4, 8, 16], [0.3, 0.4, 0.3])])
    sch.reorder(i0, j, k, i1)


def test_a_union_is_explored_as_one_and_records_say_which_space_won(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    union = spaces.SpaceGeneratorUnion(
        [spaces.ScheduleFn(tiles), spaces.PostOrderApply(), spaces.TensorSketchSpace(), spaces.ScheduleFn(knobs), spaces.ScheduleFn(tiles)]
    )
    database = tuned(matmul(32), union, 40, str(tmp_path), cost_model="random")
    records = database.get_all_tuning_records()
    found = {record.space.split("(sketch")[0] for record in records}
    assert found == {"ScheduleFn(tiles)", "PostOrderApply", "TensorSketchSpace", "ScheduleFn(knobs)", "ScheduleFn(tiles) #2"}
    best = min(records, key=lambda record: record.mean)
    assert f'Best of "main": {best.space}' in capsys.readouterr().out


def test_a_space_of_one_generator_is_not_marked() -> None:
    (found,) = spaces_of(context(matmul(32), spaces.SpaceGeneratorUnion([spaces.ScheduleFn(tiles)])))
    assert spaces.space_of(found.trace) == ""


def decided(kind: str, trace: Trace) -> list[object]:
    """The decisions of instructions of a kind."""
    return [trace.decisions.get(inst) for inst in trace.insts if inst.kind == kind]


def test_mutators_change_what_they_say_and_nothing_else() -> None:
    task = context(matmul(64))
    programs = Programs(task)
    parent = next(found for found in (programs.drawn(spaces_of(task)[0]) for _ in range(20)) if found is not None)
    before = Trace(parent.trace.kept(True), {inst: d for inst, d in parent.trace.decisions.items()})
    probs = task.space_generator.mutator_probs if task.space_generator is not None else {}
    by_name = {type(mutator).__name__: mutator for mutator in probs}
    for seed in range(1, 12):
        tiled = mutated(by_name["MutateTileSize"], parent.trace, seed)
        assert tiled is not None
        changed = [(a, b) for a, b in zip(decided("SamplePerfectTile", before), decided("SamplePerfectTile", tiled), strict=True) if a != b]
        assert len(changed) == 1
        assert prod(changed[0][0]) == prod(changed[0][1])  # type: ignore[call-overload]
        assert decided("SampleCategorical", tiled) == decided("SampleCategorical", before)
        unrolled = mutated(by_name["MutateUnroll"], parent.trace, seed)
        assert unrolled is not None
        assert decided("SampleCategorical", unrolled) != decided("SampleCategorical", before)
        assert decided("SamplePerfectTile", unrolled) == decided("SamplePerfectTile", before)
        parallel = mutated(by_name["MutateParallel"], parent.trace, seed)
        assert parallel is not None
        limits = [inst.inputs[1] for inst in parallel.insts if inst.kind == "Annotate" and inst.attrs[0] == "meta_schedule.parallel"]
        assert limits != [64]
        assert mutated(by_name["MutateComputeLocation"], parent.trace, seed) is None


def test_opening_a_place_leaves_the_other_decisions() -> None:
    task = context(program("softmax"))
    programs = Programs(task)
    parent = next(found for found in (programs.drawn(spaces_of(task)[-1]) for _ in range(40)) if found is not None)
    opened = ms.mutator.MutateComputeLocation().apply(parent.trace, 1)
    assert opened is not None
    missing = [inst.kind for inst in parent.trace.kept(True) if inst in parent.trace.decisions and inst not in opened.decisions]
    assert missing == ["SampleComputeLocation"]


def test_what_must_hold_of_decisions_is_part_of_the_space() -> None:
    def small(sch: Schedule) -> None:
        i, _, _ = sch.get_loops(sch.get_block("C"))
        outer, inner = sch.sample_perfect_tile(i, 2, decision=[8, 4])
        sch.assert_(inner * 2 <= 8)
        sch.split(i, [outer, inner])

    task = context(matmul(32), spaces.ScheduleFn(small))
    programs = Programs(task)
    (space,) = spaces_of(task)
    drawn = [programs.drawn(space) for _ in range(30)]
    kept = [found.trace for found in drawn if found is not None]
    assert 0 < len(kept) < 30
    assert all(decision[1] <= 4 for trace in kept for decision in decided("SamplePerfectTile", trace))  # type: ignore[index]
    replayed = tir.Schedule(matmul(32))
    Trace.apply_json_to_schedule(kept[0].as_json(), replayed)
    assert str(replayed.trace) == str(kept[0])


@pytest.mark.parametrize(
    ("target", "intrinsics"),
    [
        ("llvm -mcpu=nehalem", []),
        ("llvm -mcpu=skylake-avx512", ["dot_16x4_avx512"]),
        ("llvm -mcpu=cascadelake", ["dot_16x4_vnni"]),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon", ["dot_4x4_i8i8s32_neon"]),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod", ["dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"]),
    ],
)
def test_what_a_cpu_computes_at_once_is_tried_before_plain_tiles(target: str, intrinsics: list[str]) -> None:
    task = ms.TuneContext(program("pool"), target=f"{target} -num-cores=4", space_generator="post-order-apply")
    assert task.space_generator is not None
    assert [rule.intrin_name for rule in task.space_generator.sch_rules if hasattr(rule, "intrin_name")] == intrinsics
