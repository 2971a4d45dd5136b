"""The search within the time that is left: which tasks get turns, and rounds of one task scheduler, whatever style finds their programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...auto_scheduler.callbacks import RecordToFile
from ...auto_scheduler.limits import least_seconds
from ...auto_scheduler.options import LocalBuilder, LocalRunner, TuningOptions
from ...auto_scheduler.policy import SketchPolicy
from ...auto_scheduler.task_scheduler import TaskScheduler
from ...dataclass import dataclass, fields, replace
from ...target import Target
from ..network_tasks import NetworkTask
from .comparing import Network
from .progress import Watch
from .styles import By, policies_by

_EACH_S = 3.0  # the first programs of a task: of so many seconds of the budget each, tasks get any
_ROUND = 8  # programs of a round: enough for all compile workers, few enough to go on soon where more is to be gained
# A search that takes no longer than to measure what it proposes; within seconds the analytic model chooses, which needs no thousands.
_SEARCH: Mapping[str, float] = {"evolutionary_search_population": 512, "evolutionary_search_num_iters": 2, "descent_share": 0.0}
_LONG_S = 300.0  # a budget that has time for the usual search, and for the descents at its end
_BLOCKS_S = 1.0  # for making a round's programs of blocks, under a shorter budget
_REPEAT_MS = 4  # of calls that each follow a sweep, whose median counts
_KERNELS = "tensorexpr.tune.measure.kernel_compiling:make_compiler"


@dataclass(frozen=True)
class Chosen:
    """A task that gets turns.

    Args:
        task: of the network.
        least_s: seconds that no program of a call takes less than.
        rules_s: seconds of a call of its kernel by rules within the network.
    """

    task: NetworkTask
    least_s: float
    rules_s: float


def as_in_a_network(runner: LocalRunner, target: Target) -> LocalRunner:
    """How kernels of a network are timed: each call finds in the caches of a core what others left there."""
    if runner.swept_bytes or runner.enable_cpu_cache_flush:
        return runner
    given = {one.name: getattr(runner, one.name) for one in fields(LocalRunner)}  # whatever kind of runner it is
    shortest = _REPEAT_MS if runner.min_repeat_ms is None else runner.min_repeat_ms
    return LocalRunner(**{**given, "swept_bytes": 2 * target.machine.caches[1].size, "min_repeat_ms": shortest})


def promising(network: Network, tasks: Sequence[NetworkTask]) -> list[Chosen]:
    """Tasks with their limits; first where most of a run may be gained."""

    def most(one: Chosen) -> float:
        calls = network.calls_of(one.task.kernels)
        return calls * (one.rules_s - one.least_s)

    limits = [
        Chosen(
            one,
            least_seconds(one.task.compute_dag, network.target),
            network.seconds_of(one.kernels) / max(1, network.calls_of(one.kernels)),
        )
        for one in tasks
    ]
    return sorted(limits, key=most, reverse=True)


def affordable(chosen: Sequence[Chosen], seconds: float) -> Sequence[Chosen]:
    """Those of the first tasks that there is time for."""
    return chosen[: max(1, int(seconds / _EACH_S))]


def search(
    chosen: Sequence[Chosen], seconds: float, recorder: RecordToFile, watch: Watch, builder: LocalBuilder, runner: LocalRunner, by: By
) -> list[str]:
    """Rounds of the task scheduler, which go on with the log.

    Returns:
        in words, which tasks the style has no programs of.
    """
    is_short = seconds < _LONG_S
    # What a kernel is compared with is the one by rules, within the network.
    params = {"measure_unscheduled": 0, **(_SEARCH if is_short else {})}
    tasks = [one.task.task for one in chosen]
    policies, notes = policies_by(by, tasks, recorder.filename, params, **({"seconds": _BLOCKS_S} if is_short else {}))
    for note in notes:
        watch.say(note)
    if not policies:
        return notes
    taken = [chosen[number] for number in policies]
    for number, policy in policies.items():
        if type(policy) is not SketchPolicy:  # of sketches the first program is the one by rules, timed as the others are
            watch.expect(chosen[number].task.task.workload_key, chosen[number].rules_s)
    scheduler = TaskScheduler(
        [one.task.task for one in taken], [float(one.task.count) for one in taken], load_log_file=recorder.filename,
        callbacks=[], least_costs=[one.least_s for one in taken], compares=False,
    )  # fmt: skip
    if builder.build_func == "default":
        builder = replace(builder, build_func=_KERNELS)
    options = TuningOptions(
        num_measures_per_round=_ROUND, verbose=0, builder=builder, runner=runner, measure_callbacks=[recorder, watch],
        budget_s=seconds,
    )  # fmt: skip
    scheduler.tune(options, search_policy=list(policies.values()))
    return notes
