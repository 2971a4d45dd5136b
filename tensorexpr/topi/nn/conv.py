"""Convolutions of any number of spatial dimensions, in any layout (channels in blocks too), dilated and in groups.

    out[n, o, y...] = sum over c, r... of  data[n, g(o) * C/G + c, y * stride + r * dilation - padding] * filter[o, c, r...]

`conv` is the definition; conv1d, conv2d and conv3d give it the names and arguments that users know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import te
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..transform import parse_layout
from ..utils import extent_value, need_equal, need_rank, pad_pairs, spread
from .padding import needs_padding, pad

SPATIAL = "DHW"
REDUCTION_NAMES = {"D": "rz", "H": "ry", "W": "rx"}
OUTPUT_NAMES = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}


@dataclass(frozen=True)
class ConvLayout:
    """Where the axes of data ("NCHW", "NCHW16c"), filter ("OIHW", "OIHW16i16o") and result ("NCHW") stand."""

    data: str
    kernel: str
    out: str

    def __post_init__(self) -> None:
        spatial = "".join(letter for letter in SPATIAL if letter in self.data)
        for text, wanted, blocks in ((self.data, "NC", "c"), (self.kernel, "OI", "io"), (self.out, "NC", "c")):
            names = self.names(text)
            if sorted(name for name in names if name.isupper()) != sorted(wanted + spatial):
                raise DeclarationError(f"layout {text!r}: a convolution over {spatial} takes an order of the axes {wanted + spatial}")
            if any(name not in blocks for name in names if name.islower()):
                raise DeclarationError(f"layout {text!r}: blocks are of channels, {' and '.join(blocks)}")

    @staticmethod
    def names(text: str) -> list[str]:
        """The axes of a layout: "N", "C", ..., with small letters for blocks."""
        return [name for name, _ in parse_layout(text)]

    @staticmethod
    def block(text: str, letter: str) -> int:
        """The block of an axis in a layout; 0 if it is in one piece."""
        return dict(parse_layout(text)).get(letter.lower(), 0)

    @property
    def spatial(self) -> str:
        """The letters of the spatial axes in their order."""
        return "".join(letter for letter in SPATIAL if letter in self.data)


def whole_extents(layout: str, shape: Sequence[Any]) -> dict[str, Any]:
    """The extent of each axis of a layout, blocks counted."""
    found: dict[str, Any] = {}
    for (name, _), extent in zip(parse_layout(layout), shape, strict=True):
        found[name.upper()] = extent_value(found.get(name.upper(), 1) * extent) if name.upper() in found else extent
    return found


@dataclass(frozen=True)
class _Index:
    """An index along an axis, which may be cut in blocks."""

    outer: Any
    inner: Any = None
    block: int = 0

    @property
    def whole(self) -> Any:
        return self.outer * self.block + self.inner if self.block else self.outer

    def part(self, block: int, is_inner: bool) -> Any:
        """Its index among blocks of another size, or inside of them."""
        # Blocks of one size keep their two indices: (o * 16 + i) // 16 would have to be simplified in every access.
        if block == self.block:
            return self.inner if is_inner else self.outer
        return floormod(self.whole, block) if is_inner else floordiv(self.whole, block) if block else self.whole


def _at(layout: str, index: Mapping[str, _Index]) -> list[Any]:
    return [index[name.upper()].part(ConvLayout.block(layout, name), name.islower()) for name in ConvLayout.names(layout)]


def conv(
    inp: Tensor,
    filt: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str | None = None,
    meta_schedule_original_shape: Any = None,
    auto_scheduler_should_rewrite_layout: bool = False,
    *,
    out_layout: str = "",
    name: str | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> Tensor:
    """A convolution.

    Args:
        inp: data of `data_layout`, an order of N, C and one to three of D, H, W, such as "NHWC" or "NCHW16c".
        filt: weights of `kernel_layout`, an order of O, I and the same spatial axes; default OI and then the spatial ones.
        stride: one number, or one for each spatial axis.
        padding: see `topi.utils.pad_pairs`.
        dilation: distance of neighbouring taps: one number, or one for each spatial axis.
        groups: channels in and out are cut in that many groups that don't see each other.
        out_dtype: of the result and of the sums, default the dtype of `inp`.
        auto_scheduler_rewritten_layout, meta_schedule_original_shape: no effect; layouts are rewritten behind the declaration.
        auto_scheduler_should_rewrite_layout: a tuner may choose the filter's layout.
        out_layout: of the result, default `data_layout`.
        name: of the operation.
        attrs: hints for schedulers.

    Raises:
        DeclarationError: for shapes or layouts that don't fit.
    """
    layout = ConvLayout(data_layout, kernel_layout or _default_kernel_layout(data_layout), out_layout or data_layout)
    where = name or f"conv{len(layout.spatial)}d_{data_layout.lower()}"
    need_rank(where, "the data", inp, len(layout.names(layout.data)))
    need_rank(where, "the filter", filt, len(layout.names(layout.kernel)))
    dims = len(layout.spatial)
    strides, dilations = spread(where, "stride", stride, dims), spread(where, "dilation", dilation, dims)
    taps = [filt.shape[layout.names(layout.kernel).index(letter)] for letter in layout.spatial]
    windows = [extent_value((tap - 1) * step + 1) for tap, step in zip(taps, dilations, strict=True)]
    pairs = pad_pairs(where, padding, windows)
    _check_channels(where, inp, filt, layout, groups)
    padded = _padded(inp, layout, pairs)
    if auto_scheduler_should_rewrite_layout:
        attrs = {**(attrs or {}), "layout_free_placeholders": [filt]}
    return _declare(padded, filt, layout, strides, dilations, groups, windows, out_dtype or inp.dtype, where, attrs)


def _default_kernel_layout(data_layout: str) -> str:
    spatial = "".join(letter for letter in SPATIAL if letter in data_layout)
    return spatial + "IO" if data_layout.endswith("C") else "OI" + spatial


def _check_channels(where: str, inp: Tensor, filt: Tensor, layout: ConvLayout, groups: int) -> None:
    kernel = whole_extents(layout.kernel, filt.shape)
    channels = extent_value(whole_extents(layout.data, inp.shape)["C"])
    outputs = extent_value(kernel["O"])
    for what, count in (("input", channels), ("output", outputs)):
        if isinstance(count, int) and (groups < 1 or count % groups):
            raise DeclarationError(f"{where}: {count} {what} channels can't be cut in {groups} groups")
    per_group = extent_value(channels // groups) if isinstance(channels, int) else channels
    need_equal(where, "the channels of the data (of each group) and of the filter", per_group, kernel["I"])


def _padded(inp: Tensor, layout: ConvLayout, pairs: Sequence[tuple[Any, Any]]) -> Tensor:
    before: list[Any] = [0] * inp.ndim
    after: list[Any] = [0] * inp.ndim
    for letter, (low, high) in zip(layout.spatial, pairs, strict=True):
        place = layout.names(layout.data).index(letter)
        before[place], after[place] = low, high
    return pad(inp, before, after, name="pad_temp") if needs_padding(before, after) else inp


def _declare(
    padded: Tensor,
    filt: Tensor,
    layout: ConvLayout,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    windows: Sequence[Any],
    out_dtype: str,
    name: str,
    attrs: Mapping[str, Any] | None,
) -> Tensor:
    data_extent, kernel_extent = whole_extents(layout.data, padded.shape), whole_extents(layout.kernel, filt.shape)
    out_extent: dict[str, Any] = {"N": data_extent["N"], "C": kernel_extent["O"]}
    for letter, window, step in zip(layout.spatial, windows, strides, strict=True):
        out_extent[letter] = extent_value(floordiv(data_extent[letter] - window, step) + 1)
        if isinstance(out_extent[letter], int) and out_extent[letter] < 1:
            raise DeclarationError(
                f"{name}: along {letter} the padded data has {data_extent[letter]} elements, fewer than the window's {window}"
            )
    inside, outside = ConvLayout.block(layout.kernel, "I"), ConvLayout.block(layout.out, "C")
    inputs = kernel_extent["I"]
    outer = te.reduce_axis((0, extent_value(floordiv(inputs, inside)) if inside else inputs), name="rc")
    inner = [te.reduce_axis((0, inside), name="ri")] if inside else []
    channel = _Index(outer.var, inner[0].var, inside) if inside else _Index(outer.var)
    taps = {letter: te.reduce_axis((0, kernel_extent[letter]), name=REDUCTION_NAMES[letter]) for letter in layout.spatial}
    outputs_per_group = extent_value(floordiv(kernel_extent["O"], groups))
    depthwise = bool(outside) and groups > 1 and outputs_per_group == 1 and extent_value(inputs) == 1

    def body(*i: Var) -> PrimExpr:
        at = dict(zip(layout.names(layout.out), i, strict=True))
        own = _Index(at["C"], at.get("c"), outside)
        source = {"N": _Index(at["N"]), "C": channel}
        # One channel for each result, so the channel of the sum is 0: the result's own block and lane are read, undivided.
        if depthwise:
            source["C"] = own
        elif groups > 1:
            source["C"] = _Index(floordiv(own.whole, outputs_per_group) * inputs + channel.whole)
        for letter, step, apart in zip(layout.spatial, strides, dilations, strict=True):
            source[letter] = _Index(at[letter] * step + taps[letter].var * apart)
        weight = {"O": own, "I": channel, **{letter: _Index(tap.var) for letter, tap in taps.items()}}
        left, right = cast(padded(*_at(layout.data, source)), out_dtype), cast(filt(*_at(layout.kernel, weight)), out_dtype)
        # The channels of a block innermost: they are neighbours in memory, and taps are not.
        return te.sum(left * right, axis=[outer, *taps.values(), *inner])

    extents = [(outside if name.islower() else name) for name in layout.names(layout.out)]
    if outside:
        out_extent["C"] = extent_value(floordiv(out_extent["C"], outside))
    shape = [extent if isinstance(extent, int) else out_extent[extent] for extent in extents]
    names = [OUTPUT_NAMES.get(letter, "fi") for letter in layout.names(layout.out)]
    return compute(shape, body, name, name, attrs, names)


def depthwise(
    inp: Tensor,
    filt: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str | None,
    name: str,
) -> Tensor:
    """A convolution of each channel on its own. In `kernel_layout` C is the channel and M the multiplier: M results for each channel."""
    need_rank(name, "the data", inp, 4)
    need_rank(name, "the filter", filt, 4)
    strides, dilations = spread(name, "stride", stride, 2), spread(name, "dilation", dilation, 2)
    extent = dict(zip(kernel_layout, filt.shape, strict=True))
    windows = [extent_value((extent[letter] - 1) * step + 1) for letter, step in zip("HW", dilations, strict=True)]
    layout = ConvLayout(data_layout, "OIHW", data_layout)
    need_equal(name, "the channels of data and filter", inp.shape[data_layout.index("C")], extent["C"])
    padded = _padded(inp, layout, pad_pairs(name, padding, windows))
    data_extent = dict(zip(data_layout, padded.shape, strict=True))
    multiplier = extent["M"]
    out_extent: dict[str, Any] = {"N": data_extent["N"], "C": extent_value(extent["C"] * multiplier)}
    for letter, window, step in zip("HW", windows, strides, strict=True):
        out_extent[letter] = extent_value(floordiv(data_extent[letter] - window, step) + 1)
    taps = {letter: te.reduce_axis((0, extent[letter]), name="di" if letter == "H" else "dj") for letter in "HW"}
    dtype = out_dtype or inp.dtype
    # Then no index is divided, and channels of data and result are the same axis to an analysis.
    single = extent_value(multiplier) == 1

    def body(*i: Var) -> PrimExpr:
        at = dict(zip(data_layout, i, strict=True))
        channel, copy = (at["C"], 0) if single else (floordiv(at["C"], multiplier), floormod(at["C"], multiplier))
        source: dict[str, Any] = {"N": at["N"], "C": channel}
        for letter, step, apart in zip("HW", strides, dilations, strict=True):
            source[letter] = at[letter] * step + taps[letter].var * apart
        weight = {"C": channel, "M": copy, "H": taps["H"].var, "W": taps["W"].var}
        left = cast(padded(*(source[letter] for letter in data_layout)), dtype)
        right = cast(filt(*(weight[letter] for letter in kernel_layout)), dtype)
        return te.sum(left * right, axis=[taps["H"], taps["W"]])

    names = {"N": "b", "C": "c", "H": "i", "W": "j"}
    shape = [out_extent[letter] for letter in data_layout]
    return compute(shape, body, name, name, None, [names[letter] for letter in data_layout])
