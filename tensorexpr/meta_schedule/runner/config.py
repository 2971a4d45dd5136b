"""How programs are run."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import TuningError


class EvaluatorConfig(NamedTuple):
    """How a program is timed.

    `number`: calls in a row that make one repeat, at least. `repeat`: repeats, each of which gives a time. `min_repeat_ms`: a
    repeat gets as many calls as fill this time. `enable_cpu_cache_flush`: drop all arrays from the caches before each repeat.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    @staticmethod
    def normalized(config: EvaluatorConfig | None) -> EvaluatorConfig:
        """The configuration, or the default one.

        Raises:
            TuningError: for counts below 1 or a negative time.
        """
        found = EvaluatorConfig() if config is None else config
        if found.number < 1 or found.repeat < 1 or found.min_repeat_ms < 0:
            raise TuningError(f"a program is called at least once in each of at least one repeat, not as {found}")
        return found
