"""Cost models: which of many programs to measure next.

base             the protocol that all models follow
boosted          trees trained online on top of a prior (needs xgboost)
random_model     random scores; the prior as it is
quality          how good predictions are
"""

from __future__ import annotations

import logging

from ...errors import TuningError
from ...log import once
from .base import CostModel, FloatArray
from .boosted import LOSSES, BoostedModel
from .quality import Quality, best_of_top, quality, rank_correlation, top_recall
from .random_model import PriorModel, RandomModel

__all__ = [
    "LOSSES",
    "BoostedModel",
    "CostModel",
    "FloatArray",
    "PriorModel",
    "Quality",
    "RandomModel",
    "best_of_top",
    "default_model",
    "quality",
    "rank_correlation",
    "top_recall",
]

logger = logging.getLogger(__name__)


def default_model(seed: int = 0) -> CostModel:
    """The learned model; where xgboost is missing, the prior alone, which is said once."""
    try:
        return BoostedModel(seed)
    except TuningError as error:
        once(logger, f"{error}. Until then the analytic model chooses alone.")
        return PriorModel()
