"""Programs printed in colours."""

from __future__ import annotations

from typing import Any

from ..tir.printer.highlight import shown


def cprint(printable: Any, style: str | None = None, black_format: bool | None = None) -> None:
    """Print a program, a node or a text in colours.

    Args:
        printable: what has a `script()`, or a text.
        style: "ansi", "light" or "dark" for colours, "plain" for none; None for colours on a terminal alone.
        black_format: accepted and without effect; the layout is always the printer's own.

    Raises:
        TypeError: for what is neither.
        ValueError: for another style.
    """
    if isinstance(printable, str):
        text = printable
    elif hasattr(printable, "script"):
        text = printable.script()
    else:
        raise TypeError(f"cprint takes a text, or a node with script(), not {printable!r}")
    print(shown(text, style))
