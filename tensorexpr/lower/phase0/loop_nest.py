"""The loops of one stage: `for` per leaf axis, guards around the store, and for reductions an init nest before the update.

    for spatial axes outside the first reduction loop:
        for the other spatial axes: C[...] = identity        init nest, with variables of its own
        for the rest, in order:     C[...] = combine(C[...], source)
Loops of extent 1 are left out unless a pragma hangs on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...dataclass import dataclass, field
from ...errors import ScheduleError
from ...schedule.axis_expression import decode, tags_of
from ...schedule.domain import Guard, StageDomain
from ...schedule.tree import LoopKind, StageNode
from ...te.combiner_laws import is_componentwise
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import is_const_int
from ...tir.attrs import EMPTY, FrozenMap
from ...tir.buffer import Buffer
from ...tir.expr import And, BufferLoad, IntImm, IterVar, PrimExpr, Reduce, Var
from ...tir.intrin import likely
from ...tir.rewriting import substitute, walk
from ...tir.stmt import BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from ...tir.thread import HARDWARE_TAGS
from ..pragmas import VECTOR_REDUCTION

FOR_KINDS: Mapping[LoopKind, ForKind] = {
    LoopKind.SERIAL: ForKind.SERIAL,
    LoopKind.PARALLEL: ForKind.PARALLEL,
    LoopKind.VECTORIZE: ForKind.VECTORIZED,
    LoopKind.UNROLL: ForKind.UNROLLED,
    LoopKind.BIND: ForKind.THREAD_BINDING,
    LoopKind.TENSORIZE: ForKind.SERIAL,  # where the starting value is stored by loops
}

# Puts the stages that are computed at a loop in front of the loop's body.
Prepend = Callable[[int, Stmt], Stmt]
# Where the element of these indices is stored.
Place = Callable[[Sequence[PrimExpr]], tuple[PrimExpr, ...]]


def _unchanged(axis: int, loop: Stmt) -> Stmt:
    return loop


@dataclass(frozen=True, eq=False)
class LoopNest:
    """Builds the statements of one stage. `bodies` read buffers already; `buffers` hold the outputs."""

    domain: StageDomain
    bodies: tuple[PrimExpr, ...]
    buffers: tuple[Buffer, ...]
    prepend: Prepend
    keep_trivial_loops: bool = False
    enclose: Prepend = _unchanged
    place: Place = tuple
    threads: Mapping[str, Var] = field(default_factory=dict)  # the loops over threads around the stage's stores, by tag

    @property
    def stage(self) -> StageNode:
        """The stage."""
        return self.domain.stage

    def build(self) -> Stmt:
        """The whole nest, attached stages included."""
        roots = self.domain.root_values()
        indices = self.place([roots[self.stage.axes[axis].var] for axis in self.stage.spatial])
        first = self.bodies[0]
        if not isinstance(first, Reduce):
            stores = seq(*(BufferStore(b, substitute(v, roots), indices) for b, v in zip(self.buffers, self.bodies, strict=True)))
            return self.wrap(guarded(where(self.stored(roots), stores), self.domain.guards), self.stage.leaf)
        update = where(self.stored(roots), self._update(first, roots, indices))
        # Before the outermost reduction loop: further in, each of its iterations would start again.
        split_at = next((n for n, axis in enumerate(self.stage.leaf) if self.stage.is_reduction(axis)), len(self.stage.leaf))
        inner = self.wrap(guarded(update, self.domain.guards), self.stage.leaf[split_at:])
        return self.wrap(seq(self.init(first, roots, indices, self.stage.leaf[split_at:]), inner), self.stage.leaf[:split_at])

    def stored(self, roots: Mapping[Var, PrimExpr]) -> PrimExpr:
        """Where the stage's elements are wanted."""
        predicate = self.stage.store_predicate
        if predicate is None:
            return IntImm("bool", 1)
        missing = [tag for tag in tags_of(predicate) if tag not in self.threads]
        if missing:
            raise self.stage.refused(f"its store predicate speaks of {missing[0]}, to which no loop around it is bound; bind one")
        return substitute(decode(predicate, [self.stage.axes[axis].var for axis in self.stage.spatial], self.threads), roots)

    def _update(self, reduce: Reduce, roots: Mapping[Var, PrimExpr], indices: tuple[PrimExpr, ...]) -> Stmt:
        old = {var: BufferLoad(b, indices) for var, b in zip(reduce.combiner.lhs, self.buffers, strict=True)}
        new = {var: substitute(source, roots) for var, source in zip(reduce.combiner.rhs, reduce.source, strict=True)}
        values = [substitute(result, {**old, **new}) for result in reduce.combiner.result]
        if is_componentwise(reduce.combiner):  # sums of several values: what is stored first is in no other result
            stmt: Stmt = seq(*(BufferStore(b, value, indices) for b, value in zip(self.buffers, values, strict=True)))
        else:  # every result is needed before the first is stored
            names = [Var(f"{b.name}_next", value.dtype) for b, value in zip(self.buffers, values, strict=True)]
            stmt = seq(*(BufferStore(b, name, indices) for b, name in zip(self.buffers, names, strict=True)))
            for name, value in zip(reversed(names), reversed(values), strict=True):
                stmt = LetStmt(name, value, stmt)
        return where(substitute(reduce.condition, roots), stmt)

    def init(self, reduce: Reduce, roots: Mapping[Var, PrimExpr], indices: tuple[PrimExpr, ...], leaves: tuple[int, ...]) -> Stmt:
        """Store the starting value everywhere that the update below will reach."""
        spatial = [axis for axis in leaves if not self.stage.is_reduction(axis)]
        # Variables of its own: the loops of the update have the stage's.
        fresh: dict[int, Var] = {axis: Var(f"{self.stage.axes[axis].name}.init", self.stage.axes[axis].dtype) for axis in spatial}
        renaming: dict[Var, PrimExpr] = {self.stage.axes[axis].var: var for axis, var in fresh.items()}
        values = [substitute(value, roots) for value in (reduce.init or reduce.combiner.identity_element)]
        stores: Stmt = seq(*(BufferStore(b, value, indices) for b, value in zip(self.buffers, values, strict=True)))
        stores = where(self.stored(roots), stores)
        # A guard of a reduction axis says which terms exist; an element starts even if it has none.
        body = substitute(guarded(stores, (g for g in self.domain.guards if not g.reduction)), renaming)
        for axis in reversed(spatial):
            body = self.loop(axis, fresh[axis], body, with_pragmas=False)
        return body

    def wrap(self, body: Stmt, leaves: tuple[int, ...]) -> Stmt:
        """`body` inside the loops `leaves`, attached stages in front of it."""
        for axis in reversed(leaves):
            body = self.enclose(axis, self.loop(axis, self.stage.axes[axis].var, self.prepend(axis, body), with_pragmas=True))
        return body

    def loop(self, axis: int, var: Var, body: Stmt, with_pragmas: bool) -> Stmt:
        """One loop of the stage around `body`, or `body` itself where the loop has one iteration."""
        extent = self.domain.extents[axis]
        mark = self.stage.mark(axis)
        pragmas = mark.pragmas if with_pragmas else ()
        thread = mark.thread
        launched = thread is not None and thread.tag in HARDWARE_TAGS
        # A launched axis stays with one thread too: the kernel's grid has to name it.
        if is_const_int(extent, 1) and not pragmas and not launched and not self.keep_trivial_loops:
            return body
        kind = FOR_KINDS[mark.kind]
        if kind is ForKind.VECTORIZED and not isinstance(extent, IntImm):
            raise ScheduleError(
                f"In schedule for {self.stage.name}: can't vectorize {self.stage.axes[axis].name!r}: its extent {extent} is no constant; "
                "split it by a constant factor and vectorize the inner part"
            )
        annotations = FrozenMap({f"pragma_{key}": value for key, value in pragmas}) if pragmas else EMPTY
        if kind is ForKind.VECTORIZED and self.stage.is_reduction(axis):
            annotations = annotations.set(**{VECTOR_REDUCTION: True})
        bound = None if thread is None else IterVar(None, Var(thread.name, extent.dtype), IterVar.THREAD_INDEX, thread.tag)
        return For(var, IntImm(extent.dtype, 0), extent, kind, body, bound, annotations)


def where(condition: PrimExpr, body: Stmt) -> Stmt:
    """`body` where `condition` holds. What reads memory is tested inside what comes before it, on vectors too."""
    if isinstance(condition, And) and any(isinstance(node, BufferLoad) for node in walk(condition.b)):
        return where(condition.a, where(condition.b, body))
    return body if is_const_int(condition, 1) else IfThenElse(condition, body)


def guarded(body: Stmt, guards: Iterable[Guard]) -> Stmt:
    """`body` under all guards, each marked likely: it fails at a border only."""
    condition = all_of(*(likely(guard.condition) for guard in guards))
    return body if is_const_int(condition, 1) else IfThenElse(condition, body)
