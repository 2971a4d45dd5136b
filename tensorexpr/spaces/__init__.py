"""Spaces: rules that give every computation a good schedule without a search, and the sizes that a search may change in it.

state        a program while its space is made;  stages: its extents, and who reads whom
sizes        what a rule prefers and what else there is, as decisions of the schedule
machine      lanes, and what is worth several threads
access       how far apart in memory the neighbours along each axis are
nests        vectors with what is written out around them, tasks for all cores, the sums of a tile
inlining     what is computed where it is read;  open_batch: any number of images as one
default      the table of rules, and what a computation gets of them without a search
explain      which rule of the table takes a stage, or why none does

injective    elementwise, broadcasts, transforms;  blocks_of_axes: axes that are read by quotients
transpose    what reads across the direction in which it writes;  turned: copies for stages that read across their lanes
rows         programs that work row by row: softmax, norms;  recurrence: steps of a scan
reduction    sums and their like, over rows or columns;  pairs: over pairs of points
window       over small windows: depthwise convolutions, pooling, convolutions of few channels
contraction_order  which factors of a product come first;  parts: what is computed apart from it
contractions     products and their like told by what their axes move;  convolutions: those of them that have windows
tile_cycles      the cycles of register tiles, counted;  conv_tile: what windows add to the count
contraction_plan what is decided of a product: its tile, the order of loops, what is packed;  conv_plan: of a convolution
tiles            the steps of these plans: pack, tile, attach, unroll, vectorise;  products: which plans a stage may have
dot_products     instructions that sum groups of small numbers;  dot_tiles: few rows, terms in the lanes
conv_packed      convolutions that leave out pixels: a dense copy of the others
gpu              all of this for blocks of threads
"""

from __future__ import annotations

from .default import default_schedule, scheduled_by_plans
from .injective import schedule_injective
from .reduction import schedule_reduction, schedule_root_reduction
from .rows import schedule_rows

__all__ = ["default_schedule", "schedule_injective", "schedule_reduction", "schedule_root_reduction", "schedule_rows", "scheduled_by_plans"]
