"""Instruments: what watches passes run. Each has any of the hooks that `PassContext` names."""

from __future__ import annotations

import difflib
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

from ..errors import LoweringError
from ..tir.function import IRModule
from .passes import PassInfo
from .specs import check_module

HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")
_Class = TypeVar("_Class", bound=type)


def pass_instrument(pi_cls: _Class) -> _Class:
    """Class decorator: check that the class is an instrument, that is, has at least one hook and only callables for them.

    Raises:
        LoweringError: if it has none; the message lists the hooks.
    """
    found = [name for name in HOOKS if callable(getattr(pi_cls, name, None))]
    if not isinstance(pi_cls, type) or not found:
        raise LoweringError(f"@pass_instrument takes a class with any of {', '.join(HOOKS)}; {pi_cls!r} has none")
    return pi_cls


class PassTimingInstrument:
    """Measures passes: `rows` holds (name, seconds) in the order of execution, `render()` is a table."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []
        self._starts: list[float] = []

    def enter_pass_ctx(self) -> None:
        """Start over."""
        self.rows.clear()
        self._starts.clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note the time."""
        self._starts.append(time.perf_counter())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note how long the pass took."""
        self.rows.append((info.name, time.perf_counter() - self._starts.pop()))

    def render(self) -> str:
        """Milliseconds per pass and in total."""
        total = sum(seconds for _, seconds in self.rows)
        lines = [f"{seconds * 1e3:9.3f} ms  {name}" for name, seconds in self.rows]
        return "\n".join([*lines, f"{total * 1e3:9.3f} ms  total"])


class PassPrintingInstrument:
    """Prints the module before and after the named passes."""

    def __init__(
        self,
        print_before_pass_names: Sequence[str] = (),
        print_after_pass_names: Sequence[str] = (),
        file: TextIO | None = None,
    ) -> None:
        self.print_before_pass_names = tuple(print_before_pass_names)
        self.print_after_pass_names = tuple(print_after_pass_names)
        self.file = file

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print if the pass is among those wished for."""
        if info.name in self.print_before_pass_names:
            print(f"# before {info.name}\n{mod.script()}", file=self.file)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print if the pass is among those wished for."""
        if info.name in self.print_after_pass_names:
            print(f"# after {info.name}\n{mod.script()}", file=self.file)


class PrintBeforeAll:
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"# before {info.name}\n{mod.script()}")


class PrintAfterAll:
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"# after {info.name}\n{mod.script()}")


class _TextInstrument:
    """Keeps the text before a pass, to say afterwards what changed."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self.count = 0

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Keep the text."""
        self._before.append(mod.script())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Report the texts before and after."""
        self.report(info, self._before.pop(), mod.script())
        self.count += 1

    @abstractmethod
    def report(self, info: PassInfo, before: str, after: str) -> None:
        """Say what the pass did."""


class DumpInstrument(_TextInstrument):
    """Writes the module after every pass to numbered files in `folder`; a pass without effect has it in its file's name."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = Path(folder)

    def report(self, info: PassInfo, before: str, after: str) -> None:
        """Write one file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        note = ".unchanged" if before == after else ""
        (self.folder / f"{self.count:03d}_{info.name}{note}.txt").write_text(after, encoding="utf-8")


class DiffInstrument(_TextInstrument):
    """Hands the unified diff of every pass that changed something to `write` (default: print)."""

    def __init__(self, write: Callable[[str], Any] = print) -> None:
        super().__init__()
        self.write = write

    def report(self, info: PassInfo, before: str, after: str) -> None:
        """Hand over one diff."""
        if before != after:
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), f"before {info.name}", f"after {info.name}", lineterm="", n=2
            )
            self.write("\n".join(lines))


class VerifyInstrument:
    """Checks after every pass what holds for any program, whatever its phase: definitions before uses, dtypes, shapes."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check the module; raises InternalError naming the pass."""
        check_module(mod, info.name, phase=None, by_user=False)
