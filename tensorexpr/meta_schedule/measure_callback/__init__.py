"""What is done with every round's results.

measure_callback         the protocol
add_to_database          every program becomes a record
remove_build_artifact    files are removed
update_cost_model        the cost model learns
"""

from __future__ import annotations

from .add_to_database import AddToDatabase
from .measure_callback import MeasureCallback, PyMeasureCallback, create
from .remove_build_artifact import RemoveBuildArtifact
from .update_cost_model import UpdateCostModel

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel", "create"]
