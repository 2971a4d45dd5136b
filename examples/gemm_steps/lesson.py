"""What the steps of this lesson share: the product they schedule, the tile they use, and the figures they print."""

from __future__ import annotations

import argparse
import importlib
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule
from tensorexpr.tir.dtype import to_numpy

Program = tuple[Schedule, list[te.Tensor]]
Step = Callable[[int], Program]

TARGET = tvm.target.Target("llvm")
LANES = TARGET.vector_bits // 32  # floats in a register
# ROWS x VECTORS accumulators, VECTORS of B and one broadcast element of A: 29 of 32 registers, or 15 of 16.
ROWS, VECTORS = 6, TARGET.vector_registers // 8
PANEL = VECTORS * LANES  # columns of a tile

_SECONDS = 0.07  # that a side is called for in a turn
_PAUSE = 0.15  # until the threads of the other side sleep


def product(size: int) -> tuple[Schedule, te.Tensor, te.Tensor, te.Tensor]:
    """C[i, j] = sum over k of A[i, k] * B[k, j], all of them squares, and its schedule before the first step."""
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), a, b, c


@dataclass(frozen=True)
class Figures:
    """What was measured: multiply-adds count as two operations."""

    step: str
    size: int
    gflops: float
    numpy_gflops: float

    @property
    def ratio(self) -> float:
        """How many times as fast as NumPy in float32."""
        return self.gflops / self.numpy_gflops


def measure(step: Step, size: int, quick: bool = False) -> Figures:
    """Build a step, compare its result with NumPy's, and time both in turn; with `quick` once, for a first impression."""
    schedule, args = step(size)
    kernel = tvm.build(schedule, args, TARGET)
    left, right = (np.random.default_rng(seed).standard_normal((size, size), np.float32) for seed in range(2))
    ours = [matrix.astype(to_numpy(tensor.dtype)) for matrix, tensor in zip((left, right), args[:2], strict=True)]
    result, expected = np.full((size, size), np.nan, np.float32), np.empty((size, size), np.float32)
    kernel(*ours, result)
    wanted = ours[0].astype(np.float64) @ ours[1].astype(np.float64)
    np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=1e-4 * size**0.5)
    mine = theirs = float("inf")
    for _ in range(1 if quick else 3):
        theirs = min(theirs, _seconds(lambda: np.matmul(left, right, out=expected), quick))
        mine = min(mine, _seconds(lambda: kernel(*ours, result), quick))
    work = 2.0 * size**3 / 1e9
    return Figures(Path(inspect.getfile(step)).stem, size, work / mine, work / theirs)


def _seconds(call: Callable[[], object], quick: bool) -> float:
    """The least of several calls that fill some time."""
    time.sleep(0 if quick else _PAUSE)
    best = total = 0.0
    while total < (0.002 if quick else _SECONDS):
        start = time.perf_counter()
        call()
        last = time.perf_counter() - start
        best = min(best or last, last)
        total += last
    return best


def steps() -> list[str]:
    """The names of all steps, in order."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[0-9][0-9]_*.py"))


@dataclass(frozen=True)
class Loaded:
    """A file of the lesson: its function, the first line of what it says of itself, the CPU feature it needs if any, and
    what sizes have to be multiples of."""

    schedule: Step
    summary: str
    needs: str
    multiple: int


def load(name: str) -> Loaded:
    """A step by its name."""
    module = importlib.import_module(name)
    return Loaded(module.schedule, (module.__doc__ or "").splitlines()[0], getattr(module, "NEEDS", ""), getattr(module, "MULTIPLE", 1))


def run(step: Step, arguments: Sequence[str] | None = None) -> None:
    """Measure one step and print a line: what every file of the lesson does when it is run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--quick", action="store_true", help="time few calls")
    options = parser.parse_args(arguments)
    found = measure(step, options.size, options.quick)
    print(f"{found.step}, {found.size}^3: {found.gflops:.1f} GFLOPS, {found.ratio:.2f} x NumPy")
