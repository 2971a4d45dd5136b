"""Operators of groups of processes as functions that make calls."""

from ..ops.collective import allgather, allreduce, broadcast_from_worker0, scatter_from_worker0

__all__ = ["allgather", "allreduce", "broadcast_from_worker0", "scatter_from_worker0"]
