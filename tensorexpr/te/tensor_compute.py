"""Computes over slices of tensors, done by a tensor intrinsic:

    vadd = te.decl_tensor_intrin(z.op, ...)            # z[i] = x[i] + y[i], 16 elements
    C = te.compute((n // 16, 16), lambda i: vadd(A[i, 0:16], B[i, 0:16]))

The function has the leading axes alone; the intrinsic computes the rest. What the result is, the intrinsic's own description
says, so such an operation is a compute like any other, whose inner loops are tensorized from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..arith.analyzer import Analyzer
from ..dataclass import dataclass, replace
from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.rewriting import Node, post_order_rewrite, substitute
from .operation import ComputeOp
from .sized_intrin import sized, solved
from .tensor import Tensor, TensorSlice

if TYPE_CHECKING:
    from .tensor_intrin import TensorIntrin


@dataclass(frozen=True, eq=False)
class TensorIntrinCall:
    """An intrinsic applied to parts of tensors: what the function of such a `te.compute` returns.

    `regions`: one range for each dimension of each tensor; `reduce_axis`: axes over which the results are added up, beside
    those of the intrinsic; `scalar_inputs`: values of its scalar parameters; `spans`: for each tensor the dimensions that those of the
    intrinsic's input run over; `fitting`: the intrinsic with the extents of the slices in place of variables in its shapes.
    """

    intrin: TensorIntrin
    tensors: tuple[Tensor, ...]
    regions: tuple[tuple[Range, ...], ...]
    reduce_axis: tuple[IterVar, ...] = ()
    scalar_inputs: tuple[PrimExpr, ...] = ()
    spans: tuple[tuple[int, ...], ...] = ()
    fitting: TensorIntrin | None = None

    @property
    def described(self) -> TensorIntrin:
        """The intrinsic of the extents at hand."""
        return self.fitting or self.intrin


@dataclass(frozen=True, eq=False, repr=False)
class TensorComputeOp(ComputeOp):
    """A compute whose loops inside the first `schedulable_ndim` axes, and the axes that the call reduces, are an intrinsic."""

    call: TensorIntrinCall
    schedulable_ndim: int

    @property
    def intrin(self) -> TensorIntrin:
        """What computes the inner loops."""
        return self.call.intrin

    @property
    def loop_order(self) -> tuple[IterVar, ...]:
        """The axes from the outermost loop inward: those of the function, those that the call reduces, those of the intrinsic."""
        outer, inner = self.axis[: self.schedulable_ndim], self.axis[self.schedulable_ndim :]
        own = tuple(axis for axis in self.reduce_axis if axis not in self.call.reduce_axis)
        return (*outer, *self.call.reduce_axis, *inner, *own)

    @property
    def first_tensor_axis(self) -> IterVar | None:
        """The outermost loop that the intrinsic takes the place of; None if it computes one element."""
        order = self.loop_order
        at = self.schedulable_ndim + len(self.call.reduce_axis)
        return order[at] if at < len(order) else None


def call_intrin(intrin: TensorIntrin, args: Sequence[Any], reduce_axis: Any) -> TensorIntrinCall:
    """An intrinsic applied to slices, and to expressions for its scalars.

    Args:
        args: slices of tensors such as ``A[i, 0:16]``, whole tensors, and scalars.
        reduce_axis: an axis, or several, over which results are added up.

    Raises:
        DeclarationError: if they do not fit the intrinsic.
    """
    where = f"tensor intrinsic {intrin.name}"
    slices = [TensorSlice(arg, ()) if isinstance(arg, Tensor) else arg for arg in args]
    parts = [part for part in slices if isinstance(part, TensorSlice)]
    scalars = tuple(convert(part) for part in slices if not isinstance(part, TensorSlice))
    if len(parts) != len(intrin.inputs) or len(scalars) != len(intrin.scalars):
        raise DeclarationError(
            f"{where} takes {len(intrin.inputs)} slices such as A[i, 0:16] and {len(intrin.scalars)} scalars, "
            f"not {len(parts)} and {len(scalars)}"
        )
    axes = () if reduce_axis is None else tuple(reduce_axis) if isinstance(reduce_axis, (list, tuple)) else (reduce_axis,)
    if axes and not isinstance(intrin.op.body[0], Reduce):
        raise DeclarationError(f"{where}: {intrin.op.name} is no reduction, so nothing is added up over reduce_axis")
    for axis in axes:
        if not isinstance(axis, IterVar) or axis.iter_type != IterVar.COMM_REDUCE:
            raise DeclarationError(f"{where}: reduce_axis holds axes of te.reduce_axis, not {axis!r}")
    regions = tuple(_region(part) for part in parts)
    dims = tuple(_dims(part, declared) for part, declared in zip(parts, intrin.inputs, strict=True))
    # other numbers of dimensions are refused below, by `_span`, which names the slice
    pairs = (
        (extent, region[d].extent)
        for declared, region, own in zip(intrin.inputs, regions, dims, strict=True)
        for d, extent in zip(own, declared.shape, strict=False)
    )
    fitting = sized(intrin, solved(pairs))
    spans = tuple(
        _span(where, part, region, own, declared) for part, region, own, declared in zip(parts, regions, dims, fitting.inputs, strict=True)
    )
    return TensorIntrinCall(intrin, tuple(part.tensor for part in parts), regions, axes, scalars, spans, fitting)


def _region(part: TensorSlice) -> tuple[Range, ...]:
    """The range of each dimension: an index is one element, and what is not indexed is there as a whole."""
    ranges = []
    for dim, extent in enumerate(part.tensor.shape):
        item = part.indices[dim] if dim < len(part.indices) else slice(None)
        if not isinstance(item, slice):
            ranges.append(Range.from_min_extent(item, IntImm(item.dtype, 1)))
            continue
        if item.step not in (None, 1):
            raise DeclarationError(f"the slice {item} of {part.tensor.name} has a step; a region is of neighbours")
        begin = convert(0 if item.start is None else item.start)
        end = convert(extent if item.stop is None else item.stop)
        ranges.append(Range.from_min_extent(begin, Analyzer().simplify(end - begin)))
    return tuple(ranges)


def _dims(part: TensorSlice, declared: Tensor) -> tuple[int, ...]:
    """The dimensions of a slice that those of the intrinsic's input run over."""
    sliced = tuple(d for d in range(part.tensor.ndim) if d >= len(part.indices) or isinstance(part.indices[d], slice))
    # A[i, 0:16] is a vector of 16, or for an input of two dimensions a matrix of 1 x 16
    return sliced if len(sliced) == declared.ndim else tuple(range(part.tensor.ndim))


