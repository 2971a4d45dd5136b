"""Operators whose shapes are values: those in `dyn.*`. What they are told by tensors, an operator of the same name is told by attributes.

    dyn.zeros(%n, dtype="int32")     n = R.tensor_to_shape(%n); R.match_cast(n, R.Shape([a, b])); R.zeros((a, b), "int32")

The numbers get symbols, for which all of the compiler's parts know what to do, when the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import topi
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...relax import expr as graph
from ...relax import op as R
from ...relax.block_builder import BlockBuilder
from ...relax.expr import const
from ...relax.struct_info import ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo
from ...tir.arithmetic import as_int
from ..ty import Any as unknown_extent
from .row import Computed, Expr, Meaning, dtype, emitted, operator, shape


@dataclass(frozen=True)
class Measured:
    """A meaning by numbers that are known when the graph runs.

    Args:
        numbers: a tensor with one axis.
        count: how many there are.
        meaning: by a symbol for each of them.
    """

    numbers: Any
    count: int
    meaning: Callable[[list[Any]], Meaning]

    def _symbols(self) -> list[Any]:
        return [unknown_extent() for _ in range(self.count)]

    def emitted(self, builder: BlockBuilder) -> Any:
        """The value in a function of a graph."""
        symbols = self._symbols()
        found = builder.emit(R.tensor_to_shape(R.astype(self.numbers, "int64")))
        builder.match_cast(found, ShapeStructInfo(tuple(symbols)))
        return emitted(builder, self.meaning(symbols))

    @property
    def struct_info(self) -> StructInfo:
        """What is known of the value."""
        info: StructInfo = self.meaning(self._symbols()).struct_info
        return info


@dataclass(frozen=True)
class Known:
    """A meaning of which more is known than its operators tell."""

    value: Meaning
    struct_info: StructInfo

    def emitted(self, builder: BlockBuilder) -> Any:
        """The value in a function of a graph."""
        return builder.match_cast(emitted(builder, self.value), self.struct_info)


def is_value(given: Any) -> bool:
    """Whether an attribute is given as a tensor that is known when the graph runs."""
    return hasattr(given, "struct_info") and not isinstance(given, graph.Constant)


def _count(numbers: Any) -> int:
    """How many numbers a tensor with one axis holds.

    Raises:
        DeclarationError: if that isn't known.
    """
    extents = shape(numbers)
    count = as_int(extents[0]) if len(extents) == 1 else None
    if count is None:
        raise DeclarationError(f"numbers of a shape are a tensor with one axis of a known extent, not {numbers.struct_info}")
    return count


def _wide(numbers: Any) -> Any:
    return R.astype(numbers, "int64")


def _extents(data: Any) -> Any:
    """The extents of a tensor, as one of int64."""
    return R.shape_to_tensor(R.shape_of(data))


def _measured(numbers: Any, meaning: Callable[[list[Any]], Meaning]) -> Measured:
    return Measured(numbers, _count(numbers), meaning)


def _shape(symbols: Sequence[Any]) -> ShapeExpr:
    return ShapeExpr(tuple(symbols))


@operator("dyn.reshape")
def reshape(data: Expr, newshape: Expr, allowzero: bool = False) -> Meaning:
    """The same elements in another shape; the result has as many axes as there are numbers, which rules out -2 and -4."""
    numbers = R.reshaped_extents(R.shape_of(data), newshape, allowzero)
    return Measured(numbers, _count(newshape), lambda extents: R.reshape(data, _shape(extents)))


@operator("dyn.broadcast_to")
def broadcast_to(data: Expr, shape: Expr) -> Meaning:
    """A tensor repeated along axes of one element and new ones in front."""
    return _measured(shape, lambda extents: R.broadcast_to(data, _shape(extents)))


@operator("dyn.tile")
def tile(data: Expr, reps: Expr) -> Meaning:
    """A tensor repeated along each axis."""
    old = list(shape(data))

    def repeated(times: list[Any]) -> Meaning:
        rank = max(len(old), len(times))
        extents, many = [1] * (rank - len(old)) + old, [1] * (rank - len(times)) + times
        apart = R.reshape(data, _shape([one for extent in extents for one in (1, extent)]))
        spread = R.broadcast_to(apart, _shape([one for pair in zip(many, extents, strict=True) for one in pair]))
        return R.reshape(spread, _shape([n * extent for n, extent in zip(many, extents, strict=True)]))

    return _measured(reps, repeated)


def _filled(name: str) -> Any:
    def meant(shape: Expr, dtype: str) -> Meaning:
        return _measured(shape, lambda extents: getattr(R, name)(_shape(extents), dtype))

    meant.__doc__ = f"A tensor of {name}."
    return operator(f"dyn.{name}")(meant)


zeros, ones = _filled("zeros"), _filled("ones")


@operator("dyn.full")
def full(fill_value: Expr, shape: Expr, dtype: str = "") -> Meaning:
    """A tensor of one number."""
    return _measured(shape, lambda extents: R.full(_shape(extents), fill_value, dtype or None))


@operator("dyn.arange")
def arange(start: Expr, stop: Expr, step: Expr, dtype: str = "float32") -> Meaning:
    """Numbers from `start` up to `stop`, which isn't one of them."""
    first, last, each = (R.astype(one, "float64") for one in (start, stop, step))
    count = R.maximum(R.ceil(R.divide(R.subtract(last, first), each)), const(0.0, "float64"))

    def numbers(extents: list[Any]) -> Meaning:
        places = R.astype(R.arange(0, extents[0], 1, "int64"), dtype)
        return R.add(R.multiply(places, R.astype(step, dtype)), R.astype(start, dtype))

    return Measured(R.reshape(count, [1]), 1, numbers)


