"""Convolutions over one to three axes, plain and transposed, in any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ... import topi
from ...dataclass import dataclass
from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ...tir.expr import PrimExpr
from ...topi.nn.conv_transpose import conv_transpose
from ...topi.transform import parse_layout
from ..expr import Call
from ..extents import simplified
from ..relations import same_extents
from ..struct_info import StructInfo
from . import reference
from .row import Expr, Operand, Pattern, operator, tensor
from .window import PLANES, check_layout, laid_out, paddings, positions, relaid, settled, sizes, whole


@dataclass(frozen=True)
class Conv:
    """The attributes of a convolution over `rank` axes, a number for each axis of the window."""

    where: str
    rank: int
    strides: Any
    padding: Any
    dilation: Any
    groups: int
    data_layout: str
    kernel_layout: str
    out_layout: str | None
    out_dtype: str | None
    output_padding: Any = 0

    def __post_init__(self) -> None:
        for name in ("strides", "dilation", "output_padding"):
            object.__setattr__(self, name, sizes(getattr(self, name), self.rank, name))
        front, back = paddings(self.padding, self.rank)
        object.__setattr__(self, "padding", [*front, *back])

    @property
    def plane(self) -> str:
        """The letters of the axes of the window."""
        return PLANES[self.rank - 1]

    @property
    def result_layout(self) -> str:
        """Of the result."""
        return self.out_layout or self.data_layout

    def along(self) -> list[tuple[str, int, int, int, int, int]]:
        """Letter, stride, dilation, both paddings and the output's padding of each axis."""
        front, back = self.padding[: self.rank], self.padding[self.rank :]
        return list(zip(self.plane, self.strides, self.dilation, front, back, self.output_padding, strict=True))

    def extents(self, data: Operand, weight: Operand, transposed: bool) -> list[PrimExpr] | None:
        """The shape of the result; None if it isn't known.

        Raises:
            DeclarationError: if channels, groups or layouts don't fit.
        """
        check_layout(self.where, self.data_layout, "NC" + self.plane, data)
        check_layout(self.where, self.kernel_layout, "OI" + self.plane, weight, "io")
        check_layout(self.where, self.result_layout, "NC" + self.plane)
        if not self.out_dtype and data.dtype and weight.dtype and data.dtype != weight.dtype:
            raise TypeMismatchError(
                f"relax.op.{self.where}: data of {data.dtype}, weights of {weight.dtype}: state out_dtype or use astype"
            )
        if data.extents is None or weight.extents is None:
            return None
        d, w = whole(self.data_layout, data.extents), whole(self.kernel_layout, weight.extents)
        channels, outputs = (w["I"], w["O"] * self.groups) if transposed else (w["I"] * self.groups, w["O"])
        if same_extents(d["C"], simplified(channels)) is False:
            raise DeclarationError(
                f"relax.op.{self.where}: {d['C']} channels with weights for {w['I']}"
                f"{'' if transposed else f' in each of {self.groups} groups'}: {data.info}, {weight.info}"
            )
        for what, count in (("channels", d["C"]), ("results", outputs)):
            if self.groups < 1 or as_int(simplified(count % self.groups)):
                raise DeclarationError(f"relax.op.{self.where}: {count} {what} can't be cut in {self.groups} groups")
        found: dict[str, PrimExpr] = {"N": d["N"], "C": simplified(outputs)}
        for letter, stride, dilation, front, back, more in self.along():
            size = as_int(w[letter])
            if size is None:
                return None
            if transposed:
                if not 0 <= more < max(stride, dilation):
                    raise DeclarationError(f"relax.op.{self.where}: output_padding {more} is less than the stride or the dilation")
                found[letter] = simplified((d[letter] - 1) * stride + ((size - 1) * dilation + 1 + more - front - back))
            else:
                found[letter] = positions(d[letter], size, stride, dilation, front, back)
        return laid_out(self.result_layout, found)

    def arrays(self, data: Any, weight: Any) -> tuple[Any, Any, str]:
        """Data and weights with channels first, in the dtype of the sums; that of the result."""
        result = self.out_dtype or str(data.dtype)
        dtype = to_numpy(result)
        sums = dtype if dtype.kind in "iu" or dtype.itemsize > 4 else np.dtype("float32")
        x = relaid(data, self.data_layout, "NC" + self.plane).astype(sums)
        return x, relaid(weight, self.kernel_layout, "OI" + self.plane).astype(sums), result

    def result(self, found: Any, dtype: str) -> Any:
        """What was computed with channels first, in the layout of the result."""
        return relaid(found, "NC" + self.plane, self.result_layout).astype(to_numpy(dtype))


def _te_conv(where: str, rank: int, data: Any, weight: Any, **attrs: Any) -> Any:
    conv = Conv(where, rank, **attrs)
    return topi.nn.conv(
        data, weight, conv.strides, conv.padding, conv.dilation, conv.groups, conv.data_layout, conv.kernel_layout,
        conv.out_dtype or data.dtype, out_layout=conv.result_layout,
    )  # fmt: skip


