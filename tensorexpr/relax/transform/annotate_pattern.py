"""AnnotateTIROpPattern: how the elements of a tensor function's result depend on those of its arguments, read off its computation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...te.dag import post_dfs_order
from ...te.operation import ComputeOp, PlaceholderOp, loads
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar, PrimExpr, ProducerLoad, Var
from ...tir.function import IRModule, PrimFunc
from ...tir.rewriting import walk
from ..ops.row import Pattern
from ..tensor_function import plain_arguments
from .passes import graph_pass

ATTRIBUTE = "op_pattern"


def pattern_of(tensors: Sequence[Tensor]) -> Pattern:
    """The pattern of a computation.

    Args:
        tensors: its inputs and outputs.

    Without reductions it is that of the least regular read. A reduction of one tensor at the end is one; a sum of products, and a reduction
    with anything behind it, takes elementwise operators behind it. Several results that are parts of a tensor, as those of a split, are
    injective; others, and what is no `te.compute`, are opaque.
    """
    outputs = [tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]
    stages = [op for op in post_dfs_order([tensor.op for tensor in outputs]) if not isinstance(op, PlaceholderOp)]
    computes = [op for op in stages if type(op) is ComputeOp]
    reducing = [op for op in computes if op.reduce_axis]
    if len(computes) < len(stages) or (len(outputs) != 1 and (reducing or any(op.num_outputs > 1 for op in computes))):
        return Pattern.OPAQUE
    if not reducing:
        found = max((_access(op) for op in computes), default=Pattern.ELEMENTWISE)
        return found if len(outputs) == 1 else max(found, Pattern.INJECTIVE)
    is_last = reducing == computes[-1:]
    return Pattern.REDUCTION if is_last and _reads_once(reducing[0]) else Pattern.OUT_FUSABLE


def _reads_once(op: ComputeOp) -> bool:
    """True if a reduction reads one tensor, each element of it for one result: no windows, no products."""
    read = list(loads(op))
    axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    alone = all(index in axes or as_int(index) is not None for load in read for index in load.indices)
    moved = {index for load in read for index in load.indices if isinstance(index, Var)}
    # An axis that no index has would read each element again at each of its places.
    long = {axis.var for axis in op.axis if axis.dom is None or as_int(axis.dom.extent) != 1}
    return len({load.producer for load in read}) == 1 and alone and long <= moved


def _access(op: ComputeOp) -> Pattern:
    """The pattern of one stage without a reduction."""
    places = {axis.var: place for place, axis in enumerate(op.axis)}
    found = Pattern.ELEMENTWISE
    for load in loads(op):
        if any(isinstance(node, ProducerLoad) for index in load.indices for node in walk(index)):
            # A gather: where it reads is known when it runs.
            return Pattern.INJECTIVE
        if _is_same(load.indices, op.axis):
            continue
        # Each index is an axis, in their order; where an extent is 1 it may be 0.
        order = [places.get(index, -1) if isinstance(index, Var) else -1 for index in load.indices if as_int(index) != 0]
        in_order = all(a < b for a, b in pairwise(order)) and -1 not in order
        ones = all(as_int(extent) == 1 for index, extent in zip(load.indices, load.producer.shape, strict=True) if as_int(index) == 0)
        found = max(found, Pattern.BROADCAST if in_order and ones else Pattern.INJECTIVE)
    return found


def _is_same(indices: Sequence[PrimExpr], axes: Sequence[IterVar]) -> bool:
    if len(indices) != len(axes):
        return False
    return all(
        index is axis.var or (as_int(index) == 0 and axis.dom is not None and as_int(axis.dom.extent) == 1)
        for index, axis in zip(indices, axes, strict=True)
    )


def pattern_of_function(func: PrimFunc) -> Pattern:
    """The pattern of a tensor function: as it states, else as its computation is; opaque for one that is no computation of tensors."""
    stated = func.attrs.get(ATTRIBUTE)
    if stated is not None:
        return Pattern(int(getattr(stated, "value", stated)))
    try:
        return pattern_of([one for one in plain_arguments(func) if isinstance(one, Tensor)])
    except DeclarationError:
        return Pattern.OPAQUE


def AnnotateTIROpPattern() -> ModulePass:
    """A pass: each tensor function has the attribute "op_pattern", a number of `Pattern`."""

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, PrimFunc) and ATTRIBUTE not in func.attrs:
                made.update_func(var, func.with_attr(ATTRIBUTE, int(pattern_of_function(func))))
        return made

    return graph_pass("AnnotateTIROpPattern", run)
