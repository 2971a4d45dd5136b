"""Convolutions of any number of spatial dimensions, in any layout, dilated and in groups.

    out[n, o, y...] = sum over c, r... of  data[n, g(o) * C/G + c, y * stride + r * dilation - padding] * filter[o, c, r...]

`conv` is the definition; conv1d, conv2d and conv3d give it the names and arguments that users know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, need_equal, need_rank, pad_pairs, spread
from .padding import needs_padding, pad

SPATIAL = "DHW"
REDUCTION_NAMES = {"D": "rz", "H": "ry", "W": "rx"}
OUTPUT_NAMES = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}


@dataclass(frozen=True)
class ConvLayout:
    """Where the axes of data ("NCHW"), filter ("OIHW") and result ("NCHW") stand."""

    data: str
    kernel: str
    out: str

    def __post_init__(self) -> None:
        spatial = "".join(letter for letter in SPATIAL if letter in self.data)
        for text, wanted in ((self.data, "NC" + spatial), (self.kernel, "OI" + spatial), (self.out, "NC" + spatial)):
            if sorted(text) != sorted(wanted):
                raise DeclarationError(f"layout {text!r}: a convolution over {spatial} takes an order of the axes {wanted}")

    @property
    def spatial(self) -> str:
        """The letters of the spatial axes in their order."""
        return "".join(letter for letter in SPATIAL if letter in self.data)


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
        inp: data of `data_layout`, an order of N, C and one to three of D, H, W.
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
    need_rank(where, "the data", inp, len(layout.data))
    need_rank(where, "the filter", filt, len(layout.kernel))
    dims = len(layout.spatial)
    strides, dilations = spread(where, "stride", stride, dims), spread(where, "dilation", dilation, dims)
    taps = [filt.shape[layout.kernel.index(letter)] for letter in layout.spatial]
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
    channels = extent_value(inp.shape[layout.data.index("C")])
    outputs = extent_value(filt.shape[layout.kernel.index("O")])
    for what, count in (("input", channels), ("output", outputs)):
        if isinstance(count, int) and (groups < 1 or count % groups):
            raise DeclarationError(f"{where}: {count} {what} channels can't be cut in {groups} groups")
    per_group = extent_value(channels // groups) if isinstance(channels, int) else channels
    need_equal(where, "the channels of the data (of each group) and of the filter", per_group, filt.shape[layout.kernel.index("I")])


def _padded(inp: Tensor, layout: ConvLayout, pairs: Sequence[tuple[Any, Any]]) -> Tensor:
    before: list[Any] = [0] * inp.ndim
    after: list[Any] = [0] * inp.ndim
    for letter, (low, high) in zip(layout.spatial, pairs, strict=True):
        before[layout.data.index(letter)], after[layout.data.index(letter)] = low, high
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
    data_extent = dict(zip(layout.data, padded.shape, strict=True))
    kernel_extent = dict(zip(layout.kernel, filt.shape, strict=True))
    out_extent: dict[str, Any] = {"N": data_extent["N"], "C": kernel_extent["O"]}
    for letter, window, step in zip(layout.spatial, windows, strides, strict=True):
        out_extent[letter] = extent_value(floordiv(data_extent[letter] - window, step) + 1)
        if isinstance(out_extent[letter], int) and out_extent[letter] < 1:
            raise DeclarationError(
                f"{name}: along {letter} the padded data has {data_extent[letter]} elements, fewer than the window's {window}"
            )
    channel = te.reduce_axis((0, kernel_extent["I"]), name="rc")
    taps = {letter: te.reduce_axis((0, kernel_extent[letter]), name=REDUCTION_NAMES[letter]) for letter in layout.spatial}
    outputs_per_group = extent_value(floordiv(kernel_extent["O"], groups))

    def body(*i: Var) -> PrimExpr:
        at = dict(zip(layout.out, i, strict=True))
        source: dict[str, Any] = {"N": at["N"], "C": channel.var}
        if groups > 1:
            source["C"] = floordiv(at["C"], outputs_per_group) * kernel_extent["I"] + channel.var
        for letter, step, apart in zip(layout.spatial, strides, dilations, strict=True):
            source[letter] = at[letter] * step + taps[letter].var * apart
        weight = {"O": at["C"], "I": channel.var, **{letter: tap.var for letter, tap in taps.items()}}
        left = cast(padded(*(source[letter] for letter in layout.data)), out_dtype)
        right = cast(filt(*(weight[letter] for letter in layout.kernel)), out_dtype)
        return te.sum(left * right, axis=[channel, *taps.values()])

    shape = [out_extent[letter] for letter in layout.out]
    return compute(shape, body, name, name, attrs, [OUTPUT_NAMES[letter] for letter in layout.out])


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
