"""DecomposeOpsForInference and DecomposeOpsForTraining: norms, dropout and attention by simpler operators."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ..expr import Call, Function, Tuple, const
from ..ops.create import ones_like
from ..ops.elementwise import add, divide, multiply, sqrt, square, subtract
from ..ops.linear import matmul
from ..ops.manipulate import expand_dims, permute_dims
from ..ops.reduce import mean, variance
from ..ops.row import row_of
from ..struct_info import TensorStructInfo
from . import attention
from .passes import each_function
from .rewriting import Rewriter, Rules, rewritten


def _given(call: Call) -> tuple[dict[str, Any], TensorStructInfo, list[int]] | None:
    """A batch normalisation by names, what it normalises, and the axes other than its channels; None if these aren't known."""
    row = row_of(call)
    if row is None:
        return None
    given = row.bound(call)
    info = given["data"].struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim == -1 or not info.dtype:
        return None
    return given, info, [n for n in range(info.ndim) if n != given["axis"] % info.ndim]


def _normalized(given: dict[str, Any], info: TensorStructInfo, axes: list[int], centre: Any, spread: Any) -> Any:
    """The data by a mean and a variance of each channel, scaled and shifted."""

    def wide(vector: Any) -> Any:
        return expand_dims(vector, axes)

    epsilon = const(given["epsilon"], info.dtype)
    found: Any = subtract(given["data"], wide(centre))
    deviation = sqrt(add(wide(spread), epsilon))
    # One factor of vectors: two would go through the weights of a convolution in front one after the other.
    found = multiply(found, divide(wide(given["gamma"]), deviation)) if given["scale"] else divide(found, deviation)
    return add(found, wide(given["beta"])) if given["center"] else found


def for_inference(graph: Rewriter, call: Call) -> Any:
    known = _given(call)
    if known is None:
        return None
    given = known[0]
    return Tuple((_normalized(*known, given["moving_mean"], given["moving_var"]), given["moving_mean"], given["moving_var"]))


def _for_training(graph: Rewriter, call: Call) -> Any:
    known = _given(call)
    if known is None:
        return None
    given, info, axes = known
    # With variables of their own, as each is used twice.
    centre, spread = graph.emit(mean(given["data"], axes)), graph.emit(variance(given["data"], axes))
    momentum = float(given["momentum"])

    def moved(old: Any, new: Any) -> Any:
        return add(multiply(const(1 - momentum, info.dtype), old), multiply(const(momentum, info.dtype), new))

    moving = moved(given["moving_mean"], centre), moved(given["moving_var"], spread)
    return Tuple((_normalized(given, info, axes, centre, spread), *moving))


def _layer_norm(graph: Rewriter, call: Call) -> Any:
    row = row_of(call)
    info: Any = call.args[0].struct_info
    if row is None or info.ndim == -1 or not info.dtype:
        return None
    given = row.bound(call)
    axes, epsilon = given["axes"], const(given["epsilon"], info.dtype)
    found: Any = divide(subtract(given["data"], mean(given["data"], axes, True)), sqrt(add(variance(given["data"], axes, True), epsilon)))
    found = multiply(found, given["gamma"]) if given["scale"] else found
    return add(found, given["beta"]) if given["center"] else found


def _rms_norm(graph: Rewriter, call: Call) -> Any:
    row = row_of(call)
    info: Any = call.args[0].struct_info
    if row is None or info.ndim == -1 or not info.dtype:
        return None
    given = row.bound(call)
    spread = sqrt(add(mean(square(given["data"]), given["axes"], True), const(given["epsilon"], info.dtype)))
    return multiply(divide(given["data"], spread), given["weight"])


def _kept(graph: Rewriter, call: Call) -> Any:
    return Tuple((call.args[0], ones_like(call.args[0])))


def _dense(graph: Rewriter, call: Call) -> Any:
    """By the product that all rules for products know."""
    return matmul(call.args[0], graph.emit(permute_dims(call.args[1])))


INFERENCE: Rules = {"relax.nn.batch_norm": [for_inference], "relax.nn.dropout": [_kept], "relax.nn.dense": [_dense]}
TRAINING: Rules = {
    "relax.nn.dense": [_dense],
    "relax.nn.batch_norm": [_for_training],
    "relax.nn.layer_norm": [_layer_norm],
    "relax.nn.rms_norm": [_rms_norm],
    **attention.RULES,
}


def _of_one(name: str, rules: Rules, func_name: str | None) -> ModulePass:
    def run(func: Function, mod: Any) -> Function:
        # By identity: what a pass on functions is given has no name.
        return rewritten(func, rules) if func_name is None or mod[func_name] is func else func

    return each_function(name, run)


def DecomposeOpsForInference(func_name: str | None = None) -> ModulePass:
    """A pass: batch normalisation by its moving statistics, dropout nothing; of one function, or of all."""
    return _of_one("DecomposeOpsForInference", INFERENCE, func_name)


def DecomposeOpsForTraining(func_name: str | None = None) -> ModulePass:
    """A pass: batch normalisation by the statistics of its batch, which move the moving ones; other norms along whole axes and attention by
    operators whose derivatives share what they compute; of one function, or of all."""
    return _of_one("DecomposeOpsForTraining", TRAINING, func_name)
