"""Which of many programs are fast.

cost_model      the protocol
xgb_model       boosted trees on top of analytic: counting
random_model    chance
"""

from __future__ import annotations

from .cost_model import CostModel, PyCostModel, create
from .random_model import RandomModel
from .xgb_model import XGBConfig, XGBModel

__all__ = ["CostModel", "PyCostModel", "RandomModel", "XGBConfig", "XGBModel", "create"]
