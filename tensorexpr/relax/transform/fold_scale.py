"""FoldScaleAxis: factors and summands that are constants go into the weights of convolutions and products beside them.

    conv(x, w) * s      ->  conv(x, w * s)                 factors by output channel
    conv(x * s, w)      ->  conv(x, s * w)                 factors by input channel
    (y + b) * s         ->  y * s + b * s                  where the factor finds weights; b stays, as an epilogue
    (x + b) @ w         ->  x @ w + b @ w                  products, and convolutions that see nothing but their input

What remains of chains of constants is one factor and one summand. All of it is exact but for rounding (Jacob et al. 2018, 3.2, fold
batch normalisation so). TVM's pass of this name is Relay's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ...runtime.ndarray import empty
from ...tir.dtype import from_numpy
from ..expr import Call, Constant, const, owned
from ..ops.elementwise import add, multiply
from ..struct_info import TensorStructInfo
from .rewriting import Rewriter, Rules, rule_pass

CONVOLUTIONS = tuple(f"relax.nn.conv{n}d" for n in (1, 2, 3))
TRANSPOSED = tuple(f"relax.nn.conv{n}d_transpose" for n in (1, 2, 3))
ANCHORS = ("relax.matmul", *CONVOLUTIONS, *TRANSPOSED)


def array(graph: Rewriter, expr: Any) -> Any:
    """The floating-point array that an operand is, or None."""
    found = graph.value(expr)
    if not isinstance(found, Constant):
        return None
    values = found.view()
    return values if values.dtype.kind == "f" else None


def ndim_of(expr: Any) -> int:
    """The dimensions of a tensor; -1 if unknown."""
    info = expr.struct_info
    return info.ndim if isinstance(info, TensorStructInfo) else -1


def along(values: Any, ndim: int, axis: int) -> Any:
    """A constant that varies along one axis of a tensor at most, as a vector or a number; None for others."""
    if values.ndim > ndim:
        return None
    shape = (1,) * (ndim - values.ndim) + values.shape
    if any(extent != 1 for n, extent in enumerate(shape) if n != axis % ndim):
        return None
    return values.reshape(()) if values.size == 1 else values.reshape(-1)


def made(values: Any, like: Any) -> Constant | None:
    """New values as a constant of the dtype of another, unless it overflows."""
    with np.errstate(all="ignore"):
        found = values.astype(like.dtype, copy=False)
    return owned(found) if np.isfinite(found).all() else None


def _channels(call: Call) -> tuple[int, int]:
    """The axes of an anchor's input and output that its weights know."""
    if call.op == "relax.matmul":
        return -1, -1
    layout = str(call.attrs["data_layout"])
    return layout.index("C"), str(call.attrs.get("out_layout") or layout).index("C")


def _weights(graph: Rewriter, call: Call) -> Any:
    """The constant weights of an anchor in plain layouts, or None."""
    weights = array(graph, call.args[1])
    if weights is None:
        return None
    if call.op == "relax.matmul":
        return weights if weights.ndim >= 2 else None
    layouts = [str(call.attrs[name]) for name in ("data_layout", "kernel_layout")]
    plain = all(len(layout) == weights.ndim for layout in layouts)
    return weights if plain else None


def _times(weights: Any, factor: Any) -> Any:
    """A product of the shape of the weights, in memory that kernels can read."""
    if weights.dtype != factor.dtype:
        return weights * factor
    return np.multiply(weights, factor, out=empty(weights.shape, from_numpy(weights.dtype))._array)


def _scaled(call: Call, weights: Any, factor: Any, of_output: bool) -> Any:
    """Weights with a factor for each output or input channel."""
    if factor.ndim == 0:
        return _times(weights, factor)
    if call.op == "relax.matmul":
        return _times(weights, factor if of_output else factor[:, None])
    layout, groups = str(call.attrs["kernel_layout"]), int(call.attrs["groups"])
    wanted, other = ("O", "I") if of_output else ("I", "O")
    whole = "I" if call.op in TRANSPOSED else "O"  # the axis that has the channels of all groups
    place = layout.index(wanted)
    if wanted == whole or groups == 1:
        return _times(weights, factor.reshape([-1 if n == place else 1 for n in range(weights.ndim)]))
    # With groups the other axis counts channels of one group alone: weights [G * m, n] and a factor of G * n numbers, n for each m rows.
    first = np.moveaxis(weights, [layout.index(other), place], [0, 1])
    parts = first.reshape(groups, -1, *first.shape[1:]) * factor.reshape(groups, 1, -1, *[1] * (weights.ndim - 2))
    return np.moveaxis(parts.reshape(first.shape), [0, 1], [layout.index(other), place])


def _with_weights(call: Call, data: Any, weights: Constant) -> Call:
    return Call(call.op, (data, weights, *call.args[2:]), call.attrs, call.sinfo_args)


def _factor_behind(graph: Rewriter, call: Call) -> Any:
    """`anchor(x, w) * s`."""
    factor, anchor = array(graph, call.args[1]), graph.only(call.args[0], *ANCHORS)
    weights = None if anchor is None or factor is None else _weights(graph, anchor)
    if anchor is None or weights is None or call.struct_info != anchor.struct_info:
        return None
    if weights.dtype != factor.dtype:
        return None  # of lower precision than what they are multiplied with
    # Equal struct infos above: a factor that broadcasts the result to a larger one finds no weights of that size.
    vector = along(factor, ndim_of(anchor), _channels(anchor)[1])
    new = None if vector is None else made(_scaled(anchor, weights, vector, True), weights)
    return None if new is None else _with_weights(anchor, anchor.args[0], new)


