"""A task whose candidates misbehave as their traces say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureOptions, Measurer, MeasureTask, Program, TimingPolicy

SIZE = 1024


@dataclass(frozen=True)
class Mishap(Trace):
    """A trace that the compilers of `chaos_compilers` understand."""

    name: str = "good"

    def to_json(self) -> list[Any]:
        """The name."""
        return [[self.name]]


@pytest.fixture(scope="session", autouse=True)
def _compilers_importable() -> Iterator[None]:
    """Workers import what their parent can."""
    folder = str(Path(__file__).parent)
    sys.path.append(folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="session")
def task() -> MeasureTask:
    """C = A + 1."""
    a = te.placeholder((SIZE,), name="A")
    c = te.compute((SIZE,), lambda i: a[i] + 1.0, name="C")
    return MeasureTask((a, c), Target("llvm"))


@pytest.fixture(scope="session")
def options() -> MeasureOptions:
    """Options with limits that a healthy candidate keeps on a loaded machine too; nothing here depends on timing, which is short."""
    return MeasureOptions(
        timing=TimingPolicy(min_repeat_ms=0.1, racing_factor=0.0, repeat_factor=0.0, patience_s=0.0, stop_factor=0.0),
        n_parallel=2,
        build_timeout_s=6.0,
        run_timeout_s=5.0,
        build_memory_bytes=256 << 20,
        run_memory_bytes=256 << 20,
        opt_level=0,  # LLVM may make anything of code that misbehaves
        compiler="chaos_compilers:make_compiler",
    )


Programs = Callable[[Sequence[str]], list[Program]]


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Programs that behave as named."""
    return lambda names: [Program(number, Mishap(name=name)) for number, name in enumerate(names)]


@pytest.fixture
def measurer(task: MeasureTask, options: MeasureOptions, _compilers_importable: None) -> Iterator[Measurer]:
    """A running Measurer."""
    with Measurer(task, options) as running:
        yield running
