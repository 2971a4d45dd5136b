"""What a fleet costs: `python examples/benchmarks/fleet.py overhead`, `devices 1 8 64`, `kills`, `memory`.

overhead   trials on one local worker, against the same trials by the local measuring process, in turn
devices    candidates a second on devices that sleep 50 ms, as a share of what they could do without any cost
beside     programs that are compiled here while others run on devices that sleep, against one after the other, in turn
kills      workers are killed at random while candidates run: what is lost, what comes twice, what stays behind
memory     the client's memory while many candidates run

All on this machine; needs `pip install "tensorexpr[distributed]"`.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import overload
from uuid import uuid4

import numpy as np

from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler.measure import measure_options, measure_task
from tensorexpr.fleet import Fleet
from tensorexpr.fleet.devices import CPU
from tensorexpr.fleet.running import FleetRunning
from tensorexpr.fleet.simulated import SECONDS
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.features import extract
from tensorexpr.tune.measure import MeasureOptions, Measurer, MeasureTask, Program
from tensorexpr.tune.measure.compiled import CompiledCandidate
from tensorexpr.tune.measure.places import Places
from tensorexpr.tune.population import sample

_BATCH = 64
# Processes that notice that their worker is gone have so long to end.
_END_SECONDS = 5.0
DEVICE = "tensorexpr.fleet.simulated:sleeping"
CANDIDATE = CompiledCandidate(bytes(20_000), "entry", (), (), {}, 0, 0)


class Same(Sequence[CompiledCandidate]):
    """So many candidates, all alike, without the memory of a list."""

    def __init__(self, count: int, made: CompiledCandidate = CANDIDATE) -> None:
        self._count, self._made = count, made

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> CompiledCandidate: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[CompiledCandidate]: ...
    def __getitem__(self, place: int | slice) -> CompiledCandidate | Sequence[CompiledCandidate]:
        if isinstance(place, slice):
            raise TypeError("one at a time")
        return self._made


@auto_scheduler.register_workload
def matmul(size: int) -> list[Tensor]:
    """C = A B of square matrices."""
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    return [a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def running(fleet: Fleet, task: MeasureTask | None = None) -> FleetRunning:
    """The devices of a fleet, for a task that nobody looks at if there is none."""
    a = te.placeholder((4,), name="A")
    unseen = MeasureTask((a, te.compute((4,), lambda i: a[i] + 1.0, name="C")), Target("llvm"))
    return FleetRunning(fleet, fleet.key(), task or unseen, MeasureOptions())


def some_programs(task: auto_scheduler.SearchTask, count: int) -> list[Program]:
    """Programs drawn uniformly from what may be built, of all sketches in turn."""
    random, found = np.random.default_rng(0), dict[str, Trace]()
    sketches = auto_scheduler.SketchPolicy(task, verbose=0).generate_sketches()
    while len(found) < count:
        for sketch in sketches:
            rows = sample(sketch, 16, random)
            for row in rows[extract(sketch, inline_stages(sketch.tree), rows, task.target).valid][:4]:
                trace = sketch.trace_of(row)
                found.setdefault(str(trace.to_json()), trace)
    return [Program(number, trace) for number, trace in enumerate(list(found.values())[:count])]


def overhead(trials: int, rounds: int) -> None:
    """The same programs by both, in turn, a batch of 64 at a time: the seconds of compiling and measuring."""
    task = auto_scheduler.SearchTask(matmul, (256,), target="llvm")
    batches = [[*islice(some_programs(task, trials), start, start + _BATCH)] for start in range(0, trials, _BATCH)]
    options = measure_options(auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner())
    ratios = []
    with Fleet.local(workers=1) as fleet:
        builder, runner = (auto_scheduler.LocalBuilder.of(fleet.builder()), auto_scheduler.LocalRunner.of(fleet.runner()))
        places = {"local": Places(), "fleet": Places(builder.building, runner.running)}
        for number in range(rounds):
            seconds = dict.fromkeys(places, 0.0)
            with ExitStack() as stack:
                measurers = {name: stack.enter_context(Measurer(measure_task(task, 0), options, places=places[name])) for name in places}
                for measurer in measurers.values():
                    list(measurer.measure(batches[0][:2]))  # processes start
                for turn, batch in enumerate(batches):
                    for name in list(measurers)[:: 1 if (turn + number) % 2 else -1]:
                        start = time.perf_counter()
                        failed = sum(not result.is_success for result in measurers[name].measure(batch))
                        taken = time.perf_counter() - start
                        seconds[name] += taken
                        print(f"{name}: {len(batch)} trials in {taken:.1f} s, {failed} failed", flush=True)
            ratios.append(seconds["fleet"] / seconds["local"])
    print(f"fleet / local over {trials} trials: {', '.join(f'{ratio:.3f}' for ratio in ratios)}")


def throughput(count: int, seconds: float) -> None:
    """Candidates a second on so many devices, 16 to a process."""
    workers = -(-count // 16)
    os.environ[SECONDS] = str(seconds)
    with Fleet.local(workers=workers, cores=workers, device=DEVICE, devices=min(16, count), patience_s=300) as fleet:
        place = running(fleet)
        list(place.run(Same(4 * count), lambda: math.inf))  # every device opens the task
        trials = max(100, min(20_000, int(count * 6 / seconds)))
        start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        done = sum(1 for _ in place.run(Same(trials), lambda: math.inf))
        taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        place.close()
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    rate, perfect, cost = done / taken, count / seconds, 1e3 * cpu / done
    share = f"{rate:.0f} a second, {100 * rate / perfect:.0f} % of {perfect:.0f}"
    print(f"{count:4d} devices, {done} candidates: {share}; client and scheduler {cost:.2f} ms a candidate", flush=True)


def beside(trials: int, rounds: int, devices: int, seconds: float) -> None:
    """The seconds of a batch by the compile workers of this machine and devices that are elsewhere."""
    os.environ[SECONDS] = str(seconds)
    task = auto_scheduler.SearchTask(matmul, (256,), target="llvm")
    programs, taken = some_programs(task, trials), dict[bool, list[float]]()
    options = measure_options(auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner())
    with Fleet.local(workers=1, cores=1, device=DEVICE, devices=devices) as fleet:
        places = Places(running=auto_scheduler.LocalRunner.of(fleet.runner()).running)
        with Measurer(measure_task(task, 0), options, places=places) as measurer:
            list(measurer.measure(programs[:devices]))
            for turn in range(2 * rounds):
                measurer._apart = bool(turn % 2)
                start = time.perf_counter()
                assert len(list(measurer.measure(programs))) == trials
                taken.setdefault(bool(turn % 2), []).append(time.perf_counter() - start)
    after, meanwhile = (", ".join(f"{value:.1f}" for value in taken[apart]) for apart in (False, True))
    print(f"{trials} programs, {devices} devices of {seconds} s: one after the other {after} s, meanwhile {meanwhile} s")


def marked(mark: str) -> list[int]:
    """The processes with a word in their environment, without this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def candidate_of(task: auto_scheduler.SearchTask) -> CompiledCandidate:
    """The unscheduled program of a task, compiled here."""
    with Measurer(measure_task(task, 0), MeasureOptions(n_parallel=1)) as measurer:
        made = measurer.compile([Program(0, Trace())])[0].made
    assert isinstance(made, CompiledCandidate), made
    return made


