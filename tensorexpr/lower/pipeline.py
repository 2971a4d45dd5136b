"""THE page: every pass in the order in which it runs, and why it stands there.

Phase 0 makes loop nests (see `phase0`), phase 1 flattens storage, phase 2 shapes the loops, phase 3 cleans up. A user's
passes (`tir.add_lower_pass`) of phase 0 run before everything, the others at the end of their phase, so they see its
result. Where a CPU runs the threads of a grid, the passes of `device.on_cpu` stand before those of a phase. After each
phase its spec holds (`specs`), and `lower(..., upto=phase)` stops there. With TENSOREXPR_VERIFY set in the environment
the whole program is checked after every pass, not only its statements after every phase.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from ..errors import LoweringError
from ..tir.function import IRModule, PrimFunc
from .context import PassContext, argument_list
from .device.cross_thread_reductions import cross_thread_reductions
from .device.launches import has_threads
from .device.matrix_memory import matrix_memory, pipeline_memory
from .passes import Pass, deep_recursion, run_pass
from .phase1.compact_buffer_allocation import compact_buffer_allocation
from .phase1.convert_blocks_to_opaque import convert_blocks_to_opaque
from .phase1.describe_bulk_copies import describe_bulk_copies
from .phase1.inject_prefetch import inject_prefetch
from .phase1.inject_software_pipeline import inject_software_pipeline
from .phase1.lower_auto_copy import lower_auto_copy
from .phase1.lower_init_block import lower_init_block
from .phase1.lower_match_buffer import lower_match_buffer
from .phase1.lower_opaque_block import lower_opaque_block
from .phase1.narrow_dtype import narrow_dtype
from .phase1.plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from .phase1.simplify import simplify
from .phase1.storage_flatten import storage_flatten
from .phase1.verify_packed_calls import verify_packed_calls
from .phase2.inject_double_buffer import inject_double_buffer
from .phase2.inject_virtual_thread import inject_virtual_thread
from .phase2.loop_partition import drop_proved_guards, loop_partition
from .phase2.register_promotion import register_promotion
from .phase2.settle_conditions import settle_conditions
from .phase2.split_vector_loop import split_vector_loop
from .phase2.storage_rewrite import storage_rewrite
from .phase2.transpose_loads import transpose_loads
from .phase2.trim_no_ops import trim_no_ops
from .phase2.unroll_loop import unroll_loop
from .phase2.unroll_register_tile import unroll_register_tile
from .phase2.vector_loads import vector_loads
from .phase2.vectorize_loop import vectorize_loop
from .phase3.hoist_expression import hoist_expression
from .phase3.hoist_if_then_else import hoist_if_then_else
from .phase3.instrument_bound_checkers import instrument_bound_checkers
from .phase3.physical_axes import physical_axes
from .phase3.remove_no_op import remove_no_op
from .rebuild import FreeVars
from .register_file import RegisterFile
from .specs import check_module, check_statements


def _launched(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    if not has_threads(func):
        return func
    from .device.launch_threads import launch_threads  # few programs run on grids

    return launch_threads(func, ctx)


LAUNCH = Pass("tir.LaunchThreads", _launched)
"""Threads as they are launched: what is shown after a phase has it last, beginning with phase 1."""
PHASES: dict[int, tuple[Pass, ...]] = {
    0: (),
    1: (
        Pass("tir.VerifyPackedCalls", verify_packed_calls),  # before anything is rewritten: the message names the loop that was written
        # The passes on blocks, before all others: what follows knows statements only.
        Pass("tir.LowerCrossThreadReduction", cross_thread_reductions),  # before the next takes the initial values away
        Pass("tir.LowerInitBlock", lower_init_block),  # first of the others: it asks which axes are reductions
        Pass("tir.PlanAndUpdateBufferAllocationLocation", plan_and_update_buffer_allocation_location),  # it too, about writes
        Pass("tir.ConvertBlocksToOpaque", convert_blocks_to_opaque),  # now everything is in terms of loops
        Pass("tir.ManifestSharedMemoryLocalStage", pipeline_memory),  # versions are of what an iteration needs
        Pass("tir.InjectSoftwarePipeline", inject_software_pipeline),  # while blocks say which buffers an iteration has for itself
        Pass("tir.TransformMmaBufferLayout", matrix_memory),  # after buffers have their versions, while blocks hold them
        Pass("tir.CompactBufferAllocation", compact_buffer_allocation),  # after buffers have found their place
        Pass("tir.LowerAutoCopy", lower_auto_copy),  # while a block says that it is a copy
        Pass("tir.LowerMatchBuffer", lower_match_buffer),  # after compaction, which looks through views
        Pass("tir.LowerOpaqueBlock", lower_opaque_block),  # nothing but predicates is left of blocks
        Pass("tir.InjectPrefetch", inject_prefetch),  # in terms of loops, and while buffers have dimensions: a region is a box then
        Pass("tir.DescribeBulkCopies", describe_bulk_copies),  # it too
        Pass("tir.StorageFlatten", storage_flatten),  # first: all later passes reason about one index per access
        Pass("tir.NarrowDataType", narrow_dtype),  # after flattening, when the whole index and its bounds are in sight
        Pass("tir.Simplify", simplify),  # last: flattening leaves sums of products, narrowing leaves casts
    ),
    2: (
        Pass("tir.TrimNoOps", trim_no_ops),  # before partition: a condition that bounds a reduction loop needs no second body
        Pass("tir.InjectDoubleBuffer", inject_double_buffer),  # before partition cuts the statements apart that run ahead
        Pass("tir.LoopPartition", loop_partition),  # first: guards must be gone before loops become vectors and tiles
        Pass("tir.SplitVectorLoop", split_vector_loop),  # before vectors are made: of three registers LLVM makes a mess
        Pass("tir.VectorizeLoop", vectorize_loop),  # before unrolling: a tile is counted in vectors
        Pass("tir.InjectVirtualThread", inject_virtual_thread),  # after: vectors are interleaved whole; before a tile is counted
        Pass("tir.UnrollRegisterTile", unroll_register_tile),  # marks the tile's loops, as it needs to see them as loops
        Pass("tir.UnrollLoop", unroll_loop),  # before promotion: only constant indices can be registers
        Pass("tir.SettleConditions", settle_conditions),  # after unrolling: what it made true needs no test and no mask
        Pass("tir.TransposeLoads", transpose_loads),  # after unrolling: the columns of a block must stand side by side
        Pass("tir.VectorLoads", vector_loads),  # after transposes, which take strided loads in blocks
        Pass("tir.RegisterPromotion", register_promotion),  # the tile leaves memory while its allocation is still its own
        Pass("tir.StorageRewrite", storage_rewrite),  # what is still memory by now shares and leaves the loops
    ),
    3: (
        Pass("tir.HoistIfThenElse", hoist_if_then_else),  # before no-ops go: a loop may be nothing but a condition
        Pass("tir.RemoveNoOp", remove_no_op),  # partition, unrolling and hoisting leave empty pieces
        Pass("tir.HoistExpression", hoist_expression),  # after the guards are gone: what is computed for sure may leave a loop
    ),
}
# After the user's passes of phase 3, as nothing but code generation should see their results.
FINAL: tuple[Pass, ...] = (
    Pass("tir.InstrumentBoundCheckers", instrument_bound_checkers),  # so that it checks the accesses that will happen
    Pass("tir.PhysicalAxes", physical_axes),  # behind all others: they reason about one index per access
    LAUNCH,  # last: as loops, threads have ranges and places of their own, which the phases make use of
)
LAST_PHASE = max(PHASES)
_BY_TARGET = {
    "tir.DescribeBulkCopies",
    "tir.InjectPrefetch",
    "tir.InjectDoubleBuffer",
    "tir.SplitVectorLoop",
    "tir.UnrollRegisterTile",
    "tir.TransposeLoads",
    "tir.RegisterPromotion",
    "tir.HoistExpression",
}
"""The passes above that look at the target, most of them at its registers."""
Kept: TypeAlias = dict[tuple[str, int], tuple[Any, IRModule]]
"""What lowering one program for several targets shares: by a step and the id of what it was given, that (it lives on) and the result."""
_NONE_ADDED: dict[int, list[Pass]] = {phase: [] for phase in PHASES}


def lower(
    inp: Any,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
    simple_mode: bool = False,
    upto: int | None = None,
) -> IRModule:
    """Lower a schedule, function or module to the loops that code generation takes.

    A module whose functions this made under the same options, and that nobody changed since, is given back as it is.

    Args:
        inp: a te.Schedule, a PrimFunc or an IRModule.
        args: for a schedule: tensors, variables and buffers, in the order of the function's parameters.
        name: of the function that a schedule or a PrimFunc becomes. No two of its arguments overlap, unless the PrimFunc or
            the PassContext say `tir.noalias` is False.
        binds: for a schedule: buffers to use for tensors.
        simple_mode: cut no loops where guards begin or end to hold, for a shorter print.
        upto: stop after this phase (0 to 3); None goes through.

    Raises:
        LoweringError: for options, limits or user passes that can't be served.
        ScheduleError: for a schedule that is illegal.
    """
    if upto is not None and upto not in PHASES:
        raise LoweringError(f"lower(upto={upto!r}): the phases are {', '.join(map(str, PHASES))}")
    ctx = PassContext.current()
    added = _user_passes(ctx)
    with deep_recursion:
        mod = _as_module(inp, args, name, binds, ctx)
        if upto in (None, LAST_PHASE):
            return _whole(mod, ctx, added, simple_mode, on_cpu=False)
        return _shown(next(islice(_by_phase(mod, ctx, added, simple_mode), upto, None)), ctx, upto)


def lower_for_cpu(
    inp: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Mapping[Any, Any] | None = None, kept: Kept | None = None
) -> IRModule:
    """What `lower(inp, args, name, binds)` gives, with the threads of grids as loops: blocks in parallel, their threads in turn.

    Args:
        inp, args, name, binds: as of `lower`.
        kept: what an earlier lowering in the same context left for this one, which leaves more.

    Raises:
        LoweringError: as `lower`, and for barriers that not all threads reach and blocks larger than a GPU has.
    """
    ctx = PassContext.current()
    added = _user_passes(ctx)
    if hasattr(inp, "tree"):
        from .device.units_as_loops import units_as_loops  # schedules aren't loaded by programs without any

        inp = units_as_loops(inp)
    with deep_recursion:
        mod = _as_module(inp, args, name, binds, ctx, kept)
        return _whole(mod, ctx, added, False, on_cpu=any(has_threads(func) for func in mod.functions.values()), kept=kept)


def _whole(
    mod: IRModule, ctx: PassContext, added: Mapping[int, list[Pass]], simple_mode: bool, on_cpu: bool, kept: Kept | None = None
) -> IRModule:
    """The module after the last phase."""
    options = _options(ctx, simple_mode)
    if not ctx.instruments and not on_cpu and _is_lowered(mod, options):
        return mod
    if _is_lowered(mod, options, but_registers=True):
        added = _NONE_ADDED  # the registers change what our passes do; the user's have seen the program
    return next(islice(_by_phase(mod, ctx, added, simple_mode, on_cpu, kept), LAST_PHASE, None))


def lower_by_phase(inp: Any, args: Sequence[Any] | None = None, name: str = "main", kept: Kept | None = None) -> Iterator[IRModule]:
    """What `lower(inp, args, name, upto=phase)` gives for each phase in turn, by one lowering; raises what it does.

    The contexts in which a phase is asked for are those in which it runs. `kept` is as of `lower_for_cpu`.
    """
    ctx = PassContext.current()
    with deep_recursion:
        phases = _by_phase(_as_module(inp, args, name, None, ctx, kept), ctx, _user_passes(ctx), simple_mode=False, kept=kept)
    for phase in PHASES:
        with deep_recursion:  # not around the `yield`: it is for the passes, not for what the caller does with the module
            mod = _shown(next(phases), ctx, phase)
        yield mod


def _shown(mod: IRModule, ctx: PassContext, phase: int) -> IRModule:
    """The module after a phase as it is given to who asked for it; after the last one it is so already."""
    return run_pass(LAUNCH, mod, ctx) if 0 < phase < LAST_PHASE else mod


def _options(ctx: PassContext, simple_mode: bool) -> tuple[Any, ...]:
    """Everything besides the function itself that the passes look at; of a target these are its registers, which come last."""
    return ctx.opt_level, ctx.required_pass, ctx.disabled_pass, dict(ctx.config), simple_mode, RegisterFile.current()


def _is_lowered(mod: IRModule, options: tuple[Any, ...], but_registers: bool = False) -> bool:
    """Whether all functions were lowered under these options, or under such that differ in the registers at most."""
    marks = [func.lowered_under for func in mod.functions.values()]
    if but_registers:
        return bool(marks) and all(isinstance(mark, tuple) and mark[:-1] == options[:-1] for mark in marks)
    return bool(marks) and all(mark == options for mark in marks)


def _simple(passes: Sequence[Pass]) -> Iterator[Pass]:
    """The passes of simple mode: loops stay whole; guards that always hold, which say nothing to a reader, go."""
    for one in passes:
        if one.name != "tir.LoopPartition":
            yield one
        if one.name in ("tir.LoopPartition", "tir.UnrollLoop"):
            yield Pass("tir.LoopPartition", drop_proved_guards)


def _by_phase(
    mod: IRModule, ctx: PassContext, added: Mapping[int, list[Pass]], simple_mode: bool, on_cpu: bool = False, kept: Kept | None = None
) -> Iterator[IRModule]:
    """The module after each phase."""
    verify = FreeVars() if os.environ.get("TENSOREXPR_VERIFY") else None
    before_phase: Mapping[int, Sequence[Pass]] = {}
    if on_cpu:
        from .device.on_cpu import ON_CPU as before_phase  # few programs run on grids, and these passes load much
    for phase, own in PHASES.items():
        passes = (*before_phase.get(phase, ()), *own)
        for one in _simple(passes) if simple_mode else passes:
            before, key = mod, (one.name, id(mod))
            if kept is not None and key in kept:
                mod = kept[key][1]
                continue
            mod = run_pass(one, mod, ctx)
            if kept is not None and one.name not in _BY_TARGET:
                kept[key] = before, mod
            # What a pass left alone was checked after the one before; most passes find nothing to do.
            if verify is not None and mod is not before:
                check_module(mod, one.name, None, by_user=False, free=verify)
        _check_phase(mod, ctx, phase, verify)
        mod = _by_users(added[phase], mod, ctx, phase)
        if phase != LAST_PHASE:
            yield mod
    for one in FINAL:
        mod = run_pass(one, mod, ctx)
    _check_phase(mod, ctx, LAST_PHASE, verify)
    options = _options(ctx, simple_mode)
    yield mod.map_functions(lambda func: func.marked_lowered(options))


def _by_users(added: Sequence[Pass], mod: IRModule, ctx: PassContext, phase: int) -> IRModule:
    """The module after the user's passes at the end of a phase, which see threads as they are launched."""
    on_grid = bool(added and phase) and any(has_threads(func) for func in mod.functions.values())
    if on_grid:
        mod = run_pass(LAUNCH, mod, ctx)
    for one in added:
        mod = run_pass(one, mod, ctx)
        check_module(mod, one.name, phase, by_user=True)
    if not on_grid:
        return mod
    from .device.launch_threads import thread_loops

    return run_pass(Pass("tir.ThreadLoops", thread_loops), mod, ctx)


