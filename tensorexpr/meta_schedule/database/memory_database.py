"""`MemoryDatabase`: workloads and records of this process."""

from __future__ import annotations

from ...tir.function import IRModule
from .database import Database
from .module_equality import module_equality as equality_of
from .records import TuningRecord, Workload


class MemoryDatabase(Database, kind="memory"):
    """Forgets all when the process ends.

    Args:
        module_equality: when two programs are the same workload: "structural", "ignore-ndarray" or "anchor-block".
    """

    def __init__(self, module_equality: str = "structural") -> None:
        self._equality = equality_of(module_equality)
        self._workloads: dict[int, list[Workload]] = {}
        self._records: list[TuningRecord] = []

    def _find(self, mod: IRModule, key: int) -> Workload | None:
        return next((known for known in self._workloads.get(key, ()) if self._equality.equal(known.mod, mod)), None)

    def has_workload(self, mod: IRModule) -> bool:
        """Whether a program is known."""
        return self._find(mod, self._equality.hash(mod)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a program, which is added if it isn't known."""
        key = self._equality.hash(mod)
        found = self._find(mod, key)
        if found is None:
            found = Workload(mod, key)
            self._add_workload(found)
        return found

    def _add_workload(self, workload: Workload) -> None:
        self._workloads.setdefault(workload.shash, []).append(workload)

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        self._records.append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, the best first."""
        if top_k <= 0:
            return []
        valid = [record for record in self._records if record.workload is workload and record.is_valid]
        return sorted(valid, key=lambda record: record.mean)[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)
