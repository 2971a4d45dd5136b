"""The computation whose candidates are measured, in the form that travels to worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import LoweringError, TuningError
from ...lower.context import PassContext
from ...lower.plain_context import context_to_json, options_in_words
from ...runtime.engine import check_runs_here
from ...target import Target
from ...te.operation import PlaceholderOp
from ...te.serialize import dag_from_json, dag_to_json
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype, to_numpy
from .arrays import Array
from .inputs import constant_shape
from .protocol import Frame
from .reference import Reference
from .results import MeasureOptions
from .workers import Workers

# They stand in a record's policy beside what timing says: `records.record` limits their number together, and each one's length.
MOST_OPTIONS, LONGEST_OPTION = 40, 64


def _current_options() -> dict[str, Any]:
    """The options of the current PassContext.

    Raises:
        TuningError: if it holds Python functions, or more than a record can say.
    """
    try:
        options = context_to_json(PassContext.current())
    except LoweringError as error:
        raise TuningError(f"candidates are compiled in worker processes: {error}") from None
    words = options_in_words(options)
    if len(words) > MOST_OPTIONS or any(len(str(text)) > LONGEST_OPTION for item in words.items() for text in item):
        raise TuningError(
            f"records hold up to {MOST_OPTIONS} options of a PassContext, of {LONGEST_OPTION} characters each; this one has {len(words)}: "
            f"{', '.join(words)[:500]}"
        )
    return options


@dataclass(frozen=True)
class MeasureTask:
    """A computation with constant shapes on a target.

    Candidates are traces for `Schedule(outputs)`, where the outputs are the operations of the computed tensors among `args`, in order.

    Args:
        args: the arguments of the built function: placeholders and computed tensors.
        target: what to compile for; this machine must be able to run it.
        inputs: arrays for placeholders that random values don't suit.
        seed: of the random ones.
        pass_options: `lower.plain_context.context_to_json` of the context that candidates are lowered in; the current one's.
        here: whether candidates run on this machine; False for those that run on other ones, which check the target then.

    Raises:
        TuningError: for arguments that can't be measured: other things than tensors, symbolic shapes, inputs that don't fit;
            and for a current PassContext with Python functions that change programs, which can't travel to the workers.
        TargetError: if this machine can't run code of the target.
    """

    args: tuple[Tensor, ...]
    target: Target
    inputs: Mapping[Tensor, Array] = field(default_factory=dict)
    seed: int = 0
    pass_options: Mapping[str, Any] = field(default_factory=_current_options)
    here: bool = True

    def __post_init__(self) -> None:
        for arg in self.args:
            if not isinstance(arg, Tensor):
                raise TuningError(f"candidates are measured on tensors; argument {arg!r} is a {type(arg).__name__}")
            try:
                constant_shape(arg)
            except ValueError as error:
                raise TuningError(f"candidates are measured with constant shapes, and {error}") from None
        if not self.outputs:
            raise TuningError("no argument is a computed tensor, so there is nothing to measure")
        for tensor, array in self.inputs.items():
            self._check_input(tensor, array)
        if self.here:
            check_runs_here(self.target)

    def _check_input(self, tensor: Tensor, array: Array) -> None:
        if tensor not in self.args or not isinstance(tensor.op, PlaceholderOp):
            raise TuningError(f"inputs has an array for {tensor}, which is no placeholder among the arguments")
        if array.dtype != to_numpy(tensor.dtype) or array.shape != constant_shape(tensor):
            wanted = f"{tensor.dtype}{list(constant_shape(tensor))}"
            raise TuningError(f"the array given for {tensor.name} is {array.dtype}{list(array.shape)}; it needs {wanted}")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The computed tensors among the arguments."""
        return tuple(arg for arg in self.args if not isinstance(arg.op, PlaceholderOp))

    @property
    def array_bytes(self) -> int:
        """Bytes of all arguments."""
        return sum(prod(constant_shape(arg)) * parse_dtype(arg.dtype).itemsize for arg in self.args)

    def to_json(self) -> dict[str, Any]:
        """What workers need: the DAG, whose outputs are the arguments in order, the target with nothing left to the machine, options."""
        return {"dag": dag_to_json(self.args), "target": str(self.target.resolved()), "pass_options": dict(self.pass_options)}

    def spec(self) -> Frame:
        """What another machine needs to make the arrays: the task, and the inputs that were given as bytes."""
        given = [number for number, tensor in enumerate(self.args) if tensor in self.inputs]
        blobs = tuple(np.ascontiguousarray(self.inputs[self.args[number]]).tobytes() for number in given)
        return Frame({"type": "subject", "kind": "te", "task": self.to_json(), "seed": self.seed, "given": given}, blobs)

    def arrays_in(self, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> Reference:
        """What makes the arrays here."""
        return Reference(self, options, folder, workers)


def task_of(spec: Frame) -> MeasureTask:
    """The task that `MeasureTask.spec` describes, on the machine that measures it.

    Raises:
        TargetError: if this machine can't run code of its target.
    """
    header = spec.header
    args = dag_from_json(header["task"]["dag"])
    inputs = {}
    for number, blob in zip(header["given"], spec.blobs, strict=True):
        shape = constant_shape(args[number])
        inputs[args[number]] = np.frombuffer(blob, to_numpy(args[number].dtype)).reshape(shape)
    return MeasureTask(tuple(args), Target(header["task"]["target"]), inputs, int(header["seed"]), header["task"]["pass_options"])
