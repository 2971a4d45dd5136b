"""The attributes of nodes that work on windows: convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int
from .attributes import Attributes
from .context import Context


@dataclass(frozen=True)
class Windows:
    """Windows over the axes behind the first two of operand 0, a number for each of them."""

    size: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]

    @property
    def rank(self) -> int:
        """The axes that windows run over."""
        return len(self.size)


def letters(ctx: Context, rank: int) -> str:
    """The letters of the axes of a plane.

    Raises:
        ModelError: for a plane of more than three axes, or none.
    """
    if not 1 <= rank <= 3:
        ctx.fail(f"windows over {rank} axes; there are kernels for one to three")
    return ("W", "HW", "DHW")[rank - 1]


def stated_windows(ctx: Context, attrs: Attributes, size: Sequence[int]) -> Windows:
    """The windows of a node as its attributes state them, but for `auto_pad`.

    Raises:
        ModelError: for another number of strides, dilations or pads than a window has axes, and for numbers that these can't be.
    """
    rank = len(size)
    strides, dilations = attrs.ints("strides", [1] * rank), attrs.ints("dilations", [1] * rank)
    pads = attrs.ints("pads", [0] * 2 * rank)
    for name, given, wanted in (("strides", strides, rank), ("dilations", dilations, rank), ("pads", pads, 2 * rank)):
        if len(given) != wanted:
            ctx.fail(f"{name} has {len(given)} numbers for {rank} axes")
    for name, given, least in (("a window", size, 1), ("strides", strides, 1), ("dilations", dilations, 1), ("pads", pads, 0)):
        if min(given, default=least) < least:
            ctx.fail(f"{name} of {list(given)}; the least is {least}")
    if (stated := attrs.ints("kernel_shape", list(size))) != list(size):
        ctx.fail(f"kernel_shape is {stated}, where the weights have {list(size)}")
    return Windows(list(size), strides, dilations, pads)


def plane_of(ctx: Context, rank: int) -> list[Any]:
    """The extents of the axes of operand 0 that windows of a rank run over.

    Raises:
        ModelError: if it has another number of them.
    """
    extents = ctx.extents(0)[2:]
    if len(extents) != rank:
        ctx.fail(f"windows over {rank} axes of data with {len(extents)} of them behind the first two")
    return extents


def windows(ctx: Context, attrs: Attributes, size: Sequence[int]) -> Windows:
    """The windows of a node.

    Args:
        ctx, attrs: of the node.
        size: of a window.

    Raises:
        ModelError: as of `stated_windows`, and where padding depends on extents that aren't known.
    """
    found, mode = stated_windows(ctx, attrs, size), attrs.string("auto_pad", "NOTSET")
    rank, pads = found.rank, found.pads
    if mode == "VALID":
        pads = [0] * 2 * rank
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        missing = [_missing(ctx, *one) for one in zip(plane_of(ctx, rank), size, found.strides, found.dilations, strict=True)]
        small, large = [n // 2 for n in missing], [n - n // 2 for n in missing]
        pads = [*small, *large] if mode == "SAME_UPPER" else [*large, *small]
    elif mode != "NOTSET":
        ctx.fail(f"no auto_pad {mode!r}")
    return replace(found, pads=pads)


def _missing(ctx: Context, extent: Any, size: int, stride: int, dilation: int) -> int:
    """What has to be added to an extent for as many windows as it has strides."""
    reach = (size - 1) * dilation + 1
    known = as_int(extent)
    if known is None:
        if stride == 1:
            # Each element starts a window, however many there are.
            return reach - 1
        ctx.fail(f"auto_pad of an extent that isn't known, {extent}, by strides of {stride}")
    return max(0, (-(-known // stride) - 1) * stride + reach - known)
