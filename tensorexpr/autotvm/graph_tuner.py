"""TVM's tuners of layouts between a graph's kernels, by name: `relax.tune_network` and the graph pipeline choose these here."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import TuningError


class _GraphTuner:
    """A name that programs import.

    Raises:
        TuningError: when one is made.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TuningError(
            f"{type(self).__name__} chooses layouts between kernels that AutoTVM's logs schedule, and graphs here aren't built of such "
            "kernels: the pipeline of relax.build chooses layouts by itself, and relax.tune_network or tvmc.tune tune its kernels"
        )


class DPTuner(_GraphTuner):
    """By dynamic programming in TVM. See `_GraphTuner`."""


class PBQPTuner(_GraphTuner):
    """By a quadratic assignment in TVM. See `_GraphTuner`."""
