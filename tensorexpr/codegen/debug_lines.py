"""Debug locations: which line of the lowered program an instruction comes from, for debuggers and profilers.

While functions are written, a comment `;!7` says that what follows comes from line 7; `located` turns the comments of a
finished function into DWARF's metadata. Where nobody asks for locations, nothing of this runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .builder import ModuleText

FILE = "main.tir"
_MARK = "  ;!"


class DebugLines:
    """The lines of one module.

    Args:
        text: the module that is written.
        lines: statement, by identity -> line of the module's script.
    """

    def __init__(self, text: ModuleText, lines: Mapping[int, int]) -> None:
        self._text = text
        self._lines = lines
        self._around = [1]
        self._file = text.node(f'!DIFile(filename: "{FILE}", directory: ".")')
        self._unit = self._distinct(
            f'!DICompileUnit(language: DW_LANG_C, file: !{self._file}, producer: "tensorexpr", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: FullDebug)"
        )
        flags = [text.node(f'!{{i32 {how}, !"{name}", i32 {value}}}') for how, name, value in _FLAGS]
        text.metadata.append(f"!llvm.dbg.cu = !{{!{self._unit}}}\n!llvm.module.flags = !{{{', '.join(f'!{flag}' for flag in flags)}}}")

    def _distinct(self, node: str) -> int:
        return self._text.distinct(node)

    def traced(self, handler: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """A writer of statements that also says from which line they come."""

        def write(ctx: Any, stmt: Any) -> None:
            line = self._lines.get(id(stmt))
            if line is None:
                return handler(ctx, stmt)
            text = ctx.text
            text.lines.append(f"{_MARK}{line}")
            self._around.append(line)
            handler(ctx, stmt)
            self._around.pop()
            text.lines.append(f"{_MARK}{self._around[-1]}")  # back to the statement around

        return write

    def located(self, name: str, lines: Sequence[str]) -> list[str]:
        """The lines of a finished function, each instruction with its location."""
        first = next((line for line in lines if line.startswith(_MARK)), f"{_MARK}1").removeprefix(_MARK)
        kind = self._text.node(f"!DISubroutineType(types: !{self._text.node('!{null}')})")
        scope = self._distinct(
            f'!DISubprogram(name: "{name}", scope: !{self._file}, file: !{self._file}, line: {first}, type: !{kind}, '
            f"scopeLine: {first}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self._unit})"
        )
        here, found = self._location(first, scope), []
        for line in lines:
            if line.startswith(_MARK):
                here = self._location(line.removeprefix(_MARK), scope)
            elif line.startswith("define "):
                found.append(f"{line.removesuffix(' {')} !dbg !{scope} {{")
            else:
                # Labels and comments are no instructions.
                found.append(f"{line}, !dbg !{here}" if line.startswith("  ") and not line.startswith("  ;") else line)
        return found

    def _location(self, line: str, scope: int) -> int:
        return self._text.node(f"!DILocation(line: {line}, column: 1, scope: !{scope})")


_FLAGS = ((2, "Debug Info Version", 3), (7, "Dwarf Version", 4))
