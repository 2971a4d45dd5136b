"""FoldPads: borders become the padding of convolutions and pools that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ..expr import Call, PrimValue
from ..ops.window import paddings, sizes
from .fold_scale import CONVOLUTIONS
from .rewriting import Rewriter, Rules, rule_pass

_NOT_NEGATIVE = ("relax.nn.relu", "relax.sigmoid", "relax.abs", "relax.nn.relu6")


def _borders(graph: Rewriter, call: Call, layout: str) -> tuple[Call, list[int], list[int], float] | None:
    """The borders that are added in front of a window: the call, how many in front and behind of each pixel axis, their value."""
    pad = graph.call(call.args[0], "relax.nn.pad")
    value: Any = pad.args[1].value if pad is not None and isinstance(pad.args[1], PrimValue) else None
    number = getattr(value, "value", None)
    if pad is None or number is None or pad.attrs["pad_mode"] != "constant" or len(pad.attrs["pad_width"]) != 2 * len(layout):
        return None
    front, back = pad.attrs["pad_width"][::2], pad.attrs["pad_width"][1::2]
    pixels = [n for n, axis in enumerate(layout) if axis not in "NC"]
    is_plain = all(front[n] == back[n] == 0 for n in range(len(layout)) if n not in pixels)
    # Negative borders cut elements off, which no padding does.
    if not is_plain or min(*front, *back) < 0:
        return None
    return pad, [front[n] for n in pixels], [back[n] for n in pixels], float(number)


def _padded(call: Call, pad: Call, front: list[int], back: list[int], **attrs: Any) -> Call:
    """A call on what is there without borders, with more padding."""
    old = paddings(call.attrs["padding"], len(front))
    padding = [a + b for a, b in zip((*old[0], *old[1]), (*front, *back), strict=True)]
    return Call(call.op, (pad.args[0], *call.args[1:]), {**call.attrs, "padding": padding, **attrs}, call.sinfo_args)


def _convolution(graph: Rewriter, call: Call) -> Any:
    found = _borders(graph, call, str(call.attrs["data_layout"]))
    return None if found is None or found[3] != 0 else _padded(call, *found[:3])


def _is_bare(call: Call, rank: int) -> bool:
    """Whether a pool has no padding, and ends inside."""
    front, back = paddings(call.attrs["padding"], rank)
    return not any((*front, *back)) and not call.attrs["ceil_mode"]


def _mean(graph: Rewriter, call: Call) -> Any:
    found = _borders(graph, call, str(call.attrs["layout"]))
    if found is None or found[3] != 0 or not _is_bare(call, len(found[1])):
        return None
    # The borders were elements of the mean, and go on counting.
    return _padded(call, *found[:3], count_include_pad=True)


def _greatest(graph: Rewriter, call: Call) -> Any:
    """Borders below all elements: minus infinity, or 0 beside what isn't negative, in windows that see more than borders."""
    found = _borders(graph, call, str(call.attrs["layout"]))
    if found is None or not _is_bare(call, len(found[1])):
        return None
    pad, front, back, number = found
    size = sizes(call.attrs["pool_size"], len(front), "pool_size")
    is_zero = number == 0 and graph.call(pad.args[0], *_NOT_NEGATIVE) is not None
    sees_more = all(max(a, b) < n for a, b, n in zip(front, back, size, strict=True))
    # With holes a window may step over all that lies between two borders.
    is_dense = all(n == 1 for n in sizes(call.attrs["dilation"], len(front), "dilation"))
    return _padded(call, pad, front, back) if sees_more and is_dense and (is_zero or number == -np.inf) else None


RULES: Rules = {
    **{name: [_convolution] for name in CONVOLUTIONS},
    **{f"relax.nn.avg_pool{n}d": [_mean] for n in (1, 2, 3)},
    **{f"relax.nn.max_pool{n}d": [_greatest] for n in (1, 2, 3)},
}


def FoldPads() -> ModulePass:
    """A pass: borders that convolutions and pools read become their padding."""
    return rule_pass("FoldPads", RULES)
