"""Schedules of operators without a reduction: a thread for each vector of neighbours, so that a warp's accesses are contiguous."""

from __future__ import annotations

from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.tensor import Tensor
from ..stages import compute_of
from .block import over_blocks


def schedule_injective(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule one stage that stays at the root."""
    over_blocks(s, tensor, compute_of(s, tensor).axis, target)
