"""Methods of modules as graphs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....errors import DeclarationError
from ....tir.expr import Var as Symbol
from ...block_builder import BlockBuilder
from ...expr import Tuple, TupleGetItem, Var
from ...struct_info import ObjectStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from . import spec as specs
from .core import Effect, Module, Parameter, Tensor, named_parts, unwrapped
from .effect import IOEffect


class _Current(threading.local):
    exporter: Exporter | None = None


_CURRENT = _Current()


class Exporter:
    """Exports a module.

    Args:
        debug: whether methods have an effect for prints.
    """

    def __init__(self, debug: bool = False) -> None:
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self.externs: list[Any] = []

    @staticmethod
    def current() -> Exporter:
        """The one that is exporting a module.

        Raises:
            DeclarationError: if none is.
        """
        if _CURRENT.exporter is None:
            raise DeclarationError("effects and functions of others are used while Module.export_tvm makes a graph")
        return _CURRENT.exporter

    def add_extern(self, module: Any) -> None:
        """Let the exported module call the functions of an `ExternModule`.

        Raises:
            DeclarationError: for a name that another one has.
        """
        twice = sorted(set(module.symbols) & {name for one in self.externs for name in one.symbols})
        if twice:
            raise DeclarationError(f"nn.add_extern: another module has {', '.join(twice)} already")
        self.externs.append(module)

    def build(self, spec: specs.ModuleSpec) -> tuple[Any, list[tuple[str, Parameter]], list[Any]]:
        """The graphs of a module's methods, its parameters with their names, and the `ExternModule`s that were added."""
        found = list(named_parts("", spec.module))
        named = [(name, one) for name, one in found if isinstance(one, Parameter)]
        effects: list[tuple[str, Effect]] = [("", self.io_effect)] if self.io_effect is not None else []
        effects += [(name, one) for name, one in found if isinstance(one, Effect)]
        # Parameters stand for variables of this export only, also if a method fails.
        before = [parameter._expr for _, parameter in named]
        with self._open():
            try:
                if effects:
                    self._initial(effects)
                for name, method in zip(spec.method_names, spec.method_specs, strict=True):
                    _Method(self.builder, name, method).run(named, effects)
            finally:
                for (_, parameter), expr in zip(named, before, strict=True):
                    parameter._expr = expr
        return self.builder.get(), named, self.externs

    @contextmanager
    def _open(self) -> Iterator[None]:
        outer, _CURRENT.exporter = _CURRENT.exporter, self
        try:
            yield
        finally:
            _CURRENT.exporter = outer

    def _initial(self, effects: Sequence[tuple[str, Effect]]) -> None:
        """The function that makes the states of effects."""
        with self.builder.function("_initialize_effect", []):
            with self.builder.dataflow():
                states = [state for name, effect in effects for state in effect.emit_init(name.replace(".", "_"), self.builder)]
                result = self.builder.emit_output(self.builder.emit(Tuple(tuple(states))))
            self.builder.emit_func_output(result)


