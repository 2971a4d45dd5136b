"""Operators of images and of what is found in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import topi
from ...errors import DeclarationError
from . import dynamic
from .create import _extents
from .row import Computed, Expr, Meaning, by_layout, number, operator
from .transform import _list


def _resize(rank: int, planes: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def meant(
        data: Expr, size: Any, roi: Any = None, layout: str = f"NC{planes}", method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5, cubic_exclude: int = 0,
        extrapolation_value: float = 0.0, out_dtype: str | None = None,
    ) -> Meaning:  # fmt: skip
        given = (list(size), layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude)
        by = {1: topi.image.resize1d, 2: topi.image.resize2d, 3: topi.image.resize3d}[rank]
        box = list(roi) if roi is not None else [0.0] * (2 * rank)
        return Computed(lambda x: by(x, box, *given, extrapolation_value, out_dtype or None), (data,), {}, f"resize{rank}d")

    meant.__doc__ = f"Images of {rank} axes at another size."
    row = operator(f"image.resize{rank}d")(meant)

    def resize(data: Any, size: Any, roi: Any = None, *args: Any, **kwargs: Any) -> Any:
        if dynamic.is_value(size) and rank == 2:
            return dynamic.resize2d(data, size, roi, *args, **kwargs)
        return row(data, _extents(size), None if roi is None else [float(one) for one in _floats(roi)], *args, **kwargs)

    resize.__name__, resize.__doc__ = f"resize{rank}d", meant.__doc__
    resize.__signature__ = row.__signature__  # type: ignore[attr-defined]
    return row, resize


def _floats(roi: Any) -> Any:
    return number(roi).reshape(-1) if hasattr(roi, "struct_info") else roi


_resize1d, resize1d = _resize(1, "W")
_resize2d, resize2d = _resize(2, "HW")
_resize3d, resize3d = _resize(3, "DHW")


@operator("nn.upsampling")
def _upsampling(
    data: Expr, scale_h: float = 1, scale_w: float = 1, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False
) -> Meaning:
    """Planes at another scale."""
    args = (scale_h, scale_w, layout, method, align_corners)
    return Computed(lambda x: topi.nn.upsampling(x, *args), (data,), {}, "upsampling")


def _by_scales(static: Any, computed: Any, data: Any, scales: Sequence[Any], *rest: Any) -> Any:
    """The operator of scales that are numbers, or that of those that are tensors without axes."""
    from ..expr import const

    if any(map(dynamic.is_value, scales)):
        return computed(data, *(one if hasattr(one, "struct_info") else const(float(one)) for one in scales), *rest)
    return static(data, *(float(number(one)) if hasattr(one, "struct_info") else one for one in scales), *rest)


def upsampling(
    data: Any, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False
) -> Any:
    """Planes at another scale: numbers, or tensors without axes."""
    return _by_scales(_upsampling, dynamic.upsampling, data, (scale_h, scale_w), layout, method, align_corners)


@operator("nn.upsampling3d")
def _upsampling3d(
    data: Expr, scale_d: float = 1, scale_h: float = 1, scale_w: float = 1, layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Meaning:  # fmt: skip
    """Volumes at another scale."""
    args = (scale_d, scale_h, scale_w, layout, method, coordinate_transformation_mode)
    return Computed(lambda x: topi.nn.upsampling3d(x, *args), (data,), {}, "upsampling3d")


def upsampling3d(
    data: Any, scale_d: Any = 1, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Any:  # fmt: skip
    """Volumes at another scale: numbers, or tensors without axes."""
    scales = scale_d, scale_h, scale_w
    return _by_scales(_upsampling3d, dynamic.upsampling3d, data, scales, layout, method, coordinate_transformation_mode)


@operator("image.crop_and_resize")
def crop_and_resize(
    data: Expr, boxes: Expr, box_indices: Expr, crop_size: Any, layout: str, method: str = "bilinear", extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Meaning:  # fmt: skip
    """Parts of images at one size."""
    args = (list(crop_size), layout, method, extrapolation_value, out_dtype or None)
    return Computed(lambda x, b, i: topi.image.crop_and_resize(x, b, i, *args), (data, boxes, box_indices), {}, "crop_and_resize")


@operator("image.dilation2d")
def dilation2d(
    data: Expr, weight: Expr, strides: Any = (1, 1), padding: Any = (0, 0), dilations: Any = (1, 1), data_layout: str = "NCHW",
    kernel_layout: str = "IHW", out_dtype: str = "",
) -> Meaning:  # fmt: skip
    """Morphological dilation: the greatest sum of window and weights."""
    by = by_layout(data_layout, NCHW=topi.image.dilation2d_nchw, NHWC=topi.image.dilation2d_nhwc)
    planes = [data_layout.index(one) for one in "HW"]

    def of_planes(given: Any) -> Any:
        """Two numbers, of four by the layout those of planes."""
        known = _list(given)
        return [known[n] for n in planes] if len(known) == 4 and [known[n] for n in range(4) if n not in planes] == [1, 1] else known

    args = (of_planes(strides), _list(padding), of_planes(dilations), out_dtype or None)
    return Computed(lambda x, w: by(x, w, *args), (data, weight), {}, "dilation2d")


@operator("image.affine_grid")
def affine_grid(data: Expr, target_shape: Any = None) -> Meaning:
    """Places of pixels behind affine maps, for images of `target_shape`, rows and columns."""
    if target_shape is None:
        raise DeclarationError("target_shape=(rows, columns) is missing")
    return Computed(topi.image.affine_grid, (data,), {"target_shape": list(target_shape)}, "affine_grid")


@operator("image.grid_sample")
def grid_sample(
    data: Expr, grid: Expr, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True
) -> Meaning:
    """Pixels at places of a grid."""
    given = {"method": method, "layout": layout, "padding_mode": padding_mode, "align_corners": align_corners}
    return Computed(topi.image.grid_sample, (data, grid), given, "grid_sample")


@operator("vision.roi_align")
def roi_align(
    data: Expr, rois: Expr, pooled_size: Any, spatial_scale: float, sample_ratio: int = -1, layout: str = "NCHW", mode: str = "avg"
) -> Meaning:
    """Means, or greatest values, of interpolated pixels in cells of regions (He et al. 2017)."""
    by = by_layout(layout, NCHW=topi.vision.roi_align_nchw, NHWC=topi.vision.roi_align_nhwc)
    args = (pooled_size if isinstance(pooled_size, int) else list(pooled_size), spatial_scale, mode, sample_ratio)
    return Computed(lambda x, r: by(x, r, *args), (data, rois), {}, "roi_align")


@operator("vision.roi_pool")
def roi_pool(data: Expr, rois: Expr, pooled_size: Any, spatial_scale: float, layout: str = "NCHW") -> Meaning:
    """The greatest pixels in cells of regions (Girshick 2015)."""
    size = pooled_size if isinstance(pooled_size, int) else list(pooled_size)
    by = by_layout(layout, NCHW=topi.vision.roi_pool_nchw)
    return Computed(lambda x, r: by(x, r, size, spatial_scale), (data, rois), {}, "roi_pool")


@operator("vision.yolo_reorg")
def yolo_reorg(data: Expr, stride: int) -> Meaning:
    """Blocks of a plane as channels, in Darknet's order."""
    return Computed(topi.vision.reorg, (data,), {"stride": stride}, "yolo_reorg")


