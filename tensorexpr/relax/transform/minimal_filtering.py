"""MinimalFiltering: convolutions of 3 x 3 taps with constant weights by Winograd's algorithm, in less than half of the multiply-adds.

    conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO")    ->    conv2d_winograd(x, w')        w': [4, 4, I, O]

Sums of integers are exact. Those of floats are of fewer terms: 56 x 56 x 64 differ from float64 by 3.5e-7 of the largest, 7.4e-7 by the
definition. An infinity, which gives infinities by the definition, may be NaN in the results of its tile: a PassContext whose
`disabled_pass` has "MinimalFiltering" leaves convolutions as they are.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...lower.passes import ModulePass
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.function import IRModule
from ...topi.nn.winograd_tiles import ALPHA, TAPS, TILE, weights_of_tiles
from ..expr import Call, Constant, Function, const
from ..kernel_tasks import has_templates
from ..ops.winograd import conv2d_winograd
from .passes import each_function
from .rewriting import Rewriter, rewritten

_CONVOLUTION = "relax.nn.conv2d"
_LAYOUTS = ("NHWC", "HWIO")
_BYTES = ("uint8", "int8")
# Multiply-adds that are left, of those that the definition has, up to which transforms and the last tiles' lost results pay.
_LEFT = 0.75
# Transforms go through channels once, products through pairs of them: the harmonic mean of both numbers of channels, in vectors of sums
# (28 x 28 of 16 to 16 channels by eights 1.37 times as fast, 112 x 112 of 8 to 8 1.09 times).
_CHANNELS = 1.25
# Of floats, places that vectors of channels have, of those that are filled (57 x 57 of 12 to 24 channels by eights 0.81 times as fast).
_FILLED = 1.15
# Weights grow, and come from memory in a network that is more than the caches: multiply-adds in whose time a byte of them arrives.
_OF_A_BYTE = 10


def _extents(expr: Any) -> list[int] | None:
    found = [as_int(extent) for extent in expr.struct_info.extents or (None,)]
    return None if None in found else [extent for extent in found if extent is not None]


def _is_plain(call: Call) -> bool:
    """Whether a convolution has the layouts, and strides, dilation and groups of 1."""
    attrs = call.attrs
    layouts = (str(attrs["data_layout"]), str(attrs["kernel_layout"]))
    ones = (*attrs["strides"], *attrs["dilation"], attrs["groups"])
    return layouts == _LAYOUTS and attrs["out_layout"] in (None, "NHWC") and all(int(one) == 1 for one in ones)


def _pays(call: Call, data: list[int], weight: list[int], grown: int, lanes: int) -> bool:
    """Whether there is enough to be gained: not with few channels, nor where tiles are for a great part border, or weights used seldom.

    Args:
        data, weight: the shapes.
        grown: bytes that the taps of a weight take more.
        lanes: sums in a vector.
    """
    n, height, width, inputs = data
    top, left, bottom, right = map(int, call.attrs["padding"])
    products, taps = n * ALPHA**2, n
    for extent, before, after in ((height, top, bottom), (width, left, right)):
        results = extent + before + after - TAPS + 1
        products *= -(-results // TILE)
        # Of the definition's products those with a border's zeros are left out.
        taps *= sum(0 <= at + tap - before < extent for at in range(results) for tap in range(TAPS))
    outputs, saved = weight[-1], taps - products
    has_channels = 2 * inputs * outputs >= _CHANNELS * lanes * (inputs + outputs)
    return has_channels and products <= _LEFT * taps and saved >= _OF_A_BYTE * grown


def _has_pairs(target: Target, data: str) -> bool:
    """Whether a target multiplies bytes as words, and sums them by twos; by fours it is as fast with the definition."""
    from ...spaces.dot_products import instruction_for  # schedules, which a build that finds its kernels doesn't load otherwise

    of_bytes, of_words = instruction_for(data, "int8", "int32", target), instruction_for("int16", "int16", "int32", target)
    return of_bytes is not None and of_words is not None and of_bytes.group == of_words.group


def _filtered(graph: Rewriter, call: Call) -> Any:
    """A convolution of known sizes with constant weights by tiles; None where that doesn't pay."""
    weight = graph.value(call.args[1])
    data, taps = _extents(call.args[0]), _extents(call.args[1])
    if not isinstance(weight, Constant) or data is None or taps is None or not _is_plain(call) or taps[:2] != [TAPS, TAPS]:
        return None
    dtype, of_weight, sums = (str(getattr(one, "dtype", "")) for one in (call.args[0].struct_info, weight.data, call.struct_info))
    whole = dtype in _BYTES and (of_weight, sums) == ("int8", "int32") and prod(taps[:3]) * 4 * 255 * 128 < 1 << 31 and taps[2] % 2 == 0
    if not whole and {dtype, of_weight, sums} != {"float32"}:
        return None
    grown = ALPHA**2 * 2 - TAPS**2 if whole else (ALPHA**2 - TAPS**2) * 4
    target = Target.target_or_current(None)
    lanes = target.vector_bits // 32
    fits = _has_pairs(target, dtype) if whole else all(-(-channels // lanes) * lanes <= _FILLED * channels for channels in taps[2:])
    if not fits or not _pays(call, data, taps, grown, lanes):
        return None
    return conv2d_winograd(call.args[0], const(weights_of_tiles(weight.view())), list(call.attrs["padding"]))


def _chosen(func: Function, mod: IRModule) -> Function:
    # Records of AutoTVM, where there are any, are of convolutions.
    is_left = Target.target_or_current(None).kind.name != "llvm" or has_templates()
    return func if is_left else rewritten(func, {_CONVOLUTION: [_filtered]})


def MinimalFiltering() -> ModulePass:
    """A pass: 3 x 3 convolutions by fewer multiply-adds, for CPUs; see the module."""
    return each_function("MinimalFiltering", _chosen)
