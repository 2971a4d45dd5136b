"""Operators of detection as functions that make calls."""

from ..ops.image import get_valid_counts, non_max_suppression, roi_align, roi_pool, yolo_reorg

__all__ = ["get_valid_counts", "non_max_suppression", "roi_align", "roi_pool", "yolo_reorg"]
