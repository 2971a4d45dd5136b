"""What makes the bodies of a compute well formed."""

from __future__ import annotations

from ..errors import DeclarationError
from ..tir.expr import IterVar, PrimExpr, Reduce
from ..tir.rewriting import children, walk


def verify_bodies(name: str, axes: tuple[IterVar, ...], bodies: tuple[PrimExpr, ...]) -> tuple[IterVar, ...]:
    """Check the bodies of compute `name` and give the reduction axes.

    Raises:
        DeclarationError: for no body, a reduction below the top of a body, or bodies that aren't one reduction.
    """
    if not bodies:
        raise DeclarationError(f"compute {name}: the function returned no expression; a compute has at least one output")
    for body in bodies:
        _no_inner_reduction(name, body)
    reductions = [body for body in bodies if isinstance(body, Reduce)]
    if not reductions:
        return ()
    if len(reductions) != len(bodies):
        raise DeclarationError(f"compute {name}: some outputs are reductions and some are not; declare a compute of its own for each kind")
    _one_reduction(name, reductions)
    _check_axes(name, axes, reductions[0])
    return reductions[0].axis


def _no_inner_reduction(name: str, body: PrimExpr) -> None:
    for child in children(body):
        if any(isinstance(node, Reduce) for node in walk(child)):
            raise DeclarationError(
                f"compute {name}: a reduction stands inside a larger expression, but it must be the whole body; "
                "declare a te.compute for the reduction and read its elements in another one"
            )


def _one_reduction(name: str, reductions: list[Reduce]) -> None:
    first = reductions[0]
    if len(reductions) != len(first.source):
        raise DeclarationError(
            f"compute {name}: {len(reductions)} outputs of a reduction of {len(first.source)} values; return all of them in order"
        )
    for position, reduction in enumerate(reductions):
        # equal expressions are one object, so this compares whole reductions
        same = reduction is Reduce(first.combiner, first.source, first.axis, first.condition, position, first.init)
        if not same:
            raise DeclarationError(
                f"compute {name}: its outputs are values of different reductions; return the values of one, all and in order"
            )


def _check_axes(name: str, axes: tuple[IterVar, ...], reduction: Reduce) -> None:
    seen: set[int] = {id(axis.var) for axis in axes}
    for axis in reduction.axis:
        if id(axis.var) in seen:
            raise DeclarationError(
                f"compute {name}: axis {axis.name} is reduced over twice or is a spatial axis too; use another te.reduce_axis"
            )
        seen.add(id(axis.var))
