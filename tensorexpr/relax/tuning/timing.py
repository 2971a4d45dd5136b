"""Times of whole networks and of their kernels: two executables in turn, so that clocks and neighbours are the same for both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...runtime.ndarray import NDArray, array
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ..expr import Function
from ..runtime.executable import Executable
from ..runtime.machine import VirtualMachine
from ..struct_info import TensorStructInfo

_LEAST_ROUNDS, _MOST_ROUNDS = 5, 200


def inputs_of(main: Function, given: Mapping[str, Any] | None = None) -> list[NDArray]:
    """Arrays for the parameters of a function: those given by name, else normal numbers, and zeros of integers, which may be indices.

    Raises:
        DeclarationError: for parameters of open sizes that aren't given, and for names of none.
    """
    random, named = np.random.default_rng(0), dict(given or {})
    strange = set(named) - {param.name_hint for param in main.params}
    if strange:
        raise DeclarationError(
            f"tune_network: no input {', '.join(sorted(strange))}; there are {', '.join(p.name_hint for p in main.params)}"
        )
    made: list[NDArray] = []
    for param in main.params:
        info = param.struct_info
        if param.name_hint in named:
            made.append(array(named[param.name_hint]))
            continue
        extents = [as_int(one) for one in info.extents or ()] if isinstance(info, TensorStructInfo) else [None]
        known = [one for one in extents if one is not None]
        if not isinstance(info, TensorStructInfo) or info.extents is None or len(known) < len(extents):
            raise DeclarationError(
                f"tune_network: it is run to be timed, and the input {param.name_hint} is {info}; give one, inputs={{name: array}} "
                'or --inputs x.npz, or make its extents known where the model is read, shape_dict= or --input-shapes "name:[1,3]"'
            )
        dtype: Any = to_numpy(info.dtype)
        is_float = np.issubdtype(dtype, np.floating) or info.dtype.startswith(("bfloat", "float"))
        made.append(array((random.standard_normal(known) if is_float else np.zeros(known)).astype(dtype)))
    return made


def timed_in_turn(executables: Sequence[Executable], inputs: Sequence[NDArray], seconds: float) -> list[float]:
    """Seconds of a run of each executable's "main", the median of rounds in which each runs once.

    Args:
        executables: what to time.
        inputs: of "main".
        seconds: that all rounds may take together; a few run in any case.
    """
    runs = [VirtualMachine(one)["main"] for one in executables]
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run(*inputs)  # the first run makes arenas
    end = time.perf_counter() + seconds
    while len(times[0]) < _LEAST_ROUNDS or (len(times[0]) < _MOST_ROUNDS and time.perf_counter() < end):
        # The order turns round, as who comes second finds other things in the caches.
        order = range(len(runs)) if len(times[0]) % 2 else range(len(runs) - 1, -1, -1)
        for number in order:
            begin = time.perf_counter()
            runs[number](*inputs)
            times[number].append(time.perf_counter() - begin)
    return [median(one) for one in times]


def kernel_times(executables: Sequence[Executable], inputs: Sequence[NDArray], seconds: float) -> list[dict[str, tuple[float, int]]]:
    """For each executable the seconds that a run spends in each kernel, and how often it calls it; profiled in turn.

    Of runs the lower quartile counts: others only ever add time.
    """
    machines = [VirtualMachine(one) for one in executables]
    found: list[list[dict[str, list[float]]]] = [[] for _ in machines]
    end = time.perf_counter() + seconds
    while len(found[0]) < _LEAST_ROUNDS or (len(found[0]) < _MOST_ROUNDS and time.perf_counter() < end):
        for machine, runs in zip(machines, found, strict=True):
            calls: dict[str, list[float]] = {}
            for name, spent, _ in machine.timed_calls("main", *inputs)[0]:
                calls.setdefault(name, []).append(spent)
            runs.append(calls)
    return [
        {name: (_calm([sum(run[name]) for run in runs if name in run]), len(runs[-1].get(name, ()))) for name in runs[-1]} for runs in found
    ]


def _calm(times: Sequence[float]) -> float:
    return sorted(times)[(len(times) - 1) // 4]


def difference(first: Executable, second: Executable, inputs: Sequence[NDArray]) -> float:
    """The largest difference of two executables' results, by the largest number of the first's; infinite for other shapes or NaNs."""
    results = [_flat(VirtualMachine(one)["main"](*inputs)) for one in (first, second)]
    worst = 0.0
    for left, right in zip(*results, strict=True):
        if left.shape != right.shape or not np.array_equal(np.isnan(left), np.isnan(right)):
            return float("inf")
        if left.size:
            scale = max(float(np.nanmax(np.abs(left))), 1e-30) if np.isfinite(left).any() else 1.0
            worst = max(worst, float(np.nanmax(np.abs(left - right), initial=0.0)) / scale)
    return worst


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) or not hasattr(value, "numpy"):
        return [part for one in value for part in _flat(one)]
    return [value.numpy().astype("float64")]
