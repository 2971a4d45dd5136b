"""Measuring: programs in, results out. The one class that ties the workers together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import TuningError
from ...lower.plain_context import options_in_words
from .builder import Build, Builder, Failure
from .compiled import CompiledCandidate
from .errors import MeasureErrorNo
from .folder import SharedFolder
from .memory import OFFSET
from .reference import Reference
from .results import FAILED_COST, STOPPED, TIMED_AGAIN, MeasureObserver, MeasureOptions, MeasureResult, Program, SilentObserver
from .runner import Runner
from .task import MeasureTask
from .workers import Workers

# of the best: they are timed in turn later without being compiled again
_KEPT_OBJECTS = 32
_BUILT = MeasureErrorNo.NO_ERROR


class Measurer:
    """Compiles and measures programs of one task in worker processes.

        with Measurer(task, options) as measurer:
            for result in measurer.measure(programs):
                ...

    Compile workers and the measuring process start when the context is entered and end with it, or with this process; `workers` that it
    is given go on with the next one. A program that crashes, hangs or computes something else has that in its result, and touches no
    other one.
    """

    def __init__(
        self,
        task: MeasureTask,
        options: MeasureOptions | None = None,
        observer: MeasureObserver | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._workers, self._is_shared = workers or Workers(), workers is not None
        self.task = task
        self.options = options or MeasureOptions()
        self.best_cost = math.inf
        self._policy = {**self.options.timing.to_json(), **options_in_words(task.pass_options)}
        self._observer = observer or SilentObserver()
        self._folder: SharedFolder | None = None
        self._builder: Builder | None = None
        self._reference: Reference | None = None
        self._runner: Runner | None = None
        self._kept: dict[str, tuple[MeasureResult, Build]] = {}

    def __enter__(self) -> Measurer:
        self._folder = SharedFolder()
        try:
            self._reference = Reference(self.task, self.options, self._folder.path, self._workers)
            self._reference.start()
            self._builder = Builder(self.task.to_json(), self.options, self._workers)
            self._builder.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of all workers that run now."""
        return [*(self._reference.pids if self._reference is not None else ()), *self._workers.pids]

    def close(self) -> None:
        """Kill all workers that it shares with nobody, and remove its files. Safe to call again."""
        if self._reference is not None:
            self._reference.close()
        if not self._is_shared:
            self._workers.close()
        self._runner = self._builder = self._reference = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def measure(self, programs: Sequence[Program]) -> Iterator[MeasureResult]:
        """Compile and measure programs, a batch at a time; results come in their order.

        Raises:
            TuningError: if workers can't be started at all.
        """
        for start in range(0, len(programs), self.options.batch_size):
            batch = programs[start : start + self.options.batch_size]
            try:
                yield from self._measure_batch(batch)
            # a caller that wants no more results closes the generator; the workers stay for its next call
            except GeneratorExit:
                raise
            except BaseException:
                self.close()
                raise

    def compile(self, programs: Sequence[Program]) -> list[Build]:
        """Compile programs without running them.

        Raises:
            TuningError: if workers can't be started at all.
        """
        made = dict(self._the_builder().build(programs, self.options.opt_level))
        return [made[position] for position in range(len(programs))]

    def run(self, program: Program, build: Build) -> MeasureResult:
        """Run what `compile` made of a program, to the end however slow it is.

        Raises:
            TuningError: if workers can't be started at all.
        """
        return self._measure_one(program, build, math.inf)

    def remeasure(
        self, programs: Sequence[Program], rounds: int = 5, opt_level: int | None = None, offsets: Sequence[int] = (OFFSET,)
    ) -> list[MeasureResult]:
        """Measure the best programs again, in turn, so that they can be compared to the percent.

        Args:
            programs: few of them, all of which ran before.
            rounds: each gives one cost to every program; half as many again are run, and the most disturbed left out.
            opt_level: of LLVM's IR passes; the options' one if None.
            offsets: bytes into a cache line at which arrays begin; a cost is the mean over them.
        """
        level = self.options.opt_level if opt_level is None else opt_level
        try:
            return self._remeasure(programs, rounds, level, offsets)
        except BaseException:
            self.close()
            raise

    def _remeasure(self, programs: Sequence[Program], rounds: int, level: int, offsets: Sequence[int]) -> list[MeasureResult]:
        kept = self._kept if level == self.options.opt_level else {}
        builds = self._objects(programs, kept, level)
        results = [
            replace(kept[program.key][0], number=program.number, timestamp=time.time())
            # kept results are of this optimisation level; at another one everything is built and timed alone first
            if program.key in kept
            else self._measure_one(program, build, math.inf)
            for program, build in zip(programs, builds, strict=True)
        ]
        able = [n for n, result in enumerate(results) if result.is_success]
        made = [build.made for n in able if isinstance((build := builds[n]).made, CompiledCandidate)]
        results = [replace(result, policy={**result.policy, TIMED_AGAIN: True}) for result in results]
        costs = self._the_runner().interleave(made, [results[n].median for n in able], rounds, offsets) if made else []
        if isinstance(costs, Failure):  # each ran alone, so those results stand
            return results
        for n, values in zip(able, costs, strict=True):
            policy = {**results[n].policy, "rounds": rounds}
            results[n] = replace(results[n], costs=tuple(values), policy=policy)
            self._note(programs[n], results[n], builds[n])
        return results

    def _objects(self, programs: Sequence[Program], kept: Mapping[str, tuple[MeasureResult, Build]], level: int) -> list[Build]:
        """Object code of programs, kept or compiled again."""
        missing = list({p.key: p for p in programs if p.key not in kept}.values())
        built = {missing[n].key: build for n, build in self._the_builder().build(missing, level)}
        return [built[p.key] if p.key in built else kept[p.key][1] for p in programs]

    def _measure_batch(self, batch: Sequence[Program]) -> Iterator[MeasureResult]:
        builds = {n: Build(Failure(MeasureErrorNo.INSTANTIATION_ERROR, p.refused), 0.0) for n, p in enumerate(batch) if p.refused}
        for position in builds:
            self._observer.built(batch[position].number, MeasureErrorNo.INSTANTIATION_ERROR)
        places = [place for place in range(len(batch)) if place not in builds]
        for number, build in self._the_builder().build([batch[place] for place in places], self.options.opt_level):
            if self._runner is None:
                self._the_runner().start()  # while the others compile
            position = places[number]
            builds[position] = build
            self._observer.built(batch[position].number, build.made.error_no if isinstance(build.made, Failure) else _BUILT)
        # only now: compiling beside them would take cores from the programs that are timed
        for position, program in enumerate(batch):
            build = builds.pop(position)
            result = self._measure_one(program, build, self.best_cost)
            if isinstance(build.made, CompiledCandidate):
                self._observer.measured(result)
            yield result

    def _measure_one(self, program: Program, build: Build, best: float) -> MeasureResult:
        if isinstance(build.made, Failure):
            return self._failed(program, build.made, build.seconds)
        outcome, seconds = self._the_runner().run(build.made, best)
        time.sleep(self.options.timing.cooldown_s)
        made, total = build.made, build.seconds + seconds
        if isinstance(outcome, Failure):
            return replace(self._failed(program, outcome, total), spills=made.spills, ir_lines=made.ir_lines, timings=made.timings)
        result = self._succeeded(program, made, outcome, total)
        self._note(program, result, build)
        return result

    def _succeeded(self, program: Program, made: CompiledCandidate, outcome: dict[str, Any], seconds: float) -> MeasureResult:
        policy = {**self._policy, **{name: outcome[name] for name in ("number", "raced", "disturbed")}}
        return MeasureResult(
            number=program.number,
            costs=tuple(outcome["costs"]),
            error_no=MeasureErrorNo.NO_ERROR,
            error_msg="",
            all_cost=seconds,
            timestamp=time.time(),
            verified=outcome["verified"],
            policy=policy,
            spills=made.spills,
            ir_lines=made.ir_lines,
            timings={**made.timings, **outcome["timings"]},
        )

    def _failed(self, program: Program, failure: Failure, seconds: float) -> MeasureResult:
        stopped = {STOPPED: failure.stopped_s} if failure.stopped_s else {}
        return MeasureResult(
            (FAILED_COST,),
            failure.error_no,
            failure.message,
            seconds,
            time.time(),
            policy={**self._policy, **stopped},
            detail=failure.detail,
            number=program.number,
        )

    def _note(self, program: Program, result: MeasureResult, build: Build) -> None:
        """Remember the best cost, and the object code of the best few."""
        self.best_cost = min(self.best_cost, result.median)
        if isinstance(build.made, CompiledCandidate):
            self._kept[program.key] = (result, build)
        if len(self._kept) > _KEPT_OBJECTS:
            del self._kept[max(self._kept, key=lambda key: self._kept[key][0].median)]

    def _the_builder(self) -> Builder:
        if self._builder is None:
            raise TuningError("this Measurer is closed; use it within `with Measurer(task) as measurer:`")
        return self._builder

    def _the_runner(self) -> Runner:
        if self._runner is None:
            self._the_builder()
            assert self._reference is not None and self._folder is not None
            self._runner = Runner(self.task, self._reference.arrays(), self.options, self._folder.path, self._workers)
        return self._runner
