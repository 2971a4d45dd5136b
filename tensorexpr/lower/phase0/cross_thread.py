"""A reduction that threads share: each adds up its terms, all of them together combine these, and what is stored is the whole.

for i: for tx in threads(16): for k: ...          for i: for tx in threads(16):
                                                      part = 0
                                           ->         for k: part = part + A[i, k * 16 + tx]
                                                      whole = tvm_thread_allreduce(part over tx)
                                                      B[i] = whole

Every thread has the whole then, and stores it; `set_store_predicate(tx.var.equal(0))` lets one do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...schedule.tree import StageNode
from ...tir.arithmetic import const, is_const_int
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import BufferLoad, Call, IntImm, PrimExpr, Range, Reduce, Var
from ...tir.intrin import reinterpret
from ...tir.rewriting import substitute
from ...tir.stmt import AttrStmt, BufferRealize, BufferStore, Evaluate, LetStmt, Stmt, seq
from ...tir.thread import HARDWARE_TAGS
from .loop_nest import LoopNest, guarded, where

TRUE, ZERO = IntImm("bool", 1), IntImm("int32", 0)


def shared_axes(stage: StageNode) -> tuple[int, ...]:
    """The reduction axes of a stage that are bound to threads of a grid."""
    found = []
    for axis in stage.leaf:
        thread = stage.mark(axis).thread
        if stage.is_reduction(axis) and thread is not None and thread.tag in HARDWARE_TAGS:
            found.append(axis)
    return tuple(found)


def cross_thread_nest(nest: LoopNest) -> Stmt:
    """The statements of a stage that `shared_axes` has some of.

    Raises:
        ScheduleError: for threads of several blocks, a spatial axis inside a serial reduction, or a start value of the reduction's own.
    """
    stage, reduce = nest.stage, nest.bodies[0]
    assert isinstance(reduce, Reduce)
    threads = shared_axes(stage)
    serial = _serial(stage, threads)
    if reduce.init:
        raise stage.refused("threads share its reduction, and each would begin with its init; start at the identity and add init after it")
    roots = nest.domain.root_values()
    places = nest.place([roots[stage.axes[axis].var] for axis in stage.spatial])
    sources = [substitute(source, roots) for source in reduce.source]
    wholes = _registers("reduce_temp", reduce)
    guards, condition = nest.domain.guards, substitute(reduce.condition, roots)
    if serial or guards or not is_const_int(condition, 1):
        # A thread whose terms a guard leaves out takes part with the value that changes nothing.
        parts = _registers("normal_reduce_temp", reduce)
        starts = seq(*(BufferStore(p, substitute(e, roots), (ZERO,)) for p, e in zip(parts, reduce.combiner.identity_element, strict=True)))
        terms = guarded(where(condition, _added(reduce, parts, sources)), guards)
        steps = seq(starts, nest.wrap(terms, serial))
        values: Sequence[PrimExpr] = [BufferLoad(part, (ZERO,)) for part in parts]
    else:
        parts, steps, values = (), seq(), sources
    across = _across(reduce, values, wholes, [stage.axes[axis].var for axis in threads])
    stores = seq(*(BufferStore(b, BufferLoad(w, (ZERO,)), places) for b, w in zip(nest.buffers, wholes, strict=True)))
    stores = guarded(where(nest.stored(roots), stores), [guard for guard in guards if not guard.reduction])
    body = seq(steps, across, stores)
    for buffer in reversed((*parts, *wholes)):
        body = BufferRealize(buffer, (Range.from_min_extent(ZERO, IntImm("int32", 1)),), TRUE, body)
    return nest.wrap(body, tuple(axis for axis in stage.leaf if axis not in serial))


def _serial(stage: StageNode, threads: Sequence[int]) -> tuple[int, ...]:
    """The reduction loops of each thread."""
    for axis in threads:
        thread = stage.mark(axis).thread
        if thread is not None and not thread.tag.startswith("threadIdx."):
            raise stage.refused(
                f"its reduction axis {stage.axes[axis].name!r} is bound to {thread.tag}, and blocks don't meet to add up; bind it to "
                "threadIdx.x, .y or .z, or make it spatial with rfactor"
            )
    serial = tuple(axis for axis in stage.leaf if stage.is_reduction(axis) and axis not in threads)
    if serial:
        inside = [axis for axis in stage.leaf[stage.leaf.index(serial[0]) :] if not stage.is_reduction(axis)]
        if inside:
            raise stage.refused(
                f"its axis {stage.axes[inside[0]].name!r} stands inside the reduction {stage.axes[serial[0]].name!r}, of which each of the "
                "threads that share it has one part; reorder the spatial axes to the outside"
            )
    return serial


def _registers(name: str, reduce: Reduce) -> tuple[Buffer, ...]:
    """One element for each value that is reduced, which a thread has for itself."""
    return tuple(
        decl_buffer((1,), value.dtype, f"{name}{number}", scope="local") for number, value in enumerate(reduce.combiner.identity_element)
    )


def _added(reduce: Reduce, parts: Sequence[Buffer], sources: Sequence[PrimExpr]) -> Stmt:
    """One term more in each part."""
    values: Mapping[Var, PrimExpr] = {
        **{var: BufferLoad(part, (ZERO,)) for var, part in zip(reduce.combiner.lhs, parts, strict=True)},
        **dict(zip(reduce.combiner.rhs, sources, strict=True)),
    }
    results = [substitute(result, values) for result in reduce.combiner.result]
    if len(parts) == 1:
        return BufferStore(parts[0], results[0], (ZERO,))
    # Every result is needed before the first is stored.
    names = [Var(f"{part.name}_next", part.dtype) for part in parts]
    stmt: Stmt = seq(*(BufferStore(part, name, (ZERO,)) for part, name in zip(parts, names, strict=True)))
    for name, value in zip(reversed(names), reversed(results), strict=True):
        stmt = LetStmt(name, value, stmt)
    return stmt


def _across(reduce: Reduce, values: Sequence[PrimExpr], wholes: Sequence[Buffer], threads: Sequence[Var]) -> Stmt:
    args = (const(len(values), "uint32"), *values, TRUE, *(BufferLoad(whole, (ZERO,)) for whole in wholes), *threads)
    call = Evaluate(Call("handle", "tir.tvm_thread_allreduce", args))
    return AttrStmt(reduce.combiner, "reduce_scope", reinterpret("handle", const(0, "uint64")), call)
