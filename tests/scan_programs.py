"""Recurrences that several tests share: the tensors of each, inputs first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorexpr import te
from tensorexpr.te import Tensor


def zeros(*shape: int) -> Tensor:
    """A constant tensor."""
    made: Tensor = te.compute(shape, lambda *_: te.const(0.0, "float32"), "zeros")
    return made


def cumulative_sum(steps: int = 6, width: int = 5) -> tuple[Any, ...]:
    """Sums over time, with a stage between state and update."""
    x = te.placeholder((steps, width), name="X")
    state = te.placeholder((steps, width), name="state")
    first = te.compute((1, width), lambda _, i: x[0, i], "first")
    kept = te.compute((steps, width), lambda t, i: state[t - 1, i] * 1.0, "kept")
    update = te.compute((steps, width), lambda t, i: kept[t, i] + x[t, i], "update")
    return x, te.scan(first, update, state, inputs=[x], name="sums")


def fibonacci(steps: int = 10) -> tuple[Any, ...]:
    """Two rows of init, reads of the last two rows."""
    state = te.placeholder((steps,), "int64", name="state")
    first = te.compute((2,), lambda t: t.astype("int64"), "first")
    update = te.compute((steps,), lambda t: state[t - 1] + state[t - 2], "update")
    return (te.scan(first, update, state, name="fibonacci"),)


def two_states(steps: int = 7, width: int = 4) -> tuple[Any, ...]:
    """Two states that read each other."""
    x = te.placeholder((steps, width), name="X")
    a, b = te.placeholder((steps, width), name="a"), te.placeholder((steps,), name="b")
    k = te.reduce_axis((0, width), "k")
    next_a = te.compute((steps, width), lambda t, i: a[t - 1, i] * 0.5 + b[t - 1] + x[t, i], "next_a")
    next_b = te.compute((steps,), lambda t: te.sum(a[t - 1, k] * 0.125, axis=k), "next_b")
    made = te.scan(
        [te.compute((1, width), lambda _, i: x[0, i], "first_a"), te.compute((1,), lambda _: te.const(1.0, "float32"), "first_b")],
        [next_a, next_b],
        [a, b],
        name="pair",
    )
    return x, *made


def rnn(steps: int = 5, batch: int = 3, width: int = 8) -> tuple[Any, ...]:
    """h_t = tanh(W h_{t-1} + x_t), with the reduction as a stage of its own."""
    x = te.placeholder((steps, batch, width), name="X")
    weight = te.placeholder((width, width), name="W")
    state = te.placeholder((steps, batch, width), name="h")
    k = te.reduce_axis((0, width), "k")
    product = te.compute((steps, batch, width), lambda t, b, i: te.sum(state[t - 1, b, k] * weight[i, k], axis=k), "product")
    update = te.compute((steps, batch, width), lambda t, b, i: te.tanh(product[t, b, i] + x[t, b, i]), "update")
    return x, weight, te.scan(zeros(1, batch, width), update, state, inputs=[x, weight], name="rnn")


def lstm(steps: int = 4, batch: int = 2, width: int = 4) -> tuple[Any, ...]:
    """An LSTM cell: the gates of one matrix product each for input and state."""
    x = te.placeholder((steps, batch, width), name="X")
    to_input = te.placeholder((4, width, width), name="Wx")
    to_state = te.placeholder((4, width, width), name="Wh")
    c, h = (te.placeholder((steps, batch, width), name=name) for name in ("c", "h"))
    i, j = te.reduce_axis((0, width), "ki"), te.reduce_axis((0, width), "kh")
    shape = (steps, batch, 4, width)
    projected = te.compute(shape, lambda t, b, g, n: te.sum(x[t, b, i] * to_input[g, n, i], axis=i), "projected")
    recurrent = te.compute(shape, lambda t, b, g, n: te.sum(h[t - 1, b, j] * to_state[g, n, j], axis=j), "recurrent")
    gates = te.compute(shape, lambda *at: projected(*at) + recurrent(*at), "gates")
    full = (steps, batch, width)
    inputs = te.compute(full, lambda t, b, n: te.sigmoid(gates[t, b, 0, n]) * te.tanh(gates[t, b, 1, n]), "inputs")
    next_c = te.compute(full, lambda t, b, n: te.sigmoid(gates[t, b, 2, n]) * c[t - 1, b, n] + inputs[t, b, n], "next_c")
    next_h = te.compute(full, lambda t, b, n: te.sigmoid(gates[t, b, 3, n]) * te.tanh(next_c[t, b, n]), "next_h")
    start = te.compute((1, batch, width), lambda *_: te.const(0.0, "float32"), "start")
    made = te.scan([start, start], [next_c, next_h], [c, h], inputs=[projected], name="lstm")
    return x, to_input, to_state, *made


def followed(steps: int = 6, width: int = 5) -> tuple[Any, ...]:
    """A scan whose result another stage reads, backwards."""
    x, sums = cumulative_sum(steps, width)
    return x, te.compute((steps, width), lambda t, i: sums[steps - 1 - t, i] * 2.0, "doubled")


def history(steps: int = 6) -> tuple[Any, ...]:
    """Each step reads all rows before it."""
    x = te.placeholder((steps,), name="X")
    state = te.placeholder((steps,), name="state")
    k = te.reduce_axis((0, steps), "k")
    past = te.compute((steps,), lambda t: te.sum(state[k], axis=k, where=k < t), "past")
    update = te.compute((steps,), lambda t: past[t] * 0.25 + x[t], "update")
    return x, te.scan(te.compute((1,), lambda _: x[0], "first"), update, state, name="history")


PROGRAMS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "cumulative_sum": cumulative_sum,
    "fibonacci": fibonacci,
    "two_states": two_states,
    "rnn": rnn,
    "lstm": lstm,
    "followed": followed,
    "history": history,
}
