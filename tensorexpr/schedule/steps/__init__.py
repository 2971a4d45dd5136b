"""The schedule steps: the one vocabulary that every front door writes its schedules in."""

from .base import REGISTRY, Step, step_from_json
from .caching import CacheRead, CacheWrite
from .loops import PRAGMAS, Annotate, Factor, Fuse, Pragma, Reorder, Split
from .placement import ComputeAt, ComputeInline, ComputeRoot, SetScope
from .rfactor import RFactor
from .sampling import SampleCategorical, SamplePerfectTile

__all__ = [
    "PRAGMAS",
    "REGISTRY",
    "Annotate",
    "CacheRead",
    "CacheWrite",
    "ComputeAt",
    "ComputeInline",
    "ComputeRoot",
    "Factor",
    "Fuse",
    "Pragma",
    "RFactor",
    "Reorder",
    "SampleCategorical",
    "SamplePerfectTile",
    "SetScope",
    "Split",
    "Step",
    "step_from_json",
]
