"""The steps of recurrent layers: what comes from the inputs is given for all steps at once, and states go from step to step.

The products of states and weights are sums of rows of the weights, several rows at a time: weights are read once a step, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import cast, const, maximum, minimum
from ...tir.expr import PrimExpr
from ...tir.ir_builder import BufferVar, IRBuilder
from ..rows import in_loops
from ..utils import get_const_int, need_rank

_LANES, _ROWS = 16, 4
# Weights of a step from which several threads are worth their start: reading 1 MB takes ten times as long.
_SHARED = 1 << 18
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_KEPT = {"lstm": ("state", "cells", "levels"), "gru": ("state", "part", "reset", "product"), "rnn": ("state",)}


def _number(x: PrimExpr, value: float) -> PrimExpr:
    return const(value, x.dtype)


# Functions of gates and cells by the names of ONNX, lower case, with their two parameters.
ACTIVATIONS: Mapping[str, Callable[[PrimExpr, float, float], PrimExpr]] = {
    "sigmoid": lambda x, a, b: intrin.sigmoid(x),
    "tanh": lambda x, a, b: intrin.tanh(x),
    "relu": lambda x, a, b: maximum(x, _number(x, 0)),
    "affine": lambda x, a, b: x * _number(x, a) + _number(x, b),
    "leakyrelu": lambda x, a, b: intrin.select(x < 0, x * _number(x, a), x),
    "thresholdedrelu": lambda x, a, b: intrin.select(x > _number(x, a), x, _number(x, 0)),
    "scaledtanh": lambda x, a, b: intrin.tanh(x * _number(x, b)) * _number(x, a),
    "hardsigmoid": lambda x, a, b: maximum(_number(x, 0), minimum(_number(x, 1), x * _number(x, a) + _number(x, b))),
    "elu": lambda x, a, b: intrin.select(x < 0, (intrin.exp(x) - _number(x, 1)) * _number(x, a), x),
    "softsign": lambda x, a, b: x / (intrin.abs(x) + _number(x, 1)),
    "softplus": lambda x, a, b: maximum(x, _number(x, 0)) + intrin.log1p(intrin.exp(-intrin.abs(x))),
}


@dataclass(frozen=True)
class Cell:
    """What a step does.

    Args:
        kind: "lstm", "gru" or "rnn".
        activations: names of its functions: of gates, of new states, and for "lstm" of cells that go out.
        alphas, betas: their parameters.
        clip: the greatest distance from 0 of what the functions get; 0 for any.
        reverse: whether the last step comes first.
        coupled: of "lstm": the forget gate is 1 less the input gate; of "gru": the reset gate works on products.
        rounded: of "lstm": a product reads its state rounded to 256 levels, those of unsigned bytes with a scale and a zero point that
            the least and the greatest element of the state give, and 0.
    """

    kind: str
    activations: Sequence[str]
    alphas: Sequence[float]
    betas: Sequence[float]
    clip: float
    reverse: bool
    coupled: bool
    rounded: bool = False

    def __post_init__(self) -> None:
        wanted = {"lstm": 3, "gru": 2, "rnn": 1}[self.kind]
        if not len(self.activations) == len(self.alphas) == len(self.betas) == wanted:
            raise DeclarationError(f"{self.kind}: {wanted} activations with their parameters, not {list(self.activations)}")
        missing = [name for name in self.activations if name.lower() not in ACTIVATIONS]
        if missing:
            raise DeclarationError(f"{self.kind}: no activation {', '.join(missing)}; there are {', '.join(ACTIVATIONS)}")

    def apply(self, number: int, x: PrimExpr) -> PrimExpr:
        """One of its functions."""
        if self.clip:
            x = minimum(maximum(x, _number(x, -self.clip)), _number(x, self.clip))
        return ACTIVATIONS[self.activations[number].lower()](x, self.alphas[number], self.betas[number])


def _copy(into: BufferVar, row: tuple[Any, ...], source: BufferVar, from_row: tuple[Any, ...], j: Any) -> None:
    """An element of a row of one array into another."""
    into[tuple([*row, j])] = source[tuple([*from_row, j])]


def _each(ib: IRBuilder, count: int, body: Callable[[Any], None]) -> None:
    """For each of so many elements, in vectors as far as they go."""
    whole = count // _LANES
    if whole:
        with ib.for_range(0, whole, "jo") as outer, ib.for_range(0, _LANES, "ji", kind="vectorize") as inner:
            body(outer * _LANES + inner)
    if count % _LANES:
        with ib.for_range(whole * _LANES, count, "jr") as rest:
            body(rest)


def _add_product(
    ib: IRBuilder, into: BufferVar, place: int, count: int, state: BufferVar, weights: BufferVar, first: int, depth: int
) -> None:
    """Add the product of a state and `count` columns of the weights from the first on.

    A layer of one sequence that reads many weights in each step shares their columns among the threads: for 512 states these are 4 MB,
    which come from the third level.
    """
    rows, part = depth // _ROWS, _part(count) if count * depth >= _SHARED else count

    def add(k: Any, number: int, column: Any) -> None:
        def at(j: Any) -> None:
            # A sum is loaded and stored once for several rows of weights, not once for each.
            total = into[place + column + j]
            for n in range(number):
                total = total + state[k + n] * weights[k + n, first + column + j]
            into[place + column + j] = total

        _each(ib, part, at)

    def sum_of(column: Any) -> None:
        if rows:
            with ib.for_range(0, rows, "k") as k:
                add(k * _ROWS, _ROWS, column)
        # Three rows at most, each by itself.
        for rest in range(rows * _ROWS, depth):
            add(rest, 1, column)

    if part == count:
        sum_of(0)
    else:
        with ib.for_range(0, count // part, "part", kind="parallel") as number:
            sum_of(number * part)


def _part(count: int) -> int:
    """Columns for a thread to take at once: half a page of each row or less, so that rows are read in runs; all if nothing divides them."""
    return next((part for part in (512, 384, 256, 128) if count % part == 0 and count > part), count)


def recurrent_steps(
    cell: Cell,
    gates: Tensor,
    weights: Tensor,
    states: Sequence[Tensor],
    bias: Tensor | None = None,
    peepholes: Tensor | None = None,
    lengths: Tensor | None = None,
) -> list[Tensor]:
    """The states of a sequence.

    Args:
        cell: what a step does.
        gates: [time, batch, gates * hidden], what the inputs and biases add to the gates: of "lstm" input, output and forget gate, and
            cells; of "gru" update and reset gate, and states.
        weights: [hidden, gates * hidden], those of the last state.
        states: [batch, hidden], before the first step: the state, and of "lstm" the cells.
        bias: [hidden], of "gru": what is added to the product of the state.
        peepholes: [3 * hidden], of "lstm": weights of the cells in the input, output and forget gate.
        lengths: [batch], the steps of each sequence; all by default. States behind them are 0.

    Returns:
        The states [time, batch, hidden], and the last ones [batch, hidden], of "lstm" with the last cells.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    need_rank(cell.kind, "the gates", gates, 3)
    need_rank(cell.kind, "the weights", weights, 2)
    time, batch, _ = gates.shape
    hidden, dtype = get_const_int(weights.shape[0]), gates.dtype
    width = GATES[cell.kind] * hidden
    if get_const_int(weights.shape[1]) != width or get_const_int(gates.shape[2]) != width:
        raise DeclarationError(f"{cell.kind}: gates {list(gates.shape)} and weights {list(weights.shape)}; both have {width} columns")
    optional = [one for one in (bias, peepholes, lengths) if one is not None]

    def body(ib: IRBuilder, ins: list[Any], outs: list[Any]) -> None:
        given, found = [ib.buffer_ptr(one) for one in ins], [ib.buffer_ptr(one) for one in outs]
        x, w, first = given[0], given[1], given[2 : 2 + len(states)]
        more = iter(given[2 + len(states) :])
        extra, peep, length = (next(more) if one is not None else None for one in (bias, peepholes, lengths))
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            total = ib.allocate(dtype, (width,), "total", scope="local")
            now = [ib.allocate(dtype, (hidden,), name, scope="local") for name in _KEPT[cell.kind] if name != "levels" or cell.rounded]
            # What is kept begins with the states; the rest has no start and no end, it is room for a step.
            for own, start in zip(now, first, strict=False):
                _each(ib, hidden, partial(_copy, own, (), start, (b,)))
            # In the dtype of the extent, as one loop below runs from `count` to `time`.
            count = time if length is None else cast(length[b], "int64" if "64" in getattr(time, "dtype", "") else "int32")
            with ib.for_range(0, count, "s") as s:
                # From the end of each sequence, not from that of the longest one.
                t = count - 1 - s if cell.reverse else s
                _each(ib, width, partial(_copy, total, (), x, (t, b)))
                _STEPS[cell.kind](ib, cell, hidden, total, now, w, extra, peep)
                _each(ib, hidden, partial(_copy, found[0], (t, b), now[0], ()))
            if length is not None:
                with ib.for_range(count, time, "rest") as rest:
                    _each(ib, hidden, lambda j: found[0].__setitem__((rest, b, j), const(0, dtype)))
            for own, end in zip(now, found[1:], strict=False):
                _each(ib, hidden, partial(_copy, end, (b,), own, ()))

    shapes = [(time, batch, hidden), *[(batch, hidden)] * len(states)]
    return in_loops(shapes, [gates, weights, *states, *optional], body, f"{cell.kind}_steps", [dtype] * len(shapes))


