"""Networks as classes: tensors that are emitted as they are computed, parameters, modules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ....errors import ArgumentError, DeclarationError
from ....runtime.ndarray import array
from ....tir.arithmetic import as_int
from ... import op as relax_op
from ...block_builder import BlockBuilder
from ...expr import Var, const
from ...struct_info import RelaxExpr, TensorStructInfo
from .subroutine import called

_DTYPE = ["float32"]


def get_default_dtype() -> str:
    """The dtype of parameters that state none."""
    return _DTYPE[0]


def set_default_dtype(dtype: str) -> None:
    """Let parameters that state no dtype have this one from here on."""
    _DTYPE[0] = dtype


class Tensor:
    """A value of the graph that `Module.export_tvm` is making; operators of Python are those of graphs.

    Args:
        _expr: the expression that it is.
    """

    def __init__(self, *, _expr: RelaxExpr) -> None:
        self._expr = _expr

    @staticmethod
    def from_const(data: Any) -> Tensor:
        """A constant."""
        return Tensor(_expr=const(data))

    @staticmethod
    def from_scalar(data: float, dtype: str) -> Tensor:
        """A constant without axes."""
        return Tensor(_expr=const(data, dtype))

    @property
    def _info(self) -> TensorStructInfo:
        info = self._expr.struct_info
        if not isinstance(info, TensorStructInfo):
            raise DeclarationError(f"{self._expr} is {info}, no tensor")
        return info

    @property
    def shape(self) -> list[Any]:
        """The extents: integers, or expressions of symbols."""
        extents = self._info.extents
        if extents is None:
            raise DeclarationError(f"the shape of {self._expr} is not known")
        return [one if as_int(one) is None else as_int(one) for one in extents]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self._info.ndim

    @property
    def dtype(self) -> str:
        """Of the elements."""
        return self._info.dtype

    def __repr__(self) -> str:
        return f'Tensor({self.shape}, "{self.dtype}")'

    def reshape(self, *shape: Any) -> Any:
        """The same elements in another shape."""
        return emitted(relax_op.reshape(self._expr, shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape), "reshape")

    def permute_dims(self, *axes: Any) -> Any:
        """The axes in another order; reversed if none is stated."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
        return emitted(relax_op.permute_dims(self._expr, list(order) if order else None), "permute_dims")

    def astype(self, dtype: str) -> Any:
        """The elements in another dtype."""
        return emitted(relax_op.astype(self._expr, dtype), "astype")

    def _with(self, name: str, other: Any, swapped: bool = False) -> Tensor:
        pair = (other, self) if swapped else (self, other)
        made: Tensor = emitted(getattr(relax_op, name)(*map(unwrapped, pair)), name)
        return made

    def __add__(self, other: Any) -> Any:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self._with("add", other, True)

    def __sub__(self, other: Any) -> Tensor:
        return self._with("subtract", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._with("subtract", other, True)

    def __mul__(self, other: Any) -> Tensor:
        return self._with("multiply", other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._with("multiply", other, True)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with("divide", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._with("divide", other, True)

    def __lt__(self, other: Any) -> Tensor:
        return self._with("less", other)

    def __le__(self, other: Any) -> Tensor:
        return self._with("less_equal", other)

    def __gt__(self, other: Any) -> Tensor:
        return self._with("greater", other)

    def __ge__(self, other: Any) -> Tensor:
        return self._with("greater_equal", other)


def unwrapped(value: Any) -> Any:
    """Expressions in place of tensors, also in lists and tuples."""
    if isinstance(value, Tensor):
        return value._expr
    return type(value)(map(unwrapped, value)) if isinstance(value, (list, tuple)) else value


def emitted(expr: Any, name: str = "") -> Any:
    """The tensor that an expression is, or a tuple of them, emitted by the builder that is making the graph.

    Raises:
        DeclarationError: if none is.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise DeclarationError("tensors are computed while Module.export_tvm makes a graph; call the module's method there")
    made = builder.emit(expr, name)
    fields = getattr(made.struct_info, "fields", None)
    if fields is None:
        return Tensor(_expr=made)
    return tuple(Tensor(_expr=builder.emit(made[number])) for number in range(len(fields)))


class Parameter(Tensor):
    """A tensor that is a weight.

    Args:
        shape: its extents: integers, names of symbols, expressions.
        dtype: of elements; the default one if None.
    """

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        self.stated = tuple(shape)
        self.param_dtype = dtype or get_default_dtype()
        self._data: Any = None
        self.attrs: dict[str, Any] = {}
        # Symbols belong to one export, which makes a variable with them; until then any extent does.
        extents = tuple(1 if isinstance(one, str) else one for one in self.stated)
        super().__init__(_expr=Var("param", TensorStructInfo(extents, self.param_dtype)))

    @property
    def data(self) -> Any:
        """The values, an NDArray; None if there are none yet."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        """Set the values.

        Args:
            data: an NDArray, or what NumPy makes an array of; None takes them away.

        Raises:
            ArgumentError: if they have another dtype, or extents other than the stated numbers. A symbol takes any extent.
        """
        if data is None:
            self._data = None
            return
        made = data if hasattr(data, "numpy") and hasattr(data, "device") else array(np.asarray(data))
        stated = [as_int(one) if not isinstance(one, str) else None for one in self.stated]
        fits = len(made.shape) == len(stated) and all(one in (None, size) for one, size in zip(stated, made.shape, strict=True))
        if not fits or str(made.dtype) != self.param_dtype:
            raise ArgumentError(f"a parameter of shape {self.stated} of {self.param_dtype} gets {tuple(made.shape)} of {made.dtype}")
        self._data = made

    def to(self, dtype: str | None = None) -> None:
        """Let it have another dtype; it has no values then."""
        if dtype is not None and dtype != self.param_dtype:
            # In place: modules and lists hold this very object.
            self.__init__(self.stated, dtype)  # type: ignore[misc]


class Module:
    """Base of networks and their parts: attributes that are parameters and modules belong to it; `forward` says what it computes.

    With `define_subroutine` it is computed in a private function of its own; equal parts are one function.
    """

    define_subroutine: ClassVar[bool] = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` computes."""
        if not self.define_subroutine:
            return self.forward(*args, **kwargs)
        given = inspect.signature(self.forward).bind(*args, **kwargs).arguments
        tensors = [isinstance(arg, Tensor) for arg in given.values()]

        def forward(*exprs: Any) -> Any:
            pairs = zip(exprs, tensors, strict=True)
            return unwrapped(self.forward(*(Tensor(_expr=expr) if is_tensor else expr for expr, is_tensor in pairs)))

        weights: list[Any] = [parameter._expr for parameter in self.parameters()]
        return emitted(called(type(self).__name__, forward, {name: unwrapped(arg) for name, arg in given.items()}, weights))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes of tensors."""
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names, those of parts with dots: ``fc1.weight``."""
        for name, value in vars(self).items():
            yield from _parameters(f"{prefix}.{name}" if prefix else name, value)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def state_dict(self, *, prefix: str = "") -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(self.named_parameters(prefix))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Give parameters values.

        Args:
            state_dict: names -> arrays or parameters.
            strict: refuse names that are missing, or that no parameter has.

        Returns:
            names that are missing, and names that no parameter has.

        Raises:
            ArgumentError: for values that don't fit, and with `strict` for such names.
        """
        own = self.state_dict()
        missing, unexpected = [name for name in own if name not in state_dict], [name for name in state_dict if name not in own]
        if strict and (missing or unexpected):
            raise ArgumentError(f"load_state_dict: missing {missing}, unexpected {unexpected}")
        for name, value in state_dict.items():
            if name in own:
                own[name].data = value.data if isinstance(value, Parameter) else value
        return missing, unexpected

    def to(self, dtype: str | None = None) -> None:
        """Let all parameters have another dtype."""
        for parameter in self.parameters():
            parameter.to(dtype)

    def export_tvm(self, spec: Mapping[str, Mapping[str, Any]], debug: bool = False) -> tuple[Any, list[tuple[str, Parameter]]]:
        """The graphs of methods, and the parameters that they take behind their inputs, with their names.

        Args:
            spec: methods -> arguments -> what they are: `nn.spec.Tensor((1, "n"), "float32")`, `int`, lists and tuples of such.
            debug: refused if set: effects while the graph runs are R.print's.

        Raises:
            DeclarationError: for methods and arguments that there aren't, or that aren't stated.
        """
        from .exporter import export

        if debug:
            raise DeclarationError("export_tvm(debug=True): there is no io effect; nn.op.print_ prints")
        return export(self, spec)


class ModuleList(Module):
    """Modules in a list; called, one after the other."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, index: int) -> Module:
        return self.modules[index]

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: Module) -> None:
        """Add a module at the end."""
        self.modules.append(module)

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters, with the number of their module."""
        yield from _parameters(prefix, self.modules)

    def forward(self, x: Any) -> Any:
        """Each module of what the one before has computed."""
        for module in self.modules:
            x = module(x)
        return x


def _parameters(name: str, value: Any) -> Iterator[tuple[str, Parameter]]:
    if isinstance(value, Parameter):
        yield name, value
    elif isinstance(value, Module):
        yield from value.named_parameters(name)
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            yield from _parameters(f"{name}.{number}" if name else str(number), one)
