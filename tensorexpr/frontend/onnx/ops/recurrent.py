"""Recurrent layers: a direction is a product of matrices for all steps and a kernel that goes through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import relax
from ....dataclass import dataclass, replace
from ....relax.ops.integer_products import integer_matmul
from ....relax.ops.recurrent import rows_of, steps_of
from ....tir.arithmetic import as_int
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..values import Value, constant_value
from .quantized import dynamic_quantized

R = relax.op

# Activations with parameters -> their defaults.
_PARAMETERS = {
    "affine": (1.0, 0.0), "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}  # fmt: skip
_TAKES = {"affine": (1, 1), "leakyrelu": (1, 0), "thresholdedrelu": (1, 0), "scaledtanh": (1, 1), "hardsigmoid": (1, 1), "elu": (1, 0)}
_DEFAULT = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_QUANTIZED = "DynamicQuantize"


def _kind(ctx: Context) -> str:
    """Which of the three a node is; that of a quantised one computes with the same steps."""
    return str(ctx.node.op_type).removeprefix(_QUANTIZED)


def _hidden(ctx: Context) -> int:
    """How many numbers a state has, by its weights [directions, gates, numbers]."""
    extents = [as_int(one) for one in ctx.extents(2)]
    if len(extents) != 3 or extents[0] is None or extents[2] is None or ctx.rank(1) != 3:
        ctx.fail("the weights have three axes, whose extents are known: directions, gates, and what is multiplied")
    return extents[2]


def _activations(ctx: Context, attrs: Attributes, directions: int) -> list[dict[str, Any]]:
    """The functions of each direction with their parameters, which stand in lists for those that have some."""
    default = list(_DEFAULT[_kind(ctx)])
    names = attrs.strings("activations", None) or default * directions
    if len(names) != len(default) * directions:
        ctx.fail(f"{len(names)} activations for {directions} directions of {len(default)}")
    alphas, betas = iter(attrs.floats("activation_alpha", [])), iter(attrs.floats("activation_beta", []))
    found = []
    for name in names:
        alpha, beta = _PARAMETERS.get(name.lower(), (0.0, 0.0))
        takes = _TAKES.get(name.lower(), (0, 0))
        found.append((name, next(alphas, alpha) if takes[0] else alpha, next(betas, beta) if takes[1] else beta))
    count = len(default)
    return [
        dict(zip(("activations", "alphas", "betas"), map(list, zip(*found[n * count : (n + 1) * count], strict=True)), strict=True))
        for n in range(directions)
    ]


def _part(ctx: Context, value: Any, ways: range) -> Any:
    """What belongs to some directions: a part of the first axis."""
    info = value.struct_info
    whole = as_int(info.extents[0]) if isinstance(info, relax.TensorStructInfo) and info.extents else None
    if whole is None or ways.stop > whole:
        ctx.fail(f"direction {ways[-1]} of {info}, whose first axis has to be known")
    if len(ways) == whole:
        return value
    if isinstance(value, relax.Constant):
        return relax.const(np.ascontiguousarray(value.data.numpy()[ways.start : ways.stop]))
    return ctx.emit(R.strided_slice(value, [0], [ways.start], [ways.stop]))


def _columns(value: Any, first: int, last: int) -> Any:
    if isinstance(value, relax.Constant):
        return relax.const(np.ascontiguousarray(value.data.numpy()[:, first:last]))
    return R.strided_slice(value, [1], [first], [last])


def _bias(ctx: Context, inputs: Inputs, ways: range, hidden: int) -> tuple[Any, Any]:
    """The bias of all gates, and of "GRU" that of the product of the state, which isn't among the first."""
    kind, width = _kind(ctx), _GATES[_kind(ctx)] * hidden
    zeros = relax.const(np.zeros((len(ways), hidden), ctx.dtype(0)))
    if not ctx.has(3):
        return None, zeros
    own = _part(ctx, inputs[3], ways)
    from_inputs, from_states = ctx.emit(_columns(own, 0, width)), ctx.emit(_columns(own, width, 2 * width))
    if kind != "GRU":
        return ctx.emit(R.add(from_inputs, from_states)), None
    # The reset gate may multiply the product of the state with its bias, so this part can't join the inputs'.
    padded = R.concat([_columns(from_states, 0, 2 * hidden), zeros], 1)
    return ctx.emit(R.add(from_inputs, padded)), ctx.emit(_columns(from_states, 2 * hidden, width))


