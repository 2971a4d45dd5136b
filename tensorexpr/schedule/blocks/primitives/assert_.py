"""Assert: what must hold of sampled numbers. Where it doesn't, the decisions make no program, and a search draws others.

v4, v5 = sch.sample_perfect_tile(i, n=2);  sch.assert_(v4 * 8 <= 64)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ScheduleError
from ....tir.expr import IntImm
from ..instruction import Applied, Primitive, State


class Assert(Primitive):
    """The instruction."""

    kind, method, inputs = "Assert", "assert_", ("condition",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The state as it is: the condition is about sampled numbers, so it is decided here.

        Raises:
            ScheduleError: if it is false, or no constant.
        """
        holds = inputs[0]
        if not isinstance(holds, (int, IntImm)):
            raise ScheduleError(f"assert_ takes a condition on sampled numbers, which are known now, not {holds}")
        if not (holds.value if isinstance(holds, IntImm) else holds):
            raise ScheduleError("assert_: the condition doesn't hold for these decisions; others may fulfil it")
        return Applied(state)
