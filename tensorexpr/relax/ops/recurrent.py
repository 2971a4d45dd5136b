"""Recurrent layers: the products of all inputs at once, as one product of matrices, and then a row that goes from step to step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...topi.nn.recurrent import GATES, Cell, recurrent_steps
from ..expr import Call
from ..relations import same_extents
from ..struct_info import StructInfo, TupleStructInfo
from . import reference
from .elementwise import add
from .linear import matmul
from .manipulate import permute_dims, reshape
from .row import Expr, Operand, Pattern, operator, tensor

_FUNCTIONS: Mapping[str, Callable[[Any, float, float], Any]] = {
    "sigmoid": lambda x, a, b: reference.sigmoid(x),
    "tanh": lambda x, a, b: np.tanh(x),
    "relu": lambda x, a, b: np.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(x, 0),
}


def _functions(cell: Cell) -> list[Callable[[Any], Any]]:
    def made(number: int) -> Callable[[Any], Any]:
        function = _FUNCTIONS[cell.activations[number].lower()]
        limit = cell.clip or np.inf
        return lambda x: function(np.clip(x, -limit, limit), cell.alphas[number], cell.betas[number])

    return [made(number) for number in range(len(cell.activations))]


_Step = Callable[[Any, list[Any], list[Any]], list[Any]]


def _walk(cell: Cell, gates: Any, lengths: Any, states: list[Any], step: _Step, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Each sequence from step to step, in float64.

    Args:
        step: from what the inputs add, the states and the operands of a direction to the next states.
        operands: weights and what else each direction has of its own; those of several directions have an axis more.
    """
    time, batch = gates.shape[:2]
    several = operands[0].ndim == 3
    ways = operands[0].shape[0] if several else 1
    # States behind the end of a sequence stay 0.
    found = np.zeros((time, ways, batch, states[0].shape[-1]))
    ends = [state.astype(np.float64).reshape(ways, batch, -1).copy() for state in states]
    parts = np.split(gates.astype(np.float64), ways, axis=2)
    for way, b in itertools.product(range(ways), range(batch)):
        own = [one[way] if several and one is not None else one for one in operands]
        count = time if lengths is None else int(lengths[b])
        now = [state[way, b] for state in ends]
        for t in reversed(range(count)) if (way if several and ways > 1 else cell.reverse) else range(count):
            now = step(parts[way][t, b], now, own)
            found[t, way, b] = now[0]
        for end, last in zip(ends, now, strict=True):
            end[way, b] = last
    return tuple((one if several else one.squeeze(-3)).astype(gates.dtype) for one in (found, *ends))


def _cut(kind: str, x: Any) -> list[Any]:
    return np.split(x, GATES[kind])


def _np_lstm(
    gates: Any, weights: Any, state: Any, cells: Any, peepholes: Any = None, lengths: Any = None, rounded: bool = False, **attrs: Any
) -> Any:
    cell = _cell("lstm", **attrs)
    f, g, h = _functions(cell)

    def step(x: Any, now: list[Any], own: list[Any]) -> list[Any]:
        p = [0.0, 0.0, 0.0] if own[1] is None else np.split(own[1].astype(np.float64), 3)
        read = reference.rounded_to_bytes(now[0].astype(np.float32)) if rounded else now[0]
        i, o, keep, new = _cut("lstm", x + read @ own[0])
        let_in = f(i + p[0] * now[1])
        kept = 1 - let_in if cell.coupled else f(keep + p[2] * now[1])
        c = kept * now[1] + let_in * g(new)
        return [f(o + p[1] * c) * h(c), c]

    return _walk(cell, gates, lengths, [state, cells], step, [weights, peepholes])


def _np_lstm_of_bytes(
    gates: Any, weights: Any, scales: Any, zeros: Any, sums: Any, state: Any, cells: Any, peepholes: Any = None, lengths: Any = None,
    **attrs: Any,
) -> Any:  # fmt: skip
    floats = (weights.astype(np.float64) - zeros[..., None, :]) * scales[..., None, :].astype(np.float64)
    return _np_lstm(gates, floats, state, cells, peepholes, lengths, True, **attrs)


def _np_gru(gates: Any, weights: Any, state: Any, bias: Any, lengths: Any = None, **attrs: Any) -> Any:
    cell = _cell("gru", **attrs)
    f, g = _functions(cell)
    hidden = weights.shape[-2]

    def step(x: Any, now: list[Any], operands: list[Any]) -> list[Any]:
        h, (kernel, shift) = now[0], operands
        both = x[: 2 * hidden] + h @ kernel[:, : 2 * hidden]
        keep, reset = f(both[:hidden]), f(both[hidden:])
        own = kernel[:, 2 * hidden :]
        new = reset * (h @ own + shift) if cell.coupled else (reset * h) @ own + shift
        return [keep * h + (1 - keep) * g(x[2 * hidden :] + new)]

    return _walk(cell, gates, lengths, [state], step, [weights, bias])


