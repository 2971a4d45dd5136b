"""Runs the Python blocks of a document."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from typing import Any

BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_blocks(text: str) -> tuple[str, list[str]]:
    """What the Python blocks of a document print, and the text of its other blocks."""
    names: dict[str, Any] = {}
    printed, others = io.StringIO(), []
    for number, (kind, body) in enumerate(BLOCK.findall(text)):
        if kind:
            place = f"<block {number} of {hash(text)}>"  # scripts are read from where linecache finds them, as in notebooks
            linecache.cache[place] = (len(body), None, body.splitlines(keepends=True), place)
            with contextlib.redirect_stdout(printed):
                exec(compile(body, place, "exec"), names)
        else:
            others.append(body)
    return printed.getvalue(), others
