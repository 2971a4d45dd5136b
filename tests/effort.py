"""How many random cases tests draw.

Drawing takes nearly half of the time of all tests. TENSOREXPR_TEST_EFFORT is the share of their cases that tests take (1 by default), of
those that take many: `.ci/run` takes fewer, so that a change waits less than half an hour; whoever works on a part runs its tests in full.
"""

from __future__ import annotations

import os

_FEW = 10
_SHARE = float(os.environ.get("TENSOREXPR_TEST_EFFORT", "1"))


def share_of(number: int) -> int:
    """As many cases, or the share of them that is asked for; no fewer than ten of more."""
    return number if number <= _FEW else max(_FEW, round(number * _SHARE))