@operator("dyn.one_hot")
def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: Expr, axis: int, dtype: str) -> Meaning:
    """One value at the index along a new axis, another one elsewhere."""
    on, off = (R.astype(one, dtype) for one in (on_value, off_value))
    return Measured(R.reshape(depth, [1]), 1, lambda extents: chosen(indices, on, off, extents[0], axis))


def chosen(indices: Any, on: Any, off: Any, depth: Any, axis: int) -> Any:
    """`on` at the index along a new axis of `depth` elements, `off` elsewhere."""
    rank = len(shape(indices)) + 1
    place = axis % rank
    steps = R.reshape(R.arange(0, depth, 1, "int64"), [1] * place + [depth] + [1] * (rank - 1 - place))
    return R.where(R.equal(R.expand_dims(_wide(indices), [place]), steps), on, off)


@operator("dyn.expand_dims")
def expand_dims(data: Expr, axis: Expr, num_newaxis: int = 1) -> Meaning:
    """Axes of one element, in front of an axis."""
    rank = len(shape(data))
    first = _wide(R.reshape(axis, [1]))
    first = R.where(R.less(first, const(0, "int64")), R.add(first, const(rank + 1, "int64")), first)
    places, new = const(np.arange(rank + num_newaxis), "int64"), const(np.ones(num_newaxis), "int64")
    before, behind = (R.concat(parts, 0) for parts in ((_extents(data), new), (new, _extents(data))))
    is_new = R.less(places, R.add(first, const(num_newaxis, "int64")))
    numbers = R.where(R.less(places, first), before, R.where(is_new, const(1, "int64"), behind))
    return Measured(numbers, rank + num_newaxis, lambda extents: R.reshape(data, _shape(extents)))


def unravelled(indices: Any, extents: Any) -> Any:
    """Places in a shape, a row for each axis, of places in the row of its elements."""
    count, kind = _count(extents), dtype(indices)
    sizes = R.astype(extents, kind)
    inner = R.concat((R.strided_slice(sizes, [0], [1], [count]), const(np.ones(1), kind)), 0)
    steps = R.flip(R.cumprod(R.flip(inner, 0), 0, kind), 0)
    column = [count, *([1] * len(shape(indices)))]
    return R.floor_mod(R.floor_divide(indices, R.reshape(steps, column)), R.reshape(sizes, column))


@operator("dyn.squeeze")
def squeeze(data: Expr, axis: Expr) -> Meaning:
    """Without some axes of one element."""
    rank, count = len(shape(data)), _count(axis)
    places = R.floor_mod(_wide(axis), const(rank, "int64"))
    kept = R.scatter_elements(const(np.ones(rank), "int64"), places, const(np.zeros(count), "int64"))
    return Measured(R.compress(_extents(data), kept, 0), rank - count, lambda extents: R.reshape(data, _shape(extents)))


@operator("dyn.strided_slice")
def strided_slice(data: Expr, begin: Expr, end: Expr, strides: Expr, slice_mode: str = "end") -> Meaning:
    """Parts along the first axes, as many as there are numbers."""
    extents, count = shape(data), _count(begin)
    left = len(extents) - count
    low, high, step = map(_wide, (begin, end, strides))
    if slice_mode == "size":
        cut = R.strided_slice(_extents(data), [0], [0], [count])
        high, step = R.where(R.less(high, const(0, "int64")), cut, R.add(low, high)), const(np.ones(count), "int64")
    if left:
        rest = R.strided_slice(_extents(data), [0], [count], [len(extents)])
        low, high = R.concat((low, const(np.zeros(left), "int64")), 0), R.concat((high, rest), 0)
        step = R.concat((step, const(np.ones(left), "int64")), 0)
    found = [*(unknown_extent() for _ in range(count)), *extents[count:]]
    return Known(R.dynamic_strided_slice(data, low, high, step), TensorStructInfo(found, dtype(data)))


