"""Tuning records: one line of strict JSON for each trial, appended to a log and read back.

record     what a line holds, from and to JSON;  schema: the checks of its fields
log        append_record, load_records, best_record
v06        lines of TVM's logs;  v02: of AutoTVM's;  v06_replay: their steps as a trace;  v06_extents: tile sizes as TE cuts them
"""

from .log import append_record, append_records, best_record, choose_best, load_records, misfit, read_log
from .record import FORMAT, VERSION, Record, make_record, parse_record
from .schema import parse_json
from .v06 import V06Line, checked_v06, is_v06, parse_v06
from .v06_replay import replay_v06

__all__ = [
    "FORMAT",
    "VERSION",
    "Record",
    "V06Line",
    "append_record",
    "append_records",
    "best_record",
    "checked_v06",
    "choose_best",
    "is_v06",
    "load_records",
    "make_record",
    "misfit",
    "parse_json",
    "parse_record",
    "parse_v06",
    "read_log",
    "replay_v06",
]
