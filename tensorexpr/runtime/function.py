"""A built function: checked, called without the GIL, from any thread."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..codegen.signature import Signature
from ..errors import ArgumentError
from ..tir.dtype import to_numpy
from . import fastcall, packed
from .arguments import ArgumentChecker
from .fastcall import REFUSED, NativeCall

PackedEntry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Function:
    """A function of a module: call it with arrays and numbers; its outputs are arguments that it writes.

    It accepts NumPy arrays, `nd.array`s and anything with `__dlpack__`, without copying.

    Raises:
        ArgumentError: if an argument does not fit, before any native code runs; or if an assertion of the function fails.
    """

    __slots__ = ("_call", "_checker", "_fast", "_keep", "_packed", "entry", "name", "signature")

    def __init__(self, signature: Signature, entry: int, keep: object) -> None:
        self.name = signature.name
        self.signature = signature
        self.entry = entry
        self._keep = keep
        self._checker = ArgumentChecker(signature)
        self._packed = PackedEntry(entry)
        self._fast: fastcall.FastCall | None = None
        self._call: NativeCall = self._first_call

    def __call__(self, *args: Any) -> None:
        """Check the arguments and run."""
        code = self._call(*args)
        if code:
            self._explain(code, args)

    def block(self, *args: Any) -> tuple[Any, list[Any]]:
        """The checked arguments as words for the packed entry, and the objects to keep alive while they are used.

        Raises:
            ArgumentError: if an argument does not fit.
        """
        return self._checker.block(args)

    def check_code(self, code: int) -> None:
        """Raise the error that an entry's return code stands for; 0 is none.

        Raises:
            ArgumentError: with the message of the assertion that failed.
        """
        if code:
            packed.raise_pending()  # a Python function's own error comes before the code that it left
            errors = self.signature.errors
            reason = errors[code - 1] if 0 < code <= len(errors) else f"it returned error code {code}"
            raise ArgumentError(f"{self.name}: {reason}")

    def _first_call(self, *args: Any) -> int:
        """Make the native way in, which the first call then takes already."""
        self._fast = fastcall.make(self.signature, self._checker.plan, self.entry)
        self._call = self._fast.call if self._fast is not None else _always_refuse
        return self._call(*args)

    def _explain(self, code: int, args: tuple[Any, ...]) -> None:
        """Go the long way if the short one was refused: convert foreign arrays, then check in Python; raise what is wrong."""
        adopted = args
        if code == REFUSED:
            adopted = self._checker.adopt(args)
            # Where nothing was foreign, the short way would refuse again.
            code = REFUSED if adopted is args else self._call(*adopted)
        if code == REFUSED:
            words, held = self._checker.block(adopted)
            code = self._packed(words)
            del held  # not before: the words point into these arrays
        self.check_code(code)

    def __repr__(self) -> str:
        return f"<function {self.name} of a built module>"


class ReturningFunction(Function):
    """A function that returns a number: its last parameter takes it, and calls leave that out."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """Check the arguments and run; the number that the function returned."""
        result = self._result()
        super().__call__(*args, result)
        return result[0].item()

    def block(self, *args: Any) -> tuple[Any, list[Any]]:
        """As for any function, with memory for the result."""
        return super().block(*args, self._result())

    def _result(self) -> np.ndarray[Any, Any]:
        return np.zeros(1, to_numpy(self.signature.returns or "int32"))


def _always_refuse(*args: Any) -> int:
    return REFUSED
