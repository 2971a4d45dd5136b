"""RecognizePatterns: activations and norms that exporters spell by simpler operators are one operator each.

    x * clip(x + 3, 0, 6) / 6                                   hard swish, and hard sigmoid without the factor x
    x * sigmoid(x)                                              SiLU
    x * (1 + erf(x / sqrt(2))) * 0.5                            GELU, and by tanh
    (x - mean(x)) / sqrt(mean((x - mean(x))**2) + e) * g + b    layer norm, and without the mean RMS norm

Factors may stand in any order. A pattern is recognised by its structure, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import pi, prod, sqrt
from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from .. import op
from ..dpl.matcher import Matcher
from ..dpl.pattern import DFPattern
from ..dpl.words import is_const, is_op, wildcard
from ..expr import Call, Constant, PrimValue, const
from .rewriting import Rewriter, Rule, Rules, rule_pass

_TOLERANCE = 5e-5  # of constants, relative: exporters write 0.7071 and 1.41421356
X = wildcard()


def number(value: float) -> DFPattern:
    """A constant that is this number everywhere."""

    def holds(found: Any) -> bool:
        values = found.view()
        # np.allclose of no elements is true.
        return bool(values.size and values.dtype.kind == "f" and np.allclose(values, value, _TOLERANCE, 0))

    return is_const().where(holds)


def call(name: str, *args: DFPattern) -> DFPattern:
    """A call of an operator."""
    return is_op(f"relax.{name}")(*args)


def either(name: str, a: DFPattern, b: DFPattern) -> DFPattern:
    """A call whose arguments stand in one of two orders."""
    return call(name, a, b) | call(name, b, a)


def scaled(x: DFPattern, factor: float) -> DFPattern:
    """A product with a number, or a quotient by its inverse."""
    return either("multiply", x, number(factor)) | call("divide", x, number(1 / factor))


def product(*factors: DFPattern) -> DFPattern:
    """A product of three in any order."""
    # Three of the six orders: `either` has both orders of b and c.
    found = [either("multiply", factors[a], either("multiply", factors[b], factors[c])) for a, b, c in permutations(range(3)) if b < c]
    whole = found[0]
    for one in found[1:]:
        whole = whole | one
    return whole


def power(x: DFPattern, exponent: int) -> DFPattern:
    """A square or a cube."""
    # The same pattern twice: what it has matched first it has to be again.
    squared = call("multiply", x, x) | call("square", x)
    found = call("power", x, number(exponent))
    return found | squared if exponent == 2 else found | either("multiply", x, squared | call("power", x, number(2)))


def by_pattern(pattern: DFPattern, make: Callable[[Rewriter, Call, dict[DFPattern, Any]], Any]) -> Rule:
    """A rule for what a pattern matches."""

    def rule(graph: Rewriter, expr: Call) -> Any:
        found = Matcher(graph.bound).extract(pattern, expr)
        return None if found is None else make(graph, expr, found)

    return rule


def _becomes(pattern: DFPattern, make: Callable[[Any], Any]) -> Rule:
    """A rule that puts a function of one value in place of what a pattern matches, of the same shape."""

    def made(graph: Rewriter, expr: Call, found: dict[DFPattern, Any]) -> Any:
        # A constant of many elements, all of them that number, may have made the result larger than x.
        return make(found[X]) if found[X].struct_info == expr.struct_info else None

    return by_pattern(pattern, made)


def _is_0_to_6(expr: Any) -> bool:
    values = [getattr(arg.value, "value", None) if isinstance(arg, PrimValue) else None for arg in expr.args[1:]]
    return values == [0, 6]


_RISEN = either("add", X, number(3))
_CLIPPED = call("clip", _RISEN, wildcard(), wildcard()).where(_is_0_to_6) | call("nn.relu6", _RISEN)
_HARD_SIGMOID = scaled(_CLIPPED, 1 / 6)
_SIXTH = call("nn.hard_sigmoid", X).where(lambda e: abs(e.attrs["alpha"] * 6 - 1) < _TOLERANCE and abs(e.attrs["beta"] - 0.5) < _TOLERANCE)
_HARD_SWISH = scaled(either("multiply", X, _CLIPPED), 1 / 6) | either("multiply", X, _HARD_SIGMOID | _SIXTH)
_HARD_SWISH = _HARD_SWISH | either("multiply", scaled(X, 1 / 6), _CLIPPED)
_SILU = either("multiply", X, call("sigmoid", X))
_ERF = either("add", call("erf", scaled(X, sqrt(0.5))), number(1))
_SQUARE = scaled(power(X, 2), 0.044715) | either("multiply", scaled(X, 0.044715), X)
_CUBE = scaled(power(X, 3), 0.044715) | product(X, power(X, 2), number(0.044715)) | either("multiply", _SQUARE, X)
_CUBIC = either("add", X, _CUBE)
_SQUARED = either("add", _SQUARE, number(1))
_ARGUMENT = scaled(_CUBIC, sqrt(2 / pi)) | either("multiply", scaled(X, sqrt(2 / pi)), _SQUARED)
_TANH = either("add", call("tanh", _ARGUMENT | scaled(either("multiply", X, _SQUARED), sqrt(2 / pi))), number(1))


def _gelu(inner: DFPattern) -> DFPattern:
    return scaled(either("multiply", X, inner), 0.5) | either("multiply", scaled(X, 0.5), inner) | either("multiply", X, scaled(inner, 0.5))


def _mean(x: DFPattern) -> DFPattern:
    return call("mean", x).where(lambda found: bool(found.attrs["keepdims"]))


_EPSILON = is_const().where(lambda found: found.view().size == 1)
_MEAN = _mean(X)
_CENTRED = call("subtract", X, _MEAN)
_VARIANCE = _mean(power(_CENTRED, 2)) | call("variance", X).where(lambda found: bool(found.attrs["keepdims"]))
_GAMMA, _BETA = wildcard(), wildcard()


def _over_root(x: DFPattern, variance: DFPattern) -> DFPattern:
    """By the root of a variance that is kept off zero."""
    kept = either("add", variance, _EPSILON)
    root = call("sqrt", kept) | call("power", kept, number(0.5))
    inverse = call("rsqrt", kept) | call("divide", number(1), root) | call("power", kept, number(-0.5))
    return call("divide", x, root) | either("multiply", x, inverse)


_LAYER = _over_root(_CENTRED, _VARIANCE)
_SQUARES = _mean(power(X, 2))
_RMS = _over_root(X, _SQUARES)


def _axes(found: Any, x: Any) -> list[int] | None:
    """The axes of a mean, if they are the last ones and of known extent."""
    info, axes = x.struct_info, found.attrs["axis"]
    if info.ndim == -1 or info.extents is None or axes is None:
        return None
    places = sorted(int(n) % info.ndim for n in ([axes] if isinstance(axes, int) else axes))
    is_last = places == list(range(info.ndim - len(places), info.ndim))
    return places if is_last and all(as_int(info.extents[n]) is not None for n in places) else None


def _vector(graph: Rewriter, expr: Any, extents: Sequence[int]) -> Any:
    """A factor or summand along the last axes alone, in their shape; None for another."""
    info = getattr(expr, "struct_info", None)
    if info is None or getattr(info, "extents", None) is None:
        return None
    own = [as_int(extent) for extent in info.extents]
    value = graph.value(expr)
    if own == list(extents):
        return expr
    # (1, 1, 768) is (768,), and (768, 1, 1) isn't.
    if isinstance(value, Constant) and prod(own) == prod(extents) and own[len(own) - len(extents) :] == list(extents):  # type: ignore[arg-type]
        return const(value.view().reshape(extents))
    return None


def _layer_norm(with_scale: bool) -> Callable[[Rewriter, Call, dict[DFPattern, Any]], Any]:
    def make(graph: Rewriter, expr: Call, found: dict[DFPattern, Any]) -> Any:
        x, epsilon = found[X], float(graph.value(found[_EPSILON]).view().reshape(()))
        mean = graph.value(found[_MEAN]) if _MEAN in found else None
        axes = None if mean is None else _axes(mean, x)
        if axes is None or x.struct_info != expr.struct_info or not _same_axes(graph, found, axes):
            return None
        extents = [as_int(x.struct_info.extents[n]) or 0 for n in axes]
        dtype = x.struct_info.dtype
        gamma = _vector(graph, found[_GAMMA], extents) if with_scale else const(np.ones(extents, dtype))
        beta = _vector(graph, found[_BETA], extents) if with_scale else const(np.zeros(extents, dtype))
        if gamma is None or beta is None:
            return None
        return op.nn.layer_norm(x, gamma, beta, [n - x.struct_info.ndim for n in axes], epsilon, with_scale, with_scale)

    return make


def _same_axes(graph: Rewriter, found: dict[DFPattern, Any], axes: list[int]) -> bool:
    """Whether all means of a match are along these axes."""
    ndim = found[X].struct_info.ndim
    for value in map(graph.value, found.values()):
        if isinstance(value, Call) and value.op in ("relax.mean", "relax.variance"):
            given = value.attrs["axis"]
            if given is None or sorted(int(n) % ndim for n in ([given] if isinstance(given, int) else given)) != axes:
                return False
    return True


def _rms_norm(graph: Rewriter, expr: Call, found: dict[DFPattern, Any]) -> Any:
    x, mean = found[X], graph.value(found[_SQUARES])
    axes, centred = _axes(mean, x), graph.call(x, "relax.subtract")
    # Of x - mean(x) this is the inner part of a layer norm, whose last addition is yet to come.
    is_layer_norm = centred is not None and graph.call(centred.args[1], "relax.mean") is not None
    if axes is None or x.struct_info != expr.struct_info or is_layer_norm:
        return None
    gamma = _vector(graph, found[_GAMMA], [as_int(x.struct_info.extents[n]) or 0 for n in axes])
    epsilon = float(graph.value(found[_EPSILON]).view().reshape(()))
    return None if gamma is None else op.nn.rms_norm(x, gamma, [n - x.struct_info.ndim for n in axes], epsilon)


_swish = _becomes(_HARD_SWISH, op.nn.hard_swish)
RULES: Rules = {
    "relax.multiply": [
        _swish,
        _becomes(_SILU, op.nn.silu),
        _becomes(_gelu(_ERF), op.nn.gelu),
        _becomes(_gelu(_TANH), op.nn.gelu_tanh),
        by_pattern(either("multiply", _RMS, _GAMMA), _rms_norm),
    ],
    "relax.divide": [_swish, _becomes(_gelu(_ERF), op.nn.gelu), _becomes(_gelu(_TANH), op.nn.gelu_tanh)],
    "relax.add": [by_pattern(either("add", either("multiply", _LAYER, _GAMMA), _BETA), _layer_norm(True))],
}


def RecognizePatterns() -> ModulePass:
    """A pass: hard swish, SiLU, GELU, layer norm and RMS norm that simpler operators spell become one operator each."""
    return rule_pass("RecognizePatterns", RULES)
