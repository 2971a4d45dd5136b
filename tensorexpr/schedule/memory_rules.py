"""What must hold of prefetches, rolling buffers, store predicates and non-temporal stores.

1. An inlined stage touches no memory, so nothing of the kind can be said of it.
2. A prefetch names what is read inside its loop and exists before it.
3. A rolling buffer keeps elements from one iteration to the next, so the stage is computed at a loop that runs in order.
4. What a store predicate leaves out is read by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..arith.analyzer import Analyzer
from ..errors import ScheduleError
from ..te.operation import ComputeOp
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import logical_and, logical_not
from ..tir.expr import Call, IntImm, PrimExpr, ProducerLoad, Reduce, Select
from ..tir.rewriting import children, substitute
from .attachment import is_inside
from .axis_expression import decode
from .tree import At, Inline, LoopKind, PrefetchMark, ScheduleTree, StageNode

# Reads through chains of inlined stages that are looked at; a predicate over more is refused as unproved.
MAX_READS = 4096


def check_memory_rules(tree: ScheduleTree, stage: StageNode) -> None:
    """Check the four laws above for one stage.

    Raises:
        ScheduleError: naming the stage, the law that fails and what to do.
    """
    if isinstance(stage.attach, Inline):
        _check_inlined(stage)
        return
    for mark in stage.prefetches:
        check_prefetch(tree, stage, mark)
    if stage.rolling_buffer:
        _check_rolling(tree, stage)
    if stage.store_predicate is not None:
        _check_predicate(tree, stage)


def _check_inlined(stage: StageNode) -> None:
    said = {
        "prefetch": stage.prefetches,
        "rolling_buffer": stage.rolling_buffer,
        "set_store_predicate": stage.store_predicate is not None,
    }
    for primitive, holds in said.items():
        if holds:
            raise stage.refused(f"{primitive} needs loops, but the stage is inlined; use compute_root or compute_at")


# Prefetches


def check_prefetch(tree: ScheduleTree, stage: StageNode, mark: PrefetchMark) -> None:
    """Check that a prefetch makes sense where it stands.

    Raises:
        ScheduleError: if its loop is gone or vectorised, or the tensor isn't read there, isn't in memory or doesn't exist yet.
    """
    producer, where = tree[mark.producer], f"In schedule for {stage.name}: prefetch of {tree[mark.producer].name}"
    if mark.axis not in stage.leaf:
        name = stage.axes[mark.axis].name
        raise ScheduleError(f"{where} at {name!r}, which was split or fused after it; prefetch at one of {stage.axis_names()}")
    name = stage.axes[mark.axis].name
    if isinstance(producer.attach, Inline):
        raise ScheduleError(f"{where}, which is inlined and has no elements in memory; prefetch what it reads")
    # A prefetch brings lines from memory to the cache; what is local is never further away than that.
    if producer.scope == "local":
        raise ScheduleError(f"{where}, which is local: registers and the cache hold it; prefetch what it is computed from")
    if is_inside(tree, producer, stage.id, mark.axis):
        raise ScheduleError(f"{where} at {name!r}, inside which it is computed: later iterations' elements don't exist yet")
    # Lanes run at once, so there is no iteration `offset` later.
    vector = next((axis for axis in stage.leaf[: stage.leaf.index(mark.axis) + 1] if stage.mark(axis).kind is LoopKind.VECTORIZE), None)
    if vector is not None:
        raise ScheduleError(f"{where} at {name!r}: the loop {stage.axes[vector].name!r} is vectorised; prefetch at a loop outside it")
    inside = [stage, *(other for other in tree.in_order() if is_inside(tree, other, stage.id, mark.axis))]
    if not any(producer.id in _sources(tree, reader) for reader in inside if not isinstance(reader.attach, Inline)):
        sources = [tree[number] for reader in inside for number in _sources(tree, reader)]
        names = ", ".join(dict.fromkeys(source.name for source in sources if source.id != stage.id))
        raise ScheduleError(f"{where} at {name!r}, inside which nothing reads it; read there: {names or 'nothing'}")


def _sources(tree: ScheduleTree, stage: StageNode) -> dict[int, None]:
    """The stages whose elements the code of `stage` reads: those that it names, or that inlined ones name for it."""
    found: dict[int, None] = {}
    stack, seen = [stage], {stage.id}
    while stack:
        for load in tree.reads(stack.pop()):
            producer = tree.producer(load)
            if not isinstance(producer.attach, Inline):
                found[producer.id] = None
            elif producer.id not in seen:
                seen.add(producer.id)
                stack.append(producer)
    return found


# Rolling buffers


def _check_rolling(tree: ScheduleTree, stage: StageNode) -> None:
    where = f"In schedule for {stage.name}: rolling_buffer"
    if not isinstance(stage.attach, At):
        raise ScheduleError(f"{where} needs the stage at a loop of its consumer, but it is computed whole at the root; use compute_at")
    target, axis = tree[stage.attach.stage], stage.attach.axis
    kind, name = target.mark(axis).kind, target.axes[axis].name
    # In any of these the iteration before may not have run yet, or ran on another core with storage of its own.
    if kind in (LoopKind.PARALLEL, LoopKind.VECTORIZE, LoopKind.BIND):
        raise ScheduleError(
            f"{where} carries elements from one iteration of {name!r} of {target.name} to the next, but that loop is marked {kind.value}; "
            "compute the stage at a serial loop inside it"
        )
    if stage.double_buffer:
        raise ScheduleError(f"{where} and double_buffer both say which iterations' elements the storage holds; keep one of them")
    held = [other.name for other in tree.attached_to(stage.id)]
    if held:
        raise ScheduleError(
            f"{where} computes a first and a later part with loops of their own, but {', '.join(held)} is computed at its loops; "
            f"compute {', '.join(held)} at {name!r} of {target.name}"
        )


# Store predicates


def _check_predicate(tree: ScheduleTree, stage: StageNode) -> None:
    predicate = decode(stage.store_predicate, tuple(stage.axes[axis].var for axis in stage.spatial))
    own = tuple(stage.axes[axis].var for axis in stage.spatial)
    analyzer = Analyzer()
    for other in tree.in_order():
        for axis in (*other.spatial, *other.reduction):
            dom = other.axes[axis].dom
            if dom is not None:
                # An axis that two reductions share is bound twice, to the same range.
                analyzer.bind(other.axes[axis].var, dom, allow_override=True)
    for count, (reader, load, condition) in enumerate(_reads_of(tree, stage)):
        stored = substitute(predicate, dict(zip(own, load.indices, strict=True)))
        with analyzer.constraint_scope(condition):
            proved = count < MAX_READS and analyzer.known_true(stored)
        if not proved:
            raise stage.refused(
                f"the store predicate {predicate} leaves out elements that {reader.name} may read: "
                f"it can't be proved to hold for {load}; widen the predicate, or let {reader.name} read under a condition that implies it"
            )


_Site = tuple[StageNode, ProducerLoad, PrimExpr]
_TRUE = IntImm("bool", 1)


def _reads_of(tree: ScheduleTree, stage: StageNode) -> Iterator[_Site]:
    """Each read of `stage`: by whom, with what indices, and a condition under which alone it happens."""
    for reader in tree.in_order():
        if reader.is_placeholder or isinstance(reader.attach, Inline) or stage.id not in _sources(tree, reader):
            continue
        if not isinstance(reader.op, ComputeOp):  # it may read everything
            yield reader, ProducerLoad(stage.origin.output(0), tuple(stage.axes[axis].var for axis in stage.spatial)), _TRUE
            continue
        stored: PrimExpr = _TRUE
        if reader.store_predicate is not None:
            stored = decode(reader.store_predicate, tuple(reader.axes[axis].var for axis in reader.spatial))
        for body in reader.compute.body:
            for load, condition in _loads_under(tree, body, stored):
                if tree.producer(load).id == stage.id:
                    yield reader, load, condition


def _loads_under(tree: ScheduleTree, root: PrimExpr, condition: PrimExpr) -> Iterator[tuple[ProducerLoad, PrimExpr]]:
    """The loads of an expression, through inlined stages, with the conditions of `if_then_else` around them."""
    stack, seen = [(root, condition)], set[tuple[int, int]]()
    kept: list[PrimExpr] = []  # the identities in `seen` stay taken
    while stack:
        expr, under = stack.pop()
        # By identity: shared subexpressions are looked at once for each condition they stand under.
        if (id(expr), id(under)) in seen:
            continue
        seen.add((id(expr), id(under)))
        kept += [expr, under]
        stack.extend(_operands_under(expr, under))
        if isinstance(expr, ProducerLoad):
            producer = tree.producer(expr)
            if isinstance(producer.attach, Inline):
                index = getattr(expr.producer, "value_index", 0)
                stack.append((producer.compute.element(index, expr.indices), under))
            else:
                yield expr, under


def _operands_under(expr: PrimExpr, under: PrimExpr) -> list[tuple[PrimExpr, PrimExpr]]:
    match expr:
        # A condition that reads a tensor is no fact about indices, which are all that the predicate speaks of.
        case Call(_, "tir.if_then_else", (condition, yes, no)):
            known = condition if not any(isinstance(node, ProducerLoad) for node in _nodes(condition)) else _TRUE
            other = _TRUE if known is _TRUE else logical_not(known)
            return [(condition, under), (yes, logical_and(under, known)), (no, logical_and(under, other))]
        # A term whose condition doesn't hold isn't computed, so that it reads nothing; the start value is read whatever the condition.
        case Reduce():
            outer = [(part, under) for part in (*expr.init, expr.condition)]
            return [*outer, *((part, all_of(under, expr.condition)) for part in expr.source)]
        # evaluates both sides, so its condition guards no read
        case Select():
            return [(part, under) for part in (expr.condition, expr.true_value, expr.false_value)]
    return [(part, under) for part in children(expr) if isinstance(part, PrimExpr)]


def _nodes(root: PrimExpr) -> Iterator[PrimExpr]:
    stack = [root]
    while stack:
        expr = stack.pop()
        yield expr
        stack.extend(part for part in children(expr) if isinstance(part, PrimExpr))
