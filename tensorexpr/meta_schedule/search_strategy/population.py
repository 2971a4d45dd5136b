"""The programs of traces: drawn, varied and finished, each told from all others by its decisions."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ...dataclass import dataclass
from ...errors import TensorExprError, TuningError
from ...schedule.blocks import Instruction, Schedule, Trace
from ...tir.structural_digest import structural_hash
from ..mutator.mutator import Mutator, mutated
from ..postproc.postproc import Postproc
from ..tune_context import TuneContext
from ..utils import fork_seed
from .grid_limits import GridLimits, grid_limits, sampling

logger = logging.getLogger(__name__)
_MUTATION_ATTEMPTS = 3
_REASONS = 3  # why programs fail: the most frequent, which messages name


@dataclass(eq=False)
class Individual:
    """A program with all decisions made, and what it is known by; the limits of its design space, where that is known."""

    sch: Schedule
    limits: GridLimits | None = None

    @property
    def trace(self) -> Trace:
        """What made it."""
        found = self.sch.trace
        if found is None:
            raise TuningError("a program of a search needs its trace: make its schedule without traced=False")
        return found

    @cached_property
    def key(self) -> str:
        """Its instructions and decisions, without postprocessing."""
        return trace_key(self.trace)

    @cached_property
    def program_hash(self) -> int:
        """A hash of the program itself: different decisions may make the same."""
        return structural_hash(self.sch.mod)


def trace_key(trace: Trace) -> str:
    """A text that equal traces share, postprocessing aside."""
    return json.dumps(trace.as_json(remove_postproc=True), separators=(",", ":"))


class Programs:
    """Makes programs of one task from traces.

    What fails here (an illegal primitive, a postprocessor that says no) is counted, never raised.
    """

    def __init__(self, context: TuneContext) -> None:
        if context.mod is None:
            raise TuningError("this TuneContext has no program; pass mod=")
        generator = context.space_generator
        self._postprocs: Sequence[Postproc] = list((generator.postprocs if generator is not None else None) or ())
        probs: Mapping[Mutator, float] = (generator.mutator_probs if generator is not None else None) or {}
        self._mutators = [(mutator, p) for mutator, p in probs.items() if p > 0]
        self.rng = random.Random(fork_seed(context.rand_state, 1)[0])
        # errors are counted by their first line: drawing the program around each of them would cost more than the draw
        self._base = Schedule(context.mod, seed=self.rng.randrange(1, 1 << 31), error_render_level="none")
        self.failures: dict[str, int] = {}
        self._name, self._target = context.task_name, context.target
        self._limits: dict[int, tuple[Schedule, GridLimits]] = {}  # by identity; the spaces are kept, so that none is used again

    def drawn_of(self, spaces: Sequence[Schedule]) -> Individual | None:
        """A program of one of several design spaces, with every decision drawn."""
        return self.drawn(self.rng.choice(spaces))

    def drawn(self, space: Schedule) -> Individual | None:
        """A program of a design space, with every decision drawn; tiles of a grid within the target's limits."""
        trace = Individual(space).trace
        if id(space) not in self._limits:
            self._limits[id(space)] = space, grid_limits(space, self._target)
        limits, sampled = self._limits[id(space)][1], sampling(trace)
        tilings = limits.drawn(self.rng)
        drawn = Trace(trace.insts, {**trace.decisions, **{sampled[number]: list(tiling) for number, tiling in tilings.items()}})
        return self._made(drawn, {inst for number, inst in sampled.items() if number not in tilings}, limits)

    def replayed(self, trace: Trace) -> Individual | None:
        """The program of a trace, as it was decided."""
        return self._made(trace, set())

    def varied(self, parent: Individual) -> Individual | None:
        """A program that differs from another one in a decision; what its limits don't allow is not tried."""
        for _ in range(_MUTATION_ATTEMPTS):
            if not self._mutators:
                return self._redrawn(parent)
            mutator = self.rng.choices([m for m, _ in self._mutators], [p for _, p in self._mutators])[0]
            try:
                trace = mutated(mutator, parent.trace, self.rng.randrange(1, 1 << 31))
            except TensorExprError as error:
                self.refused(f"{type(mutator).__name__}: {error}")
                return None
            # None: this mutator found nothing to vary, another one may
            if trace is not None and (parent.limits is None or parent.limits.allow_trace(trace)):
                return self._made(trace, set(), parent.limits)
        return self._redrawn(parent)

    def _redrawn(self, parent: Individual) -> Individual | None:
        """A program with one decision drawn anew."""
        choices = list(sampling(parent.trace).values())
        return self._made(parent.trace, {self.rng.choice(choices)}, parent.limits) if choices else None

    def finished(self, sch: Schedule, limits: GridLimits | None = None) -> Individual | None:
        """A program whose decisions are made, after postprocessing; None if it is rejected."""
        # what a program is known by ends here
        sch.enter_postproc()
        for postproc in self._postprocs:
            try:
                accepted = postproc.apply(sch)
            except TensorExprError as error:
                self.refused(f"{type(postproc).__name__}: {error}")
                return None
            if not accepted:
                self.refused(type(postproc).__name__)
                return None
        return Individual(sch, limits)

    def _made(self, trace: Trace, open_decisions: set[Instruction], limits: GridLimits | None = None) -> Individual | None:
        sch = self._base.copy()

        def decide(inst: Instruction, inputs: list[Any], attrs: list[Any], decision: Any) -> Any:
            """What was decided, unless it is open."""
            return None if inst in open_decisions else decision

        try:
            trace.apply_to_schedule(sch, True, decide)
        except TensorExprError as error:
            self.refused(str(error))
            return None
        return self.finished(sch, limits)

    def refused(self, reason: str) -> None:
        """Count a program that could not be made."""
        line = reason.strip().splitlines()[0][:200] if reason.strip() else "unknown"
        self.failures[line] = self.failures.get(line, 0) + 1

    def warn(self) -> None:
        """Say why no program could be made."""
        reasons = sorted(self.failures.items(), key=lambda item: -item[1])[:_REASONS]
        said = "; ".join(f"{reason} ({count} times)" for reason, count in reasons)
        logger.warning("task %r: no decisions make a program: %s", self._name, said or "nothing was drawn")
