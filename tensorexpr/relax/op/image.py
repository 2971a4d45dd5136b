"""Operators of images as functions that make calls."""

from ..ops.image import grid_sample, resize, resize1d, resize2d, resize3d
from ..ops.vision import non_max_suppression, roi_align, roi_pool

__all__ = [
    "grid_sample",
    "non_max_suppression",
    "resize",
    "resize1d",
    "resize2d",
    "resize3d",
    "roi_align",
    "roi_pool",
]
