"""Hypothesis strategies: draw what the library works on.

basics        extents, shapes, dtypes
expressions   integer expressions over variables of known ranges, and conditions
dags          small computations; recurrences, those over time
schedules     legal schedules of a computation; tir_schedules, those of a function of blocks; grids, those for GPUs
layouts       other layouts of a stage
intrinsics    tensor intrinsics of loops
targets       CPUs, widths of vectors, cores
"""

from .basics import dtypes, extents, float_dtypes, int_dtypes, shapes
from .dags import DagCase, compute_dags
from .expressions import Scope, conditions, int_expressions, scopes, value_at
from .grids import grids
from .layouts import layout_mappings
from .schedules import schedules
from .targets import targets
from .tir_schedules import tir_schedules

__all__ = [
    "DagCase",
    "Scope",
    "compute_dags",
    "conditions",
    "dtypes",
    "extents",
    "float_dtypes",
    "grids",
    "int_dtypes",
    "int_expressions",
    "layout_mappings",
    "schedules",
    "scopes",
    "shapes",
    "targets",
    "tir_schedules",
    "value_at",
]
