"""SetupTrainer: a network as a module that trains it: with its loss, the gradients of its parameters, and an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.function import IRModule
from ..analysis.well_formed import check_well_formed
from ..expr import Function, Tuple
from ..struct_info import StructInfo
from ..transform.decompose import DecomposeOpsForInference, DecomposeOpsForTraining
from ..transform.gradient import Gradient
from ..transform.legalize import LegalizeOps
from ..transform.passes import graph_pass
from .append_loss import AppendLoss
from .loss import Loss
from .optimizer import Optimizer

BACKBONE, LOSS, ADJOINT, OPTIMIZER = "backbone", "backbone_loss", "backbone_loss_adjoint", "optimizer"


def _counts(mod: IRModule) -> tuple[int, int, int]:
    """How many inputs, parameters and states the network of a module takes.

    Raises:
        DeclarationError: if there is none, or it doesn't say so.
    """
    check_well_formed(mod)
    func: Any = {var.name_hint: one for var, one in mod.functions_items()}.get(BACKBONE)
    if not isinstance(func, Function):
        names = ", ".join(var.name_hint for var in mod.get_global_vars()) or "none"
        raise DeclarationError(f'SetupTrainer: the network is a function of a graph called "{BACKBONE}"; the module has {names}')
    counts = []
    for key in ("param_num", "state_num"):
        number = as_int(mod.attrs[key]) if key in mod.attrs else None
        if number is None or number < 0:
            raise DeclarationError(
                f"SetupTrainer: the attribute {key!r} of the module says how many of the last parameters of {BACKBONE} are trained "
                "(param_num), and how many behind these are states (state_num)"
            )
        counts.append(number)
    inputs = len(func.params) - sum(counts)
    if inputs < 0:
        raise DeclarationError(
            f"SetupTrainer: {BACKBONE} has {len(func.params)} parameters, fewer than param_num + state_num = {sum(counts)}"
        )
    if counts[1] and not (isinstance(func.body.body, Tuple) and len(func.body.body.fields) > counts[1]):
        raise DeclarationError(f"SetupTrainer: {BACKBONE} returns its results and then its {counts[1]} new states, not {func.body.body}")
    return inputs, counts[0], counts[1]


def SetupTrainer(loss: Loss, optimizer: Optimizer, loss_args: Sequence[StructInfo], legalize: bool = True) -> ModulePass:
    """A pass: a module with a function `backbone` gets what trains it.

    backbone(inputs, parameters, states) -> (results, new states) stays. There are besides
    backbone_loss(inputs, parameters, states, targets) -> (loss, new states), in which batches are normalised by their own statistics,
    backbone_loss_adjoint with the same parameters -> ((loss, new states), gradients of the parameters), and
    optimizer(parameters, gradients, optimizer's states) -> (new parameters, new states).
    The attributes "param_num" and "state_num" of the module say which parameters are which; the result has "input_num" and
    "optim_state", the optimizer's states in the beginning. `Trainer` runs it.

    Args:
        loss: such as `MSELoss()`.
        optimizer: such as `SGD(0.1)`; it takes over the parameters.
        loss_args: what the loss is called with: struct infos of results, targets, and weights if it has any.
        legalize: let operators become tensor functions (`LegalizeOps`).

    Raises:
        DeclarationError: for a module of another form, and operators without a derivative.
    """

    def run(mod: IRModule) -> IRModule:
        inputs, params, _ = _counts(mod)
        mod = AppendLoss(BACKBONE, loss(*loss_args), loss.num_backbone_outputs, LOSS)(mod)  # type: ignore[operator]
        mod = DecomposeOpsForTraining(LOSS)(DecomposeOpsForInference(BACKBONE)(mod))
        func: Any = mod[LOSS]
        trained = list(func.params[inputs : inputs + params])
        mod = Gradient(LOSS, require_grads=trained, target_index=0)(mod)
        made: Any = optimizer.init(trained).get_function()
        mod.update_func(OPTIMIZER, made.with_attr("global_symbol", OPTIMIZER))
        mod = mod.with_attrs({"input_num": inputs, "optim_state": optimizer.state})
        return LegalizeOps()(mod) if legalize else mod

    return graph_pass("SetupTrainer", run)


__all__ = ["SetupTrainer"]