def _np_rnn(gates: Any, weights: Any, state: Any, lengths: Any = None, **attrs: Any) -> Any:
    cell = _cell("rnn", **attrs)
    f = _functions(cell)[0]
    return _walk(cell, gates, lengths, [state], lambda x, now, own: [f(x + now[0] @ own[0])], [weights])


def _cell(
    kind: str, activations: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float, reverse: bool,
    input_forget: bool = False, linear_before_reset: bool = False,
) -> Cell:  # fmt: skip
    # One field of a cell: "lstm" has the former flag, "gru" the latter.
    return Cell(kind, activations, alphas, betas, clip, reverse, input_forget or linear_before_reset)


def _te(kind: str, states: int, extra: Sequence[str]) -> Callable[..., Any]:
    """The tensor computation: behind gates, weights and states stand the operands `extra`, the last of which may be missing."""

    def made(gates: Any, weights: Any, *operands: Any, **attrs: Any) -> Any:
        given = dict(zip(extra, operands[states:], strict=False))
        return recurrent_steps(_cell(kind, **attrs), gates, weights, operands[:states], **given)

    return made


def _te_of_bytes(gates: Any, weights: Any, scales: Any, zeros: Any, sums: Any, state: Any, cells: Any, *more: Any, **attrs: Any) -> Any:
    given = dict(zip(("peepholes", "lengths"), more, strict=False))
    return recurrent_steps(_cell("lstm", **attrs), gates, weights, [state, cells], **given, levels=[scales, zeros, sums])


def _result(kind: str, gates: Expr, weights: Expr, states: Sequence[Expr], cell: Cell) -> StructInfo:
    """All states and the last ones, which have an axis of directions behind time, or in front, if the weights have one.

    Raises:
        DeclarationError: if shapes don't fit.
    """
    x, w = tensor(gates, "gates"), tensor(weights, "weights")
    if x.ndim != 3 or w.ndim not in (2, 3) or x.extents is None or w.extents is None:
        raise DeclarationError(
            f"relax.op.nn.{cell.kind}_steps: gates [time, batch, gates], weights [directions, hidden, gates] or without the first axis, "
            f"not {x.info}, {w.info}"
        )
    own: list[Operand] = [tensor(one, "a state") for one in states]
    ways, (hidden, columns) = list(w.extents[:-2]), w.extents[-2:]
    wide = hidden * GATES[kind]
    if same_extents(x.extents[2], wide * ways[0] if ways else wide) is False or same_extents(columns, wide) is False:
        raise DeclarationError(f"relax.op.nn.{kind}_steps: gates and weights have {wide} columns a direction, not {x.info} and {w.info}")
    for one in own:
        if one.extents is not None and (same_extents(one.extents[-1], hidden) is False or len(one.extents) != w.ndim):
            raise DeclarationError(f"relax.op.nn.{kind}_steps: a state {[*ways, 'batch', hidden]}, not {one.info}")
    time, batch = x.extents[:2]
    return TupleStructInfo((x.like([time, *ways, batch, hidden]), *[x.like([*ways, batch, hidden])] * len(own)))


@operator("nn.lstm_steps", Pattern.OPAQUE, te=_te("lstm", 2, ("peepholes", "lengths")), numpy=_np_lstm)
def lstm_steps(
    gates: Expr, weights: Expr, state: Expr, cells: Expr, peepholes: Expr | None = None, lengths: Expr | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh"), alphas: Sequence[float] = (0.0, 0.0, 0.0),
    betas: Sequence[float] = (0.0, 0.0, 0.0), clip: float = 0.0, reverse: bool = False, input_forget: bool = False,
) -> StructInfo:  # fmt: skip
    """States of a long short-term memory (Hochreiter and Schmidhuber 1997): all, the last ones and the last cells.

    See `topi.nn.recurrent.recurrent_steps`, also for shapes; weights with an axis of two directions are those of a layer that goes both
    ways.
    """
    return _result("lstm", gates, weights, [state, cells], _cell("lstm", activations, alphas, betas, clip, reverse, input_forget))


@operator("nn.lstm_steps_of_bytes", Pattern.OPAQUE, te=_te_of_bytes, numpy=_np_lstm_of_bytes)
def lstm_steps_of_bytes(
    gates: Expr, weights: Expr, scales: Expr, zeros: Expr, sums: Expr, state: Expr, cells: Expr, peepholes: Expr | None = None,
    lengths: Expr | None = None, activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh"), alphas: Sequence[float] = (0.0, 0.0, 0.0),
    betas: Sequence[float] = (0.0, 0.0, 0.0), clip: float = 0.0, reverse: bool = False, input_forget: bool = False,
) -> StructInfo:  # fmt: skip
    """As `lstm_steps`, of weights of int8 with scales and zeros; states are rounded to the bytes that multiply them.

    `sums` are those of the columns of the weights less their zeros, in int32, which products of bytes need.
    """
    return _result("lstm", gates, weights, [state, cells], _cell("lstm", activations, alphas, betas, clip, reverse, input_forget))