@operator("vision.get_valid_counts", results=lambda **given: 3)
def _get_valid_counts(data: Expr, score_threshold: float, id_index: int = 0, score_index: int = 1) -> Meaning:
    return Computed(lambda x: topi.vision.get_valid_counts(x, score_threshold, id_index, score_index), (data,), {}, "get_valid_counts")


def get_valid_counts(data: Any, score_threshold: Any, id_index: int = 0, score_index: int = 1) -> Any:
    """How many boxes have a score above a threshold, these in front, and their places."""
    threshold = number(score_threshold).item() if hasattr(score_threshold, "struct_info") else score_threshold
    return _get_valid_counts(data, threshold, id_index, score_index)


@operator("vision.non_max_suppression", results=lambda return_indices=True, **given: 2 if return_indices else 0)
def _non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: int = -1, iou_threshold: float = 0.5, force_suppress: bool = False,
    top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Meaning:  # fmt: skip
    args = (max_output_size, iou_threshold, force_suppress, top_k, coord_start, score_index, id_index, return_indices, invalid_to_bottom)
    return Computed(
        lambda x, c, i: topi.vision.non_max_suppression(x, c, i, *args), (data, valid_count, indices), {}, "non_max_suppression"
    )


def non_max_suppression(
    data: Any, valid_count: Any, indices: Any, max_output_size: Any = -1, iou_threshold: Any = 0.5, force_suppress: bool = False,
    top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:  # fmt: skip
    """Boxes that no better box of their class overlaps too much."""
    most, overlap = (number(one).item() if hasattr(one, "struct_info") else one for one in (max_output_size, iou_threshold))
    return _non_max_suppression(
        data, valid_count, indices, most, overlap, force_suppress, top_k, coord_start, score_index, id_index, return_indices,
        invalid_to_bottom,
    )  # fmt: skip


@operator("vision.multibox_prior")
def multibox_prior(
    data: Expr, sizes: Any = (1.0,), ratios: Any = (1.0,), steps: Any = (-1.0, -1.0), offsets: Any = (0.5, 0.5), clip: bool = False
) -> Meaning:
    """Boxes of sizes and ratios around the elements of a feature map (Liu et al. 2016)."""
    args = (*(tuple(_list(one)) for one in (sizes, ratios, steps, offsets)), clip)
    return Computed(lambda x: topi.vision.ssd.multibox_prior(x, *args), (data,), {}, "multibox_prior")


@operator("vision.multibox_transform_loc", results=lambda **given: 2)
def multibox_transform_loc(
    cls_prob: Expr, loc_pred: Expr, anchor: Expr, clip: bool = True, threshold: float = 0.01, variances: Any = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> Meaning:  # fmt: skip
    """Boxes moved by what a network says, those above a threshold in front, and how many these are."""
    args = (clip, threshold, tuple(variances), keep_background)
    return Computed(
        lambda p, b, a: topi.vision.ssd.multibox_transform_loc(p, b, a, *args), (cls_prob, loc_pred, anchor), {}, "multibox_transform_loc"
    )


@operator("vision.all_class_non_max_suppression", results=lambda output_format="onnx", **given: 2 if output_format == "onnx" else 3)
def _all_class_non_max_suppression(
    boxes: Expr, scores: Expr, max_output_boxes_per_class: Expr, iou_threshold: Expr, score_threshold: Expr, output_format: str = "onnx"
) -> Meaning:
    operands = (boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
    return Computed(
        lambda *given: topi.vision.all_class_non_max_suppression(*given, output_format), operands, {}, "all_class_non_max_suppression"
    )


def all_class_non_max_suppression(
    boxes: Any, scores: Any, max_output_boxes_per_class: Any = -1, iou_threshold: Any = -1.0, score_threshold: Any = -1.0,
    output_format: str = "onnx",
) -> Any:  # fmt: skip
    """The boxes of each class that overlap no better one of it too much, and how many these are; limits are numbers or tensors."""
    most = _limit(max_output_boxes_per_class, "int32")
    return _all_class_non_max_suppression(
        boxes, scores, most, _limit(iou_threshold, "float32"), _limit(score_threshold, "float32"), output_format
    )


def _limit(value: Any, dtype: str) -> Any:
    from ..expr import const

    return value if hasattr(value, "struct_info") else const([value], dtype)


@operator("vision.proposal")
def proposal(
    cls_prob: Expr, bbox_pred: Expr, im_info: Expr, scales: Any, ratios: Any, feature_stride: int, threshold: float,
    rpn_pre_nms_top_n: int, rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool,
) -> Meaning:  # fmt: skip
    """Regions that may hold something (Ren et al. 2015)."""
    args = (
        tuple(_list(scales)), tuple(_list(ratios)), feature_stride, threshold, rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss
    )  # fmt: skip
    return Computed(lambda p, b, i: topi.vision.rcnn.proposal(p, b, i, *args), (cls_prob, bbox_pred, im_info), {}, "proposal")
