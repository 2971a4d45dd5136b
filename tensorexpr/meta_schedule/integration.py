"""What releases of 2022 have between networks and the search: `ApplyHistoryBest`, which is a database, and names of `relay_integration`."""

from __future__ import annotations

from typing import Any

from ..later import later
from ..lower.context import PassContext
from .database.database import Database

__getattr__, __dir__ = later(
    __name__,
    {".relax_integration": "ExtractedTask", ".relay_integration": "extract_task=extract_tasks extract_task_from_relay=extract_tasks"},
)


def ApplyHistoryBest(database: Database, te_filter_func: Any = None, logging_func: Any = None) -> Database:
    """A database, within whose `with` builds take the programs that it knows: the database itself does that.

        with ms.ApplyHistoryBest(database):
            lib = relay.build(mod, target, params=params)

    Args:
        database: of `tune_relay`, or a `JSONDatabase` of its files.
        te_filter_func, logging_func: accepted.
    """
    return database


def is_meta_schedule_enabled() -> bool:
    """Whether the current PassContext asks for schedules of `meta_schedule`. A database that is in force counts in any case."""
    return bool(PassContext.current().config.get("relay.backend.use_meta_schedule", False))


def is_meta_schedule_dispatch_enabled() -> bool:
    """Whether the current PassContext lets operators without a record go to `meta_schedule`."""
    return bool(PassContext.current().config.get("relay.backend.use_meta_schedule_dispatch", False))


__all__ = ["ApplyHistoryBest", "is_meta_schedule_dispatch_enabled", "is_meta_schedule_enabled"]
