"""Operators of detection as functions that make calls."""

from ..ops.image import (
    all_class_non_max_suppression,
    get_valid_counts,
    multibox_prior,
    multibox_transform_loc,
    non_max_suppression,
    proposal,
    roi_align,
    roi_pool,
    yolo_reorg,
)

__all__ = [
    "all_class_non_max_suppression", "get_valid_counts", "multibox_prior", "multibox_transform_loc", "non_max_suppression", "proposal",
    "roi_align", "roi_pool", "yolo_reorg",
]  # fmt: skip
