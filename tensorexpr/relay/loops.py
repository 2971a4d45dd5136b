"""Loops of Relay: a function that calls itself until a condition fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .expr import Call, Function, If, Let, Tuple, Var
from .ty import TupleType


def while_loop(cond: Callable[..., Any], loop_vars: Sequence[Any], loop_bodies: Callable[..., Sequence[Any]]) -> Any:
    """A function of the first values of loop variables that returns their last ones, as a tuple.

    Args:
        cond: whether the loop goes on, by the variables: a bool without dimensions.
        loop_vars: the variables, with types; extents that change are `relay.Any()`.
        loop_bodies: their next values, by the variables.
    """
    variables = tuple(loop_vars)
    loop = Var("while_loop")
    again = Call(loop, list(loop_bodies(*variables)))
    types = [one.type_annotation for one in variables]
    func = Function(variables, If(cond(*variables), again, Tuple(variables)), None if None in types else TupleType(tuple(types)))
    return Let(loop, func, loop)


__all__ = ["while_loop"]
