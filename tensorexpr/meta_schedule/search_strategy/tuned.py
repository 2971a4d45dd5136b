"""Design spaces that `tune`'s search loop explores: traces here, sketches of tensors in `space_generator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...dataclass import dataclass, field
from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...target import Target
from ...tune.cost_model import CostModel as FeatureModel
from ...tune.cost_model import PriorModel
from ...tune.evolution import Candidate, EvolutionOptions
from ...tune.features.nest import Array
from ...tune.space import Space
from ...tune.tuner import ProgramModel, Trial, Tuner, TunerObserver, TunerOptions
from ..arg_info import ArgInfo
from ..cost_model.cost_model import CostModel
from ..database.records import TuningRecord
from ..tune_context import MeasureCandidate, TuneContext
from .population import Individual
from .trace_space import TraceSpace

# A tuner that is asked for programs neither counts trials nor rounds.
_UNLIMITED = 1 << 30


def asked_tuner(
    spaces: Sequence[Space],
    target: Target,
    seed: int,
    model: FeatureModel | None = None,
    program_model: ProgramModel | None = None,
    eps_greedy: float = 0.05,
    evolution: EvolutionOptions | None = None,
) -> Tuner:
    """A search loop that is asked for programs and told how they did; somebody else measures them."""
    return Tuner(
        sketches=spaces,
        target=target,
        model=model or PriorModel(),
        measurer=None,
        options=TunerOptions(_UNLIMITED, _UNLIMITED, eps_greedy=eps_greedy, descent_share=0.0, evolution=evolution or EvolutionOptions()),
        observer=TunerObserver(),
        record=lambda batch: None,
        seed=max(0, seed),
        program_model=program_model,
        with_baseline=False,
    )


@dataclass(eq=False)
class Tuned:
    """A design space that explores itself (`PopulationSpace`) by a search loop: rows are its candidates.

    Args:
        tuner: proposes candidates and learns from their costs.
    """

    tuner: Tuner

    def sample(self, n: int) -> Sequence[Candidate]:
        """n random programs that were not given before."""
        return self.tuner.draw(n)

    def evolve(self, n: int) -> Sequence[Candidate]:
        """The n programs that are most promising, and a few at random."""
        return [candidate for candidate in self.tuner.ask(n) if candidate is not None] if n > 0 else []

    def to_schedule(self, row: Candidate) -> Schedule | None:
        """The program of a candidate; None if it can't be lowered."""
        raise NotImplementedError

    def learn(self, rows: Sequence[Candidate], costs: Sequence[float]) -> None:
        """Hear how many seconds programs took; infinite for those that failed."""
        self.tuner.tell(dict(zip(rows, costs, strict=True)))


@dataclass(eq=False)
class ModelOfPrograms:
    """A cost model of meta_schedule as the tuner of one task asks it. It learns by measure callbacks.

    Args:
        model: predicts.
        context: the task.
        args_info: what its programs take.
    """

    model: CostModel
    context: TuneContext
    args_info: Sequence[ArgInfo]
    scores: dict[Individual, float] = field(default_factory=dict)

    def score(self, programs: Sequence[Individual]) -> Array:
        """The model's predictions; each program is looked at once in a round.

        Raises:
            TuningError: if they are not one number for each program.
        """
        new = [program for program in dict.fromkeys(programs) if program not in self.scores]
        if new:
            candidates = [MeasureCandidate(program.sch, self.args_info) for program in new]
            made = np.asarray(self.model.predict(self.context, candidates), np.float64)
            if made.shape != (len(new),):
                raise TuningError(f"the cost model gave {made.shape} scores for {len(new)} programs; one each is needed")
            # a NaN would be neither better nor worse than anything, and the order of a sort would be any
            known = np.nan_to_num(made, nan=-1e30, posinf=1e30, neginf=-1e30)
            self.scores.update(zip(new, known.tolist(), strict=True))
        return np.array([self.scores[program] for program in programs], np.float64)

    def learn(self, trials: Sequence[Trial]) -> None:
        """Nothing: measure callbacks tell the model."""


@dataclass(eq=False)
class Traces(Tuned):
    """The programs of schedules with open decisions.

    Args:
        space: them.
        model: predicts; the programs are random until it has learned.
        options: of the evolution.
        time_limit_s: of the search for a round's programs, of which the space gets the share that it has of the round; None for none.
        records: gives what was measured before.
    """

    space: TraceSpace
    model: ModelOfPrograms
    options: EvolutionOptions
    time_limit_s: float | None
    records: Callable[[], Sequence[TuningRecord]] = tuple
    share: float = 1.0
    _recalled: bool = False

    def evolve(self, n: int) -> Sequence[Candidate]:
        """The n programs that the model takes to be the fastest, and a few at random."""
        if not self.model.model.is_trained or not self.options.generations:
            return self.sample(n)
        self.space.begin(None if self.time_limit_s is None else self.share * self.time_limit_s, self.options.generations)
        # the model has learned since the last round
        self.model.scores.clear()
        self._recall()
        return super().evolve(n)

    def _recall(self) -> None:
        """Let the evolution start from what earlier searches measured."""
        if self._recalled:
            return
        # once is enough: the tuner hears of what this search measures by `learn`
        self._recalled = True
        costs = {}
        for record in self.records():
            made = self.space.programs.replayed(record.trace)
            if made is not None and record.is_valid:
                costs[Candidate(0, (self.space.add(made),))] = record.mean
        self.tuner.tell(costs)

    def to_schedule(self, row: Candidate) -> Schedule:
        """The program of a candidate."""
        return self.space.program(row.row).sch
