"""The ways to hand a program over: as text, or as a decorated function or class."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, overload

from ..errors import ParseError
from ..tir.function import IRModule, PrimFunc
from .parser import IR, TIR, Macro, ProgramReader, Source, macro_of
from .parser.source import enclosed

_NAMES: Mapping[str, Any] = {"T": TIR, "I": IR, "tir": TIR, "ir": IR}


def parse(program: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True) -> PrimFunc | IRModule:
    """Read a program; the inverse of `script()`.

    Args:
        program: TVMScript text of one function or one module; or a Python function or class whose source is read.
        extra_vars: what names mean that the program doesn't define: numbers, strings, sequences of them, expressions.
        check_well_formed: refuse programs that use what they don't define, and the like.

    Returns:
        A PrimFunc for a function under @T.prim_func, an IRModule for a class under @I.ir_module.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    source = Source.of_text(program) if isinstance(program, str) else Source.of(program)
    captured = {**_NAMES, **(extra_vars or {})}
    if callable(program):
        captured.update(_captured(program, None))
    return ProgramReader(source, captured, check_well_formed).program()


from_source = parse


def asscript(program: PrimFunc | IRModule) -> str:
    """The text of a program."""
    return program.script()


@overload
def prim_func(func: Callable[..., Any]) -> PrimFunc: ...
@overload
def prim_func(*, private: bool = ..., check_well_formed: bool = ...) -> Callable[[Callable[..., Any]], PrimFunc]: ...


def prim_func(func: Any = None, *, private: bool = False, check_well_formed: bool = True) -> Any:
    """Decorator: the function whose source stands below it, as a PrimFunc. It is read and never run.

    Args:
        private: without a "global_symbol", so not visible outside of its module.
        check_well_formed: refuse programs that use what they don't define, and the like.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    # Here and not in `read`, whose caller is the program with options, and this function without.
    frame = inspect.currentframe()
    around = frame.f_back if frame is not None else None

    def read(target: Any) -> Any:
        if not inspect.isfunction(target):
            raise ParseError(f"@T.prim_func stands above a function, not above {target!r}")
        if _in_module(target, around):
            return target  # the class reads it, with all of its functions
        return ProgramReader(Source.of(target), {**_NAMES, **_captured(target, around)}, check_well_formed).program()

    return read if func is None else read(func)


def graph_function(target: Any, around: FrameType | None, options: Mapping[str, Any]) -> Any:
    """What `@R.function` makes of a function.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    if not inspect.isfunction(target):
        raise ParseError(f"@R.function stands above a function, not above {target!r}")
    if _in_module(target, around):
        return target
    return ProgramReader(Source.of(target), {**_NAMES, **_captured(target, around)}).program()


def macro(func: Any = None, *, hygienic: bool = True) -> Any:
    """Decorator: statements that scripts use by name. They are read anew at each call, with parameters for its values.

    @T.macro
    def copy(A, B, i):
        B[i] = A[i]

    Args:
        hygienic: other names mean what they meant at the definition; else what they mean at the call.

    Raises:
        ParseError: if it is no plain function.
    """
    # As in `prim_func`: the caller of the decorator, whether it has options or not.
    frame = inspect.currentframe()
    around = frame.f_back if frame is not None else None

    def read(target: Any) -> Macro:
        if not inspect.isfunction(target):
            raise ParseError(f"@T.macro stands above a function, not above {target!r}")
        return macro_of(Source.of(target), {**_NAMES, **_captured(target, around)}, hygienic)

    return read if func is None else read(func)


def ir_module(mod: Any = None, *, check_well_formed: bool = True) -> Any:
    """Decorator: the class whose source stands below it, as an IRModule of its functions.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    frame = inspect.currentframe()
    around = frame.f_back if frame is not None else None

    def read(target: Any) -> Any:
        if not inspect.isclass(target):
            raise ParseError(f"@I.ir_module stands above a class, not above {target!r}")
        return module_of(target, around, check_well_formed)

    return read if mod is None else read(mod)


def module_of(target: type, around: FrameType | None, check_well_formed: bool = True) -> Any:
    """The module that a class stands for.

    Args:
        target: the class, whose source is read.
        around: what its names mean beside its globals.
        check_well_formed: as of `ir_module`.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    return ProgramReader(Source.of(target), {**_NAMES, **_captured(target, around)}, check_well_formed).program()


def _in_module(func: Any, around: FrameType | None) -> bool:
    """Whether a function stands in a class that becomes a module, as the decorator above it says."""
    owner = func.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>") or around is None:
        return False
    line = around.f_code.co_firstlineno  # of a class with decorators, that of the first
    while (text := linecache.getline(around.f_code.co_filename, line).strip()) and not text.startswith("class "):
        if text.startswith("@") and ("ir_module" in text or "rewriter" in text):
            return True
        line += 1
    return not text  # without its source a class is taken for a module


def _captured(target: Any, around: FrameType | None) -> dict[str, Any]:
    """What the names around a definition mean: globals, then those of the enclosing functions."""
    functions = [member for member in vars(target).values() if inspect.isfunction(member)] if inspect.isclass(target) else [target]
    found: dict[str, Any] = {}
    for function in functions:
        found.update(function.__globals__)
    if around is not None:
        found.update(around.f_globals)
        found.update(around.f_locals)
    for function in functions:
        found.update(enclosed(function))
    return found
