"""The fuzzer: random computations under random schedules for random targets, checked in every phase and, where this machine can run it, as
machine code, until time is up.

A case is drawn from bytes that the seed and the case's number determine, so `draw_case(seed, number)` makes it again,
whatever ran before it (as long as the strategies are the same). A corpus keeps cases as JSON and outlives the strategies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..dataclass import dataclass, field, replace
from ..errors import ScheduleError
from ..tir.interpreter import IterationLimitError
from .case import Case, shrink
from .check import PHASES
from .strategies import compute_dags, grids, schedules, targets
from .strategies.dags import LAYERS

MAX_STEPS = 20
MAX_FAILURES = 10
RUNNING = "running.json"
_BYTES = 1 << 13  # a case of 20 steps takes about 500
_GRID_STEPS = 20  # that a schedule of blocks and threads may well have


def draw_case(seed: int, number: int, max_steps: int = MAX_STEPS) -> Case:
    """Case `number` of the sequence that belongs to `seed`."""
    drawn: list[Case] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        dag = data.draw(compute_dags(layers=tuple(LAYERS), unused=True))
        is_grid = max_steps >= _GRID_STEPS and data.draw(st.integers(0, 7)) == 0
        schedule = data.draw(grids(dag.outputs) if is_grid else schedules(dag.outputs, max_steps=max_steps, argument_layouts=True))
        drawn.append(Case(dag.tensors, schedule.trace, number % (1 << 31), target=str(data.draw(targets()))))

    # numbers of its own for each case, so that any can be repeated without those before it
    generator = np.random.default_rng([seed, number])
    draw_from: Callable[[bytes], object] = draw.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
    while not drawn:  # bytes that the strategies reject are replaced by the next ones
        draw_from(generator.bytes(_BYTES))
    return drawn[0]


@dataclass
class Report:
    """What a run did: cases and steps drawn, cases with too many iterations, cases that are refused where bounds and arguments are
    known, the shrunken failures by number, and the seconds it took."""

    cases: int = 0
    steps: int = 0
    unfinished: int = 0
    refused: int = 0
    failures: dict[int, Case] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.cases / self.seconds if self.seconds else 0.0
        unfinished = f", {self.unfinished} with too many iterations" if self.unfinished else ""
        refused = f", {self.refused} refused" if self.refused else ""
        counted = f"{self.cases} cases, {self.steps} steps, {self.seconds:.1f} s, {rate:.1f} cases/s"
        return f"{counted}{unfinished}{refused}, {len(self.failures)} failed"


def fuzz(
    minutes: float,
    seed: int = 0,
    corpus: Path | None = None,
    phases: Sequence[int] = PHASES,
    max_steps: int = MAX_STEPS,
    cases: int | None = None,
    first: int = 0,
    say: Callable[[str], None] = print,
) -> Report:
    """Draw cases and check them until time is up or `MAX_FAILURES` of them failed.

    Args:
        minutes: when to stop.
        seed: of the sequence of cases.
        corpus: folder for failures, `case-<seed>-<number>.json`. The case that is running stands there as `running.json`,
            so that one that kills the process is not lost.
        phases: lowering phases after which the loop IR is interpreted; the machine code runs where this machine can run it.
        max_steps: proposals for a schedule; those that are illegal are dropped.
        cases: stop after so many.
        first: number of the first case.
        say: where failures are reported, with the program that repeats them.
    """
    report = Report()
    start = time.monotonic()
    number = first
    # of `cases` None the last condition always holds
    while time.monotonic() - start < minutes * 60 and len(report.failures) < MAX_FAILURES and number - first != cases:
        case = draw_case(seed, number, max_steps)
        _keep(corpus, RUNNING, case)
        try:
            mismatch = case.check(phases)
        except (IterationLimitError, ScheduleError) as error:
            mismatch = None
            report.unfinished += isinstance(error, IterationLimitError)
            report.refused += isinstance(error, ScheduleError)
        if mismatch is not None:
            small = shrink(replace(case, error=mismatch.problem), phases)
            report.failures[number] = small
            _keep(corpus, f"case-{seed}-{number}.json", small)
            say(f"# Case {number} of seed {seed}: {len(case.trace)} steps, {len(small.trace)} after shrinking")
            say("\n".join(f"# {line}".rstrip() for line in small.error.splitlines()))
            say(small.program(phases))
        report.cases += 1
        report.steps += len(case.trace)
        number += 1
    if corpus is not None:
        (corpus / RUNNING).unlink(missing_ok=True)
    report.seconds = time.monotonic() - start
    return report


def _keep(corpus: Path | None, name: str, case: Case) -> None:
    if corpus is not None:
        corpus.mkdir(parents=True, exist_ok=True)
        (corpus / name).write_text(case.dumps() + "\n", encoding="utf-8")
