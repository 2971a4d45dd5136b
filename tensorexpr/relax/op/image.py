"""Operators of images as functions that make calls."""

from ..ops.image import grid_sample, resize, resize1d, resize2d, resize3d

__all__ = ["grid_sample", "resize", "resize1d", "resize2d", "resize3d"]
