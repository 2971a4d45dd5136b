"""Products of tensors: matmul, tensordot, einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir.expr import PrimExpr, Var
from .reduction import full_index
from .utils import equal_const_int, extent_value, need_equal, need_rank, positive_axis


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The product of two matrices, each transposed if said so.

    Args:
        a: [m, k], or with `transp_a` [k, m].
        b: [k, n], or with `transp_b` [n, k], of the dtype of `a`.
        transp_a, transp_b: the layouts.

    Returns:
        [m, n], of that dtype.
    """
    need_rank("matmul", "a", a, 2)
    need_rank("matmul", "b", b, 2)
    rows, depth = a.shape[::-1] if transp_a else a.shape
    depth_b, columns = b.shape[::-1] if transp_b else b.shape
    need_equal("matmul", "the summed extents of the two matrices", depth, depth_b)
    k = te.reduce_axis((0, depth), name="k")

    def body(i: Var, j: Var) -> PrimExpr:
        left = a(k.var, i) if transp_a else a(i, k.var)
        right = b(j, k.var) if transp_b else b(k.var, j)
        return te.sum(left * right, axis=k)

    return compute((rows, columns), body, "T_matmul", "matmul")


def tensordot(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """The sum of products over pairs of axes: the last and first `axes` ones, or those of two lists, as NumPy's.

    Args:
        a, b: tensors of one dtype.
        axes: a number, or two lists of axes of the same extents.

    Returns:
        The other axes of `a`, then those of `b`, of that dtype.
    """
    if isinstance(axes, int):
        first, second = [*range(a.ndim - axes, a.ndim)], [*range(axes)]
    else:
        first, second = ([positive_axis("tensordot", n, t.ndim) for n in _listed(given)] for given, t in zip(axes, (a, b), strict=True))
    if len(first) != len(second):
        raise DeclarationError(f"tensordot: {len(first)} axes of {a.name} and {len(second)} of {b.name}; each is paired with one")
    for x, y in zip(first, second, strict=True):
        need_equal("tensordot", f"extent {x} of {a.name} and {y} of {b.name}", a.shape[x], b.shape[y])
    over = [te.reduce_axis((0, a.shape[x]), name=f"k{n}") for n, x in enumerate(first)]
    free_a = [extent for n, extent in enumerate(a.shape) if n not in first]
    free_b = [extent for n, extent in enumerate(b.shape) if n not in second]

    def body(*i: Var) -> PrimExpr:
        left = a(*full_index(a.ndim, first, over, i[: len(free_a)]))
        right = b(*full_index(b.ndim, second, over, i[len(free_a) :]))
        if not over:
            return left * right
        return te.sum(left * right, axis=over)

    return compute((*free_a, *free_b), body, "T_tensordot", "matmul")


def _listed(axes: Any) -> Sequence[int]:
    return axes if isinstance(axes, (list, tuple)) else (axes,)


# Letters for the axes that "..." stands for: none that a term may hold.
_UNNAMED = "0123456789"


def _without_dots(subscripts: str, operand: Sequence[Tensor]) -> tuple[list[str], str]:
    """The terms and the result, with a digit for each axis of "...": "...ij,j" of ranks 3 and 1 is "0ij,j"."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    plain = [term.replace("...", "", 1) for term in (*terms, output)]
    if len(terms) != len(operand) or not all(letter.isalpha() for term in plain for letter in term):
        raise DeclarationError(
            f"einsum: {subscripts!r} with {len(operand)} operands; one term of letters, or of letters and '...', for each"
        )
    unnamed = [max(0, tensor.ndim - len(term)) if "..." in whole else 0 for whole, term, tensor in zip(terms, plain, operand, strict=False)]
    most = max(unnamed)
    if most > len(_UNNAMED):
        raise DeclarationError(f"einsum: '...' stands for {most} axes in {subscripts!r}; it takes {len(_UNNAMED)}")
    # The last axes of each operand are the same ones: of ranks 2 and 1 they are "01" and "1".
    made = [term.replace("...", _UNNAMED[most - count : most]) for term, count in zip(terms, unnamed, strict=True)]
    if not arrow:
        named = "".join(made)
        output = "..." + "".join(letter for letter in sorted(set(named) - set(_UNNAMED)) if named.count(letter) == 1)
    return made, output.replace("...", _UNNAMED[:most])


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Einstein's sum: einsum("bij,bjk->bik", a, b); without an arrow the letters that occur once, in their order.

    "..." stands for the axes that a term doesn't name, of several operands from the last one on; the result has them first unless it
    says where.

    Raises:
        DeclarationError: for subscripts that don't fit the operands.
    """
    terms, output = _without_dots(subscripts, operand)
    extents: dict[str, Any] = {}
    for term, tensor in zip(terms, operand, strict=True):
        need_rank("einsum", f"the operand of {term!r}", tensor, len(term))
        for letter, extent in zip(term, tensor.shape, strict=True):
            # An extent of 1 gives way to a larger one: its operand is read at 0 below.
            if letter not in extents or equal_const_int(extents[letter], 1):
                extents[letter] = extent
            elif not equal_const_int(extent, 1):
                need_equal("einsum", f"the extents of {letter!r}", extents[letter], extent)
    if len(set(output)) != len(output) or not set(output) <= set(extents):
        raise DeclarationError(f"einsum: the result {output!r} of {subscripts!r} takes letters of the operands, each once")
    over = {letter: te.reduce_axis((0, extent), name=f"k_{letter}") for letter, extent in extents.items() if letter not in output}

    def body(*i: Var) -> PrimExpr:
        at: dict[str, PrimExpr] = {**dict(zip(output, i, strict=True)), **{letter: axis.var for letter, axis in over.items()}}
        value: PrimExpr | None = None
        for term, tensor in zip(terms, operand, strict=True):
            element = tensor(*(0 if equal_const_int(extent, 1) else at[letter] for letter, extent in zip(term, tensor.shape, strict=True)))
            value = element if value is None else value * element
        assert value is not None
        if not over:
            return value
        return te.sum(value, axis=[*over.values()])

    return compute([extent_value(extents[letter]) for letter in output], body, "T_einsum", "einsum")
