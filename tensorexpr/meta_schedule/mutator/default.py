"""The mutators for CPUs and GPUs, with their probabilities."""

from __future__ import annotations

from .mutate_parallel import MutateParallel
from .mutator import Mutator
from .sampled import MutateComputeLocation, MutateThreadBinding, MutateTileSize, MutateUnroll


def _mutators() -> dict[Mutator, float]:
    return {MutateTileSize(): 0.9, MutateComputeLocation(): 0.05, MutateUnroll(): 0.03, MutateParallel(max_jobs_per_core=16): 0.02}


def _gpu_mutators() -> dict[Mutator, float]:
    return {MutateTileSize(): 0.9, MutateUnroll(): 0.08, MutateThreadBinding(): 0.02}


Mutator.kinds.update(
    {**dict.fromkeys(("cuda", "cuda-tensorcore"), _gpu_mutators), **dict.fromkeys(("llvm", "vnni", "avx512", "neon", "dotprod"), _mutators)}
)
