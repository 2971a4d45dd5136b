"""Measuring: programs in, results out. The one class that ties the workers together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import TuningError
from ...lower.plain_context import options_in_words
from .builder import Build, Failure
from .compiled import CompiledCandidate
from .errors import MeasureErrorNo
from .folder import SharedFolder
from .memory import OFFSET
from .places import Building, Places, Running
from .results import FAILED_COST, STOPPED, THROTTLED, TIMED_AGAIN, MeasureObserver, MeasureOptions, MeasureResult, Program, SilentObserver
from .task import MeasureTask
from .workers import Workers

# of the best: they are timed in turn later without being compiled again
_KEPT_OBJECTS = 32
_BUILT = MeasureErrorNo.NO_ERROR
_CLOSED = "this Measurer is closed; use it within `with Measurer(task) as measurer:`"


class Measurer:
    """Compiles and measures programs of one task in worker processes, of this machine unless `places` says another.

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
        places: Places | None = None,
    ) -> None:
        self._workers, self._is_shared = workers or Workers(), workers is not None
        self.task = task
        self.options = options or MeasureOptions()
        self.best_cost = math.inf
        self._policy = {**self.options.timing.to_json(), **options_in_words(task.pass_options)}
        self._observer = observer or SilentObserver()
        self._places = places or Places()
        self._folder: SharedFolder | None = None
        self._building: Building | None = None
        self._running: Running | None = None
        self._kept: dict[str, tuple[MeasureResult, Build]] = {}

    def __enter__(self) -> Measurer:
        self._folder = SharedFolder()
        try:
            self._running = self._places.running(self.task, self.options, self._folder.path, self._workers)
            self._running.start()
            self._building = self._places.building(self.task.to_json(), self.options, self._workers)
            self._building.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of all workers that run now."""
        parts = (self._running, self._building)
        pids = [pid for part in parts if part is not None for pid in part.pids]
        return list(dict.fromkeys([*pids, *self._workers.pids]))

    def close(self) -> None:
        """End all workers that it shares with nobody, and remove its files. Safe to call again."""
        for part in (self._running, self._building):
            if part is not None:
                part.close()
        if not self._is_shared:
            self._workers.close()
        self._running = self._building = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def measure(self, programs: Sequence[Program]) -> Iterator[MeasureResult]:
        """Compile and measure programs, a batch at a time; results come in their order, from several devices as they are done.

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
        made = dict(self._the_building().build(programs, self.options.opt_level))
        return [made[position] for position in range(len(programs))]

    def run(self, program: Program, build: Build) -> MeasureResult:
        """Run what `compile` made of a program, to the end however slow it is.

        Raises:
            TuningError: if workers can't be started at all.
        """
        return self._measure_one(program, build)

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
            else self._measure_one(program, build)
            for program, build in zip(programs, builds, strict=True)
        ]
        able = [n for n, result in enumerate(results) if result.is_success]
        made = [build.made for n in able if isinstance((build := builds[n]).made, CompiledCandidate)]
        results = [replace(result, policy={**result.policy, TIMED_AGAIN: True}) for result in results]
        costs = self._the_running().interleave(made, [results[n].median for n in able], rounds, offsets) if made else []
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
        built = {missing[n].key: build for n, build in self._the_building().build(missing, level)}
        return [built[p.key] if p.key in built else kept[p.key][1] for p in programs]

    def _measure_batch(self, batch: Sequence[Program]) -> Iterator[MeasureResult]:
        builds = {n: Build(Failure(MeasureErrorNo.INSTANTIATION_ERROR, p.refused), 0.0) for n, p in enumerate(batch) if p.refused}
        for position in builds:
            self._observer.built(batch[position].number, MeasureErrorNo.INSTANTIATION_ERROR)
        places = [place for place in range(len(batch)) if place not in builds]
        for number, build in self._the_building().build([batch[place] for place in places], self.options.opt_level):
            self._the_running().prepare()  # while the others compile
            position = places[number]
            builds[position] = build
            self._observer.built(batch[position].number, build.made.error_no if isinstance(build.made, Failure) else _BUILT)
        # only now: compiling beside them would take cores from the programs that are timed
        failed = [position for position in range(len(batch)) if isinstance(builds[position].made, Failure)]
        for position, result in self._run_builds(batch, builds, lambda: self.best_cost):
            while failed and failed[0] < position:
                yield self._refused(batch, builds, failed.pop(0))
            self._observer.measured(result)
            yield result
        for position in failed:
            yield self._refused(batch, builds, position)

    def _refused(self, batch: Sequence[Program], builds: Mapping[int, Build], position: int) -> MeasureResult:
        failure = builds[position].made
        assert isinstance(failure, Failure)
        return self._failed(batch[position], failure, builds[position].seconds)

    def _measure_one(self, program: Program, build: Build) -> MeasureResult:
        """The result of a program that runs to the end, however slow it is."""
        if isinstance(build.made, Failure):
            return self._failed(program, build.made, build.seconds)
        ((_, result),) = self._run_builds([program], {0: build}, lambda: math.inf)
        return result

    def _run_builds(
        self, programs: Sequence[Program], builds: Mapping[int, Build], best: Callable[[], float]
    ) -> Iterator[tuple[int, MeasureResult]]:
        """The results of what was compiled, each with its position."""
        able = [(place, build) for place in range(len(programs)) if not isinstance((build := builds[place]).made, Failure)]
        candidates = [build.made for _, build in able if isinstance(build.made, CompiledCandidate)]
        for number, outcome, seconds in self._the_running().run(candidates, best) if candidates else ():
            place, build = able[number]
            made = candidates[number]
            total = build.seconds + seconds
            if isinstance(outcome, Failure):
                result = self._failed(programs[place], outcome, total)
                yield place, replace(result, spills=made.spills, ir_lines=made.ir_lines, timings=made.timings)
                continue
            result = self._succeeded(programs[place], made, outcome, total)
            self._note(programs[place], result, build)
            yield place, result

    def _succeeded(self, program: Program, made: CompiledCandidate, outcome: dict[str, Any], seconds: float) -> MeasureResult:
        throttled = {THROTTLED: True} if outcome.get(THROTTLED) else {}
        policy = {**self._policy, **{name: outcome[name] for name in ("number", "raced", "disturbed")}, **throttled}
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

    def _the_building(self) -> Building:
        if self._building is None:
            raise TuningError(_CLOSED)
        return self._building

    def _the_running(self) -> Running:
        if self._running is None:
            raise TuningError(_CLOSED)
        return self._running
