"""Recurrent layers: a layer is a product of matrices for all steps and an operator that goes through them, not a node for each step."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import relax
from .control import Turns
from .random import dropped
from .table import CONVERTERS, Context

# By the operators of graphs: which parts of PyTorch's weights are their gates, in order.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}


def _sorted_gates(c: Context, kind: str, weight: Any) -> Any:
    """Rows of a weight or bias in the order of gates here."""
    order = _GATES[kind]
    if len(order) == 1:
        return weight
    if isinstance(weight, relax.Constant):
        parts = np.split(weight.data.numpy(), len(order))
        return relax.const(np.concatenate([parts[n] for n in order]))
    whole = c.op("split", weight, len(order), axis=0)
    return c.op("concat", [c.builder.emit(relax.TupleGetItem(whole, n)) for n in order], axis=0)


def _joined(c: Context, values: Sequence[Any]) -> Any:
    """Values of all directions along a new first axis."""
    apart = [c.op("expand_dims", one, axis=0) for one in values]
    return apart[0] if len(apart) == 1 else c.op("concat", apart, axis=0)


def _biases(c: Context, kind: str, biases: Sequence[Sequence[Any]]) -> tuple[Any, list[Any]]:
    """What is added to all gates of each direction, and what a gated unit adds to the product of its state."""
    pairs = [[_sorted_gates(c, kind, one) for one in pair] for pair in biases]
    if kind != "gru":
        return _joined(c, [c.op("add", *pair) for pair in pairs]), []
    hidden = c.shape_of(pairs[0][0])[0] // 3
    whole, states = [], []
    for of_inputs, of_states in pairs:
        # The reset gate multiplies the product of the state with its bias, so this part can't join the inputs'.
        gates, own = (c.op("strided_slice", of_states, [0], [first], [last]) for first, last in ((0, 2 * hidden), (2 * hidden, 3 * hidden)))
        zeros = relax.const(np.zeros(hidden, c.dtype_of(of_inputs)))
        whole.append(c.op("add", of_inputs, c.op("concat", [gates, zeros], axis=0)))
        states.append(own)
    return _joined(c, whole), [_joined(c, states)]


def _layer(c: Context, kind: str, data: Any, starts: Sequence[Any], params: Sequence[Sequence[Any]], **options: Any) -> list[Any]:
    """All steps [time, batch, directions * hidden] and the last states [directions, batch, hidden] of one layer.

    Args:
        starts: the states before the first step.
        params: of each direction.
    """
    weight, recurrence = (_joined(c, [_sorted_gates(c, kind, one[n]) for one in params]) for n in range(2))
    hidden = c.shape_of(recurrence)[2]
    bias: Any = None
    extra: list[Any] = [relax.const(np.zeros((len(params), hidden), c.dtype_of(data)))] if kind == "gru" else []
    if len(params[0]) == 4:
        bias, extra = _biases(c, kind, [one[2:] for one in params])
    found = c.builder.emit(getattr(relax.op.nn, kind)(data, weight, recurrence, bias, *starts, *extra, **options))
    steps, *ends = (c.builder.emit(relax.TupleGetItem(found, n)) for n in range(1 + len(starts)))
    time, batch = c.shape_of(data)[:2]
    return [c.reshape(c.op("permute_dims", steps, axes=[0, 2, 1, 3]), [time, batch, len(params) * hidden]), *ends]


def _projected(c: Context, data: Any, starts: Sequence[Any], params: Sequence[Sequence[Any]]) -> list[Any]:
    """As `_layer`, of an LSTM whose output goes through a product of its own from step to step (Sak et al. 2014)."""
    found: list[list[Any]] = []
    for way, (of_inputs, of_states, *biases, projection) in enumerate(params):
        rows = c.op("flip", data, axis=0) if way else data
        gates = c.op("matmul", rows, _turned(c, of_inputs))
        for one in biases:
            gates = c.op("add", gates, one)
        own = [c.op("squeeze", c.op("strided_slice", one, [0], [way], [way + 1]), axis=[0]) for one in starts]
        turns = Turns(c, own, [gates, of_states, projection])

        def step(turns: Turns = turns) -> list[Any]:
            (state, cell), (gates, of_states, projection) = turns.states, turns.others
            row = c.op("add", c.op("take", gates, turns.number, axis=0), c.op("matmul", state, _turned(c, of_states)))
            parts = c.op("split", row, 4, axis=-1)
            let_in, kept, new, let_out = (c.builder.emit(relax.TupleGetItem(parts, n)) for n in range(4))
            grown = c.op("multiply", c.op("sigmoid", let_in), c.op("tanh", new))
            after = c.op("add", c.op("multiply", c.op("sigmoid", kept), cell), grown)
            shown = c.op("matmul", c.op("multiply", c.op("sigmoid", let_out), c.op("tanh", after)), _turned(c, projection))
            return [relax.const(True, "bool"), shown, after, shown]

        time = c.shape_of(data)[0]
        wanted = [SimpleNamespace(shape=[time, *c.shape_of(own[0])])]
        last, cell, steps = turns.taken(own, step, [None, None, *wanted], trip_count=c.cast(time, "int64"))
        found.append([c.op("flip", steps, axis=0) if way else steps, last, cell])
    steps, *ends = zip(*found, strict=True)
    return [steps[0] if len(steps) == 1 else c.op("concat", list(steps), axis=2), *(_joined(c, one) for one in ends)]


def _turned(c: Context, weight: Any) -> Any:
    return c.op("permute_dims", weight, axes=[1, 0])


def _converter(kind: str, **options: Any) -> Any:
    def convert(
        c: Context, input: Any, hx: Any, params: Sequence[Any], has_biases: bool, layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        ways, each = 2 if bidirectional else 1, 4 if has_biases else 2
        is_projected = len(params) == layers * ways * (each + 1)
        each += is_projected
        data = c.op("permute_dims", input, axes=[1, 0, 2]) if batch_first else input
        ends: list[list[Any]] = []
        for layer in range(layers):
            first = layer * ways
            own = [params[n * each : (n + 1) * each] for n in range(first, first + ways)]
            starts = [c.op("strided_slice", one, [0], [first], [first + ways]) for one in (hx if isinstance(hx, list) else [hx])]
            if layer and train and dropout:
                data = dropped(c, data, dropout, c.shape_of(data))[0]
            data, *last = _projected(c, data, starts, own) if is_projected else _layer(c, kind, data, starts, own, **options)
            ends.append(last)
        states = [parts[0] if len(parts) == 1 else c.op("concat", list(parts), axis=0) for parts in zip(*ends, strict=True)]
        return [c.op("permute_dims", data, axes=[1, 0, 2]) if batch_first else data, *states]

    return convert


CONVERTERS.update(
    {
        "lstm.input": _converter("lstm"),
        "gru.input": _converter("gru", linear_before_reset=True),
        "rnn_tanh.input": _converter("rnn"),
        "rnn_relu.input": _converter("rnn", activations=["Relu"]),
    }
)
