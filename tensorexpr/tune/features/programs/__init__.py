"""Features of programs as they are scheduled, loops or blocks, from their statements.

touched   what accesses touch while loops run;  stores: the stores of a program with the loops around them
rows      164 numbers for each store
"""

from .rows import ProgramFeatures, workload_operations

__all__ = ["ProgramFeatures", "workload_operations"]