def _np_conv(where: str, rank: int, data: Any, weight: Any, **attrs: Any) -> Any:
    conv = Conv(where, rank, **attrs)
    x, w, dtype = conv.arrays(data, weight)
    x = np.pad(x, [(0, 0), (0, 0), *((front, back) for _, _, _, front, back, _ in conv.along())])
    view = reference.windows(x, w.shape[2:], conv.strides, conv.dilation)
    n, c, *plane = view.shape[: 2 + rank]
    groups, o = conv.groups, w.shape[0] // conv.groups
    # [N, G, C/G, positions, taps] -> [N, G, positions, C/G, taps], so that the last two make one row.
    order = (0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    rows = view.reshape(n, groups, c // groups, *view.shape[2:]).transpose(order)
    taps = w.reshape(1, groups, o, -1)
    # [N, G, positions, C/G * taps] by [1, G, C/G * taps, O/G].
    found = np.matmul(rows.reshape(n, groups, int(np.prod(plane)), taps.shape[-1]), taps.swapaxes(2, 3))
    return conv.result(found.swapaxes(2, 3).reshape(n, groups * o, *plane), dtype)


def _te_transpose(where: str, rank: int, data: Any, weight: Any, **attrs: Any) -> Any:
    conv = Conv(where, rank, **attrs)
    plain, kernel = "NC" + conv.plane, "IO" + conv.plane
    x = data if conv.data_layout == plain else topi.layout_transform(data, conv.data_layout, plain)
    w = weight if conv.kernel_layout == kernel else topi.layout_transform(weight, conv.kernel_layout, kernel)
    dtype = conv.out_dtype or data.dtype
    found = conv_transpose(
        x, w, conv.strides, conv.padding, dtype, conv.output_padding, conv.groups, conv.plane, f"conv{rank}d_transpose", conv.dilation
    )
    return found if conv.result_layout == plain else topi.layout_transform(found, plain, conv.result_layout)


def _np_transpose(where: str, rank: int, data: Any, weight: Any, **attrs: Any) -> Any:
    conv = Conv(where, rank, **attrs)
    x, w, dtype = conv.arrays(data, weight)
    n, c, *plane = x.shape
    o, groups, taps = w.shape[0], conv.groups, w.shape[2:]
    extents = [
        (extent - 1) * stride + (tap - 1) * apart + 1 + more
        for extent, tap, (_, stride, apart, _, _, more) in zip(plane, taps, conv.along(), strict=True)
    ]
    found = np.zeros((n, groups, o, *extents), x.dtype)
    parts = x.reshape(n, groups, c // groups, -1)
    weights = w.swapaxes(0, 1).reshape(groups, c // groups, o, *taps)
    for tap in product(*map(range, taps)):  # each tap adds the data, spread by the strides
        added = np.matmul(weights[tuple([slice(None)] * 3 + list(tap))].swapaxes(1, 2), parts)
        place = [slice(t * a, t * a + (e - 1) * s + 1, s) for t, e, (_, s, a, _, _, _) in zip(tap, plane, conv.along(), strict=True)]
        found[tuple([slice(None)] * 3 + place)] += added.reshape(n, groups, o, *plane)
    found = found.reshape(n, groups * o, *extents)
    # What a convolution pads its gradient cuts off, and the other way round.
    for axis, (_, _, _, front, back, _) in enumerate(conv.along(), 2):
        found = np.pad(found, [(0, 0) if n != axis else (max(0, -front), max(0, -back)) for n in range(found.ndim)])
        found = found[(slice(None),) * axis + (slice(max(0, front), found.shape[axis] - max(0, back)),)]
    return conv.result(found, dtype)


def _convolution(rank: int) -> Callable[..., Call]:
    where, plane = f"nn.conv{rank}d", PLANES[rank - 1]

    def rule(
        data: Expr, weight: Expr, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
        groups: int = 1, data_layout: str = f"NC{plane}", kernel_layout: str = f"OI{plane}", out_layout: str | None = None,
        out_dtype: str | None = None,
    ) -> StructInfo:  # fmt: skip
        x, w = tensor(data, "data"), tensor(weight, "weight")
        conv = Conv(where, rank, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype)
        return x.like(conv.extents(x, w, False), out_dtype or x.dtype, len(parse_layout(conv.result_layout)))

    rule.__doc__ = f"Sums over windows of {plane} and the channels of a group; layouts may have blocks of channels, as NC{plane}16c."
    return operator(
        where,
        Pattern.OUT_FUSABLE,
        te=lambda data, weight, **attrs: _te_conv(where, rank, data, weight, **attrs),
        numpy=lambda data, weight, **attrs: _np_conv(where, rank, data, weight, **attrs),
        settled=settled(rank),
    )(rule)


def _transposed(rank: int) -> Callable[..., Call]:
    where, plane = f"nn.conv{rank}d_transpose", PLANES[rank - 1]

    def rule(
        data: Expr, weight: Expr, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, data_layout: str = f"NC{plane}",
        kernel_layout: str = f"IO{plane}", out_layout: str | None = None, out_dtype: str | None = None,
    ) -> StructInfo:  # fmt: skip
        x, w = tensor(data, "data"), tensor(weight, "weight")
        conv = Conv(where, rank, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype, output_padding)
        return x.like(conv.extents(x, w, True), out_dtype or x.dtype, len(parse_layout(conv.result_layout)))

    rule.__doc__ = f"The gradient of a convolution over {plane} by its data: each element adds the weights to a window of the result."
    return operator(
        where,
        Pattern.OUT_FUSABLE,
        te=lambda data, weight, **attrs: _te_transpose(where, rank, data, weight, **attrs),
        numpy=lambda data, weight, **attrs: _np_transpose(where, rank, data, weight, **attrs),
        settled=settled(rank),
    )(rule)


conv1d, conv2d, conv3d = (_convolution(rank) for rank in (1, 2, 3))
conv1d_transpose, conv2d_transpose, conv3d_transpose = (_transposed(rank) for rank in (1, 2, 3))