def kills(count: int, trials: int, seconds: float, pause: float, device: str) -> None:
    """Kill worker processes at random moments while candidates run; on the CPU these are programs that run, in processes of workers."""
    mark = f"TENSOREXPR_KILLS={uuid4().hex}"
    os.environ |= {SECONDS: str(seconds), "TENSOREXPR_KILLS": mark.partition("=")[2]}
    killed, ended, chance = 0, threading.Event(), random.Random(0)
    task = auto_scheduler.SearchTask(matmul, (16,), target="llvm")
    made = candidate_of(task) if device == CPU else CANDIDATE
    with Fleet.local(workers=4, cores=4, device=device, devices=4, patience_s=300) as fleet:
        place = running(fleet, measure_task(task, 0))

        def kill() -> None:
            nonlocal killed
            while killed < count and not ended.wait(pause * chance.uniform(0.5, 1.5)):
                pids = list(fleet.client.run(os.getpid, on_error="ignore").values())
                if pids:
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    killed += 1

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        start = time.perf_counter()
        found = Counter(position for position, _, _ in place.run(Same(trials, made), lambda: math.inf))
        taken = time.perf_counter() - start
        ended.set()
        killer.join()
        place.close()
    lost, twice = trials - len(found), sum(times - 1 for times in found.values())
    time.sleep(_END_SECONDS)
    orphans = len(marked(mark))
    print(f"{killed} workers killed in {taken:.0f} s, {trials} candidates: {lost} lost, {twice} came twice, {orphans} orphans")


def memory(trials: int, devices: int, seconds: float) -> None:
    """The memory that the client and the scheduler use, while many candidates run."""
    os.environ[SECONDS] = str(seconds)
    with Fleet.local(workers=1, cores=1, device=DEVICE, devices=devices) as fleet:
        place = running(fleet)
        for number, _ in enumerate(place.run(Same(trials), lambda: math.inf)):
            if number % (trials // 10) == 0:
                with open("/proc/self/statm") as file:
                    pages = int(file.read().split()[1])
                print(f"{number} candidates: {pages * resource.getpagesize() >> 20} MiB", flush=True)
        place.close()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("overhead", "devices", "beside", "kills", "memory"))
    parser.add_argument("numbers", type=int, nargs="*", help="numbers of devices")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, help="that a simulated device takes for a candidate")
    parser.add_argument("--device", default=DEVICE, help="that workers have while some are killed: this one, or cpu")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between kills, on average")
    options = parser.parse_args()
    if options.what == "overhead":
        overhead(options.trials or 256, options.rounds)
    elif options.what == "devices":
        for count in options.numbers or [1, 8, 64]:
            throughput(count, options.seconds or 0.05)
    elif options.what == "kills":
        kills(options.kills, options.trials or 2000, options.seconds or 0.2, options.pause, options.device)
    elif options.what == "beside":
        beside(options.trials or 64, options.rounds, (options.numbers or [4])[0], options.seconds or 0.2)
    else:
        memory(options.trials or 100_000, 64, options.seconds or 0.002)


if __name__ == "__main__":
    main()
