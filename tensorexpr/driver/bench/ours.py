"""A case as our kernel: by topi's default schedule, from a log of records, or tuned now into that log."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...auto_scheduler import RecordToFile, SearchTask, TuningOptions, load_records
from ...dataclass import dataclass
from ...errors import RecordError
from ...runtime.build import build
from ...target import Target
from ...tir.dtype import to_numpy
from ...topi.schedules import default_schedule
from ...workloads import Case, Drawn

# Bytes of a cache line.
_LINE = 64


@dataclass(frozen=True)
class Kernel:
    """A built kernel.

    Args:
        name: in the table.
        function: what is called.
        seconds: that building took.
        schedule: where its schedule is from.
        trials: programs that were measured to find it.
        tuning: seconds that this took, if it was now.
    """

    name: str
    function: Any
    seconds: float
    schedule: str = ""
    trials: int = 0
    tuning: float | None = None


def default_kernel(case: Case, target: Target) -> Kernel:
    """The case under topi's schedule for its operators."""
    start = time.perf_counter()
    tensors = case.tensors()
    function = build(default_schedule(tensors, target), tensors, target)
    return Kernel("tensorexpr", function, time.perf_counter() - start, "topi's rules")


def recorded_kernel(case: Case, target: Target, log: Path) -> Kernel | None:
    """The case under the best schedule of a log, or None if it has none for it."""
    start = time.perf_counter()
    task = SearchTask(workload_key=case.key, target=target)
    try:
        schedule, tensors = task.apply_best(log)
    except (RecordError, OSError):
        return None
    function = build(schedule, tensors, target)
    return Kernel("tensorexpr-tuned", function, time.perf_counter() - start, "auto_scheduler", recorded_trials(task, log))


def recorded_trials(task: SearchTask, log: Path) -> int:
    """How many programs of a task a log holds; the best few, which were timed again, count once."""
    if not log.exists():
        return 0
    key, target = (task.workload_key, task.compute_dag.hash_key()), str(task.target.resolved())
    return sum((record.workload_key, record.dag_hash) == key and record.fits_target(target) for record in load_records(log))


def tune(case: Case, target: Target, log: Path, trials: int, budget: float | None) -> float | None:
    """Tune the case into a log, with so many trials, or as many as fit `budget` seconds; nothing but its definition is known.

    Returns:
        the seconds it took; None if the log has so many trials of it already.
    """
    task = SearchTask(workload_key=case.key, target=target)
    if trials and recorded_trials(task, log) >= trials:
        return None
    start = time.perf_counter()
    options: dict[str, Any] = {"num_measure_trials": trials, "measure_callbacks": [RecordToFile(log)], "verbose": 0}
    if budget is not None:
        options["budget_s"] = budget
    task.tune(TuningOptions(**options))
    return time.perf_counter() - start


def random_inputs(case: Case, seed: int = 0) -> list[Any]:
    """Arrays for the inputs of a case, small numbers around 0; integers over their whole range; or as the case says."""
    from ...te.operation import PlaceholderOp

    random = np.random.default_rng(seed)
    drawn = {draw.number: draw for draw in case.draws}
    arrays: list[Any] = []
    for tensor in case.tensors():
        if isinstance(tensor.op, PlaceholderOp):
            values = _array(random, tuple(int(str(extent)) for extent in tensor.shape), tensor.dtype, drawn.get(len(arrays)))
            arrays.append(aligned_empty(values.shape, tensor.dtype))
            arrays[-1][...] = values
    return arrays


def _array(random: np.random.Generator, shape: Sequence[int], dtype: str, drawn: Drawn | None = None) -> Any:
    if drawn is not None and drawn.rising:
        return np.linspace(drawn.low, drawn.high, math.prod(shape)).reshape(shape).astype(dtype)
    if drawn is not None:
        even = random.uniform(drawn.low, drawn.high, shape)
        # Rounded down, an even draw from 0 to n is an index below n.
        return (np.floor(even) if "int" in dtype else even).astype(dtype)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    values = random.standard_normal(shape, np.float32)
    if dtype == "bfloat16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    return values.astype(dtype)


def empty_outputs(case: Case) -> list[Any]:
    """Arrays for the outputs of a case."""
    from ...te.operation import PlaceholderOp

    outputs = [tensor for tensor in case.tensors() if not isinstance(tensor.op, PlaceholderOp)]
    return [aligned_empty(tuple(int(str(extent)) for extent in tensor.shape), tensor.dtype) for tensor in outputs]


def exact_result(case: Case, arrays: Sequence[Any]) -> Any:
    """The first result of a case by its definition, as float64, where no difference from it is noise and peers may saturate: integers
    out of bytes; else None."""
    from ...te.operation import PlaceholderOp
    from ...te.reference import evaluate

    tensors = case.tensors()
    inputs = [tensor for tensor in tensors if isinstance(tensor.op, PlaceholderOp)]
    result = next(tensor for tensor in tensors if tensor not in inputs)
    if not result.dtype.startswith(("int", "uint")) or not any(tensor.dtype in ("int8", "uint8") for tensor in inputs):
        return None
    return np.asarray(evaluate([result], dict(zip(inputs, arrays, strict=True)))[0], np.float64)


def aligned_empty(shape: Sequence[int], dtype: str) -> Any:
    """An array that starts at a cache line, as PyTorch and `nd.empty` allocate theirs; NumPy's start anywhere in one."""
    element = to_numpy(dtype)
    size = math.prod(shape) * element.itemsize
    room = np.empty(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(element).reshape(shape)
