"""Tuning records: one line of strict JSON for each trial, appended to a log and read back.

record     what a line holds, from and to JSON;  schema: the checks of its fields
log        append_record, load_records, best_record
"""

from __future__ import annotations

from .log import append_record, append_records, best_record, load_records
from .record import FORMAT, VERSION, Record, make_record, parse_record

__all__ = [
    "FORMAT",
    "VERSION",
    "Record",
    "append_record",
    "append_records",
    "best_record",
    "load_records",
    "make_record",
    "parse_record",
]
