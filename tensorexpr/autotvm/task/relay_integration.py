"""Tasks of graphs: what TVM extracts from Relay's programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...errors import TuningError
from ...target import TargetLike

_WHY = (
    "graphs are relax modules here, whose kernels are made by rules, and templates are not among their implementations yet. Make tasks of "
    "operators with autotvm.task.create"
)


def extract_from_program(
    mod: Any, params: Any, target: TargetLike, target_host: TargetLike | None = None, ops: Sequence[Any] | None = None
) -> NoReturn:
    """The tasks of a graph's operators.

    Raises:
        TuningError: always; the message says what to do instead.
    """
    raise TuningError(f"extract_from_program: {_WHY}")


def extract_from_multiple_program(
    mods: Any, params: Any, target: TargetLike, target_host: TargetLike | None = None, ops: Sequence[Any] | None = None
) -> NoReturn:
    """The tasks of several graphs' operators.

    Raises:
        TuningError: always; the message says what to do instead.
    """
    raise TuningError(f"extract_from_multiple_program: {_WHY}")
