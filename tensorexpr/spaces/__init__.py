"""Spaces: rules that give every computation a good schedule without a search, and the sizes that a search may change in it.

state        a program while its space is made;  stages: its extents, and who reads whom
sizes        what a rule prefers and what else there is, as decisions of the schedule
machine      lanes, and what is worth several threads
access       how far apart in memory the neighbours along each axis are
explain      which rule takes a stage, and why the others refuse it
default      which of the rules below a computation gets without a search

injective    elementwise, broadcasts, transforms;  transpose: what reads across the direction in which it writes
rows         programs that work row by row: softmax, norms
reduction    sums and their like, over rows or columns;  window: over small windows, depthwise convolutions and pooling
contraction_order  which factors of a product come first;  parts: what is computed apart from it
contractions     products and their like told by what their axes move;  convolutions: those of them that have windows
tile_cycles      the cycles of register tiles, counted;  conv_tile: what windows add to the count
contraction_plan what is decided of a product: its tile, the order of loops, what is packed;  conv_plan: of a convolution
tiles            the steps of these plans: pack, tile, attach, unroll, vectorise;  products: which stages get them
dot_products     instructions that sum groups of small numbers
conv_packed      convolutions that leave out pixels: a dense copy of the others
gpu              all of this for blocks of threads
"""

from __future__ import annotations

from .default import default_schedule, scheduled_by_plans
from .injective import schedule_injective
from .reduction import schedule_reduction, schedule_root_reduction
from .rows import schedule_rows

__all__ = ["default_schedule", "schedule_injective", "schedule_reduction", "schedule_root_reduction", "schedule_rows", "scheduled_by_plans"]
