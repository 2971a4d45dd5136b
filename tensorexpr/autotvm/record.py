"""AutoTVM's logs by TVM's name, and their command line.

python -m tensorexpr.autotvm.record --mode read|pick|split --i log.json [--o best.json] [--begin 0] [--end 5] [--ir]
"""

from __future__ import annotations

import argparse
from statistics import fmean
from typing import NoReturn

from ..errors import TensorExprError
from ..lower.pipeline import lower
from ..tune.measure import MeasureErrorNo
from .logs import AUTOTVM_LOG_VERSION, decode, encode, load_from_buffer, load_from_file, measure_str_key, pick_best, split_workload
from .measure.measure import MeasureInput, MeasureResult
from .task.dispatcher import ApplyHistoryBest
from .task.space import ConfigEntity

__all__ = [
    "AUTOTVM_LOG_VERSION",
    "ApplyHistoryBest",
    "ConfigEntity",
    "MeasureInput",
    "MeasureResult",
    "decode",
    "encode",
    "load_from_buffer",
    "load_from_file",
    "measure_str_key",
    "pick_best",
    "split_workload",
]


def main() -> None:
    """The command line: read, pick or split a log."""
    parser = argparse.ArgumentParser(description="Read logs of AutoTVM, pick the best of them, or split them by task.")
    parser.add_argument("--mode", choices=["read", "pick", "split"], default="read")
    parser.add_argument("--i", required=True, help="the log")
    parser.add_argument("--o", help="where the best records go; <log>.best by default")
    parser.add_argument("--begin", type=int, default=0, help="the first record to show")
    parser.add_argument("--end", type=int, default=5, help="the one after the last")
    parser.add_argument("--ir", action="store_true", help="show the program of each record")
    parser.add_argument("--code", action="store_true", help="refused: build the program and ask it for its source")
    args = parser.parse_args()
    if args.code:
        _no_code(parser)
    if args.mode == "pick":
        pick_best(args.i, args.o or f"{args.i}.best")
    elif args.mode == "split":
        split_workload(args.i)
    else:
        _show(args.i, args.begin, args.end, args.ir)


def _no_code(parser: argparse.ArgumentParser) -> NoReturn:
    parser.error("--code: use --ir, which shows the lowered program; a log of another machine's may not build here")


def _show(path: str, begin: int, end: int, ir: bool) -> None:
    for number, (inp, result) in enumerate(load_from_file(path)):
        if not begin <= number < end:
            continue
        cost = f"{fmean(result.costs) * 1e3:.4g} ms" if not result.error_no else MeasureErrorNo(result.error_no).error_type
        print(f"{number}: {inp.task.workload}, {inp.config}: {cost}")
        if ir:
            try:
                schedule, tensors = inp.task.instantiate(inp.config)
                with inp.target:
                    print(lower(schedule, tensors, simple_mode=True))
            except TensorExprError as error:
                print(f"   no program: {error}")


if __name__ == "__main__":
    main()
