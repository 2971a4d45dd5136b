"""How a program is varied.

mutator    the protocol, and the sets for kinds of targets;  default: those for CPUs and GPUs
sampled    of one sampled decision each;  mutate_parallel: of the bound on parallel iterations
"""

from __future__ import annotations

from . import default
from .mutate_parallel import MutateParallel
from .mutator import Mutator, PyMutator, create, mutated
from .sampled import MutateComputeLocation, MutateThreadBinding, MutateTileSize, MutateUnroll

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
