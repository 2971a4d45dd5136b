"""XGBTuner: the search loop as it is: evolution guided by a learned model, then a descent from the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import TuningError
from ...tune.cost_model import LOSSES, BoostedModel, CostModel, PriorModel, default_model
from ...tune.evolution import Candidate, EvolutionOptions
from ...tune.proposals import Strategy
from ...tune.trial import TunerOptions
from ...tune.tuner import Tuner as SearchLoop
from ..measure.measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..template_space import FEATURE_TYPES, TemplateSpace
from .tuner import Tuner, _Told, least_cost

# Rows of a generation, and generations: of knobs they cost nothing, of loops a template is run for each, which takes as long as an operator
# takes to be declared and scheduled: 1.5 ms of a product, 10 ms of a convolution in blocks, where compiling and running takes 150.
_KNOBS, _LOOPS = EvolutionOptions(population=2048, seeds=32), EvolutionOptions(population=64, generations=2, seeds=32)
_MANY = 1 << 30


class XGBTuner(Tuner):
    """Measures what a model, trained on all results so far, takes to be fastest, and a few points at random.

    Args:
        task: the task.
        plan_size: configurations between two trainings, at most; short searches train more often.
        feature_type: what the model sees: "itervar", the loops of a program and the analytic model's opinion of them; "knob", the knobs
            alone, which suits one task and needs no program; "curve", how arithmetic intensity grows along the loops.
        loss_type: what it learns: "reg", times; "rank", their order; "rank-binary", which are among the fast.
        num_threads: of training; as many as there are cores if None.
        optimizer: "sa" for the evolution, by TVM's word for its place; or an object with `find_maximums(model, num, exclusive)`, which
            gives points, for a `model` with `predict(points)`.
        diversity_filter_ratio: kept for programs that pass it: a round has few alike anyway.
        log_interval: kept for programs that pass it.

    Raises:
        TuningError: for other words.
    """

    def __init__(
        self,
        task: Any,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        optimizer: Any = "sa",
        diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
    ) -> None:
        super().__init__(task)
        for what, given, known in (("feature_type", feature_type, FEATURE_TYPES), ("loss_type", loss_type, LOSSES)):
            if given not in known:
                raise TuningError(f"XGBTuner: Invalid {what.replace('_', ' ')}: {given!r}; it is one of {', '.join(map(repr, known))}")
        if optimizer != "sa" and not hasattr(optimizer, "find_maximums"):
            raise TuningError(f'XGBTuner: optimizer is "sa" or an object with find_maximums, not {optimizer!r}')
        if plan_size < 1 or (diversity_filter_ratio is not None and diversity_filter_ratio < 1):
            raise TuningError(f"XGBTuner: plan_size {plan_size} and diversity_filter_ratio {diversity_filter_ratio} must be at least 1")
        self.plan_size, self.feature_type, self.loss_type = plan_size, feature_type, loss_type
        self.model_optimizer = optimizer
        self._threads = num_threads
        self._space = TemplateSpace(task, feature_type)
        self._seeds: Any = None
        self._start()

    def _start(self) -> None:
        self.visited: set[int] = set()
        self.xs: list[int] = []
        self.ys: list[float] = []
        self.flops_max = 0.0
        self._costs: dict[Candidate, float] = {}
        self._asked: SearchLoop | None = None

    def _design_space(self) -> TemplateSpace:
        return self._space

    def _model(self) -> CostModel:
        made = default_model()
        if isinstance(made, PriorModel):  # no xgboost here
            return made
        model = BoostedModel(threads=self._threads, loss=self.loss_type)
        if self._seeds is not None:
            model.seed_with(*self._seeds)
        return model

    def _strategy(self, space: TemplateSpace) -> Strategy | None:
        return None if self.model_optimizer == "sa" else _Optimizer(self)

    def _options(self, trials: int, early_stopping: int | None, n_parallel: int, ours: bool) -> TunerOptions:
        # Short searches train after each quarter.
        size = max(8, n_parallel, min(self.plan_size, -(-trials // 4)))
        own = self.model_optimizer == "sa"
        return TunerOptions(
            trials,
            size,
            early_stopping=early_stopping,
            remeasured=4 if ours else 0,
            descent_share=0.2 if ours and own else 0.0,
            evolution=_KNOBS if self.feature_type == "knob" else _LOOPS,
        )

    def _loop(self, space: TemplateSpace, measurer: Any, options: TunerOptions, told: _Told) -> SearchLoop:
        loop = super()._loop(space, measurer, options, told)
        if self._costs:
            loop.tell(self._costs)
        return loop

    def _asking(self) -> SearchLoop:
        """The search loop when somebody else measures: `next_batch` asks it and `update` tells it."""
        if self._asked is None:
            self._asked = self._loop(self._space, None, self._options(_MANY, None, self.plan_size, False), _Told(self, ()))
        return self._asked

    def has_next(self) -> bool:
        """Whether points are left that weren't visited."""
        return len(self.visited) < int(self.space.range_length)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The most promising points that weren't visited, at most so many."""
        found = [candidate for candidate in self._asking().ask(batch_size) if candidate is not None]
        configs = [self._space.entity(candidate.row) for candidate in found]
        self.visited.update(config.index for config in configs)
        return configs

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Hear how points did, and learn."""
        told: dict[Candidate, float] = {}
        for made, result in zip(inputs, results, strict=True):
            cost = least_cost(result)
            told[Candidate(0, self._space.row(made.config.index))] = cost
            self.visited.add(made.config.index)
            self.xs.append(made.config.index)
            self.ys.append((self.task.flop or 0.0) / cost)
            self.flops_max = max(self.flops_max, self.ys[-1])
        self._costs.update(told)
        if self._asked is not None:
            self._asked.tell(told)

    def load_history(self, data_set: Sequence[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500) -> None:
        """Start from results of other searches, of this task or of others: what they say of loops holds for all.

        Args:
            data_set: pairs of inputs and results, as `autotvm.record.load_from_file` gives them.
            min_seed_records: with fewer the model starts from nothing.

        Raises:
            TuningError: for knobs as features where a result is of another task, whose knobs are others.
        """
        listed = list(data_set)
        if len(listed) >= min_seed_records:
            self._seeds = seed_samples(listed, self.task, self.feature_type)
            self._asked = None

    def reset(self) -> None:
        """Begin again; what was learned from other searches stays."""
        super().reset()
        self._start()


class _Optimizer:
    """A user's optimizer of models, as the search loop asks it."""

    def __init__(self, tuner: XGBTuner) -> None:
        self.tuner = tuner

    def choose(self, count: int, seen: Any, known: Any, is_first: bool, may_wait: bool) -> list[Candidate]:
        """The points that it takes to be the best of those that weren't seen; any others where it gives too few."""
        tuner = self.tuner
        space, points = tuner.space, {tuner._space.index(candidate.row) for candidate in seen}
        found: list[int] = []
        if not is_first:
            found = [int(point) for point in tuner.model_optimizer.find_maximums(_Predictor(tuner), count, points)]
        chosen = [point for point in dict.fromkeys(found) if space.is_index_valid(point) and point not in points][:count]
        while len(chosen) < count and len(points) + len(chosen) < space.range_length:
            chosen.append(space.get_rand_index(to_exclude=points.union(chosen)))
        return [Candidate(0, tuner._space.row(point)) for point in chosen]


