"""Bound inference: the box of each stage that is computed per visit, and the extents of its loops.

A stage at the root computes its whole domain. A stage at a loop of its consumer computes the box that covers
every read made inside that loop: each index is bounded over the loops inside, while the loops outside stay symbols.
Where the box may reach past the stage's domain (imperfect splits of the consumer, borders), a guard is added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...arith.analyzer import Analyzer
from ...arith.interval import Interval, extent_bound, relax
from ...dataclass import dataclass, replace
from ...schedule.attachment import enclosing_loops
from ...schedule.domain import Guard, StageDomain, full_region, stage_domain
from ...schedule.legality import real_readers
from ...schedule.thread_legality import relaxed, storage_scope
from ...schedule.tree import At, Inline, ScheduleTree, StageNode
from ...te.bounds import check_bounds, early_rows, refuse_reads_outside
from ...te.operation import ComputeOp
from ...te.scan_op import ScanOp
from ...tir.arithmetic import as_int, const, maximum, minimum
from ...tir.expr import PrimExpr, ProducerLoad, Range, Reduce, Var
from ...tir.rewriting import substitute, variables, walk
from .inline_stages import Bodies, reads_of_range
from .neutral_terms import without_neutral_terms
from .overcompute import Overcompute
from .short_tiles import common_short_tile, stays_inside


def infer_bound(tree: ScheduleTree, bodies: Bodies, analyzer: Analyzer, whole: Collection[int] = ()) -> dict[int, StageDomain]:
    """The domain of every stage that is computed, by stage.

    Args:
        tree: a tree that passed `check_tree`.
        bodies: the stages' bodies without inlined reads.
        analyzer: learns the range of every loop variable.
        whole: stages that are computed whole whoever reads them: arguments.

    Raises:
        DeclarationError: if a stage computes rows that read out of bounds.
    """
    refuse_reads_outside(tree.index)
    inference = _Inference(tree, bodies, real_readers(tree), analyzer, {}, whole, _looks_back(tree))
    # Readers first: the boxes that they read decide what the stages before them compute.
    for stage in reversed(tuple(tree.in_order())):
        if not stage.is_placeholder and not isinstance(stage.attach, Inline):
            inference.visit(stage)
    return inference.domains


@dataclass(frozen=True, eq=False)
class _Inference:
    tree: ScheduleTree
    bodies: Bodies
    readers: Mapping[int, tuple[StageNode, ...]]
    analyzer: Analyzer
    domains: dict[int, StageDomain]
    whole: Collection[int]
    looks_back: bool  # some stage has rows that read before the first row of a tensor

    def visit(self, stage: StageNode) -> None:
        """Find the domain of a stage whose readers are done."""
        region = self._needed_region(stage) if isinstance(stage.attach, At) else full_region(stage)
        if self.looks_back:
            self._limit(stage, region)
        region |= self._read_ranges(stage)
        domain = stage_domain(stage, region, self.analyzer)
        for var, bounds in domain.loops().items():
            self.analyzer.bind(var, bounds)
        # Before guards of borders are made: terms that are left out read nothing, and a read that isn't there needs no guard.
        domain = without_neutral_terms(domain, self.bodies[stage.id], self.tree, self.analyzer)
        short = self._short_tiles(domain) if isinstance(stage.attach, At) else {}
        domain = replace(domain, guards=(*domain.guards, *short.values()))
        # Where it is harmless to compute past the border, into room that the box has anyhow, no test is made in the loop.
        borders = Overcompute(domain, self.bodies[stage.id], self.tree, self.analyzer).needed(tuple(self._border_guards(domain, short)))
        self.domains[stage.id] = replace(domain, guards=(*domain.guards, *borders))

    def _read_ranges(self, stage: StageNode) -> dict[int, Range]:
        """The ranges of reductions that tensors hold, without reads of inlined stages."""
        body = next(iter(self.bodies[stage.id]), None)
        if not isinstance(body, Reduce):
            return {}
        pairs = zip(stage.reduction, body.axis, strict=False)  # fewer where some were factored out
        return {axis: inner.dom for axis, inner in pairs if inner.dom is not None and reads_of_range(inner)}

    def _limit(self, stage: StageNode, region: dict[int, Range]) -> None:
        """Leave out the rows of a stage at the root that nobody asks for; refuse what still reads out of bounds."""
        if stage.id in self.tree.carried or not isinstance(stage.op, ComputeOp):
            return
        if early_rows(stage.op) and not isinstance(stage.attach, At) and not stage.is_output and stage.id not in self.whole:
            region[0] = self._needed_region(stage)[0]
        start = as_int(region[0].min) if region and 0 in region else 0
        if start is not None:
            check_bounds(stage.op, start)

    def _needed_region(self, stage: StageNode) -> dict[int, Range]:
        boxes = [box for reader in self.readers[stage.id] for box in self._boxes_read_by(reader, stage)]
        shape = stage.origin.output_shape(0)
        region = full_region(stage)
        for axis in stage.spatial:
            intervals = [box[axis] for box in boxes]
            # One read of which nothing is known makes the axis a whole one: the others can't narrow it.
            found = self._cover([i for i in intervals if i is not None], shape[axis]) if None not in intervals else None
            if found is not None:
                region[axis] = found
        return region

    def _boxes_read_by(self, reader: StageNode, stage: StageNode) -> Iterator[list[Interval | None]]:
        """For each read of `stage` the interval of each index, over the loops inside the attachment point."""
        domain = self.domains[reader.id]
        # In terms of the reader's loops, as its index is in terms of its root axes.
        roots = domain.root_values()
        inside = self._loops_inside(reader, stage)
        for var, whole in _run_whole(domain, inside).items():
            del roots[var]
            inside[var] = whole
        for load in _reads(self.bodies[reader.id], stage, self.tree):
            indices = (self.analyzer.simplify(substitute(index, roots)) for index in load.indices)
            yield [_unread(relax(index, inside, self.analyzer)) for index in indices]

    def _loops_inside(self, reader: StageNode, stage: StageNode) -> dict[Var, Range]:
        end = (stage.attach.stage, stage.attach.axis) if isinstance(stage.attach, At) else None
        inside: dict[Var, Range] = {}
        # From the innermost loop outwards: all before the one that the stage is attached to run within a visit, so that the box spans them.
        own = ((reader, axis) for axis in reversed(reader.leaf))
        passed, scope = False, storage_scope(stage, enclosing_loops(self.tree, stage))
        for target, axis in (*own, *enclosing_loops(self.tree, reader)):
            passed = passed or (target.id, axis) == end
            thread = target.mark(axis).thread
            if not passed or (thread is not None and relaxed(scope, thread.tag)):  # threads that share it need what all of them read
                inside[target.axes[axis].var] = self.domains[target.id].loop_range(axis)
        if isinstance(reader.op, ScanOp):  # whose update has the loops of these
            inside |= {axis.var: axis.dom for axis in reader.op.spatial_axis_ if axis.dom is not None}
        return inside

    def _cover(self, intervals: list[Interval], size: PrimExpr) -> Range | None:
        """The range that holds all intervals, or None where the whole dimension is the better answer."""
        low, high = intervals[0].min, intervals[0].max
        for interval in intervals[1:]:
            low = self._pick(low, interval.min, smaller=True)
            high = self._pick(high, interval.max, smaller=False)
        extent = extent_bound(Interval(low, high), self.analyzer)
        whole = as_int(size)
        if extent is not None:
            # A box as large as the tensor only adds an offset to every index.
            return None if whole is not None and extent >= whole else Range.from_min_extent(low, const(extent, low.dtype))
        symbolic = self.analyzer.simplify(high - low + 1)
        loops = {var for domain in self.domains.values() for var in domain.loops()}
        # Storage whose size changes with a loop would have to be allocated anew in each iteration.
        return None if variables(symbolic) & loops else Range.from_min_extent(low, symbolic)

    def _pick(self, a: PrimExpr, b: PrimExpr, smaller: bool) -> PrimExpr:
        # A bound that is proved needs no min at run time, and boxes of plain sums stay affine for the passes behind.
        if self.analyzer.known_less_equal(a, b):
            return a if smaller else b
        if self.analyzer.known_less_equal(b, a):
            return b if smaller else a
        return minimum(a, b) if smaller else maximum(a, b)

    def _short_tiles(self, domain: StageDomain) -> dict[int, Guard]:
        """Guards that leave out what readers with tiles of two sizes don't read in the smaller ones, by axis."""
        stage = domain.stage
        reads: list[tuple[StageDomain, ProducerLoad, dict[Var, Range]]] = []
        for reader in self.readers[stage.id]:
            known = self.domains[reader.id]
            if not any(guard.short for guard in known.guards):
                return {}
            inside = self._loops_inside(reader, stage)
            reads += [(known, load, inside) for load in _reads(self.bodies[reader.id], stage, self.tree)]
        found: dict[int, Guard] = {}
        for position, axis in enumerate(stage.spatial):
            # An axis that is computed whole has no tiles.
            if domain.region[axis].extent is not stage.axes[axis].dom.extent:  # type: ignore[union-attr]
                guard = common_short_tile(domain, axis, position, reads, self.analyzer)
                if guard is not None:
                    found[axis] = guard
        return found

    def _border_guards(self, domain: StageDomain, short: Mapping[int, Guard]) -> Iterator[Guard]:
        """Conditions that keep a stage's box inside its domain where that isn't certain."""
        stage = domain.stage
        if not isinstance(stage.attach, At):
            return
        roots = domain.root_values()
        for axis, size in zip(stage.spatial, stage.origin.output_shape(0), strict=True):
            full = stage.axes[axis].dom
            # Computed whole: nothing of it is beyond the border.
            if full is not None and domain.region[axis].min is full.min and domain.region[axis].extent is full.extent:
                continue
            value = self.analyzer.simplify(roots[stage.axes[axis].var])
            if not (self.analyzer.known_less(value, size) or stays_inside(value, size, domain, short.get(axis), self.analyzer)):
                yield Guard(axis, value < size, False)
            if not self.analyzer.known_nonnegative(value):
                yield Guard(axis, value >= 0, False)


