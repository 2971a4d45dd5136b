"""RunCodegen: functions with the attribute "Codegen" are what generators of others make of them, called by name.

lv = fused_conv2d_mine(x, w)    ->    lv = R.call_dps_packed("fused_conv2d_mine", (x, w), out_sinfo=...)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..expr import Call, Constant, Function
from ..external import EXTERNAL, code_generator, external_functions
from ..ops.calls import call_dps_packed
from ..struct_info import TensorStructInfo, TupleStructInfo
from ..visitor import Mutator, walk
from .passes import graph_pass

_PREFIX = "relax.ext."


class _Caller(Mutator):
    """Calls of external functions in place of those of functions of the module."""

    def __init__(self, external: set[str]) -> None:
        super().__init__()
        self._external = external

    def rewrite(self, expr: Any) -> Any:
        """A call in destination-passing style."""
        if not isinstance(expr, Call) or not isinstance(expr.op, GlobalVar) or expr.op.name_hint not in self._external:
            return expr
        name, info = expr.op.name_hint, expr.struct_info
        fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
        if any(not isinstance(one, TensorStructInfo) or one.extents is None for one in fields):
            raise DeclarationError(f"RunCodegen: {name} returns {info}; external functions write into tensors whose shapes are stated")
        return call_dps_packed(name, expr.args, info)


def _generated(
    functions: Mapping[str, Function], options: Mapping[str, Any], constant_names: Mapping[Constant, str]
) -> tuple[list[Any], set[str]]:
    """What the generators make of functions, and the names of these.

    Raises:
        DeclarationError: for a generator that there isn't, or that leaves a function out.
    """
    by_target: dict[str, list[str]] = {}
    for name, func in functions.items():
        by_target.setdefault(str(func.attrs["Codegen"]), []).append(name)
    modules: list[Any] = []
    for target, names in by_target.items():
        given = [functions[name].with_attr("global_symbol", name) for name in names]
        made = code_generator(_PREFIX, target)(given, dict(options.get(target, {})), constant_names)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        left_out = [name for name in names if name not in external_functions(made)]
        if left_out:
            raise DeclarationError(
                f"RunCodegen: the generator {target!r} made no function {left_out[0]!r}; it returns modules, "
                "or mappings from names to functions, which have one for each function that it gets"
            )
        modules += made
    return modules, set(functions)


def RunCodegen(target_options: Mapping[str, Mapping[str, Any]] | None = None, entry_functions: Sequence[str] | None = None) -> ModulePass:
    """A pass: functions with the attribute "Codegen" are handed to generators of others, and their calls become calls of what these make.

    A generator "mine" is a function registered as "relax.ext.mine". It is called once, as f(functions, options, constant_names), and
    returns a list of modules, or of mappings from names to functions. There has to be one for the "global_symbol" of each function that
    it got, which takes the tensors of the arguments and then those of the results, into which it writes. They stand in the attribute
    "external_mods" of the module; `relax.build` takes them over.

    Args:
        target_options: the options of each generator, by its name.
        entry_functions: the functions in which calls are replaced; all if None.

    Raises:
        DeclarationError: for functions or generators that there aren't, for a generator that leaves a function out, and for a function
            that returns other than tensors of stated shapes.
    """

    def run(mod: IRModule) -> IRModule:
        graphs: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function)}
        missing = [name for name in entry_functions or () if name not in graphs]
        if missing:
            raise DeclarationError(f"RunCodegen: the module has no function {missing[0]!r} of a graph; it has {', '.join(graphs)}")
        marked = {name: func for name, func in graphs.items() if "Codegen" in func.attrs}
        callers = [name for name in graphs if name not in marked and (entry_functions is None or name in entry_functions)]
        if entry_functions is not None:
            called = {node.name_hint for name in callers for node in walk(graphs[name]) if isinstance(node, GlobalVar)}
            marked = {name: func for name, func in marked.items() if name in called}
        if not marked:
            return mod
        constants = dict.fromkeys(node for func in marked.values() for node in walk(func) if isinstance(node, Constant))
        modules, external = _generated(marked, target_options or {}, {node: f"const_{n}" for n, node in enumerate(constants)})
        kept: dict[Any, Any] = {var.name_hint: func for var, func in mod.functions_items() if var.name_hint not in external}
        kept.update({name: _Caller(external).function(graphs[name]) for name in callers})
        return IRModule(kept, {**mod.attrs, EXTERNAL: (*mod.attrs.get(EXTERNAL, ()), *modules)}, mod.global_infos)

    return graph_pass("RunCodegen", run)
