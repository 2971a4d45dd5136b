"""The fuzzer from the command line.

    python -m tensorexpr.testing fuzz --minutes 10 --seed 1 --corpus cases
    python -m tensorexpr.testing replay cases

`fuzz` checks random schedules of random computations; a failure is shrunk, written to the corpus and printed as a program.
`replay` checks the cases of a corpus again. Both exit with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import TensorExprError
from .case import read
from .check import PHASES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("TENSOREXPR_CACHE", "0")  # thousands of programs, none of which is built again
    return _fuzz(options) if options.command == "fuzz" else _replay(options.corpus, options.phases)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tensorexpr.testing", description="Check random schedules of random computations.")
    commands = parser.add_subparsers(dest="command", required=True)
    fuzz = commands.add_parser("fuzz", help="draw cases and check them until time is up")
    fuzz.add_argument("--minutes", type=float, default=1.0)
    fuzz.add_argument("--seed", type=_natural, default=0)
    fuzz.add_argument("--corpus", type=Path, default=None, help="folder for the cases that fail")
    fuzz.add_argument("--max-steps", type=_natural, default=20, help="proposals for a schedule")
    fuzz.add_argument("--cases", type=_natural, default=None, help="stop after so many cases")
    fuzz.add_argument("--first", type=_natural, default=0, help="number of the first case; with --cases 1 that case alone")
    replay = commands.add_parser("replay", help="check the cases of a corpus again")
    replay.add_argument("corpus", type=Path)
    for command in (fuzz, replay):
        command.add_argument("--phases", type=_phases, default=PHASES, help="phases to interpret, such as 0,1,2,3")
    return parser


def _natural(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, not {text!r}")
    return int(text)


def _phases(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if any(part not in map(str, PHASES) for part in parts):
        raise argparse.ArgumentTypeError(f"expected some of {','.join(map(str, PHASES))}, not {text!r}")
    return tuple(map(int, parts))


def _fuzz(options: argparse.Namespace) -> int:
    try:
        from .fuzz import fuzz
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        print("fuzz draws its cases with Hypothesis: pip install tensorexpr[testing]", file=sys.stderr)
        return 1
    report = fuzz(options.minutes, options.seed, options.corpus, options.phases, options.max_steps, options.cases, options.first)
    print(f"# {report}")
    return 1 if report.failures else 0


def _replay(corpus: Path, phases: Sequence[int]) -> int:
    paths = sorted(corpus.glob("*.json"))
    if not paths:
        print(f"{corpus} holds no case; `fuzz --corpus {corpus}` writes those that fail", file=sys.stderr)
        return 1
    failed = 0
    for path in paths:
        problem, program = _replayed(path, phases)
        if problem:
            failed += 1
            print("\n".join(f"# {line}".rstrip() for line in f"{path.name}: {problem}".splitlines()))
            print(program)
    print(f"# {len(paths)} cases, {failed} failed")
    return 1 if failed else 0


def _replayed(path: Path, phases: Sequence[int]) -> tuple[str, str]:
    """What is wrong with the case of a file, and the program that shows it; two empty strings if nothing is."""
    try:
        mismatch = read(path).check(phases)
    except TensorExprError as error:  # it is no case, or its definitions can't be evaluated
        return str(error), ""
    return ("", "") if mismatch is None else (mismatch.problem, mismatch.program)


if __name__ == "__main__":
    sys.exit(main())
