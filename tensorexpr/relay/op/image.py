"""Operators of images as functions that make calls."""

from ..ops.image import affine_grid, crop_and_resize, dilation2d, grid_sample, resize1d, resize2d, resize3d

__all__ = ["affine_grid", "crop_and_resize", "dilation2d", "grid_sample", "resize1d", "resize2d", "resize3d"]
