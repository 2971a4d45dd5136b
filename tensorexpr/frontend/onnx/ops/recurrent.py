"""Recurrent layers: a direction is a product of matrices for all steps and a kernel that goes through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import relax
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


def _part(ctx: Context, value: Any, number: int) -> Any:
    """What belongs to one direction: a part of the first axis."""
    info = value.struct_info
    if not isinstance(info, relax.TensorStructInfo) or not info.extents or (whole := as_int(info.extents[0])) is None or number >= whole:
        ctx.fail(f"direction {number} of {info}, whose first axis has to be known")
    if isinstance(value, relax.Constant):
        return relax.const(np.ascontiguousarray(value.data.numpy()[number]))
    if whole == 1:
        return ctx.emit(R.squeeze(value, [0]))
    return ctx.emit(R.squeeze(R.strided_slice(value, [0], [number], [number + 1]), [0]))


def _vector(ctx: Context, value: Any, first: int, count: int) -> Any:
    if isinstance(value, relax.Constant):
        return relax.const(value.data.numpy()[first : first + count])
    return R.strided_slice(value, [0], [first], [first + count])


def _bias(ctx: Context, inputs: Inputs, number: int, hidden: int) -> tuple[Any, Any]:
    """The bias of all gates, and of "GRU" that of the product of the state, which isn't among the first."""
    kind, width = _kind(ctx), _GATES[_kind(ctx)] * hidden
    zeros = relax.const(np.zeros(hidden, ctx.dtype(0)))
    if not ctx.has(3):
        return None, zeros
    own = _part(ctx, inputs[3], number)
    from_inputs, from_states = _vector(ctx, own, 0, width), _vector(ctx, own, width, width)
    if kind != "GRU":
        return ctx.emit(R.add(from_inputs, from_states)), None
    rest = ctx.emit(from_states)
    # The reset gate may multiply the product of the state with its bias, so this part can't join the inputs'.
    padded = R.concat([_vector(ctx, rest, 0, 2 * hidden), zeros], 0)
    return ctx.emit(R.add(from_inputs, padded)), ctx.emit(_vector(ctx, rest, 2 * hidden, hidden))


def _direction(ctx: Context, inputs: Inputs, number: int, options: dict[str, Any], data: Any, starts: Sequence[Any]) -> Any:
    kind = _kind(ctx)
    hidden = _hidden(ctx)
    weight, recurrence = _part(ctx, inputs[1], number), _part(ctx, inputs[2], number)
    bias, state_bias = _bias(ctx, inputs, number, hidden)
    lengths = [ctx.emit(R.astype(inputs[4], "int32"))] if ctx.has(4) else []
    extra: list[Any] = [state_bias] if kind == "GRU" else []
    if kind == "LSTM" and (ctx.has(7) or lengths):
        # Operands go by their places: lengths stand behind peepholes, so there are some, of zeros.
        extra = [_part(ctx, inputs[7], number) if ctx.has(7) else relax.const(np.zeros(3 * hidden, ctx.dtype(0)))]
    function = {"LSTM": R.nn.lstm, "GRU": R.nn.gru, "RNN": R.nn.rnn}[kind]
    return ctx.emit(function(data, weight, recurrence, bias, *starts, *extra, *lengths, **options))


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


def _layer(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """All directions, and their results side by side."""
    kind, batch_first = _kind(ctx), attrs.bool("layout", False)
    direction = attrs.string("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        ctx.fail(f"no direction {direction!r}")
    directions = 2 if direction == "bidirectional" else 1
    stated, found = attrs.int("hidden_size", None), _hidden(ctx)
    if stated is not None and stated != found:
        ctx.fail(f"hidden_size is {stated}, where the weights of the state have {found} columns")
    _ranked(ctx, batch_first)
    data = ctx.emit(R.permute_dims(inputs[0], [1, 0, 2])) if batch_first else inputs[0]
    batch, hidden = data.struct_info.extents[1], _hidden(ctx)
    results = []
    for number, functions in enumerate(_activations(ctx, attrs, directions)):
        starts = []
        for index in (5, 6)[: 2 if kind == "LSTM" else 1]:
            if not ctx.has(index):
                starts.append(R.zeros([batch, hidden], ctx.dtype(0)))
                continue
            given = ctx.emit(R.permute_dims(inputs[index], [1, 0, 2])) if batch_first else inputs[index]
            starts.append(_part(ctx, given, number))
        options = {**functions, "clip": attrs.float("clip", 0.0), "reverse": direction == "reverse" or number == 1}
        if kind == "LSTM":
            options |= {"input_forget": attrs.bool("input_forget", False), "rounded": ctx.node.op_type != kind}
        if kind == "GRU":
            options["linear_before_reset"] = attrs.bool("linear_before_reset", False)
        results.append(_direction(ctx, inputs, number, options, data, starts))
    made: list[Any] = []
    for n in range(3 if kind == "LSTM" else 2):
        # [time, batch, hidden] and [batch, hidden] get the axis of directions; with layout 1 it stands behind the batch.
        axis = (2 if n == 0 else 1) if batch_first else (1 if n == 0 else 0)
        parts = [relax.TupleGetItem(one, n) for one in results]
        if batch_first and n == 0:
            parts = [ctx.emit(R.permute_dims(ctx.emit(one), [1, 0, 2])) for one in parts]
        wide = [ctx.emit(R.expand_dims(ctx.emit(one), [axis])) for one in parts]
        made.append(wide[0] if directions == 1 else ctx.emit(R.concat(wide, axis)))
    return made


for _name in _DEFAULT:
    onnx_op(_name)(_layer)


def _weights(ctx: Context, index: int, scale: int) -> Value:
    """Quantised weights [directions, inputs, gates] as floats [directions, gates, inputs].

    Their scales and zeros are one for each direction, or one for each column of it.
    """
    levels, factors = ctx.constant(index), ctx.constant(scale).astype(np.float32)
    zeros = ctx.constant(scale + 1) if ctx.has(scale + 1) else np.zeros(factors.shape, levels.dtype)
    if levels.ndim != 3 or factors.shape not in ((levels.shape[0],), (levels.shape[0], levels.shape[2])) or zeros.shape != factors.shape:
        ctx.fail(f"weights of shape {levels.shape} have scales of shape {factors.shape} and zeros of shape {zeros.shape}")
    wide = (-1, 1, factors.shape[1] if factors.ndim == 2 else 1)
    values = (levels.astype(np.float32) - zeros.astype(np.float32).reshape(wide)) * factors.reshape(wide)
    return constant_value(np.ascontiguousarray(values.transpose(0, 2, 1)))


@onnx_op(f"{_QUANTIZED}LSTM", domain="com.microsoft")
def dynamic_quantize_lstm(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """An LSTM whose weights are integers of eight bits, by ONNX Runtime's description of its contrib operators.

    Its data, and at each step its state, are rounded to the bytes that multiply these weights. They are given as the floats that the
    bytes stand for, of which products are as exact as of integers. Each sequence of a batch has a range of its own; where ONNX Runtime
    takes one for several depends on its threads.
    """
    ctx.values[1], ctx.values[2] = _weights(ctx, 1, 8), _weights(ctx, 2, 10)
    _ranked(ctx, attrs.bool("layout", False))
    levels, scale, zero = (ctx.emit(one) for one in dynamic_quantized(ctx, inputs[0]))
    ctx.values[0] = Value(ctx.emit(R.dequantize(levels, scale, zero, -1, "float32")))
    return _layer(ctx, inputs, attrs)
