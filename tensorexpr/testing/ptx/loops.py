"""The loops of a kernel's text."""

from __future__ import annotations

import re
from collections import Counter


def longest_loop(text: str) -> Counter[str]:
    """The instructions of the longest loop, by name: of a product written out, those that are paid for each part of its sum.

    Args:
        text: PTX of one kernel.

    Returns:
        How often each instruction stands between the loop's label and its jump back; empty if no jump goes back.
    """
    lines = [line.strip() for line in text.splitlines()]
    labels = {line[:-1]: number for number, line in enumerate(lines) if line.startswith("$") and line.endswith(":")}
    found: list[Counter[str]] = [Counter()]
    for number, line in enumerate(lines):
        back = re.search(r"bra(?:\.uni)?\s+(\$L\w+);", line)
        start = labels.get(back[1], number) if back else number
        body = [re.sub(r"^@!?%p\d+\s+", "", one) for one in lines[start + 1 : number + 1]]
        found.append(Counter(one.split()[0] for one in body if one and not one.startswith(("//", "$", ".", "{"))))
    return max(found, key=lambda names: names.total())
