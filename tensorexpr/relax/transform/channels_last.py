"""ChannelsLast: convolutions have their channels side by side in memory, where that saves more time than transposes take.

    relu(conv2d(x, w))    ->    permute(relu(conv2d(permute(x), w', data_layout="NHWC", kernel_layout="HWIO")))

A step of the sum reads an element of each pixel of a register tile, and the next step those of the next channel. Channels first, that
is a plane further on: for each channel a line on another page, which no prefetcher knows of, and so are the parts of a result, and of
what is added to it. Channels last, all of these go on where they are. In a kernel that is called again and again planes are in a cache;
between two calls in a network they aren't. (Zen 3 server, two cores, in turn in one process: ResNet-50 72.8 -> 61.6 ms, DenseNet-121
50.5 -> 46.4, SqueezeNet 7.9 -> 6.8.)
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ..expr import Call, Constant, Function
from ..struct_info import TensorStructInfo
from ..visitor import walk
from .convert_layout import relaid
from .passes import each_function
from .rewriting import Rewriter, Rule, Rules, joined, rewritten
from .simplify import FOLD
from .transposes import MERGED, MOVES, PERMUTE, RULES

_LAST = {"relax.nn.conv2d": ("NHWC", "HWIO")}
# Channels of a group from which on they are whole vectors of any processor's.
_GROUP = 16
_INTEGERS = ("int8", "int16")
# Of the time that a convolution's multiply-adds take, what is saved: most save twice that. Where each channel has its own group, there is
# no sum over channels, and planes are better: windows of 3 x 3 take 1.2 times as long on the mean (MobileNetV2: 5.3 ms channels first,
# 6.0 last), of 5 x 5 up to 3 times (PP-OCRv4's detector has few of either: 9.0 ms channels first, 6.5 last; two cores of Zen 4).
_SAVED = 0.1
_LOST = 1.5
_LOST_3X3 = 1.0
# Instructions sum groups of neighbouring channels: channels first, data are transposed by the byte for them, and results back.
_SAVED_INTEGERS = 0.5
# Multiply-adds in whose time an element is read and written elsewhere, by kernels that reach what they can of either.
_MOVED = 50


def _extents(expr: Any) -> list[int] | None:
    """The shape of a tensor, if it is known."""
    info = getattr(expr, "struct_info", None)
    found = [as_int(extent) for extent in info.extents] if isinstance(info, TensorStructInfo) and info.extents is not None else [None]
    return None if None in found else [extent for extent in found if extent is not None]


def _multiply_adds(call: Call) -> int:
    """Of a convolution; 0 if its sizes aren't known."""
    result, weight = _extents(call), _extents(call.args[1])
    if result is None or weight is None:
        return 0
    return prod(result) * prod(weight) // max(1, weight[str(call.attrs["kernel_layout"]).index("O")])


def _gains(call: Call, weight: Any) -> bool:
    """Whether a convolution is one whose channels are better last: of known sizes, with weights that are there when it is built."""
    extents, groups = _extents(call.args[1]), int(call.attrs["groups"])
    if not isinstance(weight, Constant) or extents is None or _extents(call) is None:
        return False
    if not parse_dtype(weight.data.dtype).is_float and weight.data.dtype not in _INTEGERS:
        return False
    layout = str(call.attrs["kernel_layout"])
    outputs, inputs = extents[layout.index("O")], extents[layout.index("I")]
    # Channels of a group that fill no vector are vectors of pixels, unless each channel has its own group.
    return groups == 1 or (inputs == 1 and outputs == groups) or (outputs // groups) % _GROUP == 0


def _last(name: str) -> Rule:
    """A convolution with channels last."""
    relay = relaid(_LAST[name])

    def rule(graph: Rewriter, call: Call) -> Any:
        data, kernel, out = (call.attrs[name] for name in ("data_layout", "kernel_layout", "out_layout"))
        # Somebody has chosen blocks of channels.
        if str(data)[1] != "C" or not (str(data) + str(kernel)).isalpha() or out not in (None, data):
            return None
        return relay(graph, call) if _gains(call, graph.value(call.args[1])) else None

    return rule


def _moved(func: Function) -> int:
    """Multiply-adds in whose time a function's transposes run."""
    found = 0
    for node in walk(func.body):
        if isinstance(node, Call) and node.op == PERMUTE and not isinstance(node.args[0], Constant):
            found += _MOVED * prod(_extents(node) or [0])
    return found


_CONVERT: Rules = joined({name: [_last(name)] for name in _LAST}, FOLD, MOVES, {**RULES, PERMUTE: MERGED})
_REST: Rules = joined(FOLD, MOVES, RULES)


def _saved(func: Function) -> float:
    """Multiply-adds in whose time a function's convolutions with channels last would run that take longer with channels first."""
    last = [node for node in walk(func.body) if isinstance(node, Call) and str(node.op) in _LAST and _is_last(node)]
    return sum(_part(call) * _multiply_adds(call) for call in last)


def _part(call: Call) -> float:
    """Of the time of a convolution's multiply-adds, what is saved with channels last."""
    if parse_dtype(call.args[1].struct_info.dtype).is_int:
        return _SAVED_INTEGERS
    if int(call.attrs["groups"]) < (_extents(call) or [1])[-1]:
        return _SAVED
    return -_LOST_3X3 if (_extents(call.args[1]) or [])[:2] == [3, 3] else -_LOST


def _chosen(func: Function) -> Function:
    if not any(isinstance(node, Call) and str(node.op) in _LAST for node in walk(func.body)):
        return func
    # Transposes of one pixel become views only when all are where they stay: nothing moves through a view.
    made = rewritten(rewritten(func, _CONVERT), _REST)
    return made if _moved(made) - _moved(func) < _saved(made) - _saved(func) else func


def _is_last(call: Call) -> bool:
    return str(call.attrs["data_layout"]) == _LAST[str(call.op)][0]


def ChannelsLast() -> ModulePass:
    """A pass: convolutions with channels last, in functions whose transposes take less time then than is saved; see the module."""
    return each_function("ChannelsLast", lambda func, mod: _chosen(func))
