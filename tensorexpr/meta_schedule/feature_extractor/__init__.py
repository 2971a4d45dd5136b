"""Programs as numbers.

feature_extractor           the protocol
per_store_feature           164 numbers for each store;  stores: the stores of a program;  touched: what loops make them touch
random_feature_extractor    chance
"""

from __future__ import annotations

from .feature_extractor import FeatureExtractor, PyFeatureExtractor, create
from .per_store_feature import PerStoreFeature
from .random_feature_extractor import RandomFeatureExtractor

__all__ = ["FeatureExtractor", "PerStoreFeature", "PyFeatureExtractor", "RandomFeatureExtractor", "create"]
