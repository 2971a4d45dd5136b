"""FoldScaleAxis: factors of channels go into the weights of convolutions and dense products before or behind them.

    conv(relu(x * s) + b, w)         ->   conv(relu(x) + b / s, w * s)          forward; s > 0 for the relu
    relu(conv(x, w) + b) * s         ->   relu(conv(x, w * s) + b * s)          backward

A message says of a value along which axes a factor of it may vary: forward what all of its readers accept, backward what it is made of
accepts. A factor that no message is for stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..relax import expr as graph
from ..topi.transform import parse_layout
from .expr import Call, Function
from .lets import known_info
from .ops.elementwise import divide, multiply
from .ops.transform import expand_dims, reshape, squeeze
from .simplify import extents_of, is_call
from .visitor import SameTypes, operands, walk

_CONVOLUTIONS = tuple(f"nn.conv{n}d" for n in (1, 2, 3))
_RAMPS = ("nn.relu", "nn.leaky_relu")
_SUMS = ("add", "subtract")
# What changes neither numbers nor their order.
_VIEWS = ("reshape", "expand_dims", "squeeze", "transpose", "layout_transform", "broadcast_to")


@dataclass(frozen=True)
class Message:
    """What a factor of a value may be.

    Args:
        axes: along which it may vary: that of channels, and that of their blocks.
        is_positive: whether no number of it may be negative, or zero.
    """

    axes: tuple[int, ...]
    is_positive: bool = False


@dataclass(frozen=True)
class _Anchor:
    """A convolution or product: the axes of channels of its data, of its result, and of the weights for both."""

    data: tuple[int, ...]
    result: tuple[int, ...]
    weights_in: tuple[int, ...]
    weights_out: tuple[int, ...]


def _axes(layout: str, letter: str) -> tuple[int, ...]:
    return tuple(n for n, (name, _) in enumerate(parse_layout(layout)) if name.upper() == letter)


def _anchor(call: Any) -> _Anchor | None:
    if is_call(call, "nn.dense"):
        ndims = [len(known_info(one).extents or ()) for one in (call.args[0], call)]  # type: ignore[attr-defined]
        return _Anchor((ndims[0] - 1,), (ndims[1] - 1,), (1,), (0,))
    if not is_call(call, *_CONVOLUTIONS):
        return None
    attrs = call.attrs
    data, kernel = attrs["data_layout"], attrs["kernel_layout"]
    inner, outer, groups = _axes(kernel, "I"), _axes(kernel, "O"), int(attrs["groups"])
    if groups > 1:
        # Of one channel each weights are those of that channel; of other groups no axis has all channels of the data.
        inner = outer if _extent(call.args[0], _axes(data, "C")) == groups == _extent(call.args[1], outer) else ()
    return _Anchor(_axes(data, "C"), _axes(attrs.get("out_layout") or data, "C"), inner, outer)


def _extent(value: Any, axes: Sequence[int]) -> int:
    extents = extents_of(value)
    return -1 if extents is None else int(np.prod([extents[one] for one in axes]))


def _varies_along(factor: Any, value: Any, axes: Sequence[int]) -> bool:
    """Whether an operand that broadcasts to a value is a number, or has one for each place of some axes."""
    own, whole = extents_of(factor), extents_of(value)
    if own is None or whole is None or len(own) > len(whole):
        return False
    wanted = [extent if n in axes else 1 for n, extent in enumerate(whole)][len(whole) - len(own) :]
    return own == () or (list(own) == wanted and min(axes, default=0) >= len(whole) - len(own))


def _numbers(factor: Any) -> Any:
    """The array of numbers that a factor has, in any order; None where they aren't known."""
    while is_call(factor, *_VIEWS):
        factor = factor.args[0]
    return factor.data.numpy() if isinstance(factor, graph.Constant) else None


def _fits(factor: Any, value: Any, message: Message) -> bool:
    """Whether a factor of a value is one that a message is for."""
    if not _varies_along(factor, value, message.axes):
        return False
    numbers = _numbers(factor) if message.is_positive else None
    return not message.is_positive or (numbers is not None and bool(np.all(numbers > 0)))


def _along(factor: Any, value: Any, axes: Sequence[int]) -> Any:
    """A factor of a value as numbers for each place of some axes; a number stays one."""
    own, ndim = extents_of(factor) or (), len(extents_of(value) or ())
    others = [n for n in range(len(own)) if n + ndim - len(own) not in axes]
    return squeeze(factor, others) if others else factor


def _placed(numbers: Any, axes: Sequence[int], target: Any) -> Any:
    """Numbers for each place of some axes as an operand of a tensor that has these axes."""
    if extents_of(numbers) == ():
        return numbers
    whole = extents_of(target) or ()
    if len(axes) == 1:
        behind = len(whole) - 1 - axes[0]
        return expand_dims(numbers, 1, behind) if behind else numbers
    return reshape(numbers, [extent if n in axes else 1 for n, extent in enumerate(whole)])


def _with_weights(call: Any, data: Any, weights: Any) -> Any:
    return Call(call.op, (data, weights, *call.args[2:]), call.attrs, span=getattr(call, "span", None))


class Readers:
    """Who reads each value of a function, by `id`; None is for what isn't a call of an operator."""

    def __init__(self, func: Function) -> None:
        self.order = list(walk(func))
        self.of: dict[int, list[Any]] = {id(func): []}
        for node in self.order:
            for one in operands(node):
                self.of.setdefault(id(one), []).append(node)

    def single(self, value: Any) -> bool:
        """Whether one place alone reads a value."""
        return len(self.of.get(id(value), ())) == 1


