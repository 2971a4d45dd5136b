"""Functions that import operators, by domain, name and the opset since which they do.

    @onnx_op("Softmax", since=13)
    def softmax(ctx, inputs, attrs):
        return relax.op.nn.softmax(inputs[0], attrs.int("axis", -1))

A function gets the `Context`, its operands (None for those that are left out) and the `Attributes`, and returns an expression, an array,
what is `Known`, or a list of these for several results, in which None is a result that isn't made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ...errors import InternalError

Converter: TypeAlias = Callable[..., Any]
_CONVERTERS: dict[tuple[str, str], dict[int, Converter]] = {}


def plain_domain(domain: str) -> str:
    """A domain by one name: the standard's is empty."""
    return "" if domain == "ai.onnx" else domain


def onnx_op(name: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """A decorator: a function imports an operator from an opset on, until another one says it does.

    Args:
        name: of the operator.
        since: the first opset.
        domain: of the operator; empty for the standard's.

    Raises:
        InternalError: if there is one for that opset.
    """

    def register(function: Converter) -> Converter:
        known = _CONVERTERS.setdefault((plain_domain(domain), name), {})
        if since in known:
            raise InternalError(f"{name} of opset {since} has two functions: {known[since].__name__} and {function.__name__}")
        known[since] = function
        return function

    return register


def converter(domain: str, name: str, opset: int) -> Converter | None:
    """The function for an operator at an opset, or None."""
    known = _CONVERTERS.get((plain_domain(domain), name), {})
    fitting = [since for since in known if since <= opset]
    return known[max(fitting)] if fitting else None


def operators() -> list[tuple[str, str, int]]:
    """All operators that have functions: domain, name, opset since which."""
    return sorted((domain, name, since) for (domain, name), known in _CONVERTERS.items() for since in known)
