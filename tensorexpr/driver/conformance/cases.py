"""The tests of the package `onnx`: models with inputs and the outputs that are expected."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import TensorExprError

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass(frozen=True)
class Case:
    """A test.

    Args:
        name: of it.
        group: node, node (expanded), simple, pytorch-converted, pytorch-operator or real.
        source: the package's own description.
    """

    name: str
    group: str
    source: Any = field(repr=False)

    def model(self) -> Any:
        """The ModelProto."""
        import onnx

        if self.source.model is not None:
            return self.source.model
        return onnx.load(str(self._light() if self.group == "real" else Path(self.source.model_dir) / "model.onnx"))

    def _light(self) -> Path:
        import onnx

        return Path(str(onnx.__file__)).parent.parent / str(self.source.url)

    def data_sets(self, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
        """Inputs, and the outputs that are expected."""
        if self.source.data_sets is not None:
            for inputs, outputs in self.source.data_sets:
                yield list(map(_array, inputs)), list(map(_array, outputs))
        elif self.group == "real":
            initial = {one.name for one in model.graph.initializer}
            given = next(one for one in model.graph.input if one.name not in initial)
            shape = [one.dim_value for one in given.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            path = self._light()
            expected = _read(path.with_name(f"{path.stem}_output_0.pb"), model.graph.output[0].type)
            # only outputs are shipped, which are of this input
            yield [(np.arange(count).reshape(shape) / count).astype(np.float32)], [expected]
        else:
            for folder in sorted(Path(self.source.model_dir).glob("test_data_set_*")):
                inputs = [_read(folder / f"input_{n}.pb", model.graph.input[n].type) for n in range(len(list(folder.glob("input_*.pb"))))]
                count = len(list(folder.glob("output_*.pb")))
                yield inputs, [_read(folder / f"output_{n}.pb", model.graph.output[n].type) for n in range(count)]


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _read(path: Path, kind: Any) -> Any:
    """A value in a file, of a type as the model states it."""
    import onnx
    from onnx import numpy_helper

    data = path.read_bytes()
    match kind.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        case "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def cases(include: str = "") -> list[Case]:
    """The tests of the installed package whose names a regular expression finds, in order.

    Raises:
        TensorExprError: without the package, or for a text that is no regular expression.
    """
    try:
        from onnx.backend.test.loader import load_model_tests
    except ImportError:
        raise TensorExprError("the tests are those of the package `onnx`, which isn't installed: pip install tensorexpr[onnx]") from None
    try:
        pattern = re.compile(include)
    except re.error as error:
        raise TensorExprError(f"--include {include!r} is no regular expression: {error}") from None
    found = []
    for kind in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, where the package makes its expected outputs
            made = load_model_tests(kind=kind)
        for one in made:
            group = "node (expanded)" if kind == "node" and "_expanded" in one.name else kind
            if pattern.search(one.name):
                found.append(Case(one.name, group, one))
    return sorted(found, key=lambda case: (case.group, case.name))
