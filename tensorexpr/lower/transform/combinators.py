"""Passes made of passes and of predicates: sequences, filters, single functions, prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...errors import LoweringError, PassError
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..context import PassContext
from ..passes import ModulePass, Pass, PassInfo, PrimFuncPass, run_pass
from .decorators import unused


class Sequential(Pass):
    """Passes one after the other; each is enabled or not by itself.

    Args:
        passes: the passes, or a function of one.
        opt_level: contexts of a lower level leave all of them out.

    Raises:
        PassError: for something in the list that is no pass.
    """

    passes: tuple[Pass, ...]

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        if not isinstance(passes or (), (list, tuple)):
            raise PassError(f"Sequential takes a list of passes, not {passes!r}")
        for one in passes or ():
            if not isinstance(one, Pass):
                raise PassError(f"Sequential takes passes, not {one!r}; decorate functions with @prim_func_pass or @module_pass")
        super().__init__(name, unused, opt_level, tuple(required or ()), traceable=traceable)
        object.__setattr__(self, "passes", tuple(passes or ()))

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """`mod` through all passes, each after those that it requires."""
        for one in self.passes:
            if ctx.enables(one.name, one.opt_level):
                for needed in one.required:
                    mod = run_pass(_named(needed, one.name), mod, ctx)
                mod = run_pass(one, mod, ctx)
        return mod


def _named(name: str, user: str) -> Pass:
    from . import PASSES, factory

    bare = name.removeprefix("tir.")
    if bare not in PASSES:
        raise LoweringError(f"pass {user} requires {name!r}, which is none of {', '.join(sorted(PASSES))}")
    made: Pass = factory(bare)()
    return made


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass of a function from PrimFunc to PrimFunc."""
    return PrimFuncPass("tir.Apply", unused, pass_func=lambda func, mod, ctx: ftransform(func))


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that keeps the functions for which `fcond` holds."""

    def keep(mod: IRModule, ctx: PassContext) -> IRModule:
        kept: dict[str | GlobalVar, PrimFunc] = {
            var.name_hint: func for var, func in mod.functions_items() if not isinstance(func, PrimFunc) or fcond(func)
        }
        return IRModule(kept, mod.attrs)

    return ModulePass("tir.Filter", unused, module_func=keep)


def ApplyPassToFunction(transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False) -> Pass:
    """`transform` on the functions whose names match a regular expression; the others stay."""

    def apply(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {var: func for var, func in mod.functions_items() if re.fullmatch(func_name_regex, var.name_hint)}
        if not chosen and error_if_no_function_matches_regex:
            names = ", ".join(var.name_hint for var, _ in mod.functions_items())
            raise LoweringError(f"ApplyPassToFunction: no function matches {func_name_regex!r}; there are {names}")
        changed = run_pass(transform, IRModule({var.name_hint: func for var, func in chosen.items()}), ctx)
        merged: dict[str | GlobalVar, PrimFunc] = {var.name_hint: func for var, func in mod.functions_items()}
        merged.update({var.name_hint: func for var, func in changed.functions_items()})
        return IRModule(merged, mod.attrs)

    return ModulePass(f"ApplyPassToFunction({transform.name})", unused, module_func=apply)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module under a header, and changes nothing."""

    def show(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"{header}\n{mod.script()}")
        return mod

    return ModulePass("PrintIR", unused, module_func=show)


__all__ = ["Apply", "ApplyPassToFunction", "Filter", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential"]
