"""Search policies by the name that they have in TVM, and the policy that searches nothing."""

from __future__ import annotations

from ..tune.space import Sketch
from .custom_rule import PreloadCustomSketchRule
from .policy import SketchPolicy
from .preload import PreloadMeasuredStates

SearchPolicy = SketchPolicy
SearchCallback = PreloadMeasuredStates | PreloadCustomSketchRule


class EmptyPolicy(SketchPolicy):
    """A policy without a design space: it measures the program as it was declared, and nothing else."""

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """None."""
        return []


__all__ = ["EmptyPolicy", "PreloadCustomSketchRule", "PreloadMeasuredStates", "SearchCallback", "SearchPolicy", "SketchPolicy"]
