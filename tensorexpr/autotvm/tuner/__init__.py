"""Tuners: each chooses configurations its own way; the loop that measures them is `tune.tuner`'s.

tuner               the base: tune, next_batch, update
index_based_tuner   RandomTuner, GridSearchTuner;  ga_tuner: GATuner;  droplet_tuner: DropletTuner
xgboost_tuner       XGBTuner, the search loop's own choice: evolution guided by a learned model
callback            what happens with results
"""

from . import callback
from .droplet_tuner import DropletTuner
from .ga_tuner import GATuner
from .index_based_tuner import GridSearchTuner, RandomTuner
from .tuner import Tuner
from .xgboost_tuner import XGBTuner

__all__ = ["DropletTuner", "GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner", "callback"]
