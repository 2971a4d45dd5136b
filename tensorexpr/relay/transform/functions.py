"""Passes on whole functions of Relay: types, names, what nothing uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...lower.passes import ModulePass, deep_recursion
from ...relax import expr as graph
from ...tir.function import GlobalVar, IRModule
from ...tir.op_registry import Op
from ..blocks import with_basic_blocks
from ..expr import Function, If, Let, Var
from ..external import outlined
from ..inference import typed
from ..lifetimes import with_kills
from ..parser import parse
from ..text import module_text
from ..to_graph import reachable
from ..unused import acts, inlined, without_dead_values
from ..visitor import ExprMutator, has_effects, substitute
from .common import each_function


def InferType() -> ModulePass:
    """Types: of each function's result, and of variables. The text of the module shows those of all values, then.

    Raises:
        DeclarationError, TypeMismatchError: (the pass) for operands that don't fit.
    """
    return ModulePass("InferType", lambda func, ctx: func, 0, by_user=False, module_func=lambda mod, ctx: typed(mod))


def InferTypeLocal(expr: Any) -> Any:
    """The type of an expression, of which those of its operands are known."""
    return expr.checked_type


def AnnotateSpans() -> ModulePass:
    """Places of nodes in the text of the module, whose name is "GeneratedSource": the functions as they are read back from it."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        constants: list[Any] = []
        own: dict[Any, Any] = {var: func for var, func in mod.functions_items() if isinstance(func, Function)}
        text = module_text(IRModule(own, type_definitions=mod.type_definitions), None, False, constants)
        made = mod.clone()
        made.update(parse(text, "GeneratedSource", None, {"relay.Constant": constants}))
        return made

    return ModulePass("AnnotateSpans", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def EliminateCommonSubexpr(fskip: Callable[[Any], bool] | None = None) -> ModulePass:
    """Calls of the same operator, operands and attributes once.

    Args:
        fskip: true for calls that stay.
    """

    def run(func: Function, mod: IRModule) -> Any:
        known: dict[Any, Any] = {}

        class _Shared(ExprMutator):
            def _known(self, key: Any, made: Any) -> Any:
                return known.setdefault(key, made)

            def visit_call(self, call: Any) -> Any:
                made = super().visit_call(call)
                if not isinstance(made.op, Op) or (fskip is not None and fskip(made)):
                    return made
                return self._known((made.op, made.args, tuple(made.attrs.items())), made)

            def visit_tuple_getitem(self, op: Any) -> Any:
                made = super().visit_tuple_getitem(op)
                return self._known((made.tuple_value, made.index), made) if isinstance(made, graph.TupleGetItem) else made

        return _Shared().visit(func)

    return each_function("EliminateCommonSubexpr", run, 3)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> ModulePass:
    """No variables that nothing uses.

    Args:
        inline_once: values that are used are put where their variables stand, too; values are shared, so that nothing is computed twice.
        ignore_impurity: variables that nothing uses go also where they are bound to references, or to calls that may change them.
    """

    def run(func: Function, mod: IRModule) -> Any:
        made = without_dead_values(func, acts(mod) and not ignore_impurity)
        return inlined(made, has_effects(made) if ignore_impurity else acts(mod)) if inline_once else made

    return each_function("DeadCodeElimination", run, 1)


def ToGraphNormalForm() -> ModulePass:
    """No Lets: each value stands where it is used."""
    return each_function("ToGraphNormalForm", lambda func, mod: inlined(func, acts(mod), across=True))


def _named(root: Any) -> Any:
    """An expression in which each value has a name, bound in the order in which they are computed."""
    lets: list[tuple[Var, Any]] = []
    atoms: dict[Any, Any] = {}

    class _Atoms(ExprMutator):
        def visit(self, expr: Any) -> Any:
            if expr in atoms:
                return atoms[expr]
            if isinstance(expr, If):
                # Branches are sequences of their own: what they compute isn't computed in front of them.
                made: Any = If(self.visit(expr.cond), _named(expr.true_branch), _named(expr.false_branch))
            elif isinstance(expr, Function):
                return replace(expr, body=_named(expr.body))
            elif isinstance(expr, Let):
                value = (
                    self.visit(expr.value) if not isinstance(expr.value, Function) else replace(expr.value, body=_named(expr.value.body))
                )
                lets.append((expr.var, value))
                return self.visit(expr.body)
            else:
                made = super().visit(expr)
            if isinstance(expr, (graph.Var, graph.Constant, GlobalVar, Op)):
                return made
            var = Var(f"x{len(lets)}")
            lets.append((var, made))
            atoms[expr] = var
            return var

    found = _Atoms().visit(root)
    for var, value in reversed(lets):
        found = Let(var, value, found)
    return found


def ToANormalForm() -> ModulePass:
    """A Let for each value, in the order in which they are computed; a value that both branches of an If use stands in both."""
    return each_function("ToANormalForm", lambda func, mod: replace(func, body=_named(func.body)), 1)


def ToANormalFormExpr(e: Any) -> Any:
    """An expression with a Let for each value; see `ToANormalForm`."""
    with deep_recursion:
        return _named(e)


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> ModulePass:
    """Functions for code generators that stand where they are called as functions of the module; builds do that, too.

    Args:
        compiler_filter: the name of a generator; all without.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        return outlined(mod, compiler_filter)

    name = "OutlineCompilerFunctionsWithExistingGlobalSymbols"
    return ModulePass(name, lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def ToBasicBlockNormalForm() -> ModulePass:
    """Names, in the innermost block around them, for values that several blocks use; others stay where they are used."""
    return each_function("ToBasicBlockNormalForm", lambda func, mod: with_basic_blocks(func), 1)


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """No functions that the entry functions, "main" without any, don't call."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        return reachable(mod, entry_functions or ("main",))

    return ModulePass("RemoveUnusedFunctions", lambda func, ctx: func, 1, by_user=False, module_func=on_module)


def DefuseOps() -> ModulePass:
    """Functions that are called where they stand, such as fused ones, as their values."""

    class _Flat(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            if not isinstance(made.op, Function):
                return made
            return substitute(made.op.body, dict(zip(made.op.params, made.args, strict=True)))

    return each_function("DefuseOps", lambda func, mod: _Flat().visit(func), 3)


def ManifestLifetimes() -> ModulePass:
    """`memory.kill` behind the last use of each value of functions in A-normal form, which `ToANormalForm` makes."""
    return each_function("ManifestLifetimes", lambda func, mod: with_kills(func))


__all__ = [
    "AnnotateSpans",
    "DeadCodeElimination",
    "DefuseOps",
    "EliminateCommonSubexpr",
    "InferType",
    "InferTypeLocal",
    "ManifestLifetimes",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
    "RemoveUnusedFunctions",
    "ToANormalForm",
    "ToANormalFormExpr",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
]
