"""What a benchmark measured: one row for each case and contender, and the machine it ran on, as JSON."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import processor
from ...dataclass import asdict, dataclass, field
from ...errors import RecordError
from ...target import Target

VERSION = 1
# Fields that only our own kernels have.
_OURS = {"schedule", "trials", "tuning", "building"}


@dataclass(frozen=True)
class Row:
    """One contender on one case. Seconds per call: the median, the 20th and the 80th percentile, and the median with cold caches; NaN
    where nothing was measured, with the reason in `note`. Rates are those of the 20th percentile, as noise only ever adds.

    Of our own kernels `schedule` says where the schedule is from, `trials` how many programs were measured to find it, and
    `tuning` how many seconds that took, if it was in this run, and `building` how many a network took until its first result.
    """

    suite: str
    case: str
    contender: str
    median: float
    low: float
    high: float
    cold: float
    flops: float
    bytes: float
    note: str = ""
    schedule: str = ""
    trials: int = 0
    tuning: float | None = None
    building: float | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the contender was timed although it computes something else: its time stands in the table, but is no peer's best."""
        return self.note.startswith("wrong:")

    @property
    def gflops(self) -> float:
        """Arithmetic per second."""
        return self.flops / self.low / 1e9

    @property
    def bandwidth(self) -> float:
        """Argument bytes per second, in GB/s."""
        return self.bytes / self.low / 1e9


@dataclass(frozen=True)
class Results:
    """All rows of one run."""

    rows: tuple[Row, ...]
    limits: Mapping[str, float]
    machine: Mapping[str, Any] = field(default_factory=dict)

    def of_case(self, case: str) -> list[Row]:
        """The rows of a case, ours first."""
        found = [row for row in self.rows if row.case == case]
        return sorted(found, key=lambda row: not row.contender.startswith("tensorexpr"))

    def cases(self) -> list[str]:
        """The cases in the order in which they were measured."""
        return list(dict.fromkeys(row.case for row in self.rows))

    def write(self, path: Path) -> None:
        """Write the results as a JSON file."""
        data = {"version": VERSION, "machine": dict(self.machine), "limits": dict(self.limits), "rows": [_plain(row) for row in self.rows]}
        path.write_text(json.dumps(data, indent=1) + "\n")


def read(path: Path) -> Results:
    """The results in a JSON file.

    Raises:
        RecordError: if the file doesn't hold results of this version.
    """
    try:
        data = json.loads(path.read_text())
        rows = tuple(Row(**{**row, **{k: _number(row[k]) for k in ("median", "low", "high", "cold")}}) for row in data["rows"])
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']}")
        return Results(rows, data["limits"], data["machine"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} holds no results of version {VERSION}: {error}") from error


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _plain(row: Row) -> dict[str, Any]:
    # JSON has no NaN
    made = {key: None if value != value else value for key, value in asdict(row).items()}
    return {key: value for key, value in made.items() if key not in _OURS or value}


def describe_machine(versions: Mapping[str, str], target: Target) -> dict[str, Any]:
    """What ran today: versions of the contenders, the processor, the target if it is another one, and the operating system."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor.host_cpu(),
        **({} if target.mcpu == processor.host_cpu() else {"target": target.mcpu}),
        "vector_bits": target.vector_bits,
        "threads": target.num_cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": dict(versions),
    }


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers; NaN of none."""
    import math

    usable = [value for value in values if value > 0]
    return math.exp(sum(map(math.log, usable)) / len(usable)) if usable else float("nan")