def _directions(ctx: Context, inputs: Inputs, ways: range, options: dict[str, Any], data: Any, starts: Sequence[Any]) -> Any:
    """Directions that have the same functions, as one call."""
    kind, hidden = _kind(ctx), _hidden(ctx)
    bias, state_bias = _bias(ctx, inputs, ways, hidden)
    lengths = [ctx.emit(R.astype(inputs[4], "int32"))] if ctx.has(4) else []
    extra: list[Any] = [state_bias] if kind == "GRU" else []
    if kind == "LSTM" and (ctx.has(7) or lengths):
        # Operands go by their places: lengths stand behind peepholes, so there are some, of zeros.
        zeros = relax.const(np.zeros((len(ways), 3 * hidden), ctx.dtype(0)))
        extra = [_part(ctx, inputs[7], ways) if ctx.has(7) else zeros]
    weight, recurrence, states = _part(ctx, inputs[1], ways), _part(ctx, inputs[2], ways), [_part(ctx, one, ways) for one in starts]
    if isinstance(data, _Levels):
        return ctx.emit(_of_bytes(ctx, data, weight, recurrence, bias, ways, [*states, *extra, *lengths], options))
    function = {"LSTM": R.nn.lstm, "GRU": R.nn.gru, "RNN": R.nn.rnn}[kind]
    return ctx.emit(function(data, weight, recurrence, bias, *states, *extra, *lengths, **options))


def _ranked(ctx: Context, batch_first: bool) -> None:
    """Data and states of which nothing is known have the rank that they must have, and new symbols."""
    hidden = _hidden(ctx)
    symbols = {name: ctx.symbol(name) for name in ("time", "batch")}
    shapes: dict[int, list[Any]] = {0: ["batch", "time"] if batch_first else ["time", "batch"]}
    ends: list[Any] = ["batch", int(ctx.extents(2)[0])] if batch_first else [int(ctx.extents(2)[0]), "batch"]
    for index, first in {**shapes, 5: ends, 6: ends}.items():
        value = ctx.value(index)
        if value is None or ctx.info(index).extents is not None:
            continue
        if index and ctx.info(0).extents is not None:
            # The batch of states is that of the data, known by now: its number comes before theirs.
            symbols["batch"] = ctx.extents(0)[0 if batch_first else 1]
        last = ctx.extents(1)[2] if index == 0 else hidden
        shape = [symbols.get(str(one), one) for one in first]
        value.expr = ctx.builder.match_cast(ctx.expression(value), relax.TensorStructInfo([*shape, last], ctx.dtype(index)))


def _options(ctx: Context, attrs: Attributes, directions: int) -> list[tuple[range, dict[str, Any]]]:
    """Attributes of calls, each of as many directions as have the same functions."""
    functions, direction = _activations(ctx, attrs, directions), attrs.string("direction", "forward")
    common: dict[str, Any] = {"clip": attrs.float("clip", 0.0)}
    if _kind(ctx) == "LSTM":
        common["input_forget"] = attrs.bool("input_forget", False)
    if _kind(ctx) == "GRU":
        common["linear_before_reset"] = attrs.bool("linear_before_reset", False)
    if functions[0] == functions[-1]:
        return [(range(directions), {**functions[0], **common, "reverse": direction == "reverse"})]
    return [(range(n, n + 1), {**own, **common, "reverse": n == 1}) for n, own in enumerate(functions)]


