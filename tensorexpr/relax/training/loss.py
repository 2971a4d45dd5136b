"""Losses: objects that give functions of graphs, which `AppendLoss` puts behind a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, TypeMismatchError
from .. import op
from ..block_builder import BlockBuilder
from ..expr import Function, Var
from ..struct_info import StructInfo, TensorStructInfo

REDUCTIONS = ("mean", "sum", "none")


def _param(param: Var | StructInfo, name: str) -> Var:
    """A variable of the loss itself, like one that is given or for a value of which this is known."""
    if isinstance(param, Var):
        return Var(param.name_hint, param.struct_info)
    if not isinstance(param, StructInfo):
        raise TypeMismatchError(f"{name} of a loss are a relax.Var or a StructInfo, not {type(param).__name__}")
    return Var(name, param)


class Loss:
    """Base of losses. A class of your own is called with variables or struct infos, and returns a function of one dataflow block.

    Args:
        loss_name: of the function.
        num_backbone_outputs: how many of its first parameters are results of the network.
        reduction: of the losses of all elements: "mean", "sum", or "none", which gives them one by one.

    Raises:
        ArgumentError: for another reduction.
    """

    def __init__(self, loss_name: str, num_backbone_outputs: int, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise ArgumentError(f"{type(self).__name__}: no reduction {reduction!r}; there are {', '.join(REDUCTIONS)}")
        self._loss_name, self._num_backbone_outputs, self._reduction = loss_name, num_backbone_outputs, reduction

    @property
    def num_backbone_outputs(self) -> int:
        """How many of the first parameters are results of the network."""
        return self._num_backbone_outputs

    def _with_reduction(self, expr: Any) -> Any:
        return expr if self._reduction == "none" else (op.sum if self._reduction == "sum" else op.mean)(expr)

    def _function(self, compute: Callable[..., Any], **params: Any) -> Function:
        """The function that computes this of its parameters, those that are None aside."""
        variables = [_param(param, name) for name, param in params.items() if param is not None]
        builder = BlockBuilder()
        with builder.function(self._loss_name, variables):
            with builder.dataflow():
                loss = builder.emit_output(compute(builder, *variables))
            builder.emit_func_output(loss)
        made: Any = builder.get()[self._loss_name]
        return made  # type: ignore[no-any-return]


class L1Loss(Loss):
    """The absolute difference of predictions and targets of one shape."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", 1, reduction)

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo) -> Function:
        """The function of predictions and targets."""
        return self._function(lambda bb, p, t: self._with_reduction(op.abs(op.subtract(p, t))), predictions=predictions, targets=targets)


class MSELoss(Loss):
    """The squared difference of predictions and targets of one shape."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", 1, reduction)

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo) -> Function:
        """The function of predictions and targets."""

        def compute(builder: BlockBuilder, p: Var, t: Var) -> Any:
            difference = builder.emit(op.subtract(p, t))
            return self._with_reduction(op.multiply(difference, difference))

        return self._function(compute, predictions=predictions, targets=targets)


def _log_softmax(builder: BlockBuilder, predictions: Any) -> Var:
    # Classes are axis 1 wherever positions follow them, as in segmentation: (N, C, H, W).
    return builder.emit(op.nn.log_softmax(predictions, 1 if predictions.struct_info.ndim > 2 else -1))


class CrossEntropyLoss(Loss):
    """The negative log likelihood of the softmax of predictions (N, C, ...), with targets (N, ...) that are numbers of classes.

    Args:
        reduction: "mean" is by the sum of the weights of all targets; "sum"; "none" gives a tensor like the targets.
        ignore_index: the target that counts nothing.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo, weights: Var | StructInfo | None = None) -> Function:
        """The function of predictions, targets, and weights of the classes (C,) if they are given."""

        def compute(builder: BlockBuilder, p: Var, t: Var, w: Var | None = None) -> Any:
            return op.nn.nll_loss(_log_softmax(builder, p), t, w, self._reduction, self.ignore_index)

        return self._function(compute, predictions=predictions, targets=targets, weights=weights)


class CategoricalCrossEntropyLoss(Loss):
    """The negative log likelihood of the softmax of predictions (N, C), with targets (N, C) of integers: 1 for the class, 0 for others.

    Args:
        reduction: "mean" is by the number of elements, N * C; with an `ignore_index` from 0 on by the sum of the weights of all targets.
        ignore_index: the class whose samples count nothing; none if negative.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions: Var | StructInfo, targets: Var | StructInfo, weights: Var | StructInfo | None = None) -> Function:
        """The function of predictions, targets, and weights of the classes (C,) if they are given.

        Raises:
            TypeMismatchError: for targets that are no integers.
        """
        info = targets.struct_info if isinstance(targets, Var) else targets
        if not isinstance(info, TensorStructInfo) or "int" not in info.dtype:
            raise TypeMismatchError(f"CategoricalCrossEntropyLoss: targets are tensors of integers, one for the class, not {info}")

        def compute(builder: BlockBuilder, p: Any, t: Any, w: Any = None) -> Any:
            logits = _log_softmax(builder, p)
            if self.ignore_index >= 0:
                rows = builder.emit(op.reshape(op.argmax(t, 1), (t.struct_info.shape[0],)))
                return op.nn.nll_loss(logits, rows, w, self._reduction, self.ignore_index)
            losses = builder.emit(op.multiply(op.negative(logits), op.astype(t, p.struct_info.dtype)))
            return self._with_reduction(losses if w is None else builder.emit(op.multiply(losses, w)))

        return self._function(compute, predictions=predictions, targets=targets, weights=weights)


__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]
