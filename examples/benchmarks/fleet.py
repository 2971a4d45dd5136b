"""What a fleet costs: `python examples/benchmarks/fleet.py overhead`, `devices 1 8 64`, `kills`, `memory`.

overhead   trials on one local worker, against the same trials by the local measuring process, in turn
devices    candidates a second on devices that sleep 50 ms, as a share of what they could do without any cost
kills      workers are killed at random while candidates run: what is lost, what comes twice, what stays behind
memory     the client's memory while many candidates run

All on this machine; needs `pip install "tensorexpr[distributed]"`.
"""

from __future__ import annotations

import argparse
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
from typing import overload

import numpy as np

from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler.measure import measure_options, measure_task
from tensorexpr.fleet import Fleet
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
DEVICE = "tensorexpr.fleet.simulated:sleeping"
CANDIDATE = CompiledCandidate(bytes(20_000), "entry", (), (), {}, 0, 0)


class Same(Sequence[CompiledCandidate]):
    """So many candidates, all alike, without the memory of a list."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> CompiledCandidate: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[CompiledCandidate]: ...
    def __getitem__(self, place: int | slice) -> CompiledCandidate | Sequence[CompiledCandidate]:
        if isinstance(place, slice):
            raise TypeError("one at a time")
        return CANDIDATE


@auto_scheduler.register_workload
def matmul(size: int) -> list[Tensor]:
    """C = A B of square matrices."""
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    return [a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def running(fleet: Fleet) -> FleetRunning:
    """The devices of a fleet, for a task that nobody looks at."""
    a = te.placeholder((4,), name="A")
    task = MeasureTask((a, te.compute((4,), lambda i: a[i] + 1.0, name="C")), Target("llvm"))
    return FleetRunning(fleet, fleet.key(), task, MeasureOptions())


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


def kills(count: int, trials: int, seconds: float, pause: float) -> None:
    """Kill worker processes at random moments while candidates run."""
    os.environ[SECONDS] = str(seconds)
    killed, ended, chance = 0, threading.Event(), random.Random(0)
    with Fleet.local(workers=4, cores=4, device=DEVICE, devices=4, patience_s=300) as fleet:
        place = running(fleet)

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
        found = Counter(position for position, _, _ in place.run(Same(trials), lambda: math.inf))
        taken = time.perf_counter() - start
        ended.set()
        killer.join()
        place.close()
    lost, twice = trials - len(found), sum(times - 1 for times in found.values())
    print(f"{killed} workers killed in {taken:.0f} s, {trials} candidates: {lost} lost, {twice} came twice")


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
    parser.add_argument("what", choices=("overhead", "devices", "kills", "memory"))
    parser.add_argument("numbers", type=int, nargs="*", help="numbers of devices")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, help="that a simulated device takes for a candidate")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between kills, on average")
    options = parser.parse_args()
    if options.what == "overhead":
        overhead(options.trials or 256, options.rounds)
    elif options.what == "devices":
        for count in options.numbers or [1, 8, 64]:
            throughput(count, options.seconds or 0.05)
    elif options.what == "kills":
        kills(options.kills, options.trials or 2000, options.seconds or 0.2, options.pause)
    else:
        memory(options.trials or 100_000, 64, options.seconds or 0.002)


if __name__ == "__main__":
    main()
