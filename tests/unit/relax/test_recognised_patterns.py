"""Activations and norms as different exporters spell them."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest

from tensorexpr.relax import const, op, transform

from .test_simplify import checked, graph, left, weights

WEIGHTS: Any = weights(6)


def number(value: float) -> Any:
    return const(value, "float32")


def tanh_argument(x: Any) -> Any:
    return (x + op.power(x, number(3.0)) * 0.044715) * sqrt(2 / pi)


ACTIVATIONS = {
    "hard_swish": (
        lambda x: x * op.clip(x + 3.0, 0, 6) / 6.0,  # PP-OCR
        lambda x: op.divide(op.multiply(op.clip(op.add(number(3.0), x), 0.0, 6.0), x), number(6.0)),
        lambda x: x * (op.nn.relu6(x + 3.0) * (1 / 6)),
        lambda x: op.nn.hard_sigmoid(x, 1 / 6, 0.5) * x,
        lambda x: (x * (1 / 6)) * op.clip(x + 3.0, 0, 6),
    ),
    "silu": (lambda x: x * op.sigmoid(x), lambda x: op.sigmoid(x) * x),
    "gelu": (
        lambda x: x * (op.erf(x / sqrt(2.0)) + 1.0) * 0.5,  # BERT
        lambda x: (x * 0.5) * (number(1.0) + op.erf(x * 0.70710677)),
        lambda x: 0.5 * (x * (op.erf(x / 1.4142135) + 1.0)),
        lambda x: x * ((op.erf(x / 1.4142135) + 1.0) / 2.0),
    ),
    "gelu_tanh": (
        lambda x: x * 0.5 * (op.tanh(tanh_argument(x)) + 1.0),  # GPT-2
        lambda x: 0.5 * (x * (1.0 + op.tanh((x + 0.044715 * x * x * x) * 0.7978846))),
        lambda x: 0.5 * x * (1.0 + op.tanh(x * 0.7978846 * (1.0 + 0.044715 * x * x))),
        lambda x: 0.5 * x * (1.0 + op.tanh(x * (1.0 + op.power(x, number(2.0)) * 0.044715) * 0.7978846)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, forms in ACTIVATIONS.items() for n in range(len(forms))])
def test_activations(name: str, number: int) -> None:
    mod = transform.EliminateCommonSubexpr()(graph(ACTIVATIONS[name][number], (3, 5)))
    made = checked(transform.CanonicalizeBindings()(mod), transform.RecognizePatterns(), 1e-4)
    assert left(made) == name


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x * op.clip(x + 2.0, 0, 6) / 6.0,
        lambda x: x * op.clip(x + 3.0, 0, 5) / 6.0,
        lambda x: op.exp(x) * op.sigmoid(x),
        lambda x: x * (op.erf(x / 2.0) + 1.0) * 0.5,
        lambda x: op.expand_dims(x, 0) * op.sigmoid(op.expand_dims(x, 1)),
        lambda x: (x - op.mean(x, 0, True)) / op.sqrt(op.mean(op.square(x - op.mean(x, 0, True)), 0, True) + 1e-5) * 2.0 + 1.0,
        lambda x: (x - op.mean(x, 1, True)) / op.sqrt(op.mean(op.square(x - op.mean(x, 1, True)), (0, 1), True) + 1e-5) * WEIGHTS + WEIGHTS,
    ],
)  # fmt: skip
def test_what_looks_like_one_and_is_none(make: Any) -> None:
    mod = transform.CanonicalizeBindings()(transform.EliminateCommonSubexpr()(graph(make, (6, 6))))
    assert left(checked(mod, transform.RecognizePatterns())) == left(mod)


def layer_norms(x: Any) -> list[Any]:
    mean = op.mean(x, (2,), True)
    centred = x - mean
    root = op.sqrt(op.mean(op.power(centred, number(2.0)), (2,), True) + 1e-5)
    return [
        centred / root * WEIGHTS + WEIGHTS,
        op.add(WEIGHTS, op.multiply(WEIGHTS, op.divide(centred, root))),
        centred * op.rsqrt(op.mean(centred * centred, -1, True) + 1e-5) * WEIGHTS + WEIGHTS,
        centred / op.sqrt(number(1e-5) + op.variance(x, (-1,), True)) * const(WEIGHTS.data.numpy().reshape(1, 1, 6)) + WEIGHTS,
    ]


@pytest.mark.parametrize("form", range(4))
def test_layer_norms(form: int) -> None:
    mod = transform.EliminateCommonSubexpr()(graph(lambda x: layer_norms(x)[form], (2, 3, 6)))
    assert left(checked(transform.CanonicalizeBindings()(mod), transform.RecognizePatterns(), 1e-4)) == "layer_norm"


def test_rms_norms() -> None:
    mod = graph(lambda x: x * op.rsqrt(op.mean(op.square(x), -1, True) + 1e-5) * WEIGHTS, (2, 3, 6))
    assert left(checked(mod, transform.RecognizePatterns(), 1e-4)) == "rms_norm"


def test_norms_of_integers_are_none() -> None:
    mod = graph(lambda x: x + const(np.ones(6, "int32")), (2, 6), dtype="int32")
    assert left(checked(mod, transform.RecognizePatterns())) == "add"
