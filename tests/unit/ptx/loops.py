"""The loops of a kernel's text."""

from __future__ import annotations

import re
from collections import Counter


def loop_of(text: str) -> Counter[str]:
    """The instructions of the longest loop, by name."""
    lines = [line.strip() for line in text.splitlines()]
    found: list[Counter[str]] = []
    for number, line in enumerate(lines):
        back = re.search(r"bra(?:\.uni)?\s+(\$L\w+);", line)
        start = lines.index(f"{back[1]}:") if back and f"{back[1]}:" in lines else number
        body = [re.sub(r"^@!?%p\d+\s+", "", one) for one in lines[start + 1 : number + 1]]
        found.append(Counter(one.split()[0] for one in body if one and not one.startswith(("//", "$", ".", "{"))))
    return max(found, key=lambda names: names.total())
