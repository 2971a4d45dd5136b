"""FoldExplicitPadding: borders that are those of a convolution or pool behind them.

conv2d(nn.pad(x, 0, [[0, 0], [0, 0], [1, 1], [2, 2]]), w)   ->   conv2d(x, w, padding=[1, 2, 1, 2])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..relax import expr as graph
from ..tir.dtype import int_limits, parse_dtype
from .expr import Attrs, Call
from .simplify import dtype_of, is_call

_CONVOLUTIONS = tuple(f"nn.conv{n}d" for n in (1, 2, 3))
_POOLS = {kind: tuple(f"nn.{kind}_pool{n}d" for n in (1, 2, 3)) for kind in ("max", "avg")}


def _border(call: Any) -> float | None:
    """The number that a convolution or pool takes for what is beyond its data; None where that isn't known."""
    if is_call(call, *_CONVOLUTIONS, *_POOLS["avg"]):
        return 0
    if is_call(call, *_POOLS["max"]):
        dtype = dtype_of(call)
        return -np.inf if parse_dtype(dtype).is_float else int_limits(dtype)[0]
    zero = call.args[2] if is_call(call, "qnn.conv2d") else None
    return zero.data.numpy().item() if isinstance(zero, graph.Constant) and zero.data.ndim == 0 else None


def without_pad(call: Any) -> Any:
    """A convolution or pool of what its operand is made of by a pad; None for other calls, and for what has other borders."""
    pad: Any = call.args[0] if call.args else None
    if not is_call(pad, "nn.pad") or pad.attrs["pad_mode"] != "constant" or not isinstance(pad.args[1], graph.Constant):
        return None
    layout = call.attrs.get("data_layout") or call.attrs.get("layout")
    value, border = pad.args[1].data.numpy(), _border(call)
    # A window that sees anything else gives the same of the least number and of minus infinity.
    is_least = border == -np.inf and value.dtype.kind == "f" and value.item() == np.finfo(value.dtype).min
    if border is None or (value.item() != border and not is_least) or len(layout) != len(pad.attrs["pad_width"]):
        return None
    widths = {letter: tuple(map(int, pair)) for letter, pair in zip(layout, pad.attrs["pad_width"], strict=True)}
    planes = [letter for letter in layout if letter in "DHW"]
    if any(any(pair) for letter, pair in widths.items() if letter not in planes) or min(map(min, widths.values())) < 0:
        return None
    own = [int(one) for one in call.attrs["padding"]]
    own = own if len(own) == 2 * len(planes) else (own * len(planes))[: len(planes)] * 2
    attrs = dict(call.attrs)
    ends = [(side, letter) for side in (0, 1) for letter in planes]
    attrs["padding"] = tuple(before + widths[letter][side] for before, (side, letter) in zip(own, ends, strict=True))
    if is_least and any(pad >= size for pad, size in zip(attrs["padding"], [*attrs["pool_size"]] * 2, strict=True)):
        return None
    if is_call(call, *_POOLS["avg"]):
        # What was written as borders counts in means, and so has to still.
        if (any(own) and not attrs["count_include_pad"]) or attrs["ceil_mode"]:
            return None
        attrs["count_include_pad"] = True
    return Call(call.op, (pad.args[0], *call.args[1:]), Attrs(attrs), span=getattr(call, "span", None))


__all__ = ["without_pad"]
