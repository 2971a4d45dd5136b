"""What the steps of this lesson share: the product they schedule, and what the emulator counts while it runs."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir.dtype import to_numpy

Program = tuple[Schedule, list[te.Tensor]]
Step = Callable[[int], Program]

TARGET = "cuda -arch=sm_80"
_PRODUCTS = ("fma", "mma")  # instructions that multiply and add


def product(size: int, dtype: str = "float32") -> tuple[Schedule, te.Tensor, te.Tensor, te.Tensor]:
    """C[i, j] = sum over k of A[i, k] * B[k, j] in float32, all of them squares, and its schedule before the first step."""
    a, b = te.placeholder((size, size), dtype, name="A"), te.placeholder((size, size), dtype, name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    return te.create_schedule(c.op), a, b, c


def fetched(s: Schedule, copy: te.Tensor, thread: te.IterVar, vector: int) -> None:
    """All threads fetch vectors, neighbours by neighbours."""
    place, lanes = s[copy].split(s[copy].fuse(*copy.op.axis), factor=vector)
    rest, own = s[copy].split(place, factor=thread.dom.extent)
    s[copy].bind(own, thread)
    s[copy].unroll(rest)
    s[copy].vectorize(lanes)


@dataclass(frozen=True)
class Figures:
    """What was counted, for each 1,024 multiply-adds of the product.

    Args:
        step: the file.
        size: of the squares.
        instructions: of warps.
        products: those of `instructions` that multiply and add.
        sectors: of 32 bytes, of global memory.
        passes: through shared memory.
        conflicts: those of `passes` that lanes took which wanted different words of one bank.
        barriers: of all blocks, of the whole product.
    """

    step: str
    size: int
    instructions: float
    products: float
    sectors: float
    passes: float
    conflicts: float
    barriers: int


def measure(step: Step, size: int) -> Figures:
    """Build a step as PTX, run it on the emulator, and compare its result with NumPy's."""
    schedule, args = step(size)
    kernel = tvm.build(schedule, args, target=TARGET)
    device = emulator()
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((size, size)).astype(to_numpy(tensor.dtype)) for tensor in args[:2]]
    result = tvm.nd.empty((size, size), "float32", device)
    kernel(*(tvm.nd.array(matrix, device) for matrix in given), result)
    wanted = given[0].astype(np.float64) @ given[1].astype(np.float64)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-3, atol=1e-4 * size**0.5)
    found, unit = device.counters, 1024 / size**3
    products = sum(count for name, count in found.by_name.items() if name in _PRODUCTS)
    return Figures(
        Path(inspect.getfile(step)).stem,
        size,
        found.instructions * unit,
        products * unit,
        found.global_transactions * unit,
        (found.shared_requests + found.bank_conflicts) * unit,
        found.bank_conflicts * unit,
        found.barriers,
    )


def steps() -> list[str]:
    """The names of all steps, in order."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[0-9][0-9]_*.py"))


def load(name: str) -> tuple[Step, str]:
    """The function of a step, and the first line of what it says of itself."""
    module = importlib.import_module(name)
    return module.schedule, (module.__doc__ or "").splitlines()[0]


def run(step: Step, arguments: Sequence[str] | None = None) -> None:
    """Run one step and print a line: what every file of the lesson does when it is run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=128)
    options = parser.parse_args(arguments)
    found = measure(step, options.size)
    print(
        f"{found.step}, {found.size}^3, for each 1024 multiply-adds: {found.instructions:.1f} instructions of warps, "
        f"{found.products / found.instructions:.0%} of them products, {found.sectors:.1f} sectors of global memory, "
        f"{found.passes:.1f} passes through shared memory, {found.conflicts:.1f} for conflicts"
    )
