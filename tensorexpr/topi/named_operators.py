"""Operators under the names and arguments that programs call them by for one processor."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Operator = Callable[..., Any]


def renamed(module: str, processor: str, name: str, function: Operator, names: str, call: Callable[[tuple[Any, ...]], Any]) -> Operator:
    """An operator under another name, its first arguments under the names given.

    Args:
        module: where the name is found.
        processor: in words, for the documentation.
        name: the operator's there.
        function: what computes it.
        names: of the first arguments of `function`, separated by spaces; the others aren't taken.
        call: what is done with the arguments, in the order of `function`.
    """
    own = list(inspect.signature(function).parameters.values())
    wanted = names.split()
    parameters = [
        inspect.Parameter(new, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=old.default)
        for new, old in zip(wanted, own[: len(wanted)], strict=True)
    ]
    signature = inspect.Signature(parameters)

    def operator(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        # By their places: the function knows these arguments by other names.
        return call(bound.args)

    operator.__name__ = operator.__qualname__ = name
    operator.__module__ = module
    operator.__doc__ = (
        f"`{function.__module__.removeprefix('tensorexpr.')}.{function.__name__}` for {processor}, with arguments {', '.join(wanted)}.\n\n"
        f"{inspect.getdoc(function)}"
    )
    operator.__signature__ = signature  # type: ignore[attr-defined]
    return operator
