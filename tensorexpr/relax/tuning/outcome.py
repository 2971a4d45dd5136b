"""What came of tuning a network."""

from __future__ import annotations

from pathlib import Path

from ...auto_scheduler.dispatcher import ApplyHistoryBest
from ...dataclass import dataclass
from ..runtime.executable import Executable

_SHOWN = 0.005  # of a run: kernels that take less, and that nobody tuned, share a row of the table


@dataclass(frozen=True)
class TaskOutcome:
    """A task in the end.

    Args:
        name: the first kernel that it stands for.
        workload_key: by which records know it; "" of kernels that can't be tuned.
        kernels: all of them.
        calls: how often they run in one run of the network.
        before_s, after_s: seconds of all of these calls within the network, by rules and by what was chosen.
        trials: programs that were measured, those of earlier runs included.
        origin: "record" where a found program was chosen, else "rule", or why there is none.
    """

    name: str
    workload_key: str
    kernels: tuple[str, ...]
    calls: int
    before_s: float
    after_s: float
    trials: int
    origin: str

    @property
    def gain_s(self) -> float:
        """Seconds that a run of the network takes less by it."""
        return self.before_s - self.after_s

    @property
    def gain(self) -> str:
        """How many times as fast a chosen program is, as text; what is as it was only differs by the noise of two runs."""
        return f"{self.before_s / self.after_s:.2f}x" if self.origin == "record" and self.after_s else "-"


@dataclass(frozen=True)
class NetworkTuning:
    """A tuned network.

    Args:
        tasks: what was done to its kernels, the most time first.
        untuned_s, tuned_s: seconds of a run of the network, timed in turn in the end; `tuned_s` is that of `executable`.
        seconds: what tuning took.
        budget_s: what it had.
        trials: programs that were measured in this run.
        is_interrupted: whether the search was broken off by the user.
        records: the log of all trials, with which a later run goes on.
        best_records: the log of the chosen programs, with which the network is built: `best()`.
        executable: the network with the chosen programs.
        notes: what records of the logs weren't used, and which part of their key is another one.
    """

    tasks: tuple[TaskOutcome, ...]
    untuned_s: float
    tuned_s: float
    seconds: float
    budget_s: float
    trials: int
    is_interrupted: bool
    records: Path
    best_records: Path
    executable: Executable
    notes: tuple[str, ...] = ()

    @property
    def speedup(self) -> float:
        """How many times as fast a run of the network is."""
        return self.untuned_s / self.tuned_s

    def best(self) -> ApplyHistoryBest:
        """The context in which the network is built with the chosen programs: `with tuned.best(): relax.build(mod, target, params)`."""
        return ApplyHistoryBest(str(self.best_records))

    def __str__(self) -> str:
        head = f"{'ms before':>10} {'ms after':>10} {'gain':>6} {'calls':>6} {'trials':>7}  kernel"
        shown = [one for one in self.tasks if one.trials or one.before_s >= _SHOWN * self.untuned_s]
        rows = [
            f"{one.before_s * 1e3:10.3f} {one.after_s * 1e3:10.3f} {one.gain:>6} {one.calls:6d} {one.trials:7d}  {one.name} ({one.origin})"
            for one in shown
        ]
        if others := [one for one in self.tasks if one not in shown]:
            before, after = (sum(getattr(one, name) for one in others) * 1e3 for name in ("before_s", "after_s"))
            calls = sum(one.calls for one in others)
            rows.append(
                f"{before:10.3f} {after:10.3f} {'-':>6} {calls:6d} {0:7d}  {len(others)} kernels of less than {_SHOWN:.1%} of a run each"
            )
        words = ", interrupted after" if self.is_interrupted else " in"
        last = (
            f"network: {self.untuned_s * 1e3:.3f} ms untuned, {self.tuned_s * 1e3:.3f} ms tuned, {self.speedup:.2f}x; "
            f"{self.trials} programs measured{words} {self.seconds:.0f} s"
        )
        return "\n".join([head, *rows, *self.notes, last])
