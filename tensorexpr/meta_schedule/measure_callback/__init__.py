"""What is done with every round's results: programs become records, files are removed, the cost model learns."""

from __future__ import annotations

from .measure_callback import AddToDatabase, MeasureCallback, PyMeasureCallback, RemoveBuildArtifact, UpdateCostModel, create

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel", "create"]