def _factor_in_front(graph: Rewriter, call: Call) -> Any:
    """`anchor(x * s, w)`."""
    inner, weights = graph.only(call.args[0], "relax.multiply"), _weights(graph, call)
    factor = None if inner is None else array(graph, inner.args[1])
    if inner is None or weights is None or factor is None or inner.struct_info != inner.args[0].struct_info:
        return None
    vector = along(factor, ndim_of(inner), _channels(call)[0])
    if vector is None or (vector.ndim and call.op == "relax.matmul" and weights.ndim != 2):
        return None
    # Borders of zeros are zeros with the factor, too; a summand would show there.
    new = made(_scaled(call, weights, vector, False), weights)
    return None if new is None else _with_weights(call, inner.args[0], new)


def _summand_in_front(graph: Rewriter, call: Call) -> Any:
    """`(x + b) @ w`."""
    inner, weights = graph.only(call.args[0], "relax.add"), _weights(graph, call)
    summand = None if inner is None else array(graph, inner.args[1])
    if inner is None or weights is None or summand is None or inner.struct_info != inner.args[0].struct_info or weights.ndim != 2:
        return None
    vector, info = along(summand, ndim_of(inner), -1), call.struct_info
    if vector is None or ndim_of(inner) < 2 or not isinstance(info, TensorStructInfo) or info.dtype != str(weights.dtype):
        return None
    # In float64, so that it is rounded once.
    total = made(np.broadcast_to(vector, weights.shape[:1]).astype(np.float64) @ weights, weights)
    return None if total is None else add(_with_weights(call, inner.args[0], const(weights)), total)


def _through_summand(graph: Rewriter, call: Call) -> Any:
    """`(y + b) * s` where `y` is an anchor or scaled itself."""
    inner, factor = graph.only(call.args[0], "relax.add"), array(graph, call.args[1])
    summand = None if inner is None else array(graph, inner.args[1])
    if inner is None or factor is None or summand is None or call.struct_info != inner.args[0].struct_info:
        return None
    below = graph.only(inner.args[0], "relax.multiply", *ANCHORS)
    if below is None or array(graph, below.args[1]) is None:
        return None
    product = _combined(np.multiply, summand, factor)
    return None if product is None else add(multiply(inner.args[0], call.args[1]), product)


def _combined(function: Callable[..., Any], a: Any, b: Any) -> Constant | None:
    """Two constants as one that isn't larger than they are."""
    with np.errstate(all="ignore"):
        found = function(a, b)
    # Of (8, 1) and (1, 8) it would be 64 numbers, which the kernel reads instead of 16.
    return made(found, a) if found.size <= max(a.size, b.size) else None


def _chain(name: str, function: Callable[..., Any]) -> Callable[[Rewriter, Call], Any]:
    """`(x + a) + b`, `(x * a) * b`."""

    def rule(graph: Rewriter, call: Call) -> Any:
        inner, outer = graph.only(call.args[0], name), array(graph, call.args[1])
        first = None if inner is None else array(graph, inner.args[1])
        if inner is None or outer is None or first is None:
            return None
        both = _combined(function, first, outer)
        return None if both is None else Call(call.op, (inner.args[0], both))

    return rule


def _constant_last(graph: Rewriter, call: Call) -> Any:
    """`c + x`."""
    # Two constants are folded elsewhere; here they would change places for ever.
    if array(graph, call.args[0]) is None or array(graph, call.args[1]) is not None:
        return None
    return Call(call.op, call.args[::-1])


def _as_sum(graph: Rewriter, call: Call) -> Any:
    """`x - c`."""
    values = array(graph, call.args[1])
    return None if values is None else add(call.args[0], const(-values))


def _as_product(graph: Rewriter, call: Call) -> Any:
    """`x / c`."""
    values = array(graph, call.args[1])
    if values is None or array(graph, call.args[0]) is not None:
        return None
    with np.errstate(all="ignore"):
        inverse = made(1 / values, values)
    # A subnormal inverse has lost digits: that of 3e38 has 22 bits, not 24.
    tiny = np.finfo(values.dtype).tiny
    return multiply(call.args[0], inverse) if inverse is not None and (np.abs(inverse.view()) >= tiny).all() else None


RULES: Rules = {
    "relax.add": [_constant_last, _chain("relax.add", np.add)],
    "relax.multiply": [_constant_last, _factor_behind, _chain("relax.multiply", np.multiply), _through_summand],
    "relax.subtract": [_as_sum],
    "relax.divide": [_as_product],
    **{name: [_factor_in_front] for name in (*CONVOLUTIONS, *TRANSPOSED)},
    "relax.matmul": [_factor_in_front, _summand_in_front],
}


def FoldScaleAxis() -> ModulePass:
    """A pass: constant factors before and behind convolutions and products go into their weights; see the module."""
    return rule_pass("FoldScaleAxis", RULES)
