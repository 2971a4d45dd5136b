"""Measuring: programs in, results out. The one class that ties the workers together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field, replace
from ...errors import TuningError
from ...lower.plain_context import options_in_words
from ...spaces.gpu import is_gpu
from .builder import Build, Failure
from .compiled import CompiledCandidate
from .errors import MeasureErrorNo
from .folder import SharedFolder
from .memory import OFFSET
from .places import Building, Places, Ran, Running, RunningElsewhere
from .results import FAILED_COST, STOPPED, THROTTLED, TIMED_AGAIN, MeasureObserver, MeasureOptions, MeasureResult, Program, SilentObserver
from .task import MeasureTask
from .workers import Workers

# of the best: they are timed in turn later without being compiled again
_KEPT_OBJECTS = 32
_BUILT = MeasureErrorNo.NO_ERROR
_CLOSED = "this Measurer is closed; use it within `with Measurer(task) as measurer:`"


@dataclass(eq=False)
class _Batch:
    """Programs that are measured together: what compiling made of them, by position, and the positions of candidates as they run."""

    programs: Sequence[Program]
    builds: dict[int, Build] = field(default_factory=dict)
    able: list[int] = field(default_factory=list)
    told: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        refused = {place: program.refused for place, program in enumerate(self.programs) if program.refused}
        self.builds |= {place: Build(Failure(MeasureErrorNo.INSTANTIATION_ERROR, why), 0.0) for place, why in refused.items()}

    def candidate(self, number: int) -> CompiledCandidate:
        """The candidate that runs as number `number`."""
        made = self.builds[self.able[number]].made
        assert isinstance(made, CompiledCandidate)
        return made

    def failures(self, before: int) -> list[int]:
        """The positions before one of what didn't compile; each once."""
        found = sorted(place for place, build in self.builds.items() if isinstance(build.made, Failure) and place < before)
        new = [place for place in found if place not in self.told]
        self.told.update(new)
        return new


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
        if self.options.device and not is_gpu(task.target):
            raise TuningError(f"programs for {task.target.kind.name} are to run on device {self.options.device}; a CPU is device 0")
        self.best_cost = math.inf
        self._policy = {**self.options.timing.to_json(), **options_in_words(task.pass_options)}
        self._observer = observer or SilentObserver()
        self._places = places or Places()
        self._folder: SharedFolder | None = None
        self._building: Building | None = None
        self._running: Running | None = None
        self._apart: bool | None = None
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

    def _measure_batch(self, programs: Sequence[Program]) -> Iterator[MeasureResult]:
        batch = _Batch(programs)
        for position in batch.builds:
            self._observer.built(programs[position].number, MeasureErrorNo.INSTANTIATION_ERROR)
        for position, result in self._results(batch, self._ran(batch)):
            for failed in batch.failures(before=position):
                yield self._refused(batch, failed)
            self._observer.measured(result)
            yield result
        for failed in batch.failures(before=len(programs)):
            yield self._refused(batch, failed)

    def _ran(self, batch: _Batch) -> Iterator[Ran]:
        """Compile and run a batch. Where the machine that compiles is the one that runs, one after the other: else the one would take
        cores from programs of the other that are timed."""
        building, running = self._the_building(), self._the_running()
        level, positions = self.options.opt_level, [place for place in range(len(batch.programs)) if place not in batch.builds]
        programs = [batch.programs[place] for place in positions]
        if self._is_apart():
            assert isinstance(running, RunningElsewhere)
            made = building.arriving(programs, level)
            coming = (None if found is None else self._built(batch, positions[found[0]], found[1]) for found in made)
            yield from running.run_arriving(coming, lambda: self.best_cost)
            return
        for number, build in building.build(programs, level):
            running.prepare()  # while the others compile
            self._built(batch, positions[number], build)
        batch.able.sort()
        if batch.able:
            yield from running.run([batch.candidate(number) for number in range(len(batch.able))], lambda: self.best_cost)

    def _is_apart(self) -> bool:
        """Whether some compile where nobody is timed; looked up once."""
        if self._apart is None:
            running = self._the_running()
            self._apart = isinstance(running, RunningElsewhere) and not self._the_building().hosts() <= running.hosts()
        return self._apart

    def _built(self, batch: _Batch, position: int, build: Build) -> CompiledCandidate | None:
        """Note what became of a program; its code, if there is any."""
        batch.builds[position] = build
        self._observer.built(batch.programs[position].number, build.made.error_no if isinstance(build.made, Failure) else _BUILT)
        if isinstance(build.made, Failure):
            return None
        batch.able.append(position)
        return build.made

    def _refused(self, batch: _Batch, position: int) -> MeasureResult:
        build = batch.builds[position]
        assert isinstance(build.made, Failure)
        return self._failed(batch.programs[position], build.made, build.seconds)

    def _measure_one(self, program: Program, build: Build) -> MeasureResult:
        """The result of a program that runs to the end, however slow it is."""
        if isinstance(build.made, Failure):
            return self._failed(program, build.made, build.seconds)
        ((_, result),) = self._results(_Batch([program], {0: build}, [0]), self._the_running().run([build.made], lambda: math.inf))
        return result

    def _results(self, batch: _Batch, ran: Iterable[Ran]) -> Iterator[tuple[int, MeasureResult]]:
        """The results of what ran, each with its position."""
        for number, outcome, seconds in ran:
            place, made = batch.able[number], batch.candidate(number)
            build, program = batch.builds[place], batch.programs[place]
            total = build.seconds + seconds
            if isinstance(outcome, Failure):
                result = self._failed(program, outcome, total)
                yield place, replace(result, spills=made.spills, ir_lines=made.ir_lines, timings=made.timings)
                continue
            result = self._succeeded(program, made, outcome, total)
            self._note(program, result, build)
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
