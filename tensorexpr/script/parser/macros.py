"""Macros: statements with a name, which are read anew wherever a script calls it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field, replace
from .source import Source

# Macros may use each other, and one that uses itself would never end.
DEEPEST = 32


@dataclass(frozen=True, eq=False, slots=True)
class Macro:
    """The statements of a function under @T.macro.

    A hygienic one knows what stood around its definition; another one also what stands around the call.
    """

    source: Source
    node: ast.FunctionDef
    captured: Mapping[str, Any]
    hygienic: bool = True
    signature: inspect.Signature = field(default_factory=inspect.Signature)
    owner: tuple[Any, ...] = ()  # of a method: the object, its first argument

    def __get__(self, instance: Any, kind: type | None = None) -> Macro:
        return self if instance is None else replace(self, owner=(instance,))

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What each parameter stands for in a call.

        Raises:
            TypeError: for arguments that don't fit the parameters.
        """
        bound = self.signature.bind(*self.owner, *args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a script alone can use it.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the macro {self.node.name} is a part of scripts; call it in a function under @T.prim_func")


def macro_of(source: Source, captured: Mapping[str, Any], hygienic: bool = True, node: ast.FunctionDef | None = None) -> Macro:
    """The macro that a text defines, at a place or as its only function.

    Raises:
        ParseError: if it is no function, or the default of a parameter is no constant.
    """
    found = source.tree().body[0] if node is None else node
    if not isinstance(found, ast.FunctionDef):
        raise source.error(found, "@T.macro stands above a function")
    return Macro(source, found, captured, hygienic, _signature(source, found.args))


def _signature(source: Source, args: ast.arguments) -> inspect.Signature:
    """How a macro is called."""

    def default(node: ast.expr | None) -> Any:
        try:
            # it evaluates literals alone: nothing of a text is executed
            return inspect.Parameter.empty if node is None else ast.literal_eval(node)
        except ValueError:
            raise source.error(node or args, "the default of a parameter is a constant") from None

    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    kind = inspect.Parameter
    found = [kind(arg.arg, kind.POSITIONAL_OR_KEYWORD, default=default(node)) for arg, node in zip(plain, defaults, strict=True)]
    found += [kind(args.vararg.arg, kind.VAR_POSITIONAL)] if args.vararg else []
    found += [kind(arg.arg, kind.KEYWORD_ONLY, default=default(node)) for arg, node in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return inspect.Signature([*found, *([kind(args.kwarg.arg, kind.VAR_KEYWORD)] if args.kwarg else [])])
