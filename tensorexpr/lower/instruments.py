"""Instruments: what watches passes run. Each has any of the hooks that `PassContext` names."""

from __future__ import annotations

import difflib
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..dataclass import dataclass, field
from ..errors import PassError
from ..tir.function import IRModule
from .passes import PassInfo
from .specs import check_module

HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class PassInstrument:
    """Base of instruments: hooks that do nothing, to be overridden."""

    def enter_pass_ctx(self) -> None:
        """The context begins."""

    def exit_pass_ctx(self) -> None:
        """The context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass `info` may run on `mod`; it runs if all instruments agree."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass has run; `mod` is its result."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Class decorator: an instrument with the hooks that the class has.

    Raises:
        PassError: for something that is no class, or has no hook; the message lists them.
    """

    def make(cls: Any) -> type[PassInstrument]:
        if not isinstance(cls, type) or not any(callable(getattr(cls, name, None)) for name in HOOKS):
            raise PassError(f"@pass_instrument takes a class with any of {', '.join(HOOKS)}; {cls!r} has none")
        if issubclass(cls, PassInstrument):
            return cls
        names = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        return type(cls.__name__, (cls, PassInstrument), names)

    return make if pi_cls is None else make(pi_cls)


@dataclass
class _Profile:
    """One run of a pass, and the passes that it ran."""

    name: str
    seconds: float = 0.0
    children: list[_Profile] = field(default_factory=list)

    def lines(self, depth: int, whole: float, parent: float) -> Iterator[str]:
        """Its own line and those of its children: time, time without the children, shares of the whole and of the parent."""
        own = self.seconds - sum(child.seconds for child in self.children)
        shares = f"({_percent(self.seconds, whole)}; {_percent(self.seconds, parent)})"
        yield f"{chr(9) * depth}{self.name}: {self.seconds * 1e6:.0f}us [{own * 1e6:.0f}us] {shares}\n"
        for child in self.children:
            yield from child.lines(depth + 1, whole, self.seconds)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.2f}%"


class PassTimingInstrument(PassInstrument):
    """Measures passes: `rows` holds (name, seconds) in the order in which they ended, `render()` is a table."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []
        self._done: list[_Profile] = []
        self._open: list[tuple[_Profile, float]] = []

    def enter_pass_ctx(self) -> None:
        """Start over."""
        self.rows.clear()
        self._done.clear()
        self._open.clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note the time."""
        self._open.append((_Profile(info.name), time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Note how long the pass took."""
        profile, start = self._open.pop()
        profile.seconds = time.perf_counter() - start
        self.rows.append((info.name, profile.seconds))
        (self._open[-1][0].children if self._open else self._done).append(profile)

    def render(self) -> str:
        """A line for each pass, passes that others ran below them: microseconds with and without those, and shares."""
        whole = sum(profile.seconds for profile in self._done)
        return "".join(line for profile in self._done for line in profile.lines(0, whole, whole))


PassesTimeInstrument = PassTimingInstrument  # its name in release 0.8


class PassPrintingInstrument(PassInstrument):
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

    def run_before_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        """Print if the pass is among those wished for."""
        if pass_info.name in self.print_before_pass_names:
            print(f"Print IR before: {pass_info.name}\n{mod}\n\n", file=self.file)

    def run_after_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        """Print if the pass is among those wished for."""
        if pass_info.name in self.print_after_pass_names:
            print(f"Print IR after: {pass_info.name}\n{mod}\n\n", file=self.file)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"Before Running Pass: {info}")
        print(mod)


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module."""
        print(f"After Running Pass: {info}")
        print(mod)


class _TextInstrument(PassInstrument):
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


class DumpIR(_TextInstrument):
    """Writes the module after every pass to numbered files in a folder; a pass without effect has it in its file's name.

    Args:
        dump_dir: the folder; it is made when there is something to write.
        refresh: remove what an earlier run wrote there.
    """

    def __init__(self, dump_dir: str | Path, refresh: bool = False) -> None:
        super().__init__()
        self.dump_dir = Path(dump_dir)
        if refresh:
            for old in self.dump_dir.glob("[0-9][0-9][0-9]_*.py"):
                old.unlink()

    def report(self, info: PassInfo, before: str, after: str) -> None:
        """Write one file."""
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        note = ".unchanged" if before == after else ""
        (self.dump_dir / f"{self.count:03d}_{info.name}{note}.py").write_text(after, encoding="utf-8")


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


class VerifyInstrument(PassInstrument):
    """Checks after every pass what holds for any program, whatever its phase: definitions before uses, dtypes, shapes."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check the module; raises InternalError naming the pass."""
        check_module(mod, info.name, phase=None, by_user=False)