def _layer(ctx: Context, inputs: Inputs, attrs: Attributes, levels: _Levels | None = None) -> list[Any]:
    """All directions, side by side."""
    kind, batch_first = _kind(ctx), attrs.bool("layout", False)
    direction = attrs.string("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        ctx.fail(f"no direction {direction!r}")
    directions = 2 if direction == "bidirectional" else 1
    stated, hidden = attrs.int("hidden_size", None), _hidden(ctx)
    if stated is not None and stated != hidden:
        ctx.fail(f"hidden_size is {stated}, where the weights of the state have {hidden} columns")
    _ranked(ctx, batch_first)
    if ctx.rank(0) != 3:
        ctx.fail(f"data {ctx.info(0)}, where a layer takes sequences, steps and features")
    data: Any = inputs[0] if levels is None else levels.data
    data = ctx.emit(R.permute_dims(data, [1, 0, 2])) if batch_first else data
    batch, starts = data.struct_info.extents[1], []
    for index in (5, 6)[: 2 if kind == "LSTM" else 1]:
        given = inputs[index] if ctx.has(index) else R.zeros([directions, batch, hidden], ctx.dtype(0))
        starts.append(ctx.emit(R.permute_dims(given, [1, 0, 2]) if batch_first and ctx.has(index) else given))
    data = data if levels is None else replace(levels, data=data)
    results = [_directions(ctx, inputs, ways, options, data, starts) for ways, options in _options(ctx, attrs, directions)]
    made: list[Any] = []
    for n in range(3 if kind == "LSTM" else 2):
        # [time, directions, batch, hidden] and [directions, batch, hidden]; with layout 1 the batch comes first.
        parts = [ctx.emit(relax.TupleGetItem(one, n)) for one in results]
        whole = parts[0] if len(parts) == 1 else ctx.emit(R.concat(parts, 0 if n else 1))
        made.append(ctx.emit(R.permute_dims(whole, [1, 0, 2] if n else [2, 0, 1, 3])) if batch_first else whole)
    return made


for _name in _DEFAULT:
    onnx_op(_name)(_layer)


@dataclass(frozen=True)
class _Levels:
    """Data and weights of bytes.

    Args:
        data, scale, zero: [time, batch, features] as unsigned bytes, their scale and what stands for zero.
        factors, zeros: of both weights: [directions, gates] each.
    """

    data: Any
    scale: Any
    zero: Any
    factors: tuple[Any, Any]
    zeros: tuple[Any, Any]


def _of_bytes(
    ctx: Context, levels: _Levels, weight: Any, recurrence: Any, bias: Any, ways: range, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    """A layer of bytes: products with inputs and with states, exact in int32, by the scales of both factors."""
    (w_factors, r_factors), (w_zeros, r_zeros) = ([one[ways.start : ways.stop] for one in pair] for pair in (levels.factors, levels.zeros))
    columns = weight.data.numpy().reshape(-1, weight.data.shape[2]).T
    factor = relax.const(np.ascontiguousarray(columns))
    total = integer_matmul(rows_of(levels.data), factor, levels.zero, relax.const(w_zeros.reshape(-1)), ctx.emit)
    scale = R.multiply(levels.scale, relax.const(w_factors.reshape(-1)))
    gates = R.multiply(R.astype(total, "float32"), scale)
    gates = ctx.emit(steps_of(gates if bias is None else R.add(gates, R.reshape(bias, [-1])), levels.data))
    bytes_, zero = np.ascontiguousarray(recurrence.data.numpy().transpose(0, 2, 1)), r_zeros.astype(np.int32)
    if bytes_.dtype == np.uint8:
        # signed ones, as instructions have them: both a number and its zero move
        bytes_, zero = (bytes_.astype(np.int16) - 128).astype(np.int8), zero - 128
    sums = bytes_.sum(1, dtype=np.int32) - np.int32(bytes_.shape[1]) * zero
    levels_of_states = map(relax.const, (bytes_, r_factors, zero, sums))
    return R.nn.lstm_steps_of_bytes(gates, *levels_of_states, *operands, **options)


def _weights(ctx: Context, index: int, scale: int) -> tuple[Value, Any, Any]:
    """Quantised weights [directions, inputs, gates] as [directions, gates, inputs], their scales and zeros [directions, gates].

    These are given for each direction, or for each column of it.
    """
    levels, factors = ctx.constant(index), ctx.constant(scale).astype(np.float32)
    zeros = ctx.constant(scale + 1) if ctx.has(scale + 1) else np.zeros(factors.shape, levels.dtype)
    if levels.ndim != 3 or factors.shape not in ((levels.shape[0],), (levels.shape[0], levels.shape[2])) or zeros.shape != factors.shape:
        ctx.fail(f"weights of shape {levels.shape} have scales of shape {factors.shape} and zeros of shape {zeros.shape}")
    wide = (levels.shape[0], levels.shape[2])
    spread = [np.ascontiguousarray(np.broadcast_to(one.reshape(wide[0], -1), wide)) for one in (factors, zeros)]
    return constant_value(np.ascontiguousarray(levels.transpose(0, 2, 1))), spread[0], spread[1]


@onnx_op(f"{_QUANTIZED}LSTM", domain="com.microsoft")
def dynamic_quantize_lstm(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """An LSTM whose weights are integers of eight bits, by ONNX Runtime's description of its contrib operators.

    Its data, and at each step its state, are rounded to the bytes that multiply these weights. Each sequence of a batch has a range of
    its own; where ONNX Runtime takes one for several depends on its threads.
    """
    ctx.values[1], *w = _weights(ctx, 1, 8)
    ctx.values[2], *r = _weights(ctx, 2, 10)
    _ranked(ctx, attrs.bool("layout", False))
    data, scale, zero = (ctx.emit(one) for one in dynamic_quantized(ctx, inputs[0]))
    return _layer(ctx, inputs, attrs, _Levels(data, scale, zero, (w[0], r[0]), (w[1], r[1])))
