"""Trainer: runs what `SetupTrainer` made, and keeps parameters, states of the network and of the optimizer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...runtime.ndarray import NDArray, array
from ...tir.arithmetic import as_int
from ...tir.function import IRModule
from ..expr import Var
from ..runtime.machine import VirtualMachine
from .setup_trainer import ADJOINT, BACKBONE, OPTIMIZER

Values = Sequence[Any] | Mapping[str, Any]
"""Values in order, or by name: NDArrays or arrays of NumPy."""


def _extents(var: Var) -> list[int]:
    info: Any = var.struct_info
    extents = [as_int(one) for one in info.extents] if info.extents is not None else [None]
    if None in extents:
        raise ArgumentError(f"Trainer: {var.name_hint} is {info}; values for it have to be loaded, as its extents are no numbers")
    return extents  # type: ignore[return-value]


def _bound(extents: Sequence[int]) -> float:
    """Of the uniform distribution of weights (Glorot and Bengio 2010, equation 16); a filter reads and writes each place of its window."""
    return math.sqrt(6.0 / max(sum(extents[:2]) * math.prod(extents[2:]), 1))


class _Slots:
    """Values of some parameters of a function, by place and by name."""

    def __init__(self, what: str, variables: Sequence[Var], device: Any) -> None:
        self._what, self._variables, self._device = what, variables, device
        self.values: list[Any] = [None] * len(variables)

    def set(self, make: Any) -> None:
        """Give each the value that is made of its extents."""
        self.values = [array(np.asarray(make(_extents(var)), _dtype(var)), self._device) for var in self._variables]

    def load(self, values: Values) -> None:
        """Take values over: all in order, or those of a mapping by name."""
        names = [var.name_hint for var in self._variables]
        if isinstance(values, Mapping):
            odd = [name for name in values if name not in names]
            if odd:
                raise ArgumentError(f"Trainer: there is no {self._what} {odd[0]!r}; there are {', '.join(names) or 'none'}")
            given = {names.index(name): value for name, value in values.items()}
        elif isinstance(values, (list, tuple)):
            if len(values) != len(names):
                raise ArgumentError(f"Trainer: {len(values)} values for {len(names)} {self._what}s: {', '.join(names)}")
            given = dict(enumerate(values))
        else:
            raise ArgumentError(f"Trainer: {self._what}s are loaded from a list or a dict, not {type(values).__name__}")
        for at, value in given.items():
            self.values[at] = array(value, self._device)

    def export(self) -> dict[str, Any]:
        """The values by name."""
        return {var.name_hint: value for var, value in zip(self._variables, self.values, strict=True)}

    def check(self) -> None:
        """Raise an error for one that has no value."""
        missing = [var.name_hint for var, value in zip(self._variables, self.values, strict=True) if value is None]
        if missing:
            raise ArgumentError(f"Trainer: {self._what}s without values: {', '.join(missing)}; load them or let them be initialized")


def _dtype(var: Var) -> str:
    info: Any = var.struct_info
    return str(info.dtype)


class Trainer:
    """Trains a network, and uses it.

    Args:
        train_mod: what `SetupTrainer` returned.
        vm: a virtual machine of what was built of it; `profile=True` for `profile_adjoint`.
        device: where values are.
        zero_init_param_state: begin with zeros; else values have to be loaded or initialized before anything runs.

    Raises:
        ArgumentError: for another module.
    """

    def __init__(self, train_mod: IRModule, vm: VirtualMachine, device: Any, zero_init_param_state: bool = True) -> None:
        missing = [key for key in ("input_num", "param_num", "state_num", "optim_state") if key not in train_mod.attrs]
        if missing:
            raise ArgumentError(f"Trainer: the module has no attribute {missing[0]!r}; SetupTrainer(...)(module) makes one that has")
        self.mod, self.vm, self.device = train_mod.without_attr("optim_state"), vm, device
        self._optim_state = [array(value, device) for value in train_mod.attrs["optim_state"]]
        inputs, params, states = (int(train_mod.attrs[key]) for key in ("input_num", "param_num", "state_num"))
        adjoint: Any = train_mod[ADJOINT]
        self._input_num, self._state_num = inputs, states
        self._params = _Slots("parameter", adjoint.params[inputs : inputs + params], device)
        self._states = _Slots("state", adjoint.params[inputs + params : inputs + params + states], device)
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def xaiver_uniform_init_params(self) -> None:
        """Give the parameters random values between plus and minus sqrt(6 / (inputs + outputs)) of their layer, from `np.random`."""
        self._params.set(lambda extents: np.random.uniform(-1.0, 1.0, extents) * _bound(extents))

    def zero_init_params(self) -> None:
        """Let all parameters be zero."""
        self._params.set(np.zeros)

    def zero_init_states(self) -> None:
        """Let all states of the network be zero."""
        self._states.set(np.zeros)

    def load_params(self, params: Values) -> None:
        """Set parameters: all in order, or some by name.

        Raises:
            ArgumentError: for another number of them, or a name that no parameter has.
        """
        self._params.load(params)

    def load_states(self, states: Values) -> None:
        """Set states of the network: all in order, or some by name.

        Raises:
            ArgumentError: for another number of them, or a name that no state has.
        """
        self._states.load(states)

    def export_params(self) -> dict[str, NDArray]:
        """The parameters by name."""
        return self._params.export()

    def export_states(self) -> dict[str, NDArray]:
        """The states of the network by name."""
        return self._states.export()

    def _arguments(self, inputs: Any, targets: Any = ()) -> list[Any]:
        self._params.check()
        self._states.check()
        given = [list(one) if isinstance(one, (list, tuple)) else [one] for one in (inputs, targets)]
        if len(given[0]) != self._input_num:
            raise ArgumentError(f"Trainer: the network takes {self._input_num} inputs, not {len(given[0])}")
        before, behind = ([array(one, self.device) for one in part] for part in given)
        return [*before, *self._params.values, *self._states.values, *behind]

    def predict(self, *input_instances: Any) -> Any:
        """What the network gives for inputs, without its new states: an NDArray, or a list of them.

        Raises:
            ArgumentError: for another number of inputs, or parameters without values.
        """
        given = self._arguments(input_instances)
        result = self.vm[BACKBONE](*given)
        if not self._state_num:
            return result
        own = result[: -self._state_num]
        return own[0] if len(own) == 1 else own

    def update(self, input_instances: Any, targets: Any) -> Any:
        """Train on one batch: new parameters, states of the network and of the optimizer.

        Args:
            input_instances: an array, or a list of several.
            targets: an array, or a list of several.

        Returns:
            the loss before the step.

        Raises:
            ArgumentError: for another number of inputs, or parameters without values.
        """
        given = self._arguments(input_instances, targets)
        loss, gradients = self.vm[ADJOINT](*given)
        if self._state_num:
            loss, *self._states.values = loss
        params, states = self.vm[OPTIMIZER](self._params.values, gradients, self._optim_state)
        self._params.values, self._optim_state = list(params), list(states)
        return loss

    def profile_adjoint(self, input_instances: Any, targets: Any) -> Any:
        """The kernels of one batch by time, without a step; the machine has `profile=True`.

        Args:
            input_instances: an array, or a list of several.
            targets: an array, or a list of several.
        """
        return self.vm.profile(ADJOINT, *self._arguments(input_instances, targets))


__all__ = ["Trainer"]
