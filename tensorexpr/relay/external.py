"""Functions for code generators of others: what is registered as relay.ext.NAME makes them, and a graph calls them by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError
from ..relax.expr import Constant
from ..relax.external import EXTERNAL, code_generator, external_functions
from ..target import Target
from ..tir.function import GlobalVar, IRModule
from ..tir.structural import structural_equal
from ..tir.structural_digest import structural_hash
from .expr import Call, Function, Var
from .to_graph import to_graph
from .visitor import ExprMutator

_PREFIX = "relay.ext."


class _Lifted(ExprMutator):
    """Puts parameters in place of a function's constants; numbers stay."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[Any, Constant] = {}

    def visit_constant(self, const: Constant) -> Any:
        """A parameter."""
        if const.data.ndim == 0:
            return const
        param = Var(f"constant_{len(self.constants)}", const.struct_info)
        self.constants[param] = const
        return param


class _Outlined(ExprMutator):
    """Puts functions of the module in place of functions for generators, or for one of them, that stand where they are called."""

    def __init__(self, mod: IRModule, generator: str) -> None:
        super().__init__()
        self._mod, self._generator = mod, generator

    def visit_function(self, fn: Function) -> Any:
        """A function, or the name of one that a generator gets."""
        if "Compiler" not in fn.attrs or self._generator not in ("", str(fn.attrs["Compiler"])):
            return super().visit_function(fn)
        name = str(fn.attrs.get("global_symbol", f"{fn.attrs['Compiler']}_{structural_hash(fn):016x}"))
        if name in self._mod and not structural_equal(self._mod[name], fn):
            raise DeclarationError(f'two functions have the "global_symbol" {name!r}; each needs one of its own')
        self._mod.update_func(name, fn)  # type: ignore[arg-type]
        return self._mod.get_global_var(name)


class _Calls(ExprMutator):
    """Hands functions the constants that they had."""

    def __init__(self, given: Mapping[str, Sequence[Constant]]) -> None:
        super().__init__()
        self._given = given

    def visit_call(self, call: Any) -> Any:
        """A call, with more arguments if it is one of these functions."""
        made = super().visit_call(call)
        more = self._given.get(made.op.name_hint, ()) if isinstance(made.op, GlobalVar) else ()
        return Call(made.op, (*made.args, *more), made.attrs) if more else made


def _with_lifted(mod: IRModule, names: Sequence[str]) -> IRModule:
    """A module whose functions of these names have no constants: C has no arrays of them, and a library maps those of a graph."""
    made, given = mod.clone(), dict[str, Sequence[Constant]]()
    for name in names:
        func: Any = mod[name]
        lifting = _Lifted()
        body = lifting.visit(func.body)
        if lifting.constants:
            made.update_func(name, replace(func, params=(*func.params, *lifting.constants), body=body))
            given[name] = tuple(lifting.constants.values())
    calls = _Calls(given)
    for var, func in made.functions_items():
        if given and isinstance(func, Function):
            made.update_func(var, replace(func, body=calls.visit(func.body)))  # type: ignore[arg-type]
    return made


def outlined(mod: IRModule, generator: str = "") -> IRModule:
    """A module whose functions for code generators are functions of it, by their "global_symbol"; `generator` for those of one alone."""
    made = mod.clone()
    outlining = _Outlined(made, generator)
    for var, func in mod.functions_items():
        if isinstance(func, Function) and "Compiler" not in func.attrs:
            body = outlining.visit(func.body)
            if body is not func.body:
                made.update_func(var, replace(func, body=body))
    return made


def graph_with_external(mod: IRModule, targets: Sequence[Target] = ()) -> IRModule:
    """A module as one of graphs, in which functions with the attribute "Compiler" are what their code generators make of them.

    A generator "mine" is a function registered as "relay.ext.mine". It gets one function of Relay, and returns a module, or a mapping from
    names to functions, with one for its "global_symbol": that takes the tensors of the arguments and then those of the results, into
    which it writes. "ccompiler" is there from the start (`c_functions`).

    Args:
        mod: of Relay.
        targets: for generators, whose names are their kinds: each runs with its own as the current one.

    Raises:
        DeclarationError: for a generator that there isn't, or that makes no function of the symbol.
    """
    mod = outlined(mod)
    by: dict[str, str] = {
        v.name_hint: str(f.attrs["Compiler"]) for v, f in mod.functions_items() if isinstance(f, Function) and "Compiler" in f.attrs
    }
    if not by:
        return to_graph(mod)
    from .c_functions import CCOMPILER  # which loads the writer of C

    mod = _with_lifted(mod, [name for name, target in by.items() if target == CCOMPILER])
    made, symbols, own = [], {}, {one.kind.name: one for one in targets}
    for name, target in by.items():
        func: Any = mod[name]
        symbols[name] = symbol = str(func.attrs.get("global_symbol", name))
        with own.get(target, nullcontext()):
            generated = code_generator(_PREFIX, target)(func.with_attr("global_symbol", symbol))
        if symbol not in external_functions([generated]):
            raise DeclarationError(
                f"the code generator {target!r} made no function {symbol!r}; it returns a module, or a mapping from names to functions, "
                "with one for the global_symbol of the function that it gets"
            )
        made.append(generated)
    whole = to_graph(mod, symbols)
    kept: dict[Any, Any] = {var: func for var, func in whole.functions_items() if var.name_hint not in by}
    return IRModule(kept, {**whole.attrs, EXTERNAL: (*whole.attrs.get(EXTERNAL, ()), *made)}, whole.global_infos)
