"""Programs that users write, by the schedules without trials, in turn with PyTorch's own functions in one process; results are compared.

    python examples/benchmarks/programs.py
    python examples/benchmarks/programs.py layers gram --seeds 1 2 3 --rounds 4

Sizes follow from the seeds and the names: what is slow on one draw is looked at with others before it is called mended. PyTorch runs on as
many threads as the target has cores. The limit is what its operations take at the speed of multiply-adds, or the bytes of its arguments at
that of reads, whichever is longer, with both speeds as the same process measured them.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from turns import in_turn
from user_programs import PROGRAMS, Draw

import tensorexpr as tvm
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.driver.bench.probes import Limits, measure_limits
from tensorexpr.errors import WorkloadError
from tensorexpr.target import Target

_PAUSE = 0.03  # seconds until the threads of the other sleep
_CALLS = 8
_TOLERANCE = 1e-3
_CACHED_BYTES = 8 << 20  # what stays in the caches between two calls


def arrays_of(tensors: list[Any]) -> list[Any]:
    """Values: numbers around 0, bytes around 0, and places from 0 on."""
    rng = np.random.default_rng(0)
    found = []
    for tensor in tensors:
        shape = [int(extent) for extent in tensor.shape]
        low = -100 if tensor.dtype == "int8" else 0
        is_float = tensor.dtype.startswith("float")
        found.append((rng.standard_normal(shape) if is_float else rng.integers(low, 100, shape)).astype(tensor.dtype))
    return found


def limit_of(tensors: list[Any], limits: Limits) -> float:
    """Milliseconds that its operations or its bytes take at least, whichever is longer."""
    size = sum(int(np.prod([int(extent) for extent in tensor.shape])) * np.dtype(tensor.dtype).itemsize for tensor in tensors)
    try:
        operations = ComputeDAG(tensors).flop_ct
    except WorkloadError:  # recurrences aren't counted
        operations = 0.0
    return max(operations / limits.fma_gflops, size / (limits.read_cache if size < _CACHED_BYTES else limits.read_dram)) / 1e6


def measure(name: str, seed: int, rounds: int, target: Target, limits: Limits) -> float:
    """One program: a line with both times; returns PyTorch's by ours."""
    made = PROGRAMS[name](Draw(f"{name}{seed}"))
    tensors = [*made.inputs, *made.outputs]
    start = time.perf_counter()
    function = tvm.build(tensors, target=target, schedule="auto")
    built = time.perf_counter() - start
    values = arrays_of(made.inputs)
    ours, theirs = [tvm.nd.array(value) for value in values], [torch.from_numpy(value) for value in values]
    results = [tvm.nd.array(np.zeros([int(extent) for extent in out.shape], out.dtype)) for out in made.outputs]

    def call() -> None:
        function(*ours, *results)

    def peer() -> Any:
        return made.peer(*theirs)

    call()
    expected = peer()
    for found, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        scale = float(wanted.abs().max()) or 1.0
        np.testing.assert_allclose(found.numpy() / scale, wanted.numpy() / scale, atol=_TOLERANCE)
    mine, other = in_turn([call, peer], rounds, _CALLS, _PAUSE)
    shapes = ", ".join("x".join(map(str, tensor.shape)) for tensor in made.inputs)
    print(
        f"| {name} | {shapes} | {mine:.4f} | {other:.4f} | {other / mine:.2f} | {limit_of(tensors, limits) / mine:.0%} | {built:.1f} |",
        flush=True,
    )
    return other / mine


def main() -> None:
    """All programs that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PROGRAMS), metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    target = Target("llvm")
    torch.set_num_threads(target.num_cores)
    print("| program | inputs | tensorexpr ms | PyTorch | PyTorch / ours | of the limit | s to build |\n|---|---|---|---|---|---|---|")
    limits = measure_limits(target)
    ratios = [measure(name, seed, given.rounds, target, limits) for name in given.names for seed in given.seeds]
    mean = float(np.exp(np.mean(np.log(ratios))))
    summary = f"{mean:.2f} on the geometric mean, {sum(ratio < 1 for ratio in ratios)} below 1, the least {min(ratios):.2f}"
    print(f"\n{len(ratios)} programs: {summary}")


if __name__ == "__main__":
    main()
