"""Functions of each element that networks have between their layers; those of relax 0.19 with it are among the elementwise ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import topi
from ...errors import DeclarationError, TypeMismatchError
from ...tir import intrin
from ...tir.arithmetic import const
from ...tir.dtype import parse_dtype
from ...topi.math import elementwise
from ..expr import Call
from ..relations import same_extents
from ..struct_info import StructInfo
from . import reference
from .reference import at_least, at_most
from .row import Expr, Pattern, operator, tensor

Formula = Callable[..., Any]


def _of_floats(name: str, data: Any) -> StructInfo:
    """The result of a function of floats: a tensor like its operand.

    Raises:
        TypeMismatchError: for other dtypes.
    """
    operand = tensor(data, "data")
    if operand.dtype and not parse_dtype(operand.dtype).is_float:
        raise TypeMismatchError(f"relax.op.nn.{name} is a function of floating-point numbers; data is {operand.info}; use astype first")
    return operand.info


def _row(name: str, rule: Callable[..., StructInfo], te: Formula, numpy: Formula) -> Callable[..., Call]:
    """A row of formulas: `te` of an element and a maker of constants in its dtype, `numpy` of an array in float64 or float32."""

    def made(data: Any, **attrs: Any) -> Any:
        return elementwise(data, lambda v: te(v, lambda value: const(value, data.dtype), **attrs), f"T_{name}")

    def evaluated(data: Any, **attrs: Any) -> Any:
        with np.errstate(over="ignore"):
            return numpy(data.astype(np.promote_types(data.dtype, np.float32)), **attrs).astype(data.dtype)

    return operator(f"nn.{name}", Pattern.ELEMENTWISE, te=made, numpy=evaluated)(rule)


def _plain(name: str, text: str, te: Formula, numpy: Formula) -> Callable[..., Call]:
    """A function without attributes."""

    def rule(data: Expr) -> StructInfo:
        return _of_floats(name, data)

    rule.__doc__ = text
    return _row(name, rule, te, numpy)


def _with_alpha(name: str, alpha: float, text: str, te: Formula, numpy: Formula) -> Callable[..., Call]:
    """A function with a parameter alpha."""

    def rule(data: Expr, alpha: float = alpha) -> StructInfo:
        return _of_floats(name, data)

    rule.__doc__ = text
    return _row(name, rule, te, numpy)


def _softplus(v: Any, k: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return at_least(v, k(0)) + intrin.log1p(intrin.exp(-intrin.abs(v)))


def _hard_sigmoid(v: Any, k: Any, alpha: float = 1 / 6, beta: float = 0.5) -> Any:
    return at_least(at_most(v * k(alpha) + k(beta), k(1)), k(0))


def _np_softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


relu6 = _plain("relu6", "Between 0 and 6.", lambda v, k: at_least(at_most(v, k(6)), k(0)), lambda x: np.clip(x, 0, 6))
softplus = _plain("softplus", "log(1 + exp(x)).", _softplus, _np_softplus)
softsign = _plain("softsign", "x / (1 + |x|).", lambda v, k: v / (k(1) + intrin.abs(v)), lambda x: x / (1 + np.abs(x)))
mish = _plain(
    "mish", "x tanh(softplus(x)) (Misra 2019).", lambda v, k: v * intrin.tanh(_softplus(v, k)), lambda x: x * np.tanh(_np_softplus(x))
)
hard_swish = _plain(
    "hard_swish",
    "x times its hard sigmoid of slope 1/6 (Howard et al. 2019).",
    lambda v, k: v * _hard_sigmoid(v, k),
    lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
)
# exp of min(x, 0): both arms of a select are computed, and that of a large x would overflow.
elu = _with_alpha(
    "elu",
    1.0,
    "x where it is positive, else alpha (exp(x) - 1) (Clevert et al. 2016).",
    lambda v, k, alpha: intrin.select(v > 0, v, k(alpha) * (intrin.exp(at_most(v, k(0))) - k(1))),
    lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
)
celu = _with_alpha(
    "celu",
    1.0,
    "max(0, x) + min(0, alpha (exp(x / alpha) - 1)) (Barron 2017).",
    lambda v, k, alpha: intrin.select(v > 0, v, k(alpha) * (intrin.exp(at_most(v, k(0)) / k(alpha)) - k(1))),
    lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
)
thresholded_relu = _with_alpha(
    "thresholded_relu",
    1.0,
    "x where it is greater than alpha, else 0.",
    lambda v, k, alpha: intrin.select(v > k(alpha), v, k(0)),
    lambda x, alpha: np.where(x > alpha, x, 0),
)
swish = _with_alpha(
    "swish",
    1.0,
    "x times the sigmoid of alpha x (Ramachandran et al. 2017).",
    lambda v, k, alpha: v * intrin.sigmoid(v * k(alpha)),
    lambda x, alpha: x * reference.sigmoid(x * x.dtype.type(alpha)),
)


def _selu_rule(data: Expr, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> StructInfo:
    """gamma times elu(x, alpha) (Klambauer et al. 2017)."""
    return _of_floats("selu", data)


def _hard_sigmoid_rule(data: Expr, alpha: float = 0.2, beta: float = 0.5) -> StructInfo:
    """alpha x + beta, between 0 and 1."""
    return _of_floats("hard_sigmoid", data)


selu = _row(
    "selu",
    _selu_rule,
    lambda v, k, alpha, gamma: intrin.select(v > 0, v * k(gamma), k(alpha * gamma) * (intrin.exp(at_most(v, k(0))) - k(1))),
    lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
)
hard_sigmoid = _row("hard_sigmoid", _hard_sigmoid_rule, _hard_sigmoid, lambda x, alpha, beta: np.clip(x * alpha + beta, 0, 1))


def _te_prelu(data: Any, alpha: Any, axis: int) -> Any:
    return topi.nn.prelu(data, alpha, axis)


def _np_prelu(data: Any, alpha: Any, axis: int) -> Any:
    slope = alpha.reshape([-1 if n == axis % data.ndim else 1 for n in range(data.ndim)])
    return np.where(data > 0, data, data * slope)


@operator("nn.prelu", Pattern.BROADCAST, te=_te_prelu, numpy=_np_prelu)
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> StructInfo:
    """x where it is positive, else x times the slope of its channel (He et al. 2015)."""
    operand, slope = tensor(data, "data"), tensor(alpha, "alpha")
    place = operand.axis(axis)
    if slope.ndim not in (1, -1) or (
        operand.extents is not None and slope.extents is not None and same_extents(slope.extents[0], operand.extents[place]) is False
    ):
        raise DeclarationError(
            f"relax.op.nn.prelu: alpha is {slope.info}, where axis {axis} of {operand.info} has a slope for each channel"
        )
    return operand.info
