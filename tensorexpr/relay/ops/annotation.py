"""Marks around what a code generator of others computes: values as they are."""

from __future__ import annotations

from .row import Expr, Meaning, operator


@operator("annotation.compiler_begin")
def compiler_begin(data: Expr, compiler: str) -> Meaning:
    """An operand of what a code generator computes.

    Args:
        data: the operand.
        compiler: the generator's name.
    """
    return data


@operator("annotation.compiler_end")
def compiler_end(data: Expr, compiler: str) -> Meaning:
    """A result of what a code generator computes.

    Args:
        data: the result.
        compiler: the generator's name.
    """
    return data
