"""The design spaces of a program.

space_generator          the protocol
schedule_fn              what a function of a schedule describes
space_generator_union    those of several generators
"""

from __future__ import annotations

from .schedule_fn import ScheduleFn
from .space_generator import PySpaceGenerator, SpaceGenerator, create
from .space_generator_union import SpaceGeneratorUnion

__all__ = ["PySpaceGenerator", "ScheduleFn", "SpaceGenerator", "SpaceGeneratorUnion", "create"]
