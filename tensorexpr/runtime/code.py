"""What a module's functions come from: code that was just compiled, or a library that was loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Protocol

from ..codegen.signature import Signature
from ..dataclass import dataclass, field
from ..errors import InternalError, TensorExprError
from ..target import Target
from . import engine
from .entries import entry_name


class Code(Protocol):
    """Functions in machine code for a target."""

    @property
    def target(self) -> Target:
        """The machine it is for."""

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The functions by name."""

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds of each step that made it ready."""

    def load(self) -> tuple[Mapping[str, int], Any]:
        """The addresses of the packed entries by function name, and what keeps them valid."""


@dataclass(frozen=True)
class CompiledCode:
    """An object file in memory, and the LLVM IR that it was compiled from; `text` is empty where that is not known."""

    text: str
    data: bytes
    signatures: Mapping[str, Signature]
    target: Target
    opt_level: int = 3
    timings: dict[str, float] = field(default_factory=dict)

    def load(self) -> tuple[Mapping[str, int], Any]:
        """Load the object into this process.

        Raises:
            TargetError: if this machine can't run it.
            TensorExprError: if it comes from a file whose description names functions that it hasn't.
        """
        engine.check_runs_here(self.target)
        try:
            loaded = engine.load_object(self.data, [entry_name(name) for name in self.signatures])
        except InternalError as error:
            if self.text:
                raise
            # It was read from a file, so the file may be at fault.
            names = ", ".join(self.signatures)
            raise TensorExprError(f"the object lacks a function that its description names ({names}); export it again") from error
        self.timings["load"] = loaded.seconds
        return {name: loaded[entry_name(name)] for name in self.signatures}, loaded


@dataclass(frozen=True)
class LibraryCode:
    """A shared library on disk, checked before."""

    path: str
    signatures: Mapping[str, Signature]
    target: Target
    timings: dict[str, float] = field(default_factory=dict)

    def load(self) -> tuple[Mapping[str, int], Any]:
        """Load the library into this process.

        Raises:
            TensorExprError: if it lacks a function that its description names.
        """
        library = ctypes.CDLL(self.path)
        missing = [name for name in self.signatures if not hasattr(library, entry_name(name))]
        if missing:
            raise TensorExprError(
                f"{self.path}: its description names functions that the library hasn't: {', '.join(missing)}; export it again"
            )
        # The function objects aren't kept: addresses stay valid as long as the library is.
        entries = {name: getattr(library, entry_name(name)) for name in self.signatures}
        return {name: ctypes.cast(entry, ctypes.c_void_p).value or 0 for name, entry in entries.items()}, library
