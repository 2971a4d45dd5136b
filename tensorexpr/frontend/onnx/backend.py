"""A backend of the package `onnx`, on which its suite of tests runs.

    import onnx.backend.test
    from tensorexpr.frontend.onnx.backend import Backend
    suite = onnx.backend.test.BackendTest(Backend, __name__)

`prepare` sees no inputs, so models are built when they are first run: for the shapes that inputs have, and for the values of those that say
shapes. What was built for the same ones is used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import relax
from ...errors import NeedsValueError
from ...runtime.ndarray import NDArray
from ...target import TargetLike
from .checks import load
from .dtypes import is_computed
from .importer import from_onnx


class Prepared:
    """A model that runs on inputs of any shapes.

    Args:
        model: a ModelProto, its bytes or a path.
        target: what to build for.

    Raises:
        ModelError: for what is no model.
    """

    def __init__(self, model: Any, target: TargetLike = "llvm") -> None:
        self._proto, _ = load(model)
        self._model = model
        self._target = target
        self._built: dict[Any, Any] = {}
        self._needed: set[str] = set()
        initial = {one.name for one in self._proto.graph.initializer}
        self.inputs = [one.name for one in self._proto.graph.input if one.name not in initial]
        self.executable: Any = None

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The results as arrays, lists of them (sequences) or None, in the order of the model's outputs.

        Args:
            inputs: arrays in the order of the model's inputs, or by name; lists for sequences.
            kwargs: accepted.

        Raises:
            TensorExprError: for what can't be imported, built or run.
        """
        names = [name for name in self.inputs if name in inputs] if isinstance(inputs, dict) else self.inputs[: len(inputs)]
        given = [_plain(inputs[name]) for name in names] if isinstance(inputs, dict) else list(map(_plain, inputs))
        machine = self._machine(dict(zip(names, given, strict=True)))
        found = machine["main"](*given)
        # A single output that is a sequence is a tuple as well.
        outputs = found if isinstance(found, tuple) and len(self._proto.graph.output) > 1 else (found,)
        return tuple(_array(one) for one in outputs)

    def _machine(self, given: dict[str, Any]) -> Any:
        """What was built for such inputs."""
        while True:
            values = {name: given[name] for name in sorted(self._needed & given.keys())}
            # All that a build depends on: the types of inputs, and the bytes of those that say shapes.
            key = tuple((name, str(_info(value))) for name, value in given.items()), tuple((k, v.tobytes()) for k, v in values.items())
            if key in self._built:
                return self._built[key]
            infos = {name: None if value is None else _info(value) for name, value in given.items()}
            try:
                mod = from_onnx(self._model, values=values, infos=infos, sanitize_input_names=False)
            except NeedsValueError as error:
                # Each round states one more input's values, so this ends; the values are part of the key from then on.
                new = {one for one in error.inputs if isinstance(given.get(one), np.ndarray)} - self._needed
                if not new:
                    raise
                self._needed |= new
                continue
            self.executable = relax.build(mod, self._target)
            self._built[key] = relax.VirtualMachine(self.executable)
            return self._built[key]


def _plain(value: Any) -> Any:
    """An input as the machine takes it; tensors of the package `onnx` as arrays."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if hasattr(value, "data_type"):
        from .tensors import array_of

        return array_of(value, "an input")
    return np.asarray(value) if isinstance(value, np.generic) else value


def _info(value: Any) -> relax.StructInfo:
    """What is known of an input by its value."""
    if isinstance(value, tuple):
        return relax.TupleStructInfo(tuple(map(_info, value)))
    if isinstance(value, np.ndarray) and is_computed(str(value.dtype)):
        return relax.TensorStructInfo(value.shape, str(value.dtype))
    return relax.ObjectStructInfo()


def _array(value: Any) -> Any:
    """A result as the package `onnx` has it."""
    if isinstance(value, (list, tuple)):
        return [_array(one) for one in value]
    return value.numpy() if isinstance(value, NDArray) else value


class Backend:
    """What `onnx.backend.test.BackendTest` takes."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is there: the CPU."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether a model may be tried: any."""
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
        """A model that runs; see `Prepared`."""
        return Prepared(model)

    @classmethod
    def run_model(cls, model: Any, inputs: Sequence[Any], device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare and run a model."""
        return Prepared(model).run(inputs)