def _span(where: str, part: TensorSlice, region: tuple[Range, ...], dims: tuple[int, ...], declared: Tensor) -> tuple[int, ...]:
    """`dims`, checked."""
    fits = len(dims) == declared.ndim and all(
        Analyzer().can_prove_equal(region[d].extent, extent) for d, extent in zip(dims, declared.shape, strict=True)
    )
    if not fits or part.tensor.dtype != declared.dtype:
        have = ", ".join(str(region[d].extent) for d in dims)
        want = ", ".join(map(str, declared.shape))
        raise DeclarationError(
            f"{where}: the slice of {part.tensor.name} is [{have}] of {part.tensor.dtype}; "
            f"its input {declared.name} is [{want}] of {declared.dtype}"
        )
    return dims


def tensor_axes(call: TensorIntrinCall, extents: Sequence[PrimExpr], where: str) -> tuple[IterVar, ...]:
    """The axes that the intrinsic runs over, for the inner `extents` of the result.

    Raises:
        DeclarationError: if the result has other extents there than the intrinsic's.
    """
    wanted = call.described.op.output(0).shape
    same = len(wanted) == len(extents) and all(Analyzer().can_prove_equal(a, b) for a, b in zip(wanted, extents, strict=True))
    if not same:
        raise DeclarationError(
            f"{where}: behind the axes of its function the shape has [{', '.join(map(str, extents))}]; "
            f"the intrinsic {call.intrin.name} computes [{', '.join(map(str, wanted))}]"
        )
    return tuple(
        IterVar(Range.from_min_extent(IntImm(extent.dtype, 0), extent), Var(f"ax{d}", extent.dtype), IterVar.DATA_PAR)
        for d, extent in enumerate(extents)
    )


def call_bodies(call: TensorIntrinCall, inner: Sequence[IterVar]) -> tuple[PrimExpr, ...]:
    """What a call computes at `inner`: the description of the intrinsic, of the tensors it was given."""
    op = call.described.op
    # axes of its own for each call, as one intrinsic may compute several operations of a graph
    own = [replace(axis, var=Var(axis.name, axis.dtype)) for axis in op.reduce_axis]
    values: dict[Var, PrimExpr] = dict(zip(call.intrin.scalars, call.scalar_inputs, strict=True))
    values |= {old.var: new.var for old, new in zip((*op.axis, *op.reduce_axis), (*inner, *own), strict=True)}
    reads = dict(zip(call.described.inputs, zip(call.tensors, call.regions, call.spans, strict=True), strict=True))

    def read(node: Node) -> Node | None:
        found = reads.get(cast(Tensor, node.producer)) if isinstance(node, ProducerLoad) else None
        return _element(*found, cast(ProducerLoad, node).indices) if found is not None else None

    def moved(expr: PrimExpr) -> PrimExpr:
        return post_order_rewrite(substitute(expr, values), read)

    bodies: list[PrimExpr] = []
    for body in op.body:
        if isinstance(body, Reduce):
            axes = (*call.reduce_axis, *own)
            parts: Mapping[str, Any] = {name: tuple(map(moved, getattr(body, name))) for name in ("source", "init")}
            bodies.append(replace(body, axis=axes, condition=moved(body.condition), **parts))
        else:
            bodies.append(moved(body))
    return tuple(bodies)


def _element(tensor: Tensor, region: tuple[Range, ...], span: tuple[int, ...], indices: tuple[PrimExpr, ...]) -> PrimExpr:
    inside = dict(zip(span, indices, strict=True))
    return ProducerLoad(tensor, tuple(dom.min + inside[d] if d in inside else dom.min for d, dom in enumerate(region)))