def _forward_messages(readers: Readers) -> dict[int, Message]:
    """What the readers of each value accept a factor of it for."""
    found: dict[int, Message] = {}
    for node in reversed(readers.order):
        messages = [_accepted(reader, node, found) for reader in readers.of.get(id(node), ())]
        first = messages[0] if messages else None
        if first is not None and all(one is not None and one.axes == first.axes for one in messages):
            found[id(node)] = Message(first.axes, any(one is not None and one.is_positive for one in messages))
    return found


def _accepted(reader: Any, value: Any, found: Mapping[int, Message]) -> Message | None:
    """What a reader accepts a factor of an operand for."""
    anchor, own = _anchor(reader), found.get(id(reader))
    if anchor is not None:
        return Message(anchor.data) if reader.args[0] is value and anchor.weights_in and reader.args[1] is not value else None
    if own is None or not isinstance(reader, graph.Call) or extents_of(reader) != extents_of(value):
        return None
    if is_call(reader, *_RAMPS):
        return Message(own.axes, True)
    if is_call(reader, *_SUMS) and reader.args[0] is not reader.args[1]:
        first, second = reader.args
        other = second if first is value else first
        # Of two that both might lack a factor the first one does.
        is_second = other is first and extents_of(first) == extents_of(value) and _varies_along(second, first, own.axes)
        return own if _varies_along(other, value, own.axes) and not is_second else None
    return None


class Forward(SameTypes):
    """Factors into the weights behind them. What a factor is taken from is noted with it, until an anchor takes both."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self._messages = _forward_messages(Readers(func))
        self._factors: dict[int, Any] = {}  # of values in the program that was given: what stands for them lacks these

    def visit_call(self, call: Any) -> Any:
        """A call without the factor, or with it in its weights."""
        message = self._messages.get(id(call))
        if is_call(call, "multiply") and message is not None:
            for value, factor in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
                numbers = _numbers(factor)
                # A sum on the way is divided by it.
                if _fits(factor, call, message) and extents_of(value) == extents_of(call) and numbers is not None and np.all(numbers != 0):
                    self._factors[id(call)] = _along(factor, call, message.axes)
                    return self.visit(value)
        made = super().visit_call(call)
        taken = next((one for one in call.args if id(one) in self._factors), None)
        if taken is None:
            return made
        factor, args = self._factors[id(taken)], list(made.args)
        anchor = _anchor(call)
        if anchor is not None:
            return _with_weights(call, args[0], multiply(args[1], _placed(factor, anchor.weights_in, call.args[1])))
        self._factors[id(call)] = factor
        if is_call(call, *_SUMS) and message is not None:
            other = 1 if call.args[0] is taken else 0
            args[other] = divide(args[other], _placed(factor, message.axes, call))
        return Call(call.op, args, call.attrs, span=getattr(call, "span", None))


def _backward_messages(readers: Readers) -> dict[int, Message]:
    """What each value can take a factor for, by what it is made of, which nothing else may read."""
    found: dict[int, Message] = {}
    for node in readers.order:
        message = _offered(node, found) if readers.single(node) else None
        if message is not None:
            found[id(node)] = message
    return found


def _offered(node: Any, found: Mapping[int, Message]) -> Message | None:
    anchor = _anchor(node)
    if anchor is not None:
        return Message(anchor.result)
    own = [found.get(id(one)) for one in node.args] if isinstance(node, graph.Call) else [None]
    if is_call(node, *_RAMPS) and own[0] is not None:
        return Message(own[0].axes, True)
    if is_call(node, "nn.bias_add") and own[0] is not None:
        axis = int(node.attrs["axis"]) % len(extents_of(node) or (0,))
        return own[0] if own[0].axes == (axis,) else None
    if not is_call(node, *_SUMS):
        return None
    first, second = own
    if first is not None and second is not None:
        is_same = first.axes == second.axes and extents_of(node.args[0]) == extents_of(node.args[1])
        return Message(first.axes, first.is_positive or second.is_positive) if is_same else None
    for message, value, other in ((first, *node.args), (second, *node.args[::-1])):
        if message is not None and extents_of(value) == extents_of(node):
            return message if _varies_along(other, value, message.axes) else None
    return None


class Backward(SameTypes):
    """Factors into the weights in front of them."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self._messages = _backward_messages(Readers(func))

    def visit_call(self, call: Any) -> Any:
        """What a product is of, with the factor in the weights."""
        if is_call(call, "multiply"):
            for value, factor in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
                message = self._messages.get(id(value))
                if message is not None and extents_of(value) == extents_of(call) and _fits(factor, value, message):
                    return self._scaled(value, _along(self.visit(factor), value, message.axes))
        return super().visit_call(call)

    def _scaled(self, call: Any, factor: Any) -> Any:
        """A value times a factor."""
        anchor, message = _anchor(call), self._messages[id(call)]
        args = [self.visit(one) for one in call.args] if anchor is not None else list(call.args)
        if anchor is not None:
            return _with_weights(call, args[0], multiply(args[1], _placed(factor, anchor.weights_out, call.args[1])))
        for place, one in enumerate(call.args):
            if id(one) in self._messages and (place == 0 or is_call(call, *_SUMS)):
                args[place] = self._scaled(one, factor)
            else:
                args[place] = multiply(self.visit(one), factor if is_call(call, "nn.bias_add") else _placed(factor, message.axes, call))
        return Call(call.op, args, call.attrs, span=getattr(call, "span", None))


__all__ = ["Backward", "Forward", "Message", "Readers"]
