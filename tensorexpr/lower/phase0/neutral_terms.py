"""Terms past the end of a sum that add nothing: a padded operand is zero there, so no guard is needed.

A reduction axis that is split imperfectly has a guard that leaves out what lies past its end. Where every term there is the
identity of the reduction, as the product of two zeros that both operands were padded with is, adding it changes nothing,
and a loop of whole groups can be left to an instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from ...arith.analyzer import Analyzer
from ...schedule.domain import Guard, StageDomain
from ...schedule.tree import ScheduleTree
from ...te.operation import ComputeOp
from ...tir.arithmetic import is_const_int, logical_not
from ...tir.expr import And, Call, PrimExpr, ProducerLoad, Reduce, Var
from ...tir.rewriting import Node, post_order_rewrite, substitute, variables, walk


def without_neutral_terms(domain: StageDomain, bodies: Sequence[PrimExpr], tree: ScheduleTree, analyzer: Analyzer) -> StageDomain:
    """The domain without the guards of its reduction loops that only leave out terms which add nothing.

    Args:
        bodies: of the stage, without inlined reads.
        analyzer: knows the ranges of the stage's loops and of those around it.
    """
    if len(bodies) != 1 or not isinstance(bodies[0], Reduce) or not any(guard.reduction for guard in domain.guards):
        return domain
    reduce = bodies[0]
    if len(reduce.source) != 1 or not is_const_int(reduce.condition, 1):
        return domain
    source = substitute(reduce.source[0], domain.root_values())
    identity = reduce.combiner.identity_element[0]
    kept = domain.guards
    for guard in domain.guards:
        # Only guards that stay can be relied on: two could each be dropped because of the other.
        others = [other for other in kept if other is not guard]
        if guard.reduction and guard.short is None and _is_neutral(source, identity, guard, others, tree, analyzer):
            kept = tuple(others)
    return domain if len(kept) == len(domain.guards) else replace(domain, guards=kept)


def _is_neutral(
    source: PrimExpr, identity: PrimExpr, guard: Guard, others: Sequence[Guard], tree: ScheduleTree, analyzer: Analyzer
) -> bool:
    """True if past the end every read is of something that exists, and the term is the identity."""
    loads = [node for node in walk(source) if isinstance(node, ProducerLoad)]
    moving = set(variables(guard.condition))
    with ExitStack() as scopes:
        for condition in (logical_not(guard.condition), *(other.condition for other in others)):
            scopes.enter_context(analyzer.constraint_scope(condition))
        values: dict[PrimExpr, PrimExpr] = {}
        for load in loads:
            value = _value(load, moving, tree, analyzer)
            if value is None:
                return False
            values[load] = value
        return analyzer.simplify(post_order_rewrite(source, lambda node: _known(node, values))) is identity


def _value(load: PrimExpr, moving: set[Var], tree: ScheduleTree, analyzer: Analyzer) -> PrimExpr | None:
    """What a stage holds where it is read, through copies of copies; None if that doesn't exist or isn't known.

    Args:
        moving: variables that go past the end; of an index without them nothing is asked.
    """
    value = load
    while isinstance(value, ProducerLoad):
        producer, moved = tree.producer(value), value.indices
        op, indices = producer.op, [analyzer.simplify(index) for index in moved]
        inside = all(
            # An index that isn't moved past the end is one that terms before the end have too.
            (value is load and moving.isdisjoint(variables(before)))
            or (analyzer.known_less(index, extent) and analyzer.known_nonnegative(index))
            for before, index, extent in zip(moved, indices, producer.origin.output_shape(0), strict=True)
        )
        if not inside or producer.store_predicate is not None:
            return None
        if not isinstance(op, ComputeOp) or len(op.body) != 1 or op.reduce_axis:
            return None
        value = _settled(op.element(0, indices), analyzer)
    return value


def _known(node: Node, values: dict[PrimExpr, PrimExpr]) -> Node | None:
    return values.get(node) if isinstance(node, ProducerLoad) else None


def _settled(body: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """A value whose outermost condition is known not to hold is the other one."""
    while isinstance(body, Call) and body.op == "tir.if_then_else":
        condition, _, otherwise = body.args
        if not any(analyzer.known_true(logical_not(part)) for part in _parts(condition)):
            break
        body = otherwise
    return body


def _parts(condition: PrimExpr) -> Iterator[PrimExpr]:
    """The conditions that all have to hold, hints left out."""
    match condition:
        case And(a, b):
            yield from _parts(a)
            yield from _parts(b)
        case Call(op="tir.likely"):
            yield from _parts(condition.args[0])
        case _:
            yield condition