@operator("nn.gru_steps", Pattern.OPAQUE, te=_te("gru", 1, ("bias", "lengths")), numpy=_np_gru)
def gru_steps(
    gates: Expr, weights: Expr, state: Expr, bias: Expr, lengths: Expr | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh"), alphas: Sequence[float] = (0.0, 0.0), betas: Sequence[float] = (0.0, 0.0),
    clip: float = 0.0, reverse: bool = False, linear_before_reset: bool = False,
) -> StructInfo:  # fmt: skip
    """States of gated recurrent units (Cho et al. 2014): all [time, batch, hidden], and the last ones.

    See `topi.nn.recurrent.recurrent_steps`.
    """
    cell = _cell("gru", activations, alphas, betas, clip, reverse, False, linear_before_reset)
    return _result("gru", gates, weights, [state], cell)


@operator("nn.rnn_steps", Pattern.OPAQUE, te=_te("rnn", 1, ("lengths",)), numpy=_np_rnn)
def rnn_steps(
    gates: Expr, weights: Expr, state: Expr, lengths: Expr | None = None, activations: Sequence[str] = ("Tanh",),
    alphas: Sequence[float] = (0.0,), betas: Sequence[float] = (0.0,), clip: float = 0.0, reverse: bool = False,
) -> StructInfo:  # fmt: skip
    """States of a recurrent layer (Elman 1990): all [time, batch, hidden], and the last ones."""
    return _result("rnn", gates, weights, [state], _cell("rnn", activations, alphas, betas, clip, reverse))


def _turned(weight: Any) -> Any:
    """Weights with their last two axes the other way round."""
    return permute_dims(weight, [0, 2, 1] if weight.struct_info.ndim == 3 else None)


def rows_of(data: Any) -> Any:
    """All steps of all sequences as rows of one matrix, where that has as many as are known or as a sequence has steps."""
    time, batch, features = data.struct_info.extents
    return reshape(data, [time * batch, features]) if as_int(batch) == 1 or None not in (as_int(time), as_int(batch)) else data


def steps_of(rows: Any, data: Any) -> Any:
    """What `rows_of` made rows of as steps again: [time, batch, columns]."""
    return rows if rows.struct_info.ndim == 3 else reshape(rows, [*data.struct_info.extents[:2], rows.struct_info.extents[1]])


def _from_inputs(data: Any, weight: Any, bias: Any) -> Any:
    """What inputs and biases add to the gates, for all steps and directions at once.

    Raises:
        DeclarationError: for data of other axes.
    """
    x, w = tensor(data, "data"), tensor(weight, "weight")
    if x.ndim != 3 or x.extents is None or w.ndim not in (2, 3) or w.extents is None:
        raise DeclarationError(
            f"a recurrent layer takes data [time, batch, features] and weights [directions, gates, features] or without the first axis, "
            f"not {x.info}, {w.info}"
        )
    if weight.struct_info.ndim == 3:
        weight = reshape(weight, [-1, weight.struct_info.extents[2]])
        bias = None if bias is None else reshape(bias, [-1])
    product = matmul(rows_of(data), _turned(weight))
    return steps_of(product if bias is None else add(product, bias), data)


def lstm(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, cells: Any, *more: Any, **attrs: Any) -> Call:
    """A layer of long short-term memory: a product of matrices and `lstm_steps`, which says what it gives and takes `more` and `attrs`.

    All but the data may have an axis of directions in front.

    Args:
        data: [time, batch, features].
        weight, recurrence: [4 * hidden, features] and [4 * hidden, hidden], with rows for the input, output and forget gate and cells.
        bias: [4 * hidden], or None.
        state, cells: [batch, hidden], before the first step.
    """
    return lstm_steps(_from_inputs(data, weight, bias), _turned(recurrence), state, cells, *more, **attrs)


def gru(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, state_bias: Any, *more: Any, **attrs: Any) -> Call:
    """A layer of gated recurrent units: a product of matrices and `gru_steps`, which says what it gives and takes `more` and `attrs`.

    All but the data may have an axis of directions in front.

    Args:
        data: [time, batch, features].
        weight, recurrence: [3 * hidden, features] and [3 * hidden, hidden], with rows for the update and reset gate and states.
        bias: [3 * hidden], or None.
        state: [batch, hidden], before the first step.
        state_bias: [hidden], added to the product of the state for new states.
    """
    return gru_steps(_from_inputs(data, weight, bias), _turned(recurrence), state, state_bias, *more, **attrs)


def rnn(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, *more: Any, **attrs: Any) -> Call:
    """A recurrent layer: a product of matrices and `rnn_steps`, which says what it gives and takes `more` and `attrs`.

    All but the data may have an axis of directions in front.

    Args:
        data: [time, batch, features].
        weight, recurrence: [hidden, features] and [hidden, hidden].
        bias: [hidden], or None.
        state: [batch, hidden], before the first step.
    """
    return rnn_steps(_from_inputs(data, weight, bias), _turned(recurrence), state, *more, **attrs)
