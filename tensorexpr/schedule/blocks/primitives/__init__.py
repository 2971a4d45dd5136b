"""The primitives, one file each: a function from program to program, and the instruction that calls it.

queries, sampling                         blocks, loops, decisions
split, fuse, reorder, kinds, annotate     loops
"""

from __future__ import annotations

from . import annotate, fuse, kinds, queries, reorder, sampling, split

__all__ = ["annotate", "fuse", "kinds", "queries", "reorder", "sampling", "split"]
