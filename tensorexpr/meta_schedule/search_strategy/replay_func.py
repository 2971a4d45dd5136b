"""`ReplayFunc`: programs of the space generator, called anew for each."""

from __future__ import annotations

from ...errors import TensorExprError
from ...schedule.blocks import Schedule
from .population import Individual
from .replay_trace import ReplayTrace


class ReplayFunc(ReplayTrace, kind="replay-func"):
    """Calls the space generator anew for each program, so that a user's function may ask what was sampled and go on as it likes."""

    def __init__(self) -> None:
        super().__init__(max_fail_count=100)

    def _draw(self) -> Individual | None:
        assert self._context is not None
        try:
            spaces = self._context.generate_design_space()
        except TensorExprError:
            return None
        drawn = [space for space in spaces if isinstance(space, Schedule)]
        return self._programs.finished(self._programs.rng.choice(drawn)) if drawn else None

    def clone(self) -> ReplayFunc:
        """A strategy like this one, without a search."""
        return type(self)()