def _start_at_zero(row: BufferVar, j: Any) -> None:
    row[j] = const(0, row.dtype)


def _round(ib: IRBuilder, hidden: int, state: BufferVar, levels: BufferVar) -> None:
    """The numbers that bytes for a state stand for (ONNX, DynamicQuantizeLinear)."""
    ends = [ib.allocate(state.dtype, (_LANES,), name, scope="local") for name in ("least", "greatest")]
    for one, chosen in zip(ends, (minimum, maximum), strict=True):
        _each(ib, _LANES, partial(_start_at_zero, one))

        def seen(j: Any, one: BufferVar = one, chosen: Callable[..., PrimExpr] = chosen) -> None:
            one[j % _LANES] = chosen(one[j % _LANES], state[j])

        _each(ib, hidden, seen)
        with ib.for_range(1, _LANES, "lane") as lane:
            one[0] = chosen(one[0], one[lane])
    low, high = ends
    width = (high[0] - low[0]) / _number(low[0], 255)
    # a state of zeros has no range
    high[0] = intrin.select(width > _number(width, 0), width, _number(width, 1))
    low[0] = intrin.nearbyint(_number(width, 0) - low[0] / high[0])

    def level(j: Any) -> None:
        scale, zero = high[0], low[0]
        whole = intrin.nearbyint(state[j] / scale) + zero
        levels[j] = (minimum(maximum(whole, _number(whole, 0)), _number(whole, 255)) - zero) * scale

    _each(ib, hidden, level)