class _Method:
    """Exports one method."""

    def __init__(self, builder: BlockBuilder, name: str, spec: specs.MethodSpec) -> None:
        self._builder, self._name, self._spec = builder, name, spec
        self._symbols: dict[str, Symbol] = {}

    def run(self, named: Sequence[tuple[str, Parameter]], effects: Sequence[tuple[str, Effect]]) -> None:
        """Add the graph of the method to the builder's module."""
        pairs = list(zip(self._spec.arg_names, self._spec.arg_specs, strict=True))
        inputs = [Var(name, self._info(stated, name)) for name, stated in pairs]
        states = [(effect, effect.create(name.replace(".", "_"))) for name, effect in effects]
        weights = []
        for name, parameter in named:
            info = TensorStructInfo(tuple(map(self._extent, parameter.stated)), parameter.param_dtype)
            parameter._expr = Var(name.replace(".", "_"), info)
            weights.append(parameter._expr)
        flat = [state for _, own in states for state in own]
        taken = [*inputs, *_taken(flat, self._spec.effect_mode, "packed_effects")]
        params = [*taken, *_taken(weights, self._spec.param_mode, "packed_params")]
        with self._builder.function(self._name, params, {"num_input": len(taken)}):
            with self._builder.dataflow():
                if self._spec.param_mode == "packed":
                    for (_, parameter), own in zip(named, self._unpacked(params[-1], weights), strict=True):
                        parameter._expr = own
                begin = iter(self._unpacked(taken[-1], flat) if self._spec.effect_mode == "packed" else flat)
                for effect, own in states:
                    effect.set_state([next(begin) for _ in own])
                given = {name: self._value(var, stated, name) for (name, stated), var in zip(pairs, inputs, strict=True)}
                result = _result(unwrapped(_whole(self._spec.method)(**given)), self._name)
                end = [state for effect, _ in states for state in effect.finalize()]
                if end and self._spec.effect_mode != "none":
                    result = Tuple((result, Tuple(tuple(end))))
                result = self._builder.emit_output(result)
            self._builder.emit_func_output(result)

    def _unpacked(self, whole: Var, variables: Sequence[Var]) -> list[Any]:
        return [self._builder.emit(TupleGetItem(whole, n), var.name_hint) for n, var in enumerate(variables)]

    def _extent(self, extent: Any) -> Any:
        """Symbols that are stated by names are one in a method."""
        return self._symbols.setdefault(extent, Symbol(extent, "int64")) if isinstance(extent, str) else extent

    def _info(self, stated: Any, name: str) -> StructInfo:
        """What a spec says of an argument."""
        match stated:
            case specs.Tensor():
                return TensorStructInfo(tuple(map(self._extent, stated.shape)), stated.dtype)
            case specs.Int():
                # A number is passed as a shape of one extent, so that it is a symbol and may be an extent of others.
                return ShapeStructInfo((self._extent(name),))
            case specs.Tuple():
                return TupleStructInfo(tuple(self._info(one, f"{name}_{number}") for number, one in enumerate(stated.elements)))
        return ObjectStructInfo()

    def _value(self, expr: Any, stated: Any, name: str) -> Any:
        """What the method gets for an argument."""
        match stated:
            case specs.Int():
                return expr.struct_info.values[0]
            case specs.Tuple():
                parts = [self._builder.emit(expr[number], f"{name}_{number}") for number in range(len(stated.elements))]
                found = (self._value(part, one, f"{name}_{n}") for n, (part, one) in enumerate(zip(parts, stated.elements, strict=True)))
                return type(stated.elements)(found)  # type: ignore[call-arg]
            case specs.Object():
                return stated.object_type(_expr=expr, _name=name)
        return Tensor(_expr=expr)


def _whole(method: Any) -> Any:
    """What is called for a method: a module with `define_subroutine` is one as a whole, too."""
    owner = getattr(method, "__self__", None)
    is_forward = isinstance(owner, Module) and owner.define_subroutine and method.__name__ == "forward"
    return owner if is_forward else method


def _taken(variables: Sequence[Var], mode: str, name: str) -> list[Var]:
    """The parameters for some variables: each, all as a tuple, or none."""
    if mode == "packed":
        return [Var(name, TupleStructInfo(tuple(var.struct_info for var in variables)))]
    return list(variables) if mode == "plain" else []


def _result(value: Any, method: str) -> Any:
    """What a method returns, as an expression."""
    if isinstance(value, (list, tuple)):
        return Tuple(tuple(_result(one, method) for one in value))
    if value is None:
        raise DeclarationError(f"export_tvm: method {method} returns nothing")
    return value


def add_extern(mod: Any) -> None:
    """Let the module that is exported call the functions of an `nn.ExternModule`, which `export_tvm(allow_extern=True)` returns.

    Raises:
        DeclarationError: if nothing is exported, or another module has a function of the same name.
    """
    Exporter.current().add_extern(mod)


__all__ = ["Exporter", "add_extern"]
