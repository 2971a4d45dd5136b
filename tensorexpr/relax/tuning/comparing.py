"""Which of the programs that were found a network runs: those whose kernels take less within it than the ones by rules.

Alone a kernel finds its weights in the cache where its last call left them; within a network those of other layers were there since. So
what the search found the fastest is compared once more where it will run, with what it found the next fastest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ...auto_scheduler.dispatcher import ApplyHistoryBest
from ...auto_scheduler.loaded import LoadedRecord
from ...auto_scheduler.records import load_records
from ...dataclass import dataclass
from ...errors import TuningError
from ...runtime.ndarray import NDArray
from ...target import Target
from ...tir.function import IRModule
from ...tune.records import misfit
from ..build import build
from ..network_tasks import NetworkTask
from ..runtime.executable import Executable
from .timing import difference, kernel_times, timed_in_turn

_NO_GAIN = 0.99  # a kernel that takes more than this of its former time hasn't gained: two runs differ by as much
_LARGEST_DIFFERENCE = 1e-2  # of the largest result: sums in another order, through all layers
# Programs of each task that are tried within the network, and how much slower than the best one they may be alone.
_TRIED, _NEARLY = 2, 1.1

Times = Mapping[str, tuple[float, int]]
Winners = Mapping[str, LoadedRecord]


@dataclass(frozen=True)
class Network:
    """What is tuned: the fused graph, by rules in machine code, its inputs, and what its kernels take."""

    graph: IRModule
    target: Target
    untuned: Executable
    inputs: Sequence[NDArray]
    times: Times
    untuned_s: float

    def seconds_of(self, kernels: Collection[str]) -> float:
        """What some kernels take of a run."""
        return seconds_of(self.times, kernels)

    def calls_of(self, kernels: Collection[str]) -> int:
        """How often some kernels are called in a run."""
        return sum(self.times.get(name, (0.0, 0))[1] for name in kernels)

    def built(self, records: Iterable[LoadedRecord]) -> Executable:
        """The network with the programs of records."""
        with ApplyHistoryBest(list(records)):
            made: Executable = build(self.graph, self.target, relax_pipeline=None, progress=False)
        return made


@dataclass(frozen=True)
class Compared:
    """What was chosen: records by workload key, the network with them, and what its kernels and the whole take before and after."""

    kept: Winners
    tuned: Executable
    before: Times
    after: Times
    untuned_s: float
    tuned_s: float


def seconds_of(times: Times, kernels: Collection[str]) -> float:
    """What some kernels take of a run."""
    return sum(times.get(name, (0.0, 0))[0] for name in kernels)


def compared(network: Network, tasks: Sequence[NetworkTask], log: Path, swept_bytes: int, seconds: float) -> Compared:
    """The programs of a log that make a network faster, compared kernel by kernel and then as a whole.

    Args:
        network: by rules.
        tasks: its tasks.
        log: of the search; it need not be there.
        swept_bytes: how its records were timed; others can't be compared.
        seconds: of each comparison.

    Raises:
        TuningError: if verified programs make the network compute something else.
    """
    kernels = {one.task.workload_key: one.kernels for one in tasks}
    rivals = _best_few(tasks, load_records(log, repeats=True) if log.exists() else [], swept_bytes)
    kept, tuned, before, after = _faster(network, rivals, kernels, seconds)
    untuned_s, tuned_s = timed_in_turn([network.untuned, tuned], network.inputs, 2 * seconds)
    if not kept or tuned_s > untuned_s:
        # Kernel by kernel each may be faster, and all of them aren't: threads, and what one leaves in the caches for the next.
        kept, tuned, after, tuned_s = {}, network.untuned, before, untuned_s
    return Compared(kept, tuned, before, after, untuned_s, tuned_s)


def _best_few(tasks: Sequence[NetworkTask], records: Sequence[LoadedRecord], swept_bytes: int) -> dict[str, list[LoadedRecord]]:
    """The best verified programs of each task by its key, the fastest first."""
    found: dict[str, list[LoadedRecord]] = {}
    for one in tasks:
        key, dag, target = one.task.workload_key, one.task.compute_dag.hash_key(), str(one.task.target.resolved())
        fitting = [r for r in records if r.swept_bytes == swept_bytes and len(r.trace) and not misfit(r, key, dag, target)]
        # By program: of what was timed several times the last one counts.
        known = sorted({record.trace: record for record in fitting}.values(), key=lambda record: record.median)
        if known:
            found[key] = [record for record in known[:_TRIED] if record.median <= _NEARLY * known[0].median]
    return found


def _faster(
    network: Network, rivals: Mapping[str, Sequence[LoadedRecord]], kernels: Mapping[str, Sequence[str]], seconds: float
) -> tuple[dict[str, LoadedRecord], Executable, Times, Times]:
    """The records whose kernels are faster within the network, the network with them, and what kernels take by rules and with them."""
    if not rivals:
        return {}, network.untuned, network.times, network.times
    rounds = range(max(map(len, rivals.values())))
    variants = [{key: few[min(n, len(few) - 1)] for key, few in rivals.items()} for n in rounds]
    built = [network.built(one.values()) for one in variants]
    for one in built:
        _check(network, one)
    before, *times = kernel_times([network.untuned, *built], network.inputs, seconds)
    best = {key: min(range(len(times)), key=lambda n, key=key: seconds_of(times[n], kernels[key])) for key in rivals}  # type: ignore[misc]
    spent = {key: [(seconds_of(before, kernels[key]), seconds_of(times[n], kernels[key]))] for key, n in best.items()}
    kept = {key: variants[n][key] for key, n in best.items() if _gained(spent[key])}
    if not kept:
        return {}, network.untuned, before, before
    tuned = next((made for variant, made in zip(variants, built, strict=True) if variant == kept), None) or network.built(kept.values())
    before, after = kernel_times([network.untuned, tuned], network.inputs, seconds)
    for key in kept:
        spent[key].append((seconds_of(before, kernels[key]), seconds_of(after, kernels[key])))
    # The best of several is partly the luckiest: what doesn't gain over both comparisons wasn't faster.
    confirmed = {key: record for key, record in kept.items() if _gained(spent[key])}
    if confirmed != kept:
        tuned = network.built(confirmed.values()) if confirmed else network.untuned
        others = {name: before[name] for key in kept if key not in confirmed for name in kernels[key] if name in before}
        after = {**after, **others}
    return confirmed, tuned, before, after


def _gained(spent: Sequence[tuple[float, float]]) -> bool:
    """Whether a kernel takes less, by what it took before and after in each comparison."""
    return sum(after for _, after in spent) < _NO_GAIN * sum(before for before, _ in spent)


def _check(network: Network, tuned: Executable) -> None:
    if not difference(network.untuned, tuned, network.inputs) <= _LARGEST_DIFFERENCE:
        raise TuningError("tune_network: the network with verified programs computes something else than by rules; please report it")
