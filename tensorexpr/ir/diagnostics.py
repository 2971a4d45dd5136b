"""What is wrong with the text of a program, as values: a reader of scripts hands them to a renderer, then raises.

    from tensorexpr.ir.diagnostics import override_renderer

    found = []
    override_renderer(lambda context: found.extend(context.diagnostics))
    try:
        from_source(text)
    except DiagnosticError:
        print(found[0].span.line, found[0].message)

Without an override nothing is printed: the error's own message shows the place.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ..dataclass import dataclass
from ..errors import DiagnosticError, ParseError
from .source import SourceName, Span


class DiagnosticLevel(IntEnum):
    """How bad it is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about one place."""

    level: int
    span: Span
    message: str


class DiagnosticRenderer:
    """Shows what a context has collected."""

    def __init__(self, render_func: Callable[[DiagnosticContext], Any]) -> None:
        self._render = render_func

    def render(self, ctx: DiagnosticContext) -> None:
        """Show all messages of a context."""
        self._render(ctx)


class DiagnosticContext:
    """Messages about one module.

    Args:
        module: what they are about; None for a text that is none yet.
        renderer: who shows them.
    """

    def __init__(self, module: Any, renderer: DiagnosticRenderer) -> None:
        self.module = module
        self.renderer = renderer
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Add a message."""
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        """Show all messages.

        Raises:
            DiagnosticError: if one of them is an error.
        """
        self.renderer.render(self)
        worst = [item for item in self.diagnostics if item.level <= DiagnosticLevel.ERROR]
        if worst:
            raise DiagnosticError("; ".join(f"{item.span.source_name.name}:{item.span.line}: {item.message}" for item in worst))


def _print(ctx: DiagnosticContext) -> None:
    for item in ctx.diagnostics:
        level = DiagnosticLevel(item.level).name.lower()
        print(f"{item.span.source_name.name}:{item.span.line}:{item.span.column}: {level}: {item.message}")


_OVERRIDE: list[Callable[[DiagnosticContext], Any]] = []


def get_renderer() -> DiagnosticRenderer:
    """The renderer in use: the override, or one that prints a line for each message."""
    return DiagnosticRenderer(_OVERRIDE[0] if _OVERRIDE else _print)


def override_renderer(render_func: Callable[[DiagnosticContext], Any] | None) -> None:
    """Let `render_func` show messages from now on; None takes the override back."""
    _OVERRIDE[:] = [] if render_func is None else [render_func]


def report(error: ParseError) -> None:
    """Hand an error in a text to the override, if there is one; whoever calls raises it after that."""
    if not _OVERRIDE:
        return
    line, column = error.line or 1, error.column or 1
    span = Span(SourceName(error.filename), line, line, column, column + error.width)
    context = DiagnosticContext(None, get_renderer())
    context.emit(Diagnostic(DiagnosticLevel.ERROR, span, error.reason))
    context.renderer.render(context)
