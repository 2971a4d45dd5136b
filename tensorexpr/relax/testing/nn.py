"""Small networks written as modules, as programs for TVM's tests have them; networks to deploy are those of `relax.frontend.nn`.

model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10), nn.LogSoftmax())
with bb.function("main"):
    data = nn.Placeholder((1, 784), name="data")
    bb.emit_func_output(model(data), params=[data, *model.parameters()])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from ... import topi
from ...errors import DeclarationError, TypeMismatchError
from ...runtime.ndarray import NDArray, array
from ...tir.arithmetic import as_int
from ...tir.function import IRModule
from ..block_builder import BlockBuilder
from ..expr import RelaxExpr, Var
from ..frontend.nn.subroutine import called
from ..ops.grad_marks import end_checkpoint, start_checkpoint
from ..struct_info import TensorStructInfo


def _builder() -> BlockBuilder:
    found = BlockBuilder.current()
    if found is None:
        raise DeclarationError("values are emitted in `with bb.function(name):`")
    return found


def emit(expr: Any, name_hint: str = "") -> Var:
    """A variable for an expression in the function that is open."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    """As `BlockBuilder.emit_te`, in the function that is open."""
    return _builder().emit_te(func, *args, **kwargs)


def _marked(value: Any) -> Any:
    return start_checkpoint(value) if isinstance(value, RelaxExpr) else value


def _ended(value: Any) -> Any:
    return end_checkpoint(value) if isinstance(value, RelaxExpr) else value


def checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives, which is computed again for derivatives; of its values only the arguments are kept.

    Args:
        func: from expressions to one, or a list or tuple of several.
        args, kwargs: its arguments.
    """
    found = func(*map(_marked, args), **{name: _marked(value) for name, value in kwargs.items()})
    return [_ended(one) for one in found] if isinstance(found, (list, tuple)) else _ended(found)


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As `checkpoint`, with a variable for each mark: `<name>_scp` for an argument, `<name>_ecp` for a result."""

    def begun(value: Any) -> Any:
        return emit(start_checkpoint(value), f"{value.name_hint}_scp") if isinstance(value, Var) else value

    def ended(value: Any) -> Any:
        if not isinstance(value, RelaxExpr):
            return value
        var = value if isinstance(value, Var) else emit(value)
        return emit(end_checkpoint(var), f"{var.name_hint}_ecp")

    found = func(*map(begun, args), **{name: begun(value) for name, value in kwargs.items()})
    return [ended(one) for one in found] if isinstance(found, (list, tuple)) else ended(found)


def emit_checkpoint_sequential(
    functions: Sequence[Callable[..., Any]], segments: int | Sequence[int], input: Any, checkpoint_last: bool = False
) -> Any:
    """What functions one after the other give, each segment of them by `emit_checkpoint`.

    Args:
        functions: in order.
        segments: how many of equal length, or where each begins.
        input: of the first one.
        checkpoint_last: whether the last segment is computed again, too; its values are what derivatives need first.

    Raises:
        DeclarationError: for no functions, or no segments.
    """
    count = len(functions)
    if not count or (isinstance(segments, int) and segments < 1):
        raise DeclarationError(f"emit_checkpoint_sequential: {count} functions in {segments} segments")
    starts = list(range(0, count, max(1, count // segments))) if isinstance(segments, int) else list(segments)
    ends = [*starts[1:], count] if starts[-1] != count else starts[1:]
    for start, end in zip(starts, ends, strict=False):

        def run(value: Any, own: Sequence[Callable[..., Any]] = functions[start:end]) -> Any:
            for function in own:
                value = function(value)
            return value

        input = run(input) if end == count and not checkpoint_last else emit_checkpoint(run, input)
    return input if isinstance(input, Var) else emit(input)


def _named(name: str) -> str:
    builder = BlockBuilder.current()
    return name if builder is None else builder.get_unique_name(name)


def _stated(kind: str, shape: Sequence[Any], dtype: str, name: str) -> Var:
    if not isinstance(shape, (list, tuple)):
        raise TypeMismatchError(f"the shape of a {kind} is a list or tuple of extents, not {shape!r}")
    return Var(_named(name), TensorStructInfo(shape, dtype))


def Placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> Var:
    """An input.

    Args:
        shape: a list or tuple of extents.
        dtype: of elements.
        name: of the variable, with a number behind it where the open function has that name.

    Raises:
        TypeMismatchError: for another shape.
    """
    return _stated("Placeholder", shape, dtype, name)


_PARAMETERS: WeakSet[Var] = WeakSet()


def Parameter(shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> Var:
    """A weight of the module that has it as an attribute; arguments and errors as of `Placeholder`."""
    made = _stated("Parameter", shape, dtype, name)
    _PARAMETERS.add(made)
    return made


class Module:
    """Base of networks and their parts: `forward` says what it computes; with `define_subroutine` in a private function of its own."""

    define_subroutine: ClassVar[bool] = False

    def parameters(self) -> list[Var]:
        """The weights of it and its parts, in order of attributes."""
        return _parameters(vars(self))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` computes, or a call of the function that does."""
        if not self.define_subroutine:
            return self.forward(*args, **kwargs)
        given = inspect.signature(self.forward).bind(*args, **kwargs)
        return called(type(self).__name__, self.forward, given.arguments, self.parameters())


def _parameters(value: Any) -> list[Var]:
    match value:
        case Var():
            return [value] if value in _PARAMETERS else []
        case Module():
            return value.parameters()
        case dict():
            return [found for one in value.values() for found in _parameters(one)]
        case list() | tuple():
            return [found for one in value for found in _parameters(one)]
    return []


def init_params(mod: IRModule) -> list[NDArray]:
    """Zeros of float32 for the parameters of "main" whose names don't begin with "data".

    Raises:
        DeclarationError: for one whose shape has symbols, or isn't known.
    """
    main: Any = mod["main"]
    made: list[NDArray] = []
    for param in main.params:
        if param.name_hint.startswith("data"):
            continue
        shape = [as_int(one) for one in getattr(param.struct_info, "extents", None) or (param,)]
        if None in shape:
            raise DeclarationError(f"init_params: {param.name_hint} is {param.struct_info}: bind its symbols first (BindSymbolicVars)")
        made.append(array(np.zeros(shape, "float32")))
    return made


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, input: Any) -> Any:
        """What the last one computes."""
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """`topi.nn.relu`."""

    def forward(self, input: Any) -> Var:
        """The larger one of the input and 0."""
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """`topi.nn.log_softmax`."""

    def forward(self, input: Any) -> Var:
        """The logarithm of a softmax along the last axis."""
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """A product with weights[in_features, out_features], and a bias added if there is one."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Any) -> Var:
        """`input @ weight + bias`."""
        found = emit_te(topi.matmul, input, self.weight)
        return found if self.bias is None else emit_te(topi.add, found, self.bias)


__all__ = [
    "Linear", "LogSoftmax", "Module", "Parameter", "Placeholder", "ReLU", "Sequential", "checkpoint", "emit", "emit_checkpoint",
    "emit_checkpoint_sequential", "emit_te", "init_params",
]  # fmt: skip
