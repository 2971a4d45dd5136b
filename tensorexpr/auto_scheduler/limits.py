"""What no program of a computation takes less than: its arithmetic at the machine's peak, and its arrays at the speed of the last cache."""

from __future__ import annotations

from math import prod

from ..target import Target
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tune.measure.native import cycles_per_second
from .compute_dag import ComputeDAG


def least_cycles(dag: ComputeDAG, target: Target) -> float:
    """Cycles that no program takes less than with all cores of a machine (the roofline of Williams et al., CACM 52(4), 2009).

    Multiplications and additions go on as one instruction at the rate of the narrowest type, whatever they are, and every array is read
    or written once: so that it is a bound, which many computations can't reach.

    Args:
        dag: of known sizes.
        target: that it is for.
    """
    machine = target.machine
    types = [parse_dtype(tensor.dtype) for tensor in dag.tensors]
    lanes = machine.vector_bits / min(8 * one.itemsize for one in types)
    arithmetic = dag.flop_ct / (2 * lanes * machine.fma_per_cycle)
    moved = sum(prod(as_int(extent) or 0 for extent in tensor.shape) * one.itemsize for tensor, one in zip(dag.tensors, types, strict=True))
    return max(arithmetic, moved / machine.caches[1].fill_bytes) / machine.cores


def least_seconds(dag: ComputeDAG, target: Target) -> float:
    """Seconds that no program takes less than on this machine; see `least_cycles`."""
    return least_cycles(dag, target) / cycles_per_second()
