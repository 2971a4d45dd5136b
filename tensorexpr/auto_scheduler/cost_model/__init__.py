"""Cost models of the auto-scheduler.

cost_model   the base of models that users write, and chance;  xgb_model   the learned one;  pack_sum   parts for others
"""

from .cost_model import CostModel, PythonBasedModel, RandomModel, UserModel
from .xgb_model import XGBModel, features_of

__all__ = ["CostModel", "PythonBasedModel", "RandomModel", "UserModel", "XGBModel", "features_of"]
