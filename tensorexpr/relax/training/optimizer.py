"""Optimizers: functions of graphs from parameters, gradients and states to new parameters and states.

    optimizer = Adam(0.01).init([w, b])           # variables of a function
    mod["Adam"] = optimizer.get_function()
    (w, b), optimizer.state = vm["Adam"]((w, b), gradients, optimizer.state)

A state begins with the number of steps and other numbers, then come tensors like the parameters: the first of each, the second of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ...errors import ArgumentError, DeclarationError
from ...runtime.ndarray import array
from ...tir.arithmetic import as_int
from .. import op
from ..block_builder import BlockBuilder
from ..expr import Constant, Function, Tuple, TupleGetItem, Var, const
from ..struct_info import TensorStructInfo, TupleStructInfo


def _rest(value: float) -> float:
    """`1 - value` as one writes it: 0.1 of 0.9, not 0.09999999999999998."""
    return float(1 - Decimal(str(value)))


class Optimizer:
    """Base of optimizers. One of your own overrides `step` and says what states it has, or `init` and `get_function`.

    After `init` it has the variables that are optimised (`param_list`), their `dtype`, which numbers and states have too, and the values of
    the states, NDArrays (`state`): hand them to the function, and keep what it returns.

    Args:
        name: of the function.
    """

    numbers: tuple[tuple[str, float], ...] = ()
    """Names of the numbers that the state holds behind that of the steps, with their values in the beginning."""
    tensors: tuple[str, ...] = ()
    """Endings of the names of tensors like each parameter, zeros in the beginning."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.param_list: list[Var] | None = None
        self.dtype: str | None = None
        self.state: Any = None

    def init(self, params: Var | Sequence[Var]) -> Any:
        """Take over the parameters, and make the state.

        Args:
            params: tensors of one floating dtype whose extents are numbers.

        Returns:
            the optimizer itself.

        Raises:
            ArgumentError: for other parameters.
        """
        self._set_params_and_dtype(list(params) if isinstance(params, (list, tuple)) else [params])
        dtype: Any = self.dtype
        zeros = [array(np.zeros(_extents(param), dtype)) for param in self.param_list or ()]
        numbers = [array(np.asarray(value, dtype)) for _, value in self.numbers]
        self.state = (array(np.zeros((), "int64")), *numbers, *(array(one.numpy()) for _ in self.tensors for one in zeros))
        return self

    def _set_params_and_dtype(self, params: list[Any]) -> None:
        dtype: str | None = None
        for number, param in enumerate(params):
            info = param.struct_info if isinstance(param, Var) else None
            wrong = None
            if not isinstance(info, TensorStructInfo):
                wrong = "is no variable of a tensor"
            elif not info.dtype.startswith(("float", "bfloat")):
                wrong = f"is of {info.dtype}, no floating dtype"
            elif dtype not in (None, info.dtype):
                wrong = f"is of {info.dtype}, others are of {dtype}"
            elif any(param is other for other in params[:number]):
                wrong = "appears twice"
            if wrong is not None:
                raise ArgumentError(f"{self.name}: parameter {param} {wrong}; parameters are tensors of one floating dtype, each once")
            dtype = info.dtype  # type: ignore[union-attr]
        self.param_list, self.dtype = params, dtype

    def _check_init(self) -> None:
        if self.param_list is None or self.state is None or self.dtype is None:
            raise DeclarationError(f"{self.name}.get_function: the parameters aren't known; call init(parameters) first")

    def get_function(self) -> Function:
        """The function from a tuple of parameters, one of their gradients and one of states to new parameters and new states.

        Raises:
            DeclarationError: before `init`.
        """
        self._check_init()
        params: Any = self.param_list
        dtype: Any = self.dtype
        infos = [param.struct_info for param in params]
        number = TensorStructInfo((), dtype)
        stated = [TensorStructInfo((), "int64"), *[number] * len(self.numbers), *infos * len(self.tensors)]
        given = [
            Var("params", TupleStructInfo(tuple(infos))),
            Var("gradients", TupleStructInfo(tuple(infos))),
            Var("optim_states", TupleStructInfo(tuple(stated))),
        ]
        bb = BlockBuilder()
        with bb.function(self.name, given):
            with bb.dataflow():
                new_params, new_states = self._new_values(bb, *given)
                results = (
                    bb.emit_output(Tuple(tuple(new_params)), "params_new"),
                    bb.emit_output(Tuple(tuple(new_states)), "optim_states_new"),
                )
            bb.emit_func_output(results)
        made: Any = bb.get()[self.name]
        return made  # type: ignore[no-any-return]

    def _new_values(self, bb: BlockBuilder, params: Var, grads: Var, states: Var) -> tuple[list[Var], list[Var]]:
        """What is in place of parameters, and of states."""
        steps = bb.emit(TupleGetItem(states, 0), "num_steps")
        numbers = [bb.emit(op.add(steps, const(1, "int64")), "num_steps_new"), *self.next_numbers(bb, states)]
        new_params, columns = list[Var](), [list[Var]() for _ in self.tensors]
        for n, param in enumerate(self.param_list or ()):
            name = param.name_hint
            own, grad = bb.emit(TupleGetItem(params, n), name), bb.emit(TupleGetItem(grads, n), f"{name}_grad")
            places = [len(numbers) + column * len(self.param_list or ()) + n for column in range(len(self.tensors))]
            old = [bb.emit(TupleGetItem(states, at), f"{name}_{end}") for at, end in zip(places, self.tensors, strict=True)]
            new, *kept = self.step(bb, name, own, grad, old, numbers[1:])
            new_params.append(new)
            for column, one in zip(columns, kept, strict=True):
                column.append(one)
        return new_params, [*numbers, *(one for column in columns for one in column)]

    def next_numbers(self, bb: BlockBuilder, states: Var) -> list[Var]:
        """The new values of `numbers`, which stand in the states from 1 on."""
        return []

    def step(self, bb: BlockBuilder, name: str, param: Any, grad: Any, states: list[Any], numbers: list[Any]) -> Sequence[Any]:
        """The new value of a parameter, then those of its `tensors`.

        Args:
            bb: emits bindings.
            name: of the parameter.
            param, grad: the parameter and its gradient.
            states: its tensors, in the order of `tensors`.
            numbers: the new numbers.
        """
        raise NotImplementedError(f"{type(self).__name__}.step is not written")

    def _number(self, value: float) -> Constant:
        return const(value, self.dtype)

    def _decayed(self, bb: BlockBuilder, name: str, param: Any, grad: Any, weight_decay: float) -> Any:
        """The gradient with that of the squares of the parameters."""
        return bb.emit(op.add(op.multiply(self._number(weight_decay), param), grad), f"{name}_grad_new") if weight_decay else grad


