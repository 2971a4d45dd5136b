"""Code of functions that were compiled one by one, so that one of them that changes is compiled alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..codegen.signature import Signature
from ..dataclass import dataclass, replace
from ..target import Target
from . import cache, engine
from .code import CompiledCode
from .entries import alias_text


@dataclass(frozen=True)
class LinkedCode:
    """Functions that were compiled one by one, each of them an object file.

    Args:
        parts: by name of the function: its code, and the name that it has there, which occurs in its text for nothing else.
        target: the machine they are for.
    """

    parts: Mapping[str, tuple[CompiledCode, str]]
    target: Target

    @cached_property
    def signatures(self) -> Mapping[str, Signature]:
        """The functions by name."""
        return {name: replace(code.signatures[own], name=name) for name, (code, own) in self.parts.items()}

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds of each step, of all functions together."""
        found: dict[str, float] = {}
        for code in {id(code): code for code, _ in self.parts.values()}.values():  # two names of one function share its code
            for step, seconds in code.timings.items():
                found[step] = found.get(step, 0.0) + seconds
        return found

    def load(self) -> tuple[Mapping[str, int], Any]:
        """Load the objects into this process; see `CompiledCode.load`."""
        loaded = {id(code): code.load() for code, _ in self.parts.values()}
        return {name: loaded[id(code)][0][own] for name, (code, own) in self.parts.items()}, loaded

    def objects(self) -> list[bytes]:
        """The object files, with one of entries under the functions' names, to be linked into a library."""
        entries = "\n".join(alias_text(name, own) for name, (_, own) in self.parts.items())
        codes = {own: code.data for code, own in self.parts.values()}  # one object, however many names it has here
        return [*codes.values(), cache.compile_text(entries, self.target, 1).data]

    @cached_property
    def as_one(self) -> CompiledCode:
        """The functions compiled once more, as one module under their names: for what takes one object file."""
        context = engine.new_context()
        level = max((code.opt_level for code, _ in self.parts.values()), default=3)
        # In one context: LLVM links only modules that share one.
        modules = [engine.parse(code.text.replace(own, name), self.target, context) for name, (code, own) in self.parts.items()]
        for other in modules[1:]:
            modules[0].link_in(other)
        text = str(modules[0])
        return CompiledCode(text, cache.compile_text(text, self.target, level).data, self.signatures, self.target, level)
