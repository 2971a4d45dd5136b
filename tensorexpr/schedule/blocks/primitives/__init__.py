"""The primitives, one file each: a function from program to program, and the instruction that calls it.

queries, sampling                         blocks, loops, decisions
split, fuse, reorder, kinds, annotate     loops
cache_read, cache_write                   copies of buffers
compute_at, compute_inline,                where blocks are computed
reverse_compute_inline,
sample_compute_location
"""

from __future__ import annotations

from . import (
    annotate,
    cache_read,
    cache_write,
    compute_at,
    compute_inline,
    fuse,
    kinds,
    queries,
    reorder,
    reverse_compute_inline,
    sample_compute_location,
    sampling,
    split,
)

__all__ = [
    "annotate",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "fuse",
    "kinds",
    "queries",
    "reorder",
    "reverse_compute_inline",
    "sample_compute_location",
    "sampling",
    "split",
]
