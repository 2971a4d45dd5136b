"""Features of whole populations, from a sketch's loops and access maps as arrays. No candidate is lowered for them.

nest      extents and strides of every loop of every stage, as arrays over the population
instructions   nests in which an intrinsic does the innermost loops
access    what each stage reads and writes per loop level: elements, cache lines, invariance
machine   costs per level of the memory hierarchy from those footprints
validity  which candidates may be built
extract   the feature matrix

Of programs for GPUs:
kernels   blocks, threads, memory and registers of each, and which programs a chip has room for
warps     what the threads of a warp access together: sectors and banks
device    the feature matrix
units     the same of kernels on matrix units, from their plans

The 164 features of every store that Ansor describes programs by:
indices, axis_values, store_loops     what a store touches while some of its loops run
stores, reuse            stores in the order of the program; when a tensor is touched again
operations, per_store    operations by kind; all features, with their names
programs/                the same of functions of loops or blocks, from their statements
"""

from .device import DEVICE_FEATURE_NAMES
from .extract import FEATURE_NAMES, Extracted, extract
from .per_store import PerStore, per_store, per_store_names

__all__ = ["DEVICE_FEATURE_NAMES", "FEATURE_NAMES", "Extracted", "PerStore", "extract", "per_store", "per_store_names"]
