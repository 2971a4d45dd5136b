"""Features of whole populations, from a sketch's loops and access maps as arrays. No candidate is lowered for them.

nest      extents and strides of every loop of every stage, as arrays over the population
access    what each stage reads and writes per loop level: elements, cache lines, invariance
machine   costs per level of the memory hierarchy from those footprints
validity  which candidates may be built
extract   the feature matrix
"""

from .extract import FEATURE_NAMES, Extracted, extract

__all__ = ["FEATURE_NAMES", "Extracted", "extract"]
