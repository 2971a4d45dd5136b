"""Methods of modules as graphs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ....errors import DeclarationError
from ....tir.expr import Var as Symbol
from ...block_builder import BlockBuilder
from ...expr import Tuple, Var
from ...struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from . import spec as specs
from .core import Module, Parameter, Tensor, unwrapped


def export(module: Module, spec: Mapping[str, Mapping[str, Any]]) -> tuple[Any, list[tuple[str, Parameter]]]:
    """The graphs of a module's methods, and its parameters; see `Module.export_tvm`."""
    named = list(module.named_parameters())
    # Parameters stand for variables of this export only, also if a method fails.
    before = [parameter._expr for _, parameter in named]
    builder = BlockBuilder()
    try:
        for method, arguments in spec.items():
            _Exporter(builder, module, method).run(arguments, named)
    finally:
        for (_, parameter), expr in zip(named, before, strict=True):
            parameter._expr = expr
    return builder.get(), named


class _Exporter:
    """Exports one method."""

    def __init__(self, builder: BlockBuilder, module: Module, method: str) -> None:
        self._builder, self._module, self._method = builder, module, method
        self._symbols: dict[str, Symbol] = {}

    def run(self, arguments: Mapping[str, Any], named: list[tuple[str, Parameter]]) -> None:
        """Add the graph of the method to the builder's module."""
        function = getattr(self._module, self._method, None)
        if not callable(function):
            raise DeclarationError(f"export_tvm: {type(self._module).__name__} has no method {self._method!r}")
        wanted = list(inspect.signature(function).parameters)
        odd = [name for name in arguments if name not in wanted] + [name for name in wanted if name not in arguments]
        if odd:
            raise DeclarationError(f"export_tvm: method {self._method} takes {', '.join(wanted)}; the spec has {', '.join(arguments)}")
        inputs = [Var(name, self._info(arguments[name], name)) for name in wanted]
        weights = []
        for name, parameter in named:
            info = TensorStructInfo(tuple(map(self._extent, parameter.stated)), parameter.param_dtype)
            parameter._expr = Var(name.replace(".", "_"), info)
            weights.append(parameter._expr)
        with self._builder.function(self._method, [*inputs, *weights], {"num_input": len(inputs)}):
            with self._builder.dataflow():
                given = {name: self._value(var, var.struct_info) for name, var in zip(wanted, inputs, strict=True)}
                result = self._builder.emit_output(_result(unwrapped(function(**given)), self._method))
            self._builder.emit_func_output(result)

    def _extent(self, extent: Any) -> Any:
        return self._symbols.setdefault(extent, Symbol(extent, "int64")) if isinstance(extent, str) else extent

    def _info(self, stated: Any, name: str) -> StructInfo:
        """What a spec says of an argument."""
        if isinstance(stated, specs.Tensor):
            return TensorStructInfo(tuple(map(self._extent, stated.shape)), stated.dtype)
        if stated is int or isinstance(stated, specs.Int):
            # A number is passed as a shape of one extent, so that it is a symbol and may be an extent of others.
            return ShapeStructInfo((self._extent(name),))
        if isinstance(stated, (list, tuple)):
            return TupleStructInfo(tuple(self._info(one, f"{name}_{number}") for number, one in enumerate(stated)))
        raise DeclarationError(f"export_tvm: argument {name} of {self._method} is nn.spec.Tensor(...), int or a list, not {stated!r}")

    def _value(self, expr: Any, info: StructInfo) -> Any:
        """What the method gets for an argument."""
        if isinstance(info, ShapeStructInfo):
            return info.values[0]
        if isinstance(info, TupleStructInfo):
            parts = [self._builder.emit(expr[number]) for number in range(len(info.fields))]
            return [self._value(part, one) for part, one in zip(parts, info.fields, strict=True)]
        return Tensor(_expr=expr)


def _result(value: Any, method: str) -> Any:
    """What a method returns, as an expression."""
    if isinstance(value, (list, tuple)):
        return Tuple(tuple(_result(one, method) for one in value))
    if value is None:
        raise DeclarationError(f"export_tvm: method {method} returns nothing")
    return value
