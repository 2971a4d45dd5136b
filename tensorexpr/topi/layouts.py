"""Layouts of images, and the elements at their indices: helpers of resizes and convolutions that programs call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import DeclarationError
from ..te.tensor import Tensor
from ..tir import arithmetic
from ..tir.expr import PrimExpr
from .image import COORDINATES, ROUNDINGS, Axis, _at_border
from .transform import parse_layout
from .utils import extent_value, get_const_int


def _is(layout: str, outer: str, inner: str) -> bool:
    """Is it `outer` and then exactly the blocks of the letters `inner`?"""
    try:
        axes = parse_layout(layout)
    except DeclarationError:
        return False
    return [name for name, _ in axes] == [*outer, *inner] and all(size for _, size in axes[len(outer) :])


def nchw_xc_layout(layout_info: str) -> bool:
    """Is it NCHW with channels in blocks, as "NCHW8c"?"""
    return _is(layout_info, "NCHW", "c")


def nchw_pack_layout(layout_info: str) -> bool:
    """Is it NCHW with images and channels in blocks, as "NCHW1n16c"?"""
    return _is(layout_info, "NCHW", "nc")


def ncw_xc_layout(layout_info: str) -> bool:
    """Is it NCW with channels in blocks, as "NCW8c"?"""
    return _is(layout_info, "NCW", "c")


def ncw_pack_layout(layout_info: str) -> bool:
    """Is it NCW with images and channels in blocks, as "NCW1n16c"?"""
    return _is(layout_info, "NCW", "nc")


def _indices(indices: Sequence[Any], layout: str, spatial: str) -> tuple[Any, ...]:
    names = [name for name, _ in parse_layout(layout)]
    if len(names) != len(indices) or any(name not in names for name in ("N", "C", *spatial)):
        raise DeclarationError(f"layout {layout!r} and {len(indices)} indices; it has N, C and {', '.join(spatial)}, an index each")
    at = dict(zip(names, indices, strict=True))
    inner: tuple[Any, ...] = (at.get("c"),)
    if len(spatial) < 3:
        inner = (None, at["n"], at["c"]) if "n" in at else (at.get("c"), 0, 0)
    return (at["N"], at["C"], *(at[letter] for letter in spatial), *inner)


def get_1d_indices(indices: Sequence[Any], layout: str = "NCW") -> tuple[Any, ...]:
    """The indices of a layout as (n, c, x, inner c, inner n, inner c of packed layouts); what the layout doesn't have is None or 0.

    Raises:
        DeclarationError: for a layout that doesn't fit.
    """
    return _indices(indices, layout, "W")


def get_2d_indices(indices: Sequence[Any], layout: str = "NCHW") -> tuple[Any, ...]:
    """As `get_1d_indices`: (n, c, y, x, inner c, inner n, inner c of packed layouts)."""
    return _indices(indices, layout, "HW")


def get_3d_indices(indices: Sequence[Any], layout: str = "NCDHW") -> tuple[Any, ...]:
    """As `get_1d_indices`: (n, c, z, y, x, inner c)."""
    return _indices(indices, layout, "DHW")


def _pixel(data: Tensor, layout: str, at: dict[str, Any], extents: dict[str, Any]) -> PrimExpr:
    names = [name for name, _ in parse_layout(layout)]
    held = {letter: _at_border(arithmetic.convert(at[letter]), extent) for letter, extent in extents.items()}
    return data(*(held.get(name, at[name]) for name in names))


def get_1d_pixel(data: Tensor, layout: str, image_width: Any, n: Any, c: Any, x: Any, cc: Any, ib: Any, ic: Any) -> PrimExpr:
    """The element of a row at x, held inside; `cc` is the inner channel, `ib` and `ic` those of packed layouts."""
    inner = ic if ncw_pack_layout(layout) else cc
    return _pixel(data, layout, {"N": n, "C": c, "W": x, "c": inner, "n": ib}, {"W": image_width})


def get_2d_pixel(
    data: Tensor, layout: str, image_height: Any, image_width: Any, n: Any, c: Any, y: Any, x: Any, cc: Any, ib: Any, ic: Any
) -> PrimExpr:
    """The element of an image at y and x, held inside; see `get_1d_pixel`."""
    at = {"N": n, "C": c, "H": y, "W": x, "c": ic if nchw_pack_layout(layout) else cc, "n": ib}
    return _pixel(data, layout, at, {"H": image_height, "W": image_width})


def get_3d_pixel(
    data: Tensor, layout: str, image_depth: Any, image_height: Any, image_width: Any, n: Any, c: Any, z: Any, y: Any, x: Any, cc: Any
) -> PrimExpr:
    """The element of a volume at z, y and x, held inside; see `get_1d_pixel`."""
    at = {"N": n, "C": c, "D": z, "H": y, "W": x, "c": cc}
    return _pixel(data, layout, at, {"D": image_depth, "H": image_height, "W": image_width})


def get_inx(
    x: PrimExpr,
    image_width: Any,
    target_width: Any,
    coordinate_transformation_mode: str,
    start_x: Any = 0,
    end_x: Any = -1,
    use_int_div: bool = False,
) -> PrimExpr:
    """Where an output pixel lies along an axis of the input.

    Args:
        x: of the output.
        image_width, target_width: the extents of input and output.
        coordinate_transformation_mode: as ONNX names it, see `resize2d`.
        start_x, end_x: the part that is resized, for "tf_crop_and_resize".
        use_int_div: divide integers, where the scale is whole.

    Raises:
        DeclarationError: for an unknown mode.
    """
    if coordinate_transformation_mode not in COORDINATES:
        raise DeclarationError(f"no coordinate_transformation_mode {coordinate_transformation_mode!r}; it takes {', '.join(COORDINATES)}")
    if use_int_div:
        return arithmetic.floordiv(x, arithmetic.floordiv(arithmetic.convert(target_width), image_width))
    axis = Axis(arithmetic.convert(image_width), arithmetic.convert(target_width), start_x, end_x)
    return COORDINATES[coordinate_transformation_mode](arithmetic.cast(x, "float32"), axis)


def get_closest_index(in_x: PrimExpr, rounding_method: str, boxes: Any, use_int_div: bool = False) -> PrimExpr:
    """The index next to a coordinate.

    Args:
        in_x: the coordinate.
        rounding_method: see `resize2d`; with `boxes`, of crops, it is "round" in any case.
        use_int_div: the coordinate is an index already.

    Raises:
        DeclarationError: for an unknown rounding_method.
    """
    if use_int_div:
        return in_x
    method = "round" if boxes is not None else rounding_method
    if method not in ROUNDINGS:
        raise DeclarationError(f"no rounding_method {method!r}; it takes {', '.join(ROUNDINGS)}")
    return arithmetic.cast(ROUNDINGS[method](in_x), "int32")


def can_convert_multiply_to_intdiv(origin_size: Any, scaled_size: Any) -> bool:
    """Is the scaled extent a multiple of the other one?"""
    origin, scaled = extent_value(origin_size), extent_value(scaled_size)
    return isinstance(origin, int) and isinstance(scaled, int) and scaled % origin == 0


def get_shape(src_shape: Sequence[Any], src_layout: Any, dst_layout: Any) -> tuple[int, ...]:
    """A shape of one layout in another layout of the same axes, in another order.

    Raises:
        DeclarationError: for layouts of different axes.
    """
    source, target = ([name for name, _ in parse_layout(str(layout))] for layout in (src_layout, dst_layout))
    if sorted(source) != sorted(target) or len(source) != len(src_shape):
        raise DeclarationError(f"get_shape: the layouts {src_layout} and {dst_layout} of {len(src_shape)} extents don't have the same axes")
    return tuple(get_const_int(src_shape[source.index(name)]) for name in target)
