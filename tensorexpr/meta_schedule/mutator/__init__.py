"""How a program is varied.

mutator    the protocol, and the sets for kinds of targets;  default: those for CPUs and GPUs
mutate_tile_size, mutate_unroll, mutate_parallel, mutate_compute_location, mutate_thread_binding     one decision each
"""

from __future__ import annotations

from . import default
from .mutate_compute_location import MutateComputeLocation
from .mutate_parallel import MutateParallel
from .mutate_thread_binding import MutateThreadBinding
from .mutate_tile_size import MutateTileSize
from .mutate_unroll import MutateUnroll
from .mutator import Mutator, PyMutator, create, mutated

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateThreadBinding",
    "MutateTileSize",
    "MutateUnroll",
    "Mutator",
    "PyMutator",
    "create",
    "default",
    "mutated",
]
