"""A trace of blocks as the Python lines that it stands for, for people who look at a schedule that is made by one."""

from __future__ import annotations

import json

from ..errors import RecordError


def block_lines(instructions: str) -> list[str]:
    """The lines; of a text that is no trace, the text.

    Args:
        instructions: the trace as JSON text.
    """
    # Few schedules are made by blocks, and none needs their classes before it is printed.
    from .blocks.trace import Trace

    try:
        return Trace.from_json(json.loads(instructions)).as_python()
    except (ValueError, RecordError):
        return [instructions]
