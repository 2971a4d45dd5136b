"""Spaces: rules that give every computation a good schedule without a search, and the sizes that a search may change in it.

sizes        what a rule prefers and what else there is, as decisions of the schedule
machine      lanes, and what is worth several threads
access       how far apart in memory the neighbours along each axis are
injective    elementwise, broadcasts, transforms
transpose    operators that read across the direction in which they write
window       reductions over small windows: depthwise convolutions, pooling
reduction    sums and their like, over rows or columns
products     matrix products told by their indices
register_tile  which tile of accumulators a product gets
dot_products  instructions that sum groups of small numbers
gemm         matrix products: packed panels, tiles in registers, what follows computed on the tile
convolutions  convolutions told by their indices
conv_plan    which tile and which loops a convolution gets
conv         convolutions: tiles of pixels by vectors of channels, borders peeled, weights in panels
conv_flat    convolutions of single pixels: vectors of pixels
grouped_conv  convolutions of int8 and bfloat16 by dot products
rows         programs that work row by row: softmax, norms
default      which of them a computation gets
"""

from __future__ import annotations

from .default import default_schedule, scheduled_by_plans
from .injective import schedule_injective
from .reduction import schedule_reduction, schedule_root_reduction
from .rows import schedule_rows

__all__ = ["default_schedule", "schedule_injective", "schedule_reduction", "schedule_root_reduction", "schedule_rows", "scheduled_by_plans"]
