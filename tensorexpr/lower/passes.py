"""What a pass is, and the one way to run one: every dump, diff, timing and check hooks in here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

from ..dataclass import dataclass
from ..errors import LoweringError, PassError
from ..tir.function import IRModule, PrimFunc
from .context import PassContext

_RECURSION_LIMIT = 30_000  # a pass that copies takes four calls for an operator


class _DeepRecursion:
    """Chains of a thousand stages nest as deeply, and the passes recurse over them. The limit belongs to all threads: the
    first that needs it raises it, the last one out restores it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._usual, _RECURSION_LIMIT))
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._usual)
        if isinstance(error[1], RecursionError):
            raise LoweringError(
                "an expression or loop nest is too deep to be lowered; compute parts of it in stages of their own"
            ) from None


deep_recursion = _DeepRecursion()


@dataclass(frozen=True, slots=True)
class PassInfo:
    """What instruments are told about a pass."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False

    def __str__(self) -> str:
        wanted = ", ".join(f'"{name}"' for name in self.required)
        return f"The meta data of the pass - pass name: {self.name}, opt_level: {self.opt_level}, required passes: [{wanted}]\n"


@dataclass(frozen=True)
class Pass:
    """A named transformation of functions. Called on a module, it runs under the current PassContext.

    name: as contexts and instruments know it ("tir.VectorizeLoop").
    run: the transformation; it may not change its argument and returns it as it is when there is nothing to do.
    opt_level: sequences leave the pass out in contexts of a lower level.
    by_user: a result that breaks the rules is then the user's error and not ours.
    """

    name: str
    run: Callable[[PrimFunc, PassContext], PrimFunc]
    opt_level: int = 0
    required: tuple[str, ...] = ()
    by_user: bool = False
    traceable: bool = False

    @property
    def info(self) -> PassInfo:
        """The name, level and requirements of this pass."""
        return PassInfo(self.opt_level, self.name, self.required, self.traceable)

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Every function of `mod` transformed; `mod` itself if none changed."""
        return _map_functions(self.name, mod, lambda func: self.run(func, ctx))

    def __call__(self, mod: IRModule) -> IRModule:
        """`mod` transformed under the current context, whatever its level: that chooses among the passes of a sequence."""
        ctx = PassContext.current()
        with deep_recursion:
            return run_pass(self, mod, ctx, self.name not in ctx.disabled_pass)


@dataclass(frozen=True)
class PrimFuncPass(Pass):
    """A pass of a user: `pass_func(func, mod, ctx)` returns the new function."""

    pass_func: Callable[[PrimFunc, IRModule, PassContext], PrimFunc] = lambda func, mod, ctx: func
    by_user: bool = True

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Every function of `mod` through `pass_func`."""
        return _map_functions(self.name, mod, lambda func: self.pass_func(func, mod, ctx))


@dataclass(frozen=True)
class ModulePass(Pass):
    """A pass of a user on whole modules: `module_func(mod, ctx)` returns the new module."""

    module_func: Callable[[IRModule, PassContext], IRModule] = lambda mod, ctx: mod
    by_user: bool = True

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """`mod` through `module_func`."""
        result = self.module_func(mod, ctx)
        if not isinstance(result, IRModule):
            raise LoweringError(f"pass {self.name} returned {_shown(result)}, not an IRModule")
        return result


def _shown(value: Any) -> str:
    return "None (is a return missing?)" if value is None else f"{type(value).__name__} {value!r}"


def _map_functions(name: str, mod: IRModule, transform: Callable[[PrimFunc], PrimFunc]) -> IRModule:
    changed: dict[str, PrimFunc] = {}
    for var, func in mod.functions.items():
        result = transform(func)
        if not isinstance(result, PrimFunc):
            raise LoweringError(f"pass {name} returned {_shown(result)} for function {var.name_hint!r}, not a PrimFunc")
        if result is not func:
            changed[var.name_hint] = result
    if not changed:
        return mod
    return IRModule({var.name_hint: changed.get(var.name_hint, func) for var, func in mod.functions.items()}, mod.attrs)


def run_pass(one: Pass, mod: IRModule, ctx: PassContext, enabled: bool | None = None) -> IRModule:
    """Run a pass if the context enables it and every instrument agrees, with the instruments told before and after.

    Args:
        one: the pass.
        mod: what it transforms.
        ctx: the context.
        enabled: whether it is enabled; by name and level in the context if None.
    """
    if not isinstance(mod, IRModule):
        hint = '; make one of a function with tvm.IRModule({"main": func})' if isinstance(mod, PrimFunc) else ""
        raise PassError(f"the pass {one.name} takes an IRModule, not {type(mod).__name__}{hint}")
    if not (ctx.enables(one.name, one.opt_level) if enabled is None else enabled):
        return mod
    if not ctx.instruments:
        return one.transform(mod, ctx)
    info = one.info
    wanted = [_ask(instrument, mod, info) for instrument in ctx.instruments]  # each is asked, whatever the others say
    if not all(wanted) and one.name not in ctx.required_pass:
        return mod
    _tell(ctx, "run_before_pass", mod, info)
    result = one.transform(mod, ctx)
    _tell(ctx, "run_after_pass", result, info)
    return result


def _ask(instrument: Any, mod: IRModule, info: PassInfo) -> bool:
    hook = getattr(instrument, "should_run", None)
    return hook is None or bool(hook(mod, info))


def _tell(ctx: PassContext, event: str, mod: IRModule, info: PassInfo) -> None:
    for instrument in ctx.instruments:
        hook = getattr(instrument, event, None)
        if hook is not None:
            hook(mod, info)
