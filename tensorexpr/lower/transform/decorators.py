"""`@prim_func_pass` and `@module_pass`: passes made of functions, or of classes whose instances are passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from ...errors import LoweringError, PassError
from ...tir.function import PrimFunc
from ..context import PassContext
from ..passes import ModulePass, Pass, PrimFuncPass

_UserFunc = Callable[..., Any]


class PassDecorator(Protocol):
    """`@decorator(opt_level=0)` on a function or class, or `decorator(function, opt_level=0)`."""

    @overload
    def __call__(
        self,
        pass_func: None = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Callable[[Any], Any]: ...
    @overload
    def __call__(
        self,
        pass_func: _UserFunc,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Any: ...


def unused(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """What a pass on modules does to a single function: nothing."""
    return func


def _decorator(base: type[Pass], field: str, method: str, summary: str) -> PassDecorator:
    """The decorator that makes passes of functions, which go into `field` of `base`, and of classes with `method`."""

    def decorator(
        pass_func: Any = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Any:
        if opt_level is None:
            title = name or getattr(pass_func, "__name__", "of yours")
            raise PassError(f"pass {title}: give an opt_level, as in @prim_func_pass(opt_level=0)")

        def make(func: Any) -> Any:
            title = str(name or getattr(func, "__name__", type(func).__name__))
            fields: dict[str, Any] = {
                "name": title,
                "run": unused,
                "opt_level": opt_level,
                "required": tuple(required or ()),
                "traceable": traceable,
            }
            if isinstance(func, type):
                return _pass_class(base, func, field, method, fields)
            if not callable(func):
                raise PassError(f"a pass is made of a function or a class with {method}, not of {func!r}")
            return base(**fields, **{field: func})

        return make if pass_func is None else make(pass_func)

    decorator.__doc__ = f"""{summary}, or a class of passes of a class with `{method}`; also as a decorator.

    Args:
        opt_level: contexts of a lower level leave the pass out. It has to be given.
        name: how contexts and instruments call the pass; by default the function's name.
        required: names of passes that `Sequential` runs before this one.

    Raises:
        PassError: if `opt_level` is missing or there is nothing to call.
        LoweringError: when the pass runs, if it returns something else.
    """
    return decorator


def _pass_class(base: type[Pass], cls: type, field: str, method: str, fields: dict[str, Any]) -> type[Pass]:
    """A class of passes: an instance of it has an instance of `cls`, made from the same arguments."""
    if not callable(getattr(cls, method, None)):
        raise PassError(f"the pass class {cls.__name__} needs a method {method}")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        inner = cls(*args, **kwargs)
        base.__init__(self, **fields, **{field: getattr(inner, method)})
        object.__setattr__(self, "_inner", inner)

    def __getattr__(self: Any, name: str) -> Any:
        if name == "_inner":  # while it is being made or copied
            raise AttributeError(name)
        return getattr(self._inner, name)

    body = {"__init__": __init__, "__getattr__": __getattr__, "__doc__": cls.__doc__, "__module__": cls.__module__}
    return type(cls.__name__, (base,), body)


prim_func_pass = _decorator(PrimFuncPass, "pass_func", "transform_function", "Make a pass of a function `(func, mod, ctx) -> PrimFunc`")
module_pass = _decorator(ModulePass, "module_func", "transform_module", "Make a pass of a function `(mod, ctx) -> IRModule`")
prim_func_pass.__name__, module_pass.__name__ = "prim_func_pass", "module_pass"  # type: ignore[attr-defined]

__all__ = ["LoweringError", "module_pass", "prim_func_pass", "unused"]
