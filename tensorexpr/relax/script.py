"""The names of R, for ``from tensorexpr.script import relax as R``.

A function under `@R.function` is read, not run. Types, constants and operators work in Python too: `R.Tensor((1, 784), "float32")`,
`R.add(x, y)`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from ..script.ir_builder.builder import IRBuilder
from ..script.read import graph_function, macro, module_of
from . import printer, script_reader
from . import script_entry as entry
from .dpl import PatternMatchingRewriter
from .script_words import RELAX


def function(func: Any = None, *, pure: bool = True, private: bool = False, check_well_formed: bool = True) -> Any:
    """Decorator: the function whose source stands below it, as a `relax.Function`. It is read and never run.

    Args:
        pure: whether calls have no effect but their value.
        private: not visible outside of its module.
        check_well_formed: accepted; a function that is read is.

    Raises:
        ParseError: with the place, and what was expected there.
    """
    frame = inspect.currentframe()
    around = frame.f_back if frame is not None else None
    options = {"pure": pure, "private": private}
    return (lambda target: graph_function(target, around, options)) if func is None else graph_function(func, around, options)


def rewriter(rewriter_mod: Any) -> PatternMatchingRewriter:
    """Decorator: a class with functions `pattern` and `replacement` of graphs, as a rewriter; a module of such functions too.

    Raises:
        ParseError: with the place, and what was expected there.
        DeclarationError: if there aren't two such functions of as many parameters.
    """
    frame = inspect.currentframe()
    around = frame.f_back if frame is not None else None
    return PatternMatchingRewriter.from_module(module_of(rewriter_mod, around) if isinstance(rewriter_mod, type) else rewriter_mod)


# What a builder (`IRBuilder`) is told by calls, in the words that scripts have for it, too.
_TOLD = frozenset({
    "Else", "If", "Then", "arg", "dataflow", "emit", "emit_match_cast", "emit_var_binding", "func_attr", "func_name",
    "func_ret_struct_info", "func_ret_value", "output",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _TOLD and IRBuilder.is_in_scope():
        return getattr(importlib.import_module("tensorexpr.relax.ir_builder"), name)
    return RELAX.__getattr__(name)


__all__ = ["entry", "function", "macro", "printer", "rewriter", "script_reader"]


def __dir__() -> list[str]:
    return sorted({"function", "macro", "rewriter", *RELAX.entries})
