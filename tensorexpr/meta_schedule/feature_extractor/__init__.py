"""Programs as numbers.

feature_extractor    the protocol, and chance
per_store_feature    164 numbers for each store
"""

from __future__ import annotations

from .feature_extractor import FeatureExtractor, PyFeatureExtractor, RandomFeatureExtractor, create
from .per_store_feature import PerStoreFeature

__all__ = ["FeatureExtractor", "PerStoreFeature", "PyFeatureExtractor", "RandomFeatureExtractor", "create"]
