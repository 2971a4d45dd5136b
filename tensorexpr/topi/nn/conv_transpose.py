"""Transposed convolutions: the gradient of a convolution with respect to its data, as an operator of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from ... import te
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import IterVar, PrimExpr, Var
from .. import tag
from ..utils import extent_value, need_equal, need_rank, pad_pairs, spread
from .conv import OUTPUT_NAMES, REDUCTION_NAMES
from .padding import dilate_and_pad, pad
from .residues import Residues, Run, interleaved, residues

# Channels of a group that make less than a vector.
_FEW = 16


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
    """Input [N, C, H, W], Filter [C, O, KH, KW] -> [N, O, (H-1)*stride - paddings + KH + output_padding, ...]."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding, 1, "HW", "conv2d_transpose_nchw")


def group_conv2d_transpose_nchw(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int
) -> Tensor:
    """As conv2d_transpose_nchw with kernel [C, O/groups, KH, KW]."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups, "HW", "group_conv2d_transpose_nchw")


def conv_transpose(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
    spatial: str,
    name: str,
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution over the axes `spatial` ("W", "HW" or "DHW"), channels first.

    Args:
        output_padding: extra rows at the far end, fewer than the stride or the dilation: one number, or one for each axis.
        dilation: distance of neighbouring taps: one number, or one for each axis.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    dims = len(spatial)
    need_rank(name, "the data", data, dims + 2)
    need_rank(name, "the kernel", kernel, dims + 2)
    steps, extra = spread(name, "strides", strides, dims), spread(name, "output_padding", output_padding, dims)
    apart = spread(name, "dilation", dilation, dims)
    if any(more < 0 or more >= max(step, wide) for more, step, wide in zip(extra, steps, apart, strict=True)):
        raise DeclarationError(f"{name}: output_padding {extra} must be less than strides {steps} or dilation {apart}, and not negative")
    need_equal(name, "the channels of data and kernel", data.shape[1], kernel.shape[0])
    taps = kernel.shape[2:]
    reach = [extent_value((tap - 1) * wide) for tap, wide in zip(taps, apart, strict=True)]
    pairs = pad_pairs(name, padding, [extent_value(own + 1) for own in reach])
    window = _Window(data, kernel, steps, apart, pairs, extra, groups, spatial, out_dtype or data.dtype, name)
    numbers = (*map(extent_value, taps), *(number for pair in pairs for number in pair))
    # At stride 1 there are no zeros between the data, and residues have nothing to leave out.
    is_dilated = any(step > 1 for step in steps)
    return window.by_residues() if is_dilated and all(isinstance(number, int) for number in numbers) else window.dilated()


@dataclass(frozen=True)
class _Window:
    """A transposed convolution with one number or pair for each axis of its window."""

    data: Tensor
    kernel: Tensor
    strides: Sequence[int]
    apart: Sequence[int]
    pairs: Sequence[tuple[Any, Any]]
    extra: Sequence[int]
    groups: int
    spatial: str
    dtype: str
    name: str

    def by_residues(self) -> Tensor:
        """Convolutions over the data as it is, side by side; see `residues`."""
        window = zip(self.kernel.shape[2:], self.strides, self.apart, self.pairs, self.extra, strict=True)
        axes = [residues(extent_value(tap), step, wide, *pair, more) for tap, step, wide, pair, more in window]
        # Without taps along an axis all results are 0, which `interleaved` writes itself.
        combined = [runs for runs in product(*(axis.runs for axis in axes)) if all(run.taps for run in runs)]
        parts = {runs: self._few(axes, runs) if self._has_few else self._part(axes, runs) for runs in combined}
        sizes = [
            extent_value((extent - 1) * step + (tap - 1) * wide + (1 + more) - low - high)
            for extent, tap, step, wide, (low, high), more in zip(
                self.data.shape[2:], self.kernel.shape[2:], self.strides, self.apart, self.pairs, self.extra, strict=True
            )
        ]
        shape = (self.data.shape[0], extent_value(self.kernel.shape[1] * self.groups), *sizes)
        names = ["b", "c", *(OUTPUT_NAMES[letter] for letter in self.spatial)]

        def read(runs: tuple[Run, ...], n: Var, o: Var, rest: Sequence[PrimExpr], at: Sequence[PrimExpr]) -> PrimExpr:
            channels: list[PrimExpr] = [*rest, o]
            if self._has_few:
                channels = [self._joined(runs, rest, o)]
            elif self._has_groups:
                channels = [*rest, floordiv(o, self.kernel.shape[1]), floormod(o, self.kernel.shape[1])]
            return parts[runs](n, *channels, *at)

        return interleaved(axes, shape, self.dtype, read, self.name, names)

    @property
    def _has_groups(self) -> bool:
        """True if groups get an axis of their own: those of several channels each."""
        return self.groups > 1 and extent_value(self.kernel.shape[1]) != 1

    @property
    def _has_few(self) -> bool:
        """True if there are so few channels that those of all residues together make better vectors."""
        outputs = extent_value(self.kernel.shape[1])
        return self.groups == 1 and isinstance(outputs, int) and outputs < _FEW

    def _joined(self, runs: Sequence[Run], rest: Sequence[PrimExpr], o: PrimExpr) -> PrimExpr:
        """The number of a channel of a residue among those of all residues."""
        flat: PrimExpr | int = 0
        for run, residue in zip(runs, rest, strict=True):
            flat = flat * run.count + residue
        return flat * self.kernel.shape[1] + o

    def _few(self, axes: Sequence[Residues], runs: Sequence[Run]) -> Tensor:
        """As `_part`, with the channels of all residues as one axis, over weights that stand so."""
        outputs = self.kernel.shape[1]
        counts = [run.count for run in runs]

        def placed(c: Var, *at: Var) -> PrimExpr:
            *taps, joint = at
            left, met = floordiv(joint, outputs), list[PrimExpr]()
            # The inverse of `_joined`: digits of mixed radix, the last axis in the lowest one.
            for run, axis, tap in reversed(list(zip(runs, axes, taps, strict=True))):
                # Against the order of the data: a later element meets an earlier tap.
                met.append(run.tap + floormod(left, run.count) + (run.taps - 1 - tap) * axis.apart)
                left = floordiv(left, run.count)
            return self.kernel(c, floormod(joint, outputs), *reversed(met))

        every = extent_value(prod(counts) * outputs)
        weights = compute((self.kernel.shape[0], *(run.taps for run in runs), every), placed, f"{self.name}_weights", tag.INJECTIVE)
        padded, sizes = self._bordered(axes, runs)
        channel, over = self._summed([run.taps for run in runs])

        def body(n: Var, o: Var, *at: Var) -> PrimExpr:
            moved = [index + tap.var * axis.step for index, tap, axis in zip(at, over, axes, strict=True)]
            taps = weights(channel.var, *(tap.var for tap in over), o)
            return self._products(padded(n, channel.var, *moved), taps, [channel, *over])

        names = ["b", "c", *(OUTPUT_NAMES[letter] for letter in self.spatial)]
        return compute((self.data.shape[0], every, *sizes), body, f"{self.name}_part", self.name, varargs_names=names[2:])

    def _bordered(self, axes: Sequence[Residues], runs: Sequence[Run]) -> tuple[Tensor, list[Any]]:
        """The data with the borders that the windows of runs see, and how many u there are along each axis."""
        borders = [axis.border(run) for axis, run in zip(axes, runs, strict=True)]
        front, back = (0, 0, *(low for low, _ in borders)), (0, 0, *(high for _, high in borders))
        padded = pad(self.data, front, back, 0.0, "data_pad") if any((*front, *back)) else self.data
        return padded, [extent_value(extent + axis.more) for extent, axis in zip(self.data.shape[2:], axes, strict=True)]

    def _part(self, axes: Sequence[Residues], runs: Sequence[Run]) -> Tensor:
        """The results of a run along each axis: [batch, residues counted from the runs' first, channels, u counted from the first].

        Channels of groups are two axes: groups, and channels of one.
        """
        padded, sizes = self._bordered(axes, runs)
        channel, over = self._summed([run.taps for run in runs])
        dims, outputs = len(runs), self.kernel.shape[1]

        def body(n: Var, *at: Var) -> PrimExpr:
            rest, places = at[:dims], at[-dims:]
            moved = [index + tap.var * axis.step for index, tap, axis in zip(places, over, axes, strict=True)]
            met = [
                run.tap + residue + (run.taps - 1 - tap.var) * axis.apart
                for run, residue, tap, axis in zip(runs, rest, over, axes, strict=True)
            ]
            if not self._has_groups:
                return self._sum(padded, n, at[dims], channel, over, moved, met)
            c = at[dims] * self._inputs + channel.var
            return self._products(padded(n, c, *moved), self.kernel(c, at[dims + 1], *met), [channel, *over])

        counts = [run.count for run in runs]
        channels = [self.groups, outputs] if self._has_groups else [extent_value(outputs * self.groups)]
        letters = [f"r{letter.lower()}" for letter in self.spatial], ["g", "c"] if self._has_groups else ["c"]
        names = [*letters[0], *letters[1], *(OUTPUT_NAMES[letter] for letter in self.spatial)]
        return compute((self.data.shape[0], *counts, *channels, *sizes), body, f"{self.name}_part", self.name, varargs_names=names)

    def dilated(self) -> Tensor:
        """A convolution over the data dilated by the strides: for sizes of windows and paddings that aren't numbers."""
        taps = self.kernel.shape[2:]
        reach = [extent_value((tap - 1) * wide) for tap, wide in zip(taps, self.apart, strict=True)]
        before = [extent_value(own - low) for own, (low, _) in zip(reach, self.pairs, strict=True)]
        after = [extent_value(own - high + more) for own, (_, high), more in zip(reach, self.pairs, self.extra, strict=True)]
        padded = dilate_and_pad(self.data, (1, 1, *self.strides), (0, 0, *before), (0, 0, *after), 0.0, "data_pad")
        channel, over = self._summed(taps)

        def body(n: Var, o: Var, *at: Var) -> PrimExpr:
            moved = [index + tap.var * wide for index, tap, wide in zip(at, over, self.apart, strict=True)]
            return self._sum(padded, n, o, channel, over, moved, [e - 1 - tap.var for e, tap in zip(taps, over, strict=True)])

        sizes = [extent_value(extent - own) for extent, own in zip(padded.shape[2:], reach, strict=True)]
        names = ["b", "c", *(OUTPUT_NAMES[letter] for letter in self.spatial)]
        shape = (self.data.shape[0], extent_value(self.kernel.shape[1] * self.groups), *sizes)
        return compute(shape, body, self.name, self.name, varargs_names=names[2:])

    def _summed(self, taps: Sequence[Any]) -> tuple[IterVar, list[IterVar]]:
        """The axes of the sum: channels of a group, and taps."""
        over = [te.reduce_axis((0, tap), name=f"d{REDUCTION_NAMES[letter][1]}") for tap, letter in zip(taps, self.spatial, strict=True)]
        return te.reduce_axis((0, self._inputs), name="dc"), over

    @property
    def _inputs(self) -> Any:
        """The channels of a group of the data."""
        return extent_value(floordiv(self.data.shape[1], self.groups))

    def _sum(
        self, padded: Tensor, n: Var, o: Var, channel: IterVar, over: list[IterVar], moved: list[PrimExpr], met: list[PrimExpr]
    ) -> PrimExpr:
        """The sum of the products of data at `moved` and taps `met`."""
        outputs = self.kernel.shape[1]
        group = floordiv(o, outputs) if self.groups > 1 else 0
        own = floormod(o, outputs) if self.groups > 1 else o
        c = group * self._inputs + channel.var if self.groups > 1 else channel.var
        return self._products(padded(n, c, *moved), self.kernel(c, own, *met), [channel, *over])

    def _products(self, left: PrimExpr, right: PrimExpr, axis: list[IterVar]) -> PrimExpr:
        return te.sum(cast(left, self.dtype) * cast(right, self.dtype), axis=axis)


def transpose_operands(data: Tensor, kernel: Tensor, strides: Any, padding: Any, output_padding: Any, name: str) -> tuple[Tensor, Tensor]:
    """Data and kernel whose plain convolution, of stride 1 and without padding, is the transposed one.

    The data is dilated by the strides and padded; the kernel has inputs and outputs swapped, and its taps in reverse.
    """
    dims = data.ndim - 2
    need_rank(name, "the kernel", kernel, data.ndim)
    steps, extra = spread(name, "strides", strides, dims), spread(name, "output_padding", output_padding, dims)
    taps = kernel.shape[2:]
    pairs = pad_pairs(name, padding, [extent_value(tap) for tap in taps])
    before = [extent_value(tap - 1 - low) for tap, (low, _) in zip(taps, pairs, strict=True)]
    after = [extent_value(tap - 1 - high + more) for tap, (_, high), more in zip(taps, pairs, extra, strict=True)]
    padded = dilate_and_pad(data, (1, 1, *steps), (0, 0, *before), (0, 0, *after), 0.0, "data_pad")

    def turned(o: Var, i: Var, *at: Var) -> PrimExpr:
        return kernel(i, o, *(extent - 1 - index for extent, index in zip(taps, at, strict=True)))

    return padded, compute((kernel.shape[1], kernel.shape[0], *taps), turned, "kernel_transform")


def _preprocess(name: str, dims: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(
        data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
    ) -> tuple[Tensor, Tensor]:
        need_rank(name, "the data", data, dims + 2)
        return transpose_operands(data, kernel, strides, padding, output_padding, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Data and kernel whose plain convolution is the transposed one; see `transpose_operands`. `out_dtype` has no effect."
    return function


def _implementation(name: str, spatial: str) -> Callable[..., Tensor]:
    def function(data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
        return conv_transpose(data, kernel, strides, padding, out_dtype, output_padding, 1, spatial, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The transposed convolution over {', '.join(spatial)}, channels first; see `conv_transpose`."
    return function


conv2d_transpose_nchw_preprocess = _preprocess("conv2d_transpose_nchw_preprocess", 2)
conv3d_transpose_ncdhw_preprocess = _preprocess("conv3d_transpose_ncdhw_preprocess", 3)
declaration_conv2d_transpose_impl = _implementation("declaration_conv2d_transpose_impl", "HW")
declaration_conv3d_transpose_impl = _implementation("declaration_conv3d_transpose_impl", "DHW")
