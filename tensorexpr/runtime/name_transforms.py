"""Names as other languages take them."""

from __future__ import annotations

import re

from ..errors import ArgumentError


def sanitize_name(original_name: str) -> str:
    """A name with an underscore for each character that identifiers don't have: `input:1` as input_1.

    Raises:
        ArgumentError: for no name.
    """
    if not original_name:
        raise ArgumentError("Name is empty")
    return re.sub(r"[^0-9A-Za-z_]", "_", original_name)
