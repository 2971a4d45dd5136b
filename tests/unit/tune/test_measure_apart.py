"""Programs that are compiled where nobody is timed run while others are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureErrorNo, Measurer, MeasureTask, Program
from tensorexpr.tune.measure.builder import Build, Failure
from tensorexpr.tune.measure.compiled import CompiledCandidate
from tensorexpr.tune.measure.places import Places, Ran

from .programs import matmul

TASK = MeasureTask(matmul(8), Target("llvm"))
BROKEN = 2


@dataclass
class Scene:
    """What happens, in order."""

    events: list[str] = field(default_factory=list)
    compiling: frozenset[str] = frozenset({"compiler"})
    timing: frozenset[str] = frozenset({"board"})

    def places(self) -> Places:
        """Both places of this scene."""
        return Places(lambda *_: Compiling(self), lambda *_: Board(self))

    def measured(self, programs: Sequence[Program]) -> list[tuple[int, MeasureErrorNo]]:
        with Measurer(TASK, places=self.places()) as measurer:
            return [(result.number, result.error_no) for result in measurer.measure(programs)]


class Idle:
    """What places do that have nothing to do."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.pids: list[int] = []

    def start(self) -> None: ...
    def prepare(self) -> None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...


class Compiling(Idle):
    """Compiles one program, and the next ones when that has run, if nobody waits for all."""

    def build(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build]]:
        for place in range(len(programs)):
            yield self._made(place)

    def arriving(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build] | None]:
        if not programs:
            return
        yield self._made(0)
        for _ in range(100):
            if "run 0" not in self.scene.events:
                yield None
        assert "run 0" in self.scene.events, "nobody ran what was compiled"
        for place in reversed(range(1, len(programs))):
            yield self._made(place)

    def hosts(self) -> Set[str]:
        return self.scene.compiling

    def _made(self, place: int) -> tuple[int, Build]:
        self.scene.events.append(f"compile {place}")
        failed = Failure(MeasureErrorNo.COMPILE_HOST, "no")
        return place, Build(failed if place == BROKEN else CompiledCandidate(b"", f"entry{place}", (), (), {}, 0, 0), 0.0)


class Board(Idle):
    """Runs candidates, one after the other."""

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        return self.run_arriving(iter(candidates), best)

    def run_arriving(self, candidates: Iterator[CompiledCandidate | None], best: Callable[[], float]) -> Iterator[Ran]:
        number = 0
        for candidate in candidates:
            if candidate is not None:
                self.scene.events.append(f"run {candidate.entry.removeprefix('entry')}")
                outcome: dict[str, Any] = {"costs": [1.0], "number": 1, "raced": False, "disturbed": False, "verified": True, "timings": {}}
                yield number, outcome, 0.0
                number += 1

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]]:
        return [[1.0] * rounds for _ in candidates]

    def hosts(self) -> Set[str]:
        return self.scene.timing


def programs() -> list[Program]:
    """Five, of which one is refused before it is compiled; the numbers say the places."""
    return [*(Program(place, Trace()) for place in range(4)), Program(4, Trace(), refused="not at all")]


WANTED = [(0, MeasureErrorNo.NO_ERROR), (1, MeasureErrorNo.NO_ERROR), (2, MeasureErrorNo.COMPILE_HOST), (3, MeasureErrorNo.NO_ERROR)]


def test_boards_run_while_others_compile() -> None:
    scene = Scene()
    assert sorted(scene.measured(programs())) == [*WANTED, (4, MeasureErrorNo.INSTANTIATION_ERROR)]
    assert scene.events.index("run 0") < scene.events.index("compile 1")
    # results belong to their programs in whatever order these were compiled
    assert [event for event in scene.events if event.startswith("run")] == ["run 0", "run 3", "run 1"]


@pytest.mark.parametrize("timing", [{"compiler"}, {"compiler", "board"}])
def test_nobody_compiles_beside_what_is_timed(timing: set[str]) -> None:
    scene = Scene(timing=frozenset(timing))
    assert scene.measured(programs()) == [*WANTED, (4, MeasureErrorNo.INSTANTIATION_ERROR)]
    assert scene.events == [*(f"compile {place}" for place in range(4)), "run 0", "run 1", "run 3"]


def test_all_may_fail_to_compile() -> None:
    assert Scene().measured([Program(7, Trace(), refused="not at all")]) == [(7, MeasureErrorNo.INSTANTIATION_ERROR)]