def _check_phase(mod: IRModule, ctx: PassContext, phase: int, verify: FreeVars | None) -> None:
    """The phase's spec holds, and all rules of SSA form with `verify`. If it doesn't where the user switched passes off, that is why."""
    switched_off = [one.name for passes in PHASES.values() for one in passes if not ctx.enables(one.name, one.opt_level)]
    where = f"phase {phase}" + (f" without {', '.join(switched_off)}" if switched_off else "")
    if verify is None:
        check_statements(mod, where, phase, by_user=bool(switched_off))
    else:
        check_module(mod, where, phase, by_user=bool(switched_off), free=verify)


def _as_module(
    inp: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, ctx: PassContext, kept: Kept | None = None
) -> IRModule:
    if isinstance(inp, IRModule):
        return inp
    if kept is not None:
        key = "", id(inp)
        if key not in kept:
            kept[key] = inp, _as_module(inp, args, name, binds, ctx)
        return kept[key][1]
    if isinstance(inp, PrimFunc):
        promised = inp.attrs.get("tir.noalias", ctx.flag("tir.noalias", True))
        return IRModule({name: inp.with_attrs({**inp.attrs, "global_symbol": name, "tir.noalias": promised})})
    if not hasattr(inp, "tree"):
        hint = (
            "give the module of a tir.Schedule, sch.mod"
            if hasattr(inp, "mod")
            else "make a schedule of a tensor with te.create_schedule(C.op)"
        )
        raise LoweringError(f"lower and build take a te.Schedule, a PrimFunc or an IRModule, not {inp!s} ({type(inp).__name__}); {hint}")
    # Functions and modules are lowered without loading tensor expressions and schedules.
    from .phase0 import schedule_to_func

    func = schedule_to_func(inp, argument_list(args), name, binds, keep_trivial_loops=ctx.flag("tir.debug_keep_trivial_loop"))
    return IRModule({name: func.with_attr("tir.noalias", ctx.flag("tir.noalias", True))})


def _user_passes(ctx: PassContext) -> dict[int, list[Pass]]:
    """The passes of `tir.add_lower_pass` by phase; later phases than the last count as the last."""
    added: dict[int, list[Pass]] = {phase: [] for phase in PHASES}
    for number, entry in enumerate(ctx.config.get("tir.add_lower_pass", ())):
        where = f"tir.add_lower_pass, entry {number}"
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise LoweringError(f"{where}: expected a pair (phase, pass), not {entry!r}")
        phase, one = entry
        if isinstance(phase, bool) or not hasattr(phase, "__index__"):
            raise LoweringError(f"{where}: expected the first of the pair to be an integer, the phase, not {phase!r}")
        if int(phase) < 0:
            raise LoweringError(f"{where}: the phase is {int(phase)}; expected 0 (before all), 1, 2 or 3 (the end of that phase)")
        if not isinstance(one, Pass):
            raise LoweringError(
                f"{where}: expected a pass, not {one!r}; decorate the function with @tir.transform.prim_func_pass(opt_level=0)"
            )
        added[min(int(phase), LAST_PHASE)].append(one)
    return added
