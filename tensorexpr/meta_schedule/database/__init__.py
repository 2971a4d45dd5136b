"""What is known of programs: workloads and how schedules of them did.

database               the protocol, `Database.current()`
records                Workload, TuningRecord
module_equality        when two programs are the same workload
memory_database, json_database
sql_database           tables: sqlite_database in a file, postgres_database on a server
union_database         the best of several databases, or the first that knows a program
schedule_fn_database   what a function makes when it is asked
"""

from __future__ import annotations

from .database import Database, PyDatabase, create
from .json_database import JSONDatabase
from .memory_database import MemoryDatabase
from .postgres_database import PostgresDatabase
from .records import TuningRecord, Workload
from .schedule_fn_database import ScheduleFnDatabase
from .sqlite_database import SQLiteDatabase
from .union_database import OrderedUnionDatabase, UnionDatabase

__all__ = [
    "Database",
    "JSONDatabase",
    "MemoryDatabase",
    "OrderedUnionDatabase",
    "PostgresDatabase",
    "PyDatabase",
    "SQLiteDatabase",
    "ScheduleFnDatabase",
    "TuningRecord",
    "UnionDatabase",
    "Workload",
    "create",
]
