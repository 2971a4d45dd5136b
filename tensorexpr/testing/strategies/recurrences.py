"""Random recurrences over the first axis of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ... import te
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm, PrimExpr, Var

Weights = Callable[[tuple[int, ...], str], Tensor]
Value = Callable[..., PrimExpr]


def draw_scan(draw: st.DrawFn, source: Tensor, name: Callable[[str], str], weights: Weights) -> Tensor:
    """A result of a scan over the first axis of `source`, with one or two states and up to two stages in a step.

    Args:
        source: what each step reads its row of; of one dimension at least.
        name: makes a name that isn't taken.
        weights: makes an input of a shape and dtype.
    """
    extents = tuple(extent.value for extent in source.shape if isinstance(extent, IntImm))
    rows = draw(st.integers(1, min(2, extents[0])))
    # steps begin behind the rows of init, so a lag of up to as many never reads before the first
    lag = draw(st.integers(1, rows))
    state = te.placeholder(extents, source.dtype, name("state"))
    if draw(st.booleans()):
        init = te.compute((rows, *extents[1:]), lambda *at: source(*at), name("init"))
    else:
        init = te.compute((rows, *extents[1:]), lambda *_: arithmetic.const(1, source.dtype), name("init"))
    value = _stepped(draw, state, lag, name, weights)
    early = draw(st.integers(0, rows))  # no step asks for rows before the first
    update = te.compute(extents, lambda t, *i: _bounded(value(t, *i), source(t - early, *i)), name("update"))
    if not draw(st.booleans()):
        made: Tensor = te.scan(init, update, state, name=name("scan"))
        return made
    second = te.placeholder(extents, source.dtype, name("state"))
    later = te.compute(extents, lambda t, *i: _bounded(update(t, *i), second(t - 1, *i)), name("update"))
    first_of_both = draw(st.booleans())
    both = te.scan([init, init], [update, later], [state, second], name=name("scan"))
    result: Tensor = both[0 if first_of_both else 1]
    return result


def _bounded(a: Any, b: Any) -> Any:
    """Two values combined so that many steps in a row neither overflow nor amplify errors."""
    return a * 0.5 + b if parse_dtype(a.dtype).is_float else te.max(a, b)


def _stepped(draw: st.DrawFn, state: Tensor, lag: int, name: Callable[[str], str], weights: Weights) -> Value:
    """What a step makes of earlier rows of `state`: the row itself, or stages between."""
    value: Value = lambda t, *i: state(t - lag, *i)  # noqa: E731
    shape = state.shape
    for _ in range(draw(st.integers(0, 2))):
        kinds = ("copy", "neighbour", "mixed") if state.ndim > 1 else ("copy",)
        made = {"copy": _copy, "neighbour": _neighbour, "mixed": _mixed}[draw(st.sampled_from(kinds))]
        value = made(shape, value, state, name, weights)
    return value


def _copy(shape: Any, value: Value, state: Tensor, name: Callable[[str], str], weights: Weights) -> Value:
    return te.compute(shape, lambda *at: value(*at), name("kept"))


def _neighbour(shape: Any, value: Value, state: Tensor, name: Callable[[str], str], weights: Weights) -> Value:
    """Shifted along the last axis, with a border."""
    zero = arithmetic.const(0, state.dtype)
    return te.compute(shape, lambda *at: te.if_then_else(at[-1] >= 1, value(*at[:-1], at[-1] - 1), zero), name("shifted"))


def _mixed(shape: Any, value: Value, state: Tensor, name: Callable[[str], str], weights: Weights) -> Value:
    """The last axis contracted with a matrix, or for integers its maximum."""
    width = shape[-1]
    k = te.reduce_axis((0, width), "k")
    if not parse_dtype(state.dtype).is_float:
        return te.compute(shape, lambda *at: te.max(value(*at[:-1], k.var), axis=k), name("largest"))
    matrix = weights((width.value, width.value), state.dtype)

    def product(*at: Var) -> Any:
        return te.sum(value(*at[:-1], k.var) * matrix[k, at[-1]], axis=k)

    summed = te.compute(shape, product, name("mixed"))
    return te.compute(shape, lambda *at: te.tanh(summed(*at)), name("bounded"))
