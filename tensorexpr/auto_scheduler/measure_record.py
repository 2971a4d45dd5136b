"""Tuning logs by the name that they have in TVM, and a command that works on them.

python -m tensorexpr.auto_scheduler.measure_record --mode distill -i log.json -o best.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..errors import TensorExprError
from .callbacks import RecordToFile
from .records import (
    RecordReader,
    distill_record_file,
    dump_record_to_string,
    load_best_record,
    load_record_from_string,
    load_records,
    save_records,
)
from .utils import calc_workload_dis_factor

__all__ = [
    "RecordReader",
    "RecordToFile",
    "calc_workload_dis_factor",
    "distill_record_file",
    "dump_record_to_string",
    "load_best_record",
    "load_record_from_string",
    "load_records",
    "main",
    "save_records",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of this module; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tensorexpr.auto_scheduler.measure_record", description="Work on tuning logs.")
    parser.add_argument("--mode", choices=["distill"], default="distill", help="distill: keep the best record of each workload")
    parser.add_argument("-i", "--input", required=True, help="the log")
    parser.add_argument("-o", "--output", default=None, help="the file to write; by default the log's name with .best.json")
    options = parser.parse_args(arguments)
    output = options.output or f"{options.input}.best.json"
    try:
        count = distill_record_file(options.input, output)
    except TensorExprError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{count} records kept in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
