"""Networks as classes: tensors that are emitted as they are computed, parameters, modules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ....errors import ArgumentError, DeclarationError
from ....runtime.ndarray import array
from ....tir.arithmetic import as_int
from ....tir.expr import Var as Symbol
from ... import op as relax_op
from ...block_builder import BlockBuilder
from ...expr import Var, const
from ...struct_info import ObjectStructInfo, RelaxExpr, TensorStructInfo
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

    @staticmethod
    def placeholder(shape: Sequence[Any], dtype: str, name: str = "tensor") -> Tensor:
        """A tensor that stands for any of its shape, such as results of `op.extern`; extents may be names of symbols."""
        return Tensor(_expr=Var(name, TensorStructInfo(tuple(map(_extent, shape)), dtype)))

    @staticmethod
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> Tensor:
        """A tensor that stands for any of which this is known."""
        return Tensor(_expr=Var(name, struct_info))

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

    def repeat(self, repeats: int, axis: int | None = None) -> Any:
        """Each element so many times."""
        return emitted(relax_op.repeat(self._expr, repeats, axis), "repeat")

    def maximum(self, other: Any) -> Tensor:
        """The greater one of two elements."""
        return self._with("maximum", other)

    def minimum(self, other: Any) -> Tensor:
        """The smaller one of two elements."""
        return self._with("minimum", other)

    def _with(self, name: str, other: Any, swapped: bool = False) -> Tensor:
        pair = (other, self) if swapped else (self, other)
        made: Tensor = emitted(getattr(relax_op, name)(*map(unwrapped, pair)), "mul" if name == "multiply" else name)
        return made

    def __add__(self, other: Any) -> Any:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self._with("add", other)

    def __sub__(self, other: Any) -> Tensor:
        return self._with("subtract", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._with("subtract", other, True)

    def __mul__(self, other: Any) -> Tensor:
        return self._with("multiply", other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._with("multiply", other)

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


def _extent(extent: Any) -> Any:
    return Symbol(extent, "int64") if isinstance(extent, str) else extent


class Object:
    """A value that is no tensor, such as what a registered function keeps between calls.

    Args:
        _expr: the expression that it is.
        _name: of the variable that it gets.
    """

    def __init__(self, *, _expr: Any, _name: str) -> None:
        self._expr = _expr if isinstance(_expr, Var) else _open_builder().emit(_expr, _name)
        if type(self._expr.struct_info) is not ObjectStructInfo:
            raise DeclarationError(f"nn.Object: {_name} is {self._expr.struct_info}, and not an object")


class Effect:
    """Base of what happens beside the values of a graph, in order; see `nn.effect`. Modules hold them as attributes."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        """The variables of its state in the beginning."""
        raise NotImplementedError(f"{type(self).__name__}.emit_init is not written")

    def create(self, name_hint: str) -> list[Any]:
        """Parameters for its state."""
        raise NotImplementedError(f"{type(self).__name__}.create is not written")

    def set_state(self, state_vars: Sequence[Any]) -> None:
        """Take over the state that a method begins with."""
        raise NotImplementedError(f"{type(self).__name__}.set_state is not written")

    def finalize(self) -> list[Any]:
        """The state that a method ends with."""
        raise NotImplementedError(f"{type(self).__name__}.finalize is not written")

    def to(self, dtype: str | None = None) -> None:
        """Let it have another dtype, if it has one."""


def unwrapped(value: Any) -> Any:
    """Expressions in place of tensors, also in lists and tuples."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    return type(value)(map(unwrapped, value)) if isinstance(value, (list, tuple)) else value


def emitted(expr: Any, name: str = "") -> Any:
    """The tensor that an expression is, or a tuple of them, emitted by the builder that is making the graph.

    Raises:
        DeclarationError: if none is.
    """
    builder = _open_builder()
    made = builder.emit(expr, name)
    fields = getattr(made.struct_info, "fields", None)
    if fields is None:
        return Tensor(_expr=made)
    return tuple(Tensor(_expr=builder.emit(made[number])) for number in range(len(fields)))


def _open_builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise DeclarationError("tensors are computed while Module.export_tvm makes a graph; call the module's method there")
    return builder


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
        super().__init__(_expr=Var("param", TensorStructInfo(tuple(map(_extent, self.stated)), self.param_dtype)))

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
        yield from ((name, one) for name, one in named_parts(prefix, self) if isinstance(one, Parameter))

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
        """Let all parameters and effects have another dtype."""
        for _, part in named_parts("", self):
            part.to(dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def export_tvm(self, spec: Any, debug: bool = False, allow_extern: bool = False) -> Any:
        """The graphs of methods, and the parameters that they take behind their inputs, with their names.

        Effects stand between: a method takes their states behind its inputs, and returns `(result, new states)`; the module has a
        function `_initialize_effect` that makes the first ones.

        Args:
            spec: methods -> arguments -> what they are: `nn.spec.Tensor((1, "n"), "float32")`, `int`, lists and tuples of such; or a
                `nn.spec.ModuleSpec`.
            debug: with an effect for `nn.op.print_` and `nn.op.debug_func`, which are errors without it.
            allow_extern: return the `nn.ExternModule`s that were added, too.

        Returns:
            the module, and the parameters with their names.

        Raises:
            DeclarationError: for methods and arguments that there aren't, or that aren't stated.
        """
        from .exporter import Exporter
        from .spec import ModuleSpec

        mod, params, externs = Exporter(debug).build(ModuleSpec.from_raw(spec, self))
        if allow_extern:
            return mod, params, externs
        if externs:
            raise DeclarationError("export_tvm: the module has functions of an ExternModule; allow_extern=True returns these, too")
        return mod, params

    def jit(self, spec: Any, device: Any = "cpu", pipeline: Any = "default_build", out_format: str = "torch", debug: bool = False) -> Any:
        """The module built, with its parameters, as methods of PyTorch's tensors: `model["forward"](x)`.

        Args:
            spec, debug: as of `export_tvm`.
            device: where it runs.
            pipeline: the passes, by name.
            out_format: "torch".

        Raises:
            DeclarationError: for other formats, and parameters without values.
        """
        from .jit import built

        return built(self, spec, device, pipeline, out_format, debug)


class ModuleList(Module):
    """Modules in a list; called, one after the other."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, index: int) -> Module:
        return self.modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self.modules[index] = module

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: Module) -> None:
        """Add a module at the end."""
        self.modules.append(module)

    def forward(self, x: Any) -> Any:
        """Each module of what the one before has computed."""
        for module in self.modules:
            x = module(x)
        return x


def named_parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and effects in a module, a list or tuple, by name; those of parts with dots."""
    if isinstance(value, (Parameter, Effect)):
        yield name, value
    elif isinstance(value, Module):
        # A list's modules have the numbers of the list itself.
        for key, one in [("", value.modules)] if isinstance(value, ModuleList) else vars(value).items():
            yield from named_parts(".".join(part for part in (name, key) if part), one)
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            yield from named_parts(f"{name}.{number}" if name else str(number), one)
