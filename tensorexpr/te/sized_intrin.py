"""Tensor intrinsics whose shapes have variables: which variables, their values for given extents, the intrinsic of just those.

n = te.var("n")                                      y[i] = x[i] * 2, n elements
double = te.decl_tensor_intrin(y.op, ...)            tensorized over a loop of 16: the same with 16 for n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from ..arith.analyzer import Analyzer
from ..errors import DeclarationError
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import Node, post_order_rewrite, substitute, variables
from ..tir.stmt_functor import Renaming
from .operation import ComputeOp, PlaceholderOp, loads
from .tensor import Tensor

if TYPE_CHECKING:
    from .tensor_intrin import TensorIntrin

Sizes = tuple[tuple[Var, PrimExpr], ...]


def size_variables(op: ComputeOp, where: str) -> tuple[Var, ...]:
    """The variables in the extents of an intrinsic's tensors and axes.

    Raises:
        DeclarationError: for one that is no extent by itself: no loop would say how large it is.
    """
    shapes = [extent for tensor in (*op.input_tensors, op.output(0)) for extent in tensor.shape]
    extents = [*shapes, *(axis.dom.extent for axis in op.reduce_axis if axis.dom is not None)]
    found = dict.fromkeys(var for extent in extents for var in variables(extent))
    unknown = [var.name for var in found if var not in extents]
    if unknown:
        raise DeclarationError(
            f"{where}: no dimension has the extent {unknown[0]}, so nothing says how large it is; give a dimension that extent"
        )
    return tuple(found)


def solved(pairs: Iterable[tuple[PrimExpr, PrimExpr]]) -> Sizes:
    """What the variables among declared extents are, given what was found in their place: (declared, found)."""
    values: dict[Var, PrimExpr] = {}
    for declared, found in pairs:
        if isinstance(declared, Var):
            values.setdefault(declared, found)
    return tuple(values.items())


@lru_cache(maxsize=256)
def sized(intrin: TensorIntrin, sizes: Sizes) -> TensorIntrin:
    """The intrinsic with values for the variables in its shapes; itself if there are none.

    Raises:
        DeclarationError: if its inputs then have elements that it doesn't read.
    """
    values = dict(sizes)
    if not values:
        return intrin
    inputs = {tensor: _placeholder(tensor, values) for tensor in intrin.inputs}
    op = _op(intrin.op, values, inputs)
    # with variables for extents this wasn't known yet
    check_reads_all(op, f"tensor intrinsic {intrin.name}")
    parts = [None if part is None else _function(part, values) for part in (intrin.body, intrin.reduce_init, intrin.reduce_update)]
    return replace(intrin, op=op, inputs=tuple(inputs.values()), body=parts[0], reduce_init=parts[1], reduce_update=parts[2])


def _placeholder(tensor: Tensor, values: Mapping[Var, PrimExpr]) -> Tensor:
    return PlaceholderOp(tensor.name, tuple(substitute(extent, values) for extent in tensor.shape), tensor.dtype).output(0)


def _op(op: ComputeOp, values: Mapping[Var, PrimExpr], inputs: Mapping[Tensor, Tensor]) -> ComputeOp:
    def axis_of(axis: IterVar) -> IterVar:
        assert axis.dom is not None
        return replace(axis, dom=Range.from_min_extent(substitute(axis.dom.min, values), substitute(axis.dom.extent, values)))

    def rule(node: Node) -> Node | None:
        match node:
            case ProducerLoad(producer=tensor, indices=indices):
                return ProducerLoad(inputs[cast(Tensor, tensor)], indices)
            case Reduce(axis=axes):
                return replace(node, axis=tuple(map(axis_of, axes)))
        return None

    bodies = tuple(post_order_rewrite(substitute(body, values), rule) for body in op.body)
    first = bodies[0]
    reduced = first.axis if isinstance(first, Reduce) else ()
    return replace(op, axis=tuple(map(axis_of, op.axis)), reduce_axis=reduced, body=bodies)


def _function(func: PrimFunc, values: Mapping[Var, PrimExpr]) -> PrimFunc:
    renaming = Renaming(dict(values), folding=True)
    body = renaming.apply(func.body)
    return replace(func, body=body, buffer_map={param: renaming.buffer(buffer) for param, buffer in func.buffer_map.items()})


def check_reads_all(op: ComputeOp, where: str) -> None:
    """Machine code may touch all of an input, so all of it must be what the computation reads.

    Raises:
        DeclarationError: naming the input and what is read of it.
    """
    analyzer = Analyzer({axis.var: axis.dom for axis in (*op.axis, *op.reduce_axis) if axis.dom is not None})
    for tensor in op.input_tensors:
        read = [load.indices for load in loads(op) if load.producer is tensor]
        for dim, extent in enumerate(tensor.shape):
            bounds = [analyzer.const_int_bound(indices[dim]) for indices in read]
            low, high = min(b.min_value for b in bounds), max(b.max_value for b in bounds)
            # of a symbolic extent only the beginning is known here; `sized` asks again
            whole = (low, high + 1) == (0, as_int(extent)) or (as_int(extent) is None and low == 0)
            if not whole:
                raise DeclarationError(
                    f"{where}: {op.name} reads the elements {low}:{high + 1} of dimension {dim} of {tensor.name}, which has {extent}; "
                    "declare inputs with just the elements that are read"
                )
