"""Spaces of GPUs: which loops become blocks and threads, and what threads share, when nobody wrote a schedule.

block       what a block may have, and how a loop becomes blocks and threads
default     which of the rules below a stage gets

injective   elementwise, broadcasts, transforms: a thread for each vector; transposes by tiles in shared memory
reduction   sums and their like: the threads of a block share a row, or vectors of columns
rows        programs that work row by row, a block for each: softmax, norms
matrix_plan, matrix_units   products on matrix units: the unit and its tiles, and the steps of such a plan
tile_plan   what is decided of a product: the tile of a block, of a thread, and how much of the sum is in shared memory at a time
contraction the steps of such a plan: products, convolutions, batches of them
short       products of a few rows, a matrix by a vector above all
split_sum   sums of products that blocks cut among themselves, where results are few
"""

from __future__ import annotations

from .block import is_gpu
from .default import alone_on_gpu, scheduled_for_gpu, seen_on_gpu
from .matrix_plan import Tiling

__all__ = ["Tiling", "alone_on_gpu", "is_gpu", "scheduled_for_gpu", "seen_on_gpu"]