def _extents(param: Any) -> list[int]:
    extents = [as_int(one) for one in param.struct_info.extents] if param.struct_info.extents is not None else [None]
    if None in extents:
        raise ArgumentError(f"states are zeros like {param.name_hint}, which is {param.struct_info}: its extents have to be numbers")
    return extents  # type: ignore[return-value]


class SGD(Optimizer):
    """Gradient descent: `p -= lr * (grad + weight_decay * p)`.

    Args:
        lr: the rate.
        weight_decay: factor of a penalty on squares.
    """

    def __init__(self, lr: float, weight_decay: float = 0) -> None:
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def step(self, bb: BlockBuilder, name: str, param: Any, grad: Any, states: list[Any], numbers: list[Any]) -> Sequence[Any]:
        """The parameter without a share of its gradient."""
        change = self._decayed(bb, name, param, grad, self.weight_decay)
        return [bb.emit(op.subtract(param, op.multiply(self._number(self.lr), change)), f"{name}_new")]


class MomentumSGD(Optimizer):
    """Gradient descent with momentum: `v = momentum * v + (1 - dampening) * g`, `p -= lr * v`, with `g = grad + weight_decay * p`.

    Args:
        lr: the rate.
        momentum: the share of the velocity that stays.
        dampening: the share of the gradient that is left out of it.
        weight_decay: factor of a penalty on squares.
        nesterov: `p -= lr * (g + momentum * v)` (Nesterov 1983).
    """

    tensors = ("v",)

    def __init__(self, lr: float, momentum: float, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False) -> None:
        super().__init__("MomentumSGD")
        self.lr, self.momentum, self.dampening = float(lr), float(momentum), float(dampening)
        self.weight_decay, self.nesterov = float(weight_decay), nesterov

    def step(self, bb: BlockBuilder, name: str, param: Any, grad: Any, states: list[Any], numbers: list[Any]) -> Sequence[Any]:
        """The parameter without a share of its velocity, and that."""
        change = self._decayed(bb, name, param, grad, self.weight_decay)
        momentum = self._number(self.momentum)
        added = op.multiply(self._number(_rest(self.dampening)), change) if self.dampening else change
        velocity = bb.emit(op.add(op.multiply(momentum, states[0]), added), f"{name}_v_new")
        ahead = bb.emit(op.add(change, op.multiply(momentum, velocity)), f"{name}_g_nest") if self.nesterov else velocity
        return bb.emit(op.subtract(param, op.multiply(self._number(self.lr), ahead)), f"{name}_new"), velocity


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015, algorithm 1): steps by a mean of gradients over the root of a mean of their squares.

    Args:
        lr: the rate.
        betas: the shares of both means that stay.
        eps: what is added to the root.
        weight_decay: factor of a penalty on squares.
    """

    numbers, tensors = (("beta1_prod", 1.0), ("beta2_prod", 1.0)), ("m", "v")

    def __init__(self, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08, weight_decay: float = 0) -> None:
        super().__init__("Adam")
        self.lr, self.eps, self.weight_decay = float(lr), float(eps), float(weight_decay)
        self.beta1, self.beta2 = map(float, betas)

    def next_numbers(self, bb: BlockBuilder, states: Var) -> list[Var]:
        """The powers of the shares, by which means that began at zero fall short."""
        shares = enumerate((self.beta1, self.beta2), 1)
        return [bb.emit(op.multiply(TupleGetItem(states, n), self._number(beta)), self.numbers[n - 1][0]) for n, beta in shares]

    def step(self, bb: BlockBuilder, name: str, param: Any, grad: Any, states: list[Any], numbers: list[Any]) -> Sequence[Any]:
        """The parameter after a step, and both means."""
        change = self._decayed(bb, name, param, grad, self.weight_decay)

        def moved(old: Any, beta: float, new: Any, end: str) -> Var:
            kept, added = op.multiply(self._number(beta), old), op.multiply(self._number(_rest(beta)), new)
            return bb.emit(op.add(kept, added), f"{name}_{end}_new")

        means = moved(states[0], self.beta1, change, "m"), moved(states[1], self.beta2, op.multiply(change, change), "v")
        one = self._number(1)
        m, v = (
            bb.emit(op.divide(mean, op.subtract(one, power)), f"{name}_{end}_hat")
            for mean, power, end in zip(means, numbers, self.tensors, strict=True)
        )
        step = op.divide(m, op.add(op.sqrt(v), self._number(self.eps)))
        return bb.emit(op.subtract(param, op.multiply(self._number(self.lr), step)), f"{name}_new"), *means


__all__ = ["SGD", "Adam", "MomentumSGD", "Optimizer"]
