"""What `torch.compile` leaves open of a graph's inputs, and which calls a program with symbols for it was exported for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def _is_open(value: Any) -> bool:
    """Whether a size of PyTorch is one that only a call knows."""
    node = getattr(value, "node", None)
    return node is not None and bool(node.expr.free_symbols)


class OpenInputs:
    """The inputs of a graph whose sizes or values PyTorch leaves open.

    Attributes:
        axes: of tensors, by the number of the input.
        extents: numbers that are extents of tensors, with a tensor and its axis.
        numbers: other integers.
    """

    def __init__(self, graph_module: Any, weights: set[int]) -> None:
        places = [node.meta.get("example_value") for node in graph_module.graph.nodes if node.op == "placeholder"]
        shapes = {n: tuple(one.shape) for n, one in enumerate(places) if hasattr(one, "shape") and n not in weights}
        self.axes = {n: [axis for axis, one in enumerate(shape) if _is_open(one)] for n, shape in shapes.items()}
        self.axes = {n: axes for n, axes in self.axes.items() if axes}
        known: dict[Any, tuple[int, int]] = {}
        for n, axes in self.axes.items():
            for axis in axes:
                known.setdefault(shapes[n][axis].node.expr, (n, axis))
        integers = {n: one.node.expr for n, one in enumerate(places) if _is_open(one)}
        self.extents = {n: known[expr] for n, expr in integers.items() if expr in known}
        self.numbers = {n for n in integers if n not in self.extents}

    def __bool__(self) -> bool:
        return bool(self.axes or self.numbers)

    def kind(self, place: int, value: Any) -> Any:
        """What a graph is exported for: shape and dtype of a tensor with None for what is open, the value of a number."""
        if place in self.extents or place in self.numbers:
            return None
        axes = self.axes.get(place, ())
        return (tuple(None if n in axes else one for n, one in enumerate(value.shape)), value.dtype) if hasattr(value, "shape") else value


class Guards:
    """What a program with symbols asks of its inputs: extents that are known or equal, and what its trace made sure of.

    Args:
        program: an exported program.

    Attributes:
        are_taken: of each input, whether a function that is made of the program takes it: all but numbers that are fixed.
    """

    def __init__(self, program: Any) -> None:
        kinds = [spec.kind.name for spec in program.graph_signature.input_specs]
        places = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
        given = [value for value, kind in zip(places, kinds, strict=True) if kind == "USER_INPUT"]
        self._inputs = [tuple(one.shape) if hasattr(one, "shape") else (one,) for one in given]
        self.are_taken = [hasattr(one, "shape") or _is_open(one) for one in given]
        environment = next((one.node.shape_env for shape in self._inputs for one in shape if hasattr(one, "node")), None)
        self._conditions = [] if environment is None else [environment.replace(guard.expr) for guard in environment.guards]
        self._ranges: Mapping[Any, Any] = {} if environment is None else environment.var_to_range

    def fit(self, inputs: Sequence[Any]) -> bool:
        """Whether the program is one for these tensors and integers."""
        values: dict[Any, int] = {}
        pairs = []
        for stated, given in zip(self._inputs, inputs, strict=True):
            actual = tuple(given.shape) if hasattr(given, "shape") else (given,)
            if len(actual) != len(stated):
                return False
            pairs += [(_expression(one), int(extent)) for one, extent in zip(stated, actual, strict=True)]
        for one, extent in pairs:
            if getattr(one, "is_Symbol", False):
                values.setdefault(one, extent)
        if any(_valued(one, values) != extent for one, extent in pairs):
            return False
        if any(not bool(self._ranges[one].lower <= extent <= self._ranges[one].upper) for one, extent in values.items()):
            return False
        # What isn't about inputs the program asks when it runs.
        return all(bool(_valued(one, values)) for one in self._conditions if one.free_symbols <= values.keys())


def _expression(size: Any) -> Any:
    return size.node.expr if hasattr(size, "node") else size


def _valued(expr: Any, values: Mapping[Any, int]) -> Any:
    return expr.xreplace(values) if hasattr(expr, "xreplace") else expr
