"""Hybrid functions: tensors that loops in Python's syntax compute. They are read and never run.

    @te.hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i, j in grid(a.shape[0], b.shape[0]):
            c[i, j] = a[i] * b[j]
        return c

    c = outer(A, B)           # of tensors: a tensor
    outer(np_a, np_b)         # of arrays: arrays, interpreted

values, reader    expressions and statements;  printer, the text of a lowered schedule
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ...errors import ArgumentError, ParseError
from ...te.declare import placeholder
from ...te.hybrid_op import HybridOp
from ...te.reference import evaluate
from ...tir.buffer import Buffer
from ...tir.expr import PrimExpr, Var
from ..parser.source import Source, enclosed
from .printer import HybridPrinter
from .reader import HybridReader


class HybridFunction:
    """A hybrid function. Calling it with tensors declares what it computes, with arrays computes it."""

    def __init__(self, source: Source, captured: Mapping[str, Any] | None = None) -> None:
        functions = [node for node in source.tree().body if isinstance(node, ast.FunctionDef)]
        if len(functions) != 1:
            raise ParseError(f"{source.filename}: a hybrid script is one function, this text has {len(functions)}")
        self._source, self._tree, self._captured = source, functions[0], dict(captured or {})
        self.name = self.__name__ = functions[0].name

    def hybrid_reader(self) -> HybridReader:
        """What reads the function, for another one that calls it."""
        return HybridReader(self._source, self._tree, self._captured)

    def operation(self, args: Sequence[Any]) -> HybridOp:
        """The operation for arguments: tensors, variables, numbers, sequences of such.

        Raises:
            ParseError: for what a hybrid function can't say, at its place.
        """
        return self.hybrid_reader().read(args)

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(arg, np.ndarray) or type(arg).__name__ == "NDArray" for arg in args):
            return self._computed(args)
        op = self.operation(args)
        made = [op.output(number) for number in range(op.num_outputs)]
        return made[0] if len(made) == 1 else made

    def _computed(self, args: Sequence[Any]) -> Any:
        """The result for arrays."""
        arrays: dict[Any, Any] = {}
        given: list[Any] = []
        for arg in args:
            array = arg.numpy() if type(arg).__name__ == "NDArray" else arg
            if isinstance(array, np.ndarray):
                tensor = placeholder(array.shape, str(array.dtype), f"a{len(given)}")
                arrays[tensor] = array
                given.append(tensor)
            else:
                given.append(array)
        op = self.operation(given)
        made = evaluate([op.output(number) for number in range(op.num_outputs)], arrays)
        return made[0] if len(made) == 1 else tuple(made)

    @property
    def __globals__(self) -> dict[str, Any]:
        return self._captured

    def __repr__(self) -> str:
        return f"HybridFunction({self.name})"


def script(pyfunc: Callable[..., Any]) -> HybridFunction:
    """Decorator: the function whose source stands below it, as a hybrid function.

    Raises:
        ParseError: if the source can't be found.
    """
    frame = inspect.currentframe()
    return HybridFunction(Source.of(pyfunc), _captured(pyfunc, frame.f_back if frame is not None else None))


def _captured(function: Any, around: FrameType | None) -> dict[str, Any]:
    """Constants and hybrid functions that the names around a definition mean."""
    # The nearest names come last, and hide those further out.
    found: dict[str, Any] = {**function.__globals__, **(around.f_locals if around is not None else {}), **enclosed(function)}
    kept = (bool, int, float, str, list, tuple, PrimExpr, HybridFunction)
    return {name: value for name, value in found.items() if isinstance(value, kept) and not name.startswith("__")}


def source_to_op(
    src: Any, args: Sequence[Any], symbols: Mapping[str, Any] | None = None, closure_vars: Mapping[str, Any] | None = None
) -> Any:
    """The tensors that a hybrid function, or its text, computes from arguments.

    Args:
        src: a text, a syntax tree or a hybrid function.
        args: tensors, variables, numbers, sequences of such.
        symbols: what further names mean.
        closure_vars: likewise.
    """
    if isinstance(src, HybridFunction):
        return src(*args)
    text = ast.unparse(src) if isinstance(src, ast.AST) else str(src)
    return HybridFunction(Source.of_text(text), {**(symbols or {}), **(closure_vars or {})})(*args)


def parse(src: Any, args: Sequence[Any]) -> Any:
    """The tensors that a hybrid function, a Python function or a text computes from arguments; see `source_to_op`."""
    return script(src)(*args) if inspect.isfunction(src) else source_to_op(src, args)


class HybridModule:
    """The text of a hybrid function, to be saved, loaded and called."""

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.src_ = src
        self.name = name or ""
        self._function: HybridFunction | None = None
        if src is not None:
            self._take(src)

    def _take(self, text: str) -> None:
        self.src_ = text
        self._function = HybridFunction(Source.of_text(text))
        self.name = self.name or self._function.name

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            raise ArgumentError("this HybridModule is empty; load a text first")
        return self._function(*args)

    def get_source(self) -> str:
        """The text."""
        return self.src_ or ""

    def save(self, path: str) -> None:
        """Write the text to a file, which gets the ending .py."""
        Path(path if str(path).endswith(".py") else f"{path}.py").write_text(self.get_source())

    def load(self, path: str) -> None:
        """Read the text of a file. It is parsed when it is called, and never run."""
        self.name = ""
        self._take(Path(path).read_text())


def build(sch: Any, inputs: Sequence[Any], outputs: Sequence[Any], name: str = "hybrid_func") -> HybridModule:
    """The loops of a schedule as the text of a hybrid function.

    Raises:
        LoweringError: for what has no form there, such as stages that are computed in parts.
    """
    from ...lower.phase0.schedule_to_func import schedule_to_func

    func = schedule_to_func(sch, [*inputs, *outputs])
    given: list[Var | Buffer] = []
    for param in func.params:
        given.append(func.buffer_map.get(param, param))
    results = [buffer for buffer in given[len(inputs) :] if isinstance(buffer, Buffer)]
    return HybridModule(HybridPrinter().function(name, given[: len(inputs)], results, func.body), name)


__all__ = ["HybridFunction", "HybridModule", "build", "parse", "script", "source_to_op"]