class _Predictor:
    """The model of a tuner as optimizers see it: points in, scores out, more is better."""

    def __init__(self, tuner: XGBTuner) -> None:
        self._tuner = tuner
        self._loop = tuner._loop(tuner._space, None, tuner._options(_MANY, None, 1, False), _Told(tuner, ()))

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> Any:
        """Scores of points; -inf for those that make no program."""
        import numpy as np

        rows = np.array([self._tuner._space.row(int(point)) for point in xs], np.int64)
        return self._loop.score(0, rows)


def seed_samples(listed: Sequence[tuple[MeasureInput, MeasureResult]], task: Any, feature_type: str) -> tuple[Any, Any, Any]:
    """Features, throughputs relative to each task's best, and priors of results of several tasks."""
    import numpy as np

    from ..task.task import create

    groups: dict[Any, list[tuple[MeasureInput, MeasureResult]]] = {}
    for made, result in listed:
        groups.setdefault(made.task.workload, []).append((made, result))
    parts = []
    for workload, pairs in groups.items():
        if feature_type == "knob" and workload != task.workload:
            raise TuningError(f"knobs of {workload} say nothing about those of {task.workload}; use feature_type='itervar'")
        own = task if workload == task.workload else create(pairs[0][0].task.name, pairs[0][0].task.args, task.target)
        space = TemplateSpace(own, feature_type)
        known = [(made, result) for made, result in pairs if own.config_space.is_index_valid(made.config.index)]
        rows = np.array([space.row(made.config.index) for made, _ in known], np.int64).reshape(len(known), -1)
        made_of = space.features(rows, task.target)
        # a failure takes for ever, so that its speed is 0; so is that of what makes no program here
        speeds = np.array([1.0 / least_cost(result) for _, result in known]) * made_of.valid
        # Costs of different tasks can't be compared: each is told relative to its task's best.
        parts.append((made_of.features, speeds / max(speeds.max(initial=0.0), 1e-300), -np.log(made_of.cycles)))
    width = max(part[0].shape[1] for part in parts)
    # knobs or stores of one task may be fewer than those of another: a model takes rows of one width
    padded = [np.pad(part[0], ((0, 0), (0, width - part[0].shape[1]))) for part in parts]
    return np.concatenate(padded), np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