def _looks_back(tree: ScheduleTree) -> bool:
    return any(early_rows(op) for op in tree.index if isinstance(op, ComputeOp))


def _run_whole(domain: StageDomain, inside: Mapping[Var, Range]) -> dict[Var, Range]:
    """Root axes all of whose loops are inside, with what they run over: loops that overshoot reach further than their guards let them."""
    if not domain.guards or any(guard.short for guard in domain.guards):
        return {}
    found = {}
    for axis, whole in domain.region.items():
        if axis in domain.stage.leaf:  # its variable counts from the start of the box
            continue
        # Example: i of 10 in tiles of 4, all loops inside: i.o * 4 + i.i reaches 11, but its guard says i < 10, so the box is i in 0..9.
        loops, ends = variables(domain.values[axis]), variables(whole.min) | variables(whole.extent)
        if loops and loops <= inside.keys() and ends.isdisjoint(inside):
            found[domain.stage.axes[axis].var] = whole
    return found


def _reads(bodies: tuple[PrimExpr, ...], stage: StageNode, tree: ScheduleTree) -> dict[ProducerLoad, None]:
    """The distinct reads of `stage` in some bodies."""
    found: dict[ProducerLoad, None] = {}
    for body in bodies:
        ranges = [load for axis in body.axis for load in reads_of_range(axis)] if isinstance(body, Reduce) else []
        for node in (*ranges, *walk(body)):
            if isinstance(node, ProducerLoad) and tree.producer(node).id == stage.id:
                found[node] = None
    return found


def _unread(ends: Interval | None) -> Interval | None:
    """The interval, unless its ends are what a tensor holds: storage is made before that is read."""
    if ends is None or not any(isinstance(node, ProducerLoad) for end in (ends.min, ends.max) for node in walk(end)):
        return ends
    return None
