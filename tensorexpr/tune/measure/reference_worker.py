"""The worker that makes input arrays and the results to expect: `python -m tensorexpr.tune.measure.reference_worker`.

It evaluates the definitions with NumPy and knows nothing of schedules or code generation. What it finds goes into files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, DeclarationError
from ...te.operation import PlaceholderOp
from ...te.reference import evaluate
from ...te.serialize import dag_from_json
from ...te.tensor import Tensor
from ...te.tolerance import reduction_length, term_magnitude, tolerance_of
from ...tir.dtype import parse_dtype
from .arrays import Array, StoredArray, is_finite, load_array, save_array
from .child import connect, parse_arguments, serve
from .inputs import RANGES, constant_shape, random_inputs
from .protocol import Frame


class ReferenceService:
    """Makes the arrays of one task."""

    def __init__(self) -> None:
        self._task: Mapping[str, Any] = {}

    def task(self, frame: Frame) -> Frame:
        """Take the task."""
        self._task = frame.header["task"]
        return Frame({"type": "ready"})

    def evaluate(self, frame: Frame) -> Frame:
        """Make the inputs and, if "verify" is set, evaluate the outputs; the answer describes all arrays."""
        start = time.perf_counter()
        args = dag_from_json(self._task["dag"])
        folder, seed = Path(frame.header["folder"]), int(frame.header["seed"])
        placeholders = [tensor for tensor in args if isinstance(tensor.op, PlaceholderOp)]
        results = [tensor for tensor in args if tensor not in placeholders]
        given = {args[n]: load_array(folder / file, args[n].dtype, constant_shape(args[n])) for n, file in frame.header["given"]}
        if frame.header["verify"]:
            arrays, reason = _evaluate(placeholders, results, given, seed)
        else:
            arrays, reason = random_inputs(placeholders, given, seed, RANGES[0]), ""
        stored = [_store(number, tensor, arrays, folder) for number, tensor in enumerate(args)]
        seconds = time.perf_counter() - start
        return Frame({"type": "arrays", "arrays": [array.to_json() for array in stored], "reason": reason, "seconds": seconds})


def _evaluate(
    placeholders: Sequence[Tensor], results: Sequence[Tensor], given: Mapping[Tensor, Array], seed: int
) -> tuple[dict[Tensor, Array], str]:
    """Inputs and results for the first range of values that gives finite ones; why there are no results, if there are none."""
    fallback: dict[Tensor, Array] | None = None
    reason = ""
    for values in RANGES:
        inputs = random_inputs(placeholders, given, seed, values)
        try:
            with np.errstate(all="ignore"):
                expected = evaluate(results, inputs)
        except (DeclarationError, ArgumentError) as error:
            # such as values that are no indices of what they index: a later range may suit
            reason = str(error)
            continue
        arrays = {**inputs, **dict(zip(results, expected, strict=True))}
        if all(is_finite(array) for array in expected):
            return arrays, ""
        fallback = fallback or arrays
    if fallback is not None:
        return fallback, ""
    return random_inputs(placeholders, given, seed, RANGES[-1]), reason


def _store(number: int, tensor: Tensor, arrays: Mapping[Tensor, Array], folder: Path) -> StoredArray:
    is_output = not isinstance(tensor.op, PlaceholderOp)
    shape = constant_shape(tensor)
    if tensor not in arrays:
        return StoredArray(tensor.name, tensor.dtype, shape, is_output)
    file = f"argument{number}.bin"
    save_array(folder / file, arrays[tensor])
    if not is_output:
        return StoredArray(tensor.name, tensor.dtype, shape, is_output, file)
    is_float = parse_dtype(tensor.dtype).is_float
    magnitude = term_magnitude(arrays[tensor], reduction_length([tensor])) if is_float else 1.0
    allowed = tolerance_of(tensor, magnitude)
    return StoredArray(tensor.name, tensor.dtype, shape, is_output, file, allowed.rtol, allowed.atol)


def main() -> int:
    """Serve until the tuner closes the pipe."""
    channel = connect(parse_arguments())
    service = ReferenceService()
    serve(channel, {"task": service.task, "evaluate": service.evaluate})
    return 0


if __name__ == "__main__":
    sys.exit(main())
