"""Modules and expressions of Relay as JSON: `ir.save_json(mod)`. The text of the module is what is kept, with its constants."""

from __future__ import annotations

import json
from typing import Any

from ..errors import RecordError
from ..tir.function import IRModule
from .expr import Expr, Function
from .parser import fromtext
from .text import module_text
from .visitor import free_vars

_KINDS = ("module", "function", "expression")


def to_json(node: Any) -> str:
    """The JSON of a module that has functions of Relay, of one such function, or of an expression.

    Raises:
        RecordError: for a list, or another node.
    """
    if not isinstance(node, (IRModule, Expr)):
        raise RecordError(f"save_json writes a module, a function or an expression of Relay by itself, not in a {type(node).__name__}")
    kind = _KINDS[0 if isinstance(node, IRModule) else 1 if isinstance(node, Function) else 2]
    func: Any = Function(tuple(free_vars(node)), node) if kind == "expression" else node
    mod = node if isinstance(node, IRModule) else IRModule.from_expr(func)
    return json.dumps({"relay": kind, "text": module_text(mod, None, True)})


def of_json(text: str) -> Any:
    """What `to_json` has written.

    Raises:
        RecordError: for another text.
    """
    try:
        found = json.loads(text)
        kind, source = found["relay"], found["text"]
    except (ValueError, TypeError, KeyError):
        raise RecordError("the text is no JSON of a module of Relay") from None
    if kind not in _KINDS or not isinstance(source, str):
        raise RecordError(f"the text is a {kind!r} of Relay; there are {', '.join(_KINDS)}")
    mod = fromtext(source)
    main: Any = None if kind == "module" else mod["main"]
    return mod if kind == "module" else main if kind == "function" else main.body


__all__ = ["of_json", "to_json"]