def topk_results(ret_type: str = "both", **given: Any) -> int:
    """How many results `topk` has; 0 for one that is no tuple."""
    return 2 if ret_type == "both" else 0


@operator("dyn.topk", results=topk_results)
def topk(data: Expr, k: Expr, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Meaning:
    """The first elements in order along an axis, their places, or both; all of them for a `k` below 1."""
    place = axis % len(shape(data))
    asked, all_of_it = _wide(R.reshape(k, [1])), R.strided_slice(_extents(data), [0], [place], [place + 1])

    def first(extents: list[Any]) -> Meaning:
        found = R.topk(data, 0, axis, ret_type, not is_ascend, dtype)
        results = [graph.TupleGetItem(found, n) for n in range(2)] if ret_type == "both" else [found]
        cut = [R.strided_slice(one, [place], [0], extents) for one in results]
        return graph.Tuple(tuple(cut)) if ret_type == "both" else cut[0]

    return Measured(R.where(R.less(asked, const(1, "int64")), all_of_it, asked), 1, first)


@operator("dyn.sparse_to_dense")
def sparse_to_dense(sparse_indices: Expr, sparse_values: Expr, default_value: Expr, output_shape: Expr) -> Meaning:
    """A tensor of one value with others at indices."""

    def dense(extents: list[Any]) -> Meaning:
        return Computed(
            lambda places, values, other: topi.sparse_to_dense(places, extents, values, other),
            (sparse_indices, sparse_values, default_value), {}, "sparse_to_dense",
        )  # fmt: skip

    return _measured(output_shape, dense)


@operator("dyn.nn.pad")
def pad(data: Expr, pad_width: Expr, pad_value: Expr, pad_mode: str = "constant") -> Meaning:
    """A tensor with borders of one value."""
    if pad_mode != "constant":
        raise DeclarationError(f'borders whose widths are computed are of one value: pad_mode is "constant", not {pad_mode!r}')
    rank = len(shape(data))

    def padded(widths: list[Any]) -> Meaning:
        return Computed(
            lambda x, value: topi.nn.pad(x, widths[::2], widths[1::2], value[()]), (data, pad_value), {}, "pad"
        )  # fmt: skip

    return Measured(R.reshape(pad_width, [2 * rank]), 2 * rank, padded)


def _resized(data: Any, numbers: Any, axes: int, by: Callable[[Any, list[Any]], Any], name: str) -> Measured:
    return Measured(numbers, axes, lambda size: Computed(lambda x: by(x, size), (data,), {}, name))


@operator("dyn.image.resize2d")
def resize2d(
    data: Expr, size: Expr, roi: Expr | None = None, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5, cubic_exclude: int = 0,
    extrapolation_value: float = 0.0, out_dtype: str | None = None,
) -> Meaning:  # fmt: skip
    """Images at another size; parts of them by a constant `roi` alone."""
    if coordinate_transformation_mode == "tf_crop_and_resize":
        raise DeclarationError("of parts of images the size is constant")
    given = (layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude)

    def by(x: Any, extents: list[Any]) -> Any:
        return topi.image.resize2d(x, [0.0] * 4, extents, *given, extrapolation_value, out_dtype or None)

    return _resized(data, size, 2, by, "resize2d")


def _scaled(data: Any, scales: Sequence[Any], planes: str, layout: str) -> Any:
    """The extents of planes times their scales, rounded."""
    made = []
    for scale, letter in zip(scales, planes, strict=True):
        place = layout.index(letter)
        extent = R.astype(R.strided_slice(_extents(data), [0], [place], [place + 1]), "float32")
        made.append(R.round(R.multiply(extent, R.reshape(R.astype(scale, "float32"), [1]))))
    return R.concat(tuple(made), 0)


@operator("dyn.nn.upsampling")
def upsampling(
    data: Expr, scale_h: Expr, scale_w: Expr, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False
) -> Meaning:
    """Planes at another scale."""

    def by(x: Any, extents: list[Any]) -> Any:
        return topi.nn.upsampling(x, 1.0, 1.0, layout, method, align_corners, extents)

    return _resized(data, _scaled(data, (scale_h, scale_w), "HW", layout), 2, by, "upsampling")


@operator("dyn.nn.upsampling3d")
def upsampling3d(
    data: Expr, scale_d: Expr, scale_h: Expr, scale_w: Expr, layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Meaning:  # fmt: skip
    """Volumes at another scale."""

    def by(x: Any, extents: list[Any]) -> Any:
        return topi.nn.upsampling3d(x, 1.0, 1.0, 1.0, layout, method, coordinate_transformation_mode, extents)

    return _resized(data, _scaled(data, (scale_d, scale_h, scale_w), "DHW", layout), 3, by, "upsampling3d")