def _lstm(ib: IRBuilder, cell: Cell, hidden: int, total: BufferVar, now: Any, w: BufferVar, bias: Any, peep: Any) -> None:
    state, cells, read = now[0], now[1], now[-1] if cell.rounded else now[0]
    if cell.rounded:
        _round(ib, hidden, state, read)
    _add_product(ib, total, 0, 4 * hidden, read, w, 0, hidden)

    def update(j: Any) -> None:
        def seen(number: int, of: PrimExpr) -> PrimExpr:
            return total[number * hidden + j] if peep is None else total[number * hidden + j] + peep[number * hidden + j] * of

        # The input and the forget gate see the old cells, the output gate the new ones.
        old = cells[j]
        let_in = cell.apply(0, seen(0, old))
        kept = _number(let_in, 1) - let_in if cell.coupled else cell.apply(0, seen(2, old))
        cells[j] = kept * old + let_in * cell.apply(1, total[3 * hidden + j])
        state[j] = cell.apply(0, seen(1, cells[j])) * cell.apply(2, cells[j])

    _each(ib, hidden, update)


def _gru(ib: IRBuilder, cell: Cell, hidden: int, total: BufferVar, now: Any, w: BufferVar, bias: Any, peep: Any) -> None:
    state, part, reset, product = now
    _add_product(ib, total, 0, 2 * hidden, state, w, 0, hidden)

    def start(j: Any) -> None:
        # For all units before a state changes: the product below sums over all of them.
        reset[j] = cell.apply(0, total[hidden + j])
        part[j] = state[j] if cell.coupled else reset[j] * state[j]

    _each(ib, hidden, start)

    def update(j: Any) -> None:
        keep = cell.apply(0, total[j])
        state[j] = keep * state[j] + (_number(keep, 1) - keep) * cell.apply(1, total[2 * hidden + j])

    if cell.coupled:  # the reset gate works on the product with its bias
        _each(ib, hidden, lambda j: product.__setitem__(j, bias[j]))
        _add_product(ib, product, 0, hidden, part, w, 2 * hidden, hidden)
        _each(ib, hidden, lambda j: total.__setitem__(2 * hidden + j, total[2 * hidden + j] + reset[j] * product[j]))
    else:
        _each(ib, hidden, lambda j: total.__setitem__(2 * hidden + j, total[2 * hidden + j] + bias[j]))
        _add_product(ib, total, 2 * hidden, hidden, part, w, 2 * hidden, hidden)
    _each(ib, hidden, update)


def _rnn(ib: IRBuilder, cell: Cell, hidden: int, total: BufferVar, now: Any, w: BufferVar, bias: Any, peep: Any) -> None:
    _add_product(ib, total, 0, hidden, now[0], w, 0, hidden)
    _each(ib, hidden, lambda j: now[0].__setitem__(j, cell.apply(0, total[j])))


_STEPS: Mapping[str, Callable[..., None]] = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}
