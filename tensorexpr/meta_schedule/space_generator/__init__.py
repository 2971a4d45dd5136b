"""The design spaces of a program.

space_generator          the protocol
post_order_apply         what schedule rules make
tensor_sketches          the auto-scheduler's sketches
schedule_fn              what a function of a schedule describes
space_generator_union    those of several generators
"""

from __future__ import annotations

from ..origin import space_of
from .post_order_apply import PostOrderApply
from .schedule_fn import ScheduleFn
from .space_generator import PySpaceGenerator, SpaceGenerator, create
from .space_generator_union import SpaceGeneratorUnion
from .tensor_sketches import TensorSketches, TensorSketchSpace

__all__ = [
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
    "TensorSketchSpace",
    "TensorSketches",
    "create",
    "space_of",
]
