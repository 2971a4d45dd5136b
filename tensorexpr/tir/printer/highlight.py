"""Scripts in colours: escape codes for terminals, HTML for notebooks."""

from __future__ import annotations

import html
import keyword
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

# Kind of token: its pattern. The first that fits counts.
_TOKENS: Mapping[str, str] = {
    "comment": r"#[^\n]*",
    "string": r'"(?:\\.|[^"\\\n])*"',
    "decorator": r"@[\w.]+",
    "builtin": r"\b[TIR]\.[\w.]+",
    "number": r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?",
    "keyword": rf"\b(?:{'|'.join(keyword.kwlist)})\b",
    "name": r"(?<=def )\w+|(?<=class )\w+",
}
_PATTERN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()))

_ANSI: Mapping[str, str] = {
    "comment": "90", "string": "32", "decorator": "35", "builtin": "36", "number": "33", "keyword": "1;34", "name": "1",
}  # fmt: skip
# By name: the colours of each kind of token on a light and on a dark ground.
_CSS: Mapping[str, Mapping[str, str]] = {
    "light": {
        "comment": "#6a737d", "string": "#22863a", "decorator": "#6f42c1", "builtin": "#005cc5", "number": "#b35900",
        "keyword": "#d73a49", "name": "#24292e",
    },
    "dark": {
        "comment": "#8b949e", "string": "#7ee787", "decorator": "#d2a8ff", "builtin": "#79c0ff", "number": "#ffa657",
        "keyword": "#ff7b72", "name": "#f0f6fc",
    },
}  # fmt: skip


def tokens(text: str) -> Iterator[tuple[str | None, str]]:
    """The text in pieces, each with its kind or None."""
    end = 0
    for match in _PATTERN.finditer(text):
        if match.start() > end:
            yield None, text[end : match.start()]
        yield match.lastgroup, match.group()
        end = match.end()
    if end < len(text):
        yield None, text[end:]


def ansi(text: str) -> str:
    """The text with escape codes for a terminal."""
    return "".join(piece if kind is None else f"\x1b[{_ANSI[kind]}m{piece}\x1b[0m" for kind, piece in tokens(text))


def as_html(text: str, style: str = "light") -> str:
    """The text as HTML, in the colours for a light or a dark ground."""
    colours = _CSS[style]
    pieces = (
        html.escape(piece) if kind is None else f'<span style="color:{colours[kind]}">{html.escape(piece)}</span>'
        for kind, piece in tokens(text)
    )
    return f'<pre style="line-height:1.3">{"".join(pieces)}</pre>'


class ShownAsText:
    """Base of what a notebook shows as the text that `print` gives."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return as_html(str(self))


def shown(text: str, style: str | None = None) -> str:
    """The text as `show` prints it: in colours on a terminal, unless NO_COLOR is set, or where `style` asks for them.

    Raises:
        ValueError: for a style that is none of None, "ansi", "light", "dark" and "plain".
    """
    if style not in (None, "ansi", "plain", *_CSS):
        raise ValueError(f'style is None, "ansi", "plain", "light" or "dark", not {style!r}')
    terminal: Any = getattr(sys.stdout, "isatty", None)
    wanted = style not in (None, "plain") or (style is None and terminal is not None and terminal() and not os.environ.get("NO_COLOR"))
    return ansi(text) if wanted else text
