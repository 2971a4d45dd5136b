"""Recurrent layers: the products of all inputs at once, as one product of matrices, and then a row that goes from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...topi.nn.recurrent import GATES, Cell, recurrent_steps
from ..expr import Call
from ..relations import same_extents
from ..struct_info import StructInfo, TupleStructInfo
from . import reference
from .elementwise import add
from .linear import matmul
from .manipulate import permute_dims
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


def _walk(cell: Cell, gates: Any, lengths: Any, states: list[Any], step: Callable[[Any, list[Any]], list[Any]]) -> tuple[Any, ...]:
    """Each sequence from step to step, in float64."""
    time, batch = gates.shape[:2]
    # States behind the end of a sequence stay 0.
    found = np.zeros((time, batch, states[0].shape[-1]))
    ends = [state.astype(np.float64).copy() for state in states]
    for b in range(batch):
        count = time if lengths is None else int(lengths[b])
        now = [state[b] for state in ends]
        for t in reversed(range(count)) if cell.reverse else range(count):
            now = step(gates[t, b].astype(np.float64), now)
            found[t, b] = now[0]
        for end, last in zip(ends, now, strict=True):
            end[b] = last
    return tuple(one.astype(gates.dtype) for one in (found, *ends))


def _cut(kind: str, x: Any) -> list[Any]:
    return np.split(x, GATES[kind])


def _np_lstm(gates: Any, weights: Any, state: Any, cells: Any, peepholes: Any = None, lengths: Any = None, **attrs: Any) -> Any:
    cell = _cell("lstm", **attrs)
    f, g, h = _functions(cell)
    p = [0.0, 0.0, 0.0] if peepholes is None else np.split(peepholes.astype(np.float64), 3)

    def step(x: Any, now: list[Any]) -> list[Any]:
        read = reference.rounded_to_bytes(now[0].astype(np.float32)) if cell.rounded else now[0]
        i, o, keep, new = _cut("lstm", x + read @ weights)
        let_in = f(i + p[0] * now[1])
        kept = 1 - let_in if cell.coupled else f(keep + p[2] * now[1])
        c = kept * now[1] + let_in * g(new)
        return [f(o + p[1] * c) * h(c), c]

    return _walk(cell, gates, lengths, [state, cells], step)


def _np_gru(gates: Any, weights: Any, state: Any, bias: Any, lengths: Any = None, **attrs: Any) -> Any:
    cell = _cell("gru", **attrs)
    f, g = _functions(cell)
    hidden = weights.shape[0]

    def step(x: Any, now: list[Any]) -> list[Any]:
        h = now[0]
        both = x[: 2 * hidden] + h @ weights[:, : 2 * hidden]
        keep, reset = f(both[:hidden]), f(both[hidden:])
        own = weights[:, 2 * hidden :]
        new = reset * (h @ own + bias) if cell.coupled else (reset * h) @ own + bias
        return [keep * h + (1 - keep) * g(x[2 * hidden :] + new)]

    return _walk(cell, gates, lengths, [state], step)


def _np_rnn(gates: Any, weights: Any, state: Any, lengths: Any = None, **attrs: Any) -> Any:
    cell = _cell("rnn", **attrs)
    f = _functions(cell)[0]
    return _walk(cell, gates, lengths, [state], lambda x, now: [f(x + now[0] @ weights)])


def _cell(
    kind: str, activations: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float, reverse: bool,
    input_forget: bool = False, linear_before_reset: bool = False, rounded: bool = False,
) -> Cell:  # fmt: skip
    # One field of a cell: "lstm" has the former flag, "gru" the latter.
    return Cell(kind, activations, alphas, betas, clip, reverse, input_forget or linear_before_reset, rounded)


def _te(kind: str, states: int, extra: Sequence[str]) -> Callable[..., Any]:
    """The tensor computation: behind gates, weights and states stand the operands `extra`, the last of which may be missing."""

    def made(gates: Any, weights: Any, *operands: Any, **attrs: Any) -> Any:
        given = dict(zip(extra, operands[states:], strict=False))
        return recurrent_steps(_cell(kind, **attrs), gates, weights, operands[:states], **given)

    return made


def _result(kind: str, gates: Expr, weights: Expr, states: Sequence[Expr], cell: Cell) -> StructInfo:
    """All states and the last ones.

    Raises:
        DeclarationError: if shapes don't fit.
    """
    x, w = tensor(gates, "gates"), tensor(weights, "weights")
    if x.ndim != 3 or w.ndim != 2 or x.extents is None or w.extents is None:
        raise DeclarationError(
            f"relax.op.nn.{cell.kind}_steps: gates [time, batch, gates], weights [hidden, gates], not {x.info}, {w.info}"
        )
    own: list[Operand] = [tensor(one, "a state") for one in states]
    hidden = w.extents[0]
    wide = hidden * GATES[kind]
    if any(same_extents(one, wide) is False for one in (x.extents[2], w.extents[1])):
        raise DeclarationError(f"relax.op.nn.{kind}_steps: gates and weights have {wide} columns, not {x.info} and {w.info}")
    for one in own:
        if one.extents is not None and same_extents(one.extents[-1], hidden) is False:
            raise DeclarationError(f"relax.op.nn.{kind}_steps: a state of {hidden} elements, not {one.info}")
    end = x.like([x.extents[1], hidden])
    return TupleStructInfo((x.like([*x.extents[:2], hidden]), *[end] * len(own)))


@operator("nn.lstm_steps", Pattern.OPAQUE, te=_te("lstm", 2, ("peepholes", "lengths")), numpy=_np_lstm)
def lstm_steps(
    gates: Expr, weights: Expr, state: Expr, cells: Expr, peepholes: Expr | None = None, lengths: Expr | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh"), alphas: Sequence[float] = (0.0, 0.0, 0.0),
    betas: Sequence[float] = (0.0, 0.0, 0.0), clip: float = 0.0, reverse: bool = False, input_forget: bool = False,
    rounded: bool = False,
) -> StructInfo:  # fmt: skip
    """States of a long short-term memory (Hochreiter and Schmidhuber 1997): all [time, batch, hidden], the last ones and the last cells.

    See `topi.nn.recurrent.recurrent_steps`.
    """
    cell = _cell("lstm", activations, alphas, betas, clip, reverse, input_forget, rounded=rounded)
    return _result("lstm", gates, weights, [state, cells], cell)


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


def _from_inputs(data: Any, weight: Any, bias: Any) -> Any:
    """What inputs and biases add to the gates, for all steps at once."""
    product = matmul(data, permute_dims(weight, None))
    return product if bias is None else add(product, bias)


def lstm(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, cells: Any, *more: Any, **attrs: Any) -> Call:
    """A layer of long short-term memory: a product of matrices and `lstm_steps`, which says what it gives and takes `more` and `attrs`.

    Args:
        data: [time, batch, features].
        weight, recurrence: [4 * hidden, features] and [4 * hidden, hidden], with rows for the input, output and forget gate and cells.
        bias: [4 * hidden], or None.
        state, cells: [batch, hidden], before the first step.
    """
    return lstm_steps(_from_inputs(data, weight, bias), permute_dims(recurrence, None), state, cells, *more, **attrs)


def gru(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, state_bias: Any, *more: Any, **attrs: Any) -> Call:
    """A layer of gated recurrent units: a product of matrices and `gru_steps`, which says what it gives and takes `more` and `attrs`.

    Args:
        data: [time, batch, features].
        weight, recurrence: [3 * hidden, features] and [3 * hidden, hidden], with rows for the update and reset gate and states.
        bias: [3 * hidden], or None.
        state: [batch, hidden], before the first step.
        state_bias: [hidden], added to the product of the state for new states.
    """
    return gru_steps(_from_inputs(data, weight, bias), permute_dims(recurrence, None), state, state_bias, *more, **attrs)


def rnn(data: Any, weight: Any, recurrence: Any, bias: Any, state: Any, *more: Any, **attrs: Any) -> Call:
    """A recurrent layer: a product of matrices and `rnn_steps`, which says what it gives and takes `more` and `attrs`.

    Args:
        data: [time, batch, features].
        weight, recurrence: [hidden, features] and [hidden, hidden].
        bias: [hidden], or None.
        state: [batch, hidden], before the first step.
    """
    return rnn_steps(_from_inputs(data, weight, bias), permute_dims(recurrence, None), state, *more, **attrs)
