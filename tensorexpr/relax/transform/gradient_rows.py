"""The derivatives that `Gradient` knows: by each operator, its operands' adjoints by that of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from ... import topi
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr
from ...tir.op_registry import Op
from .. import op
from ..expr import Call, Tuple, TupleGetItem, const
from ..ops.manipulate import product
from ..struct_info import TensorStructInfo
from . import window_gradients

# From a call, the variable of its result and the adjoint of that to those of its arguments; None for one without.
Adjoint = Callable[[Call, Any, Any], Sequence[Any]]


def extents(expr: Any) -> list[Any]:
    """The shape of a tensor.

    Raises:
        DeclarationError: if it isn't known.
    """
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo) or info.extents is None:
        raise DeclarationError(f"Gradient: the shape of {expr} isn't known: {info}")
    return list(info.extents)


def fields_of(expr: Any) -> Sequence[Any]:
    """The elements of a tuple."""
    return expr.fields if isinstance(expr, Tuple) else [TupleGetItem(expr, n) for n in range(len(expr.struct_info.fields))]


def collapsed(value: Any, like: Any) -> Any:
    """Sums along the axes along which an operand was broadcast."""
    own, wide = extents(like), extents(value)
    extra = len(wide) - len(own)
    # (3,) beside (2, 3) was repeated along axis 0, (2, 1) along axis 1.
    axes = [n for n in range(len(wide)) if n < extra or (as_int(own[n - extra]) == 1 and as_int(wide[n]) != 1)]
    return op.reshape(op.sum(value, axes), own) if axes else value


def _each(*makes: Callable[[Call, Any, Any], Any]) -> Adjoint:
    """The adjoints of operands that broadcast."""
    return lambda call, result, adjoint: [collapsed(make(call, result, adjoint), arg) for make, arg in zip(makes, call.args, strict=True)]


def _number(value: float, like: Any) -> Any:
    return const(value, like.struct_info.dtype)


def _swapped(value: Any) -> Any:
    ndim = value.struct_info.ndim
    return op.permute_dims(value, [*range(ndim - 2), ndim - 1, ndim - 2])


def _matmul(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    a, b = call.args
    # A vector in front is a row, one behind a column; the result has no axis for it.
    rows, columns = a.struct_info.ndim < 2, b.struct_info.ndim < 2
    shape = extents(result)
    shape = [*shape[: len(shape) - (not columns)], 1, *shape[len(shape) - (not columns) :]] if rows else shape
    change = op.reshape(adjoint, [*shape, 1] if columns else shape) if rows or columns else adjoint
    left = op.reshape(a, [1, *extents(a)]) if rows else a
    right = op.reshape(b, [*extents(b), 1]) if columns else b
    found = collapsed(op.matmul(change, _swapped(right)), left), collapsed(op.matmul(_swapped(left), change), right)
    return [op.reshape(one, extents(own)) if is_vector else one for one, own, is_vector in zip(found, (a, b), (rows, columns), strict=True)]


def _kept(call: Call) -> list[Any]:
    """The shape of a reduction's operand with 1 in place of what is reduced."""
    own, axes = extents(call.args[0]), call.attrs["axis"]
    gone = range(len(own)) if axes is None else [int(n) % len(own) for n in ([axes] if isinstance(axes, int) else axes)]
    return [1 if n in gone else extent for n, extent in enumerate(own)]


def _spread(call: Call, adjoint: Any) -> Any:
    """An adjoint of a reduction for each element that went into it."""
    return op.broadcast_to(_standing(call, adjoint), extents(call.args[0]))


def _standing(call: Call, reduced: Any) -> Any:
    """What a reduction gives, or its adjoint, so that it broadcasts to the operand."""
    axes = call.attrs["axis"]
    if call.attrs["keepdims"] or axes is None:
        return reduced
    return op.expand_dims(reduced, [int(n) % call.args[0].struct_info.ndim for n in ([axes] if isinstance(axes, int) else axes)])


def _count(call: Call, like: Any) -> Any:
    """How many elements a reduction takes together, as a number of a tensor's dtype."""
    # Axes of extent 1 that stay look as if they were reduced; they count as 1.
    shares = [as_int(extent) for extent, one in zip(extents(call.args[0]), _kept(call), strict=True) if one == 1]
    count = 1
    for one in shares:
        if one is None:
            raise DeclarationError(f"Gradient: how many elements are taken together isn't known: {call}")
        count *= one
    return _number(float(count), like)


def _mean(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    return [_spread(call, op.divide(adjoint, _count(call, adjoint)))]


def _variance(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    centred = op.subtract(call.args[0], op.mean(call.args[0], call.attrs["axis"], True))
    share = op.divide(op.multiply(adjoint, _number(2.0, adjoint)), _count(call, adjoint))
    return [op.multiply(_spread(call, share), centred)]


def _greatest(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    # Of several that are the greatest, each gets all of the adjoint.
    wide = op.broadcast_to(_standing(call, result), extents(call.args[0]))
    return [op.where(op.equal(call.args[0], wide), _spread(call, adjoint), op.zeros_like(call.args[0]))]


def _permuted(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    ndim = call.args[0].struct_info.ndim
    axes = [int(n) % ndim for n in call.attrs["axes"]] if call.attrs["axes"] is not None else list(range(ndim))[::-1]
    # The inverse: of (2, 0, 1) it is (1, 2, 0).
    return [op.permute_dims(adjoint, sorted(range(ndim), key=lambda n: axes[n]))]


def _concat(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    axis, parts, begin = int(call.attrs["axis"] or 0), list[Any](), cast(PrimExpr, IntImm("int64", 0))
    for field in fields_of(call.args[0]):
        # By slices, since `split` takes constants only: of [n, 3] and [m, 3] the parts are [0:n] and [n:n + m].
        end = begin + extents(field)[axis]
        parts.append(op.strided_slice(adjoint, [axis], [begin], [end]))
        begin = end
    return [Tuple(tuple(parts))]


def _softmax(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    axis = call.attrs["axis"]
    return [op.multiply(op.subtract(adjoint, op.sum(op.multiply(adjoint, result), axis, True)), result)]


def _log_softmax(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    return [op.subtract(adjoint, op.multiply(op.sum(adjoint, call.attrs["axis"], True), op.exp(result)))]


def _cumsum(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    axis = int(call.attrs["axis"] or 0)  # of all elements in a row where there is none
    own = op.astype(adjoint, call.args[0].struct_info.dtype)
    summed = op.flip(op.cumsum(op.flip(own, axis), axis, exclusive=bool(call.attrs["exclusive"])), axis)
    return [op.reshape(summed, extents(call.args[0])) if call.attrs["axis"] is None else summed]


def _cross_entropy(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    predictions, labels = call.args
    rows = as_int(extents(predictions)[0]) if predictions.struct_info.ndim > 1 else 1
    if rows is None:
        raise DeclarationError(f"Gradient: how many rows there are isn't known: {call}")
    share = op.divide(op.negative(adjoint), _number(float(rows), adjoint))
    return [op.multiply(share, labels), op.multiply(share, predictions)]


def _nll_loss(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    """Of each sample the class that is right gets minus its weight, by the sum of all weights for a mean; what is ignored nothing."""
    predictions, targets, *weights = call.args
    classes = 0 if predictions.struct_info.ndim == 1 else 1
    count = as_int(extents(predictions)[classes])
    if count is None:
        raise DeclarationError(f"Gradient: how many classes there are isn't known: {call}")
    counted = op.not_equal(targets, _number(int(call.attrs["ignore_index"]), targets))
    right = op.where(counted, targets, op.zeros_like(targets))
    zeros = op.zeros(tuple(extents(targets)), predictions.struct_info.dtype)
    own = op.reshape(op.take(weights[0], op.reshape(right, [-1]), 0), extents(targets)) if weights else op.ones_like(zeros)
    share = op.where(counted, own, zeros)
    change = op.multiply(share, op.negative(adjoint))
    if call.attrs["reduction"] == "mean":
        change = op.divide(change, op.sum(share))
    places = op.one_hot(right, _number(1.0, predictions), _number(0.0, predictions), count, classes)
    return [op.multiply(op.expand_dims(change, classes), places)]


def _gelu(x: Any, result: Any) -> Any:
    normal = op.divide(op.exp(op.multiply(op.square(x), _number(-0.5, x))), _number(math.sqrt(2 * math.pi), x))
    risen = op.add(op.erf(op.divide(x, _number(math.sqrt(2.0), x))), _number(1.0, x))
    return op.add(op.multiply(risen, _number(0.5, x)), op.multiply(x, normal))


def _chosen(compare: Callable[[Any, Any], Any]) -> Adjoint:
    def first(call: Call, result: Any, adjoint: Any) -> Any:
        return op.where(compare(*call.args), adjoint, op.zeros_like(adjoint))

    def second(call: Call, result: Any, adjoint: Any) -> Any:
        return op.where(compare(*call.args), op.zeros_like(adjoint), adjoint)

    return _each(first, second)


def _reshaped(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    return [op.reshape(adjoint, extents(call.args[0]))]


def _clipped(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    x, *ends = call.args
    known: list[Any] = [getattr(getattr(one, "value", None), "value", None) for one in ends]
    if None in known:
        raise DeclarationError(f"Gradient: the ends of a clip are no constants: {call}")
    low, high = (_number(float(one), x) for one in known)
    inside = op.logical_and(op.greater_equal(x, low), op.less_equal(x, high))
    return [op.where(inside, adjoint, op.zeros_like(adjoint))]


def _taken_parts(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    """Each part's adjoint goes back to where it was taken from; to the sum of them if several were."""
    x, indices = call.args
    own, places = extents(x), extents(indices)
    axis = int(call.attrs["axis"] or 0) % len(own)
    before, behind = product(own[:axis]), product(own[axis + 1 :])
    last = as_int(own[axis])
    if last is None:
        raise DeclarationError(f"Gradient: how many elements are taken from isn't known: {call}")
    # As [before, axis, behind], with an index for each element of the adjoint; those beyond an end were the ones there.
    whole = op.zeros((before, own[axis], behind), x.struct_info.dtype)
    inside = op.minimum(op.maximum(indices, _number(0, indices)), _number(last - 1, indices))
    each = [before, product(places), behind]
    spread = op.broadcast_to(op.reshape(inside, [1, each[1], 1]), each)
    return [op.reshape(op.scatter_elements(whole, spread, op.reshape(adjoint, each), 1, "add"), own)]


def _gathered(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    """Each adjoint goes back to where its tuple of indices points; to the sum of them if several do."""
    data, indices = call.args
    if int(call.attrs["batch_dims"]):
        raise DeclarationError(
            f"Gradient: gather_nd with common axes has no derivative here: {call}; gather_elements, or take, in place of it"
        )
    return [op.scatter_nd(op.zeros_like(data), indices, adjoint, "add")]


def _sliced(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    """The adjoint with zeros around, and between what a stride left out."""
    x, places, begins, ends = (arg.fields if isinstance(arg, Tuple) else arg for arg in call.args[:4])
    steps = call.attrs["strides"] or [1] * len(places)
    own, found = [as_int(extent) for extent in extents(x)], adjoint
    if None in own:
        raise DeclarationError(f"Gradient: how many elements are taken from isn't known: {call}")
    borders = [[0, 0] for _ in own]
    for place, begin, end, step in zip(places, begins, ends, map(int, steps), strict=True):
        axis, size = int(place.value) % len(own), own[int(place.value)] or 0
        first, count = topi.utils.taken(size, begin.value, end.value, step)  # type: ignore[misc]
        if step < 0:
            found, first = op.flip(found, axis), first + (count - 1) * step
        shape, gap = extents(found), abs(step)
        if gap > 1:
            wide = [0, 0] * len(own)
            found = op.reshape(found, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
            found = op.nn.pad(found, [*wide[: 2 * axis + 2], 0, gap - 1, *wide[2 * axis + 2 :]])
            found = op.reshape(found, [*shape[:axis], count * gap, *shape[axis + 1 :]])
        borders[axis] = [first, size - first - count * gap]  # less than 0 behind the last one: zeros of its own gap are cut off
    return [op.nn.pad(found, [width for pair in borders for width in pair])]


def _of_x(make: Callable[[Any, Any], Any]) -> Adjoint:
    """For an operator on each element: from the operand and the result to the derivative."""
    return lambda call, result, adjoint: [op.multiply(adjoint, make(call.args[0], result))]


TABLE: dict[str, Adjoint] = {
    "add": _each(lambda c, r, g: g, lambda c, r, g: g),
    "subtract": _each(lambda c, r, g: g, lambda c, r, g: op.negative(g)),
    "multiply": _each(lambda c, r, g: op.multiply(g, c.args[1]), lambda c, r, g: op.multiply(g, c.args[0])),
    "divide": _each(
        lambda c, r, g: op.divide(g, c.args[1]), lambda c, r, g: op.negative(op.divide(op.multiply(g, r), c.args[1]))
    ),
    "maximum": _chosen(op.greater_equal),
    "minimum": _chosen(op.less_equal),
    "negative": lambda c, r, g: [op.negative(g)],
    "exp": _of_x(lambda x, r: r),
    "log": lambda c, r, g: [op.divide(g, c.args[0])],
    "sqrt": lambda c, r, g: [op.divide(g, op.multiply(_number(2, r), r))],
    "rsqrt": _of_x(lambda x, r: op.multiply(_number(-0.5, r), op.divide(r, x))),
    "square": _of_x(lambda x, r: op.multiply(_number(2, x), x)),
    "sin": _of_x(lambda x, r: op.cos(x)),
    "cos": _of_x(lambda x, r: op.negative(op.sin(x))),
    "tan": _of_x(lambda x, r: op.add(_number(1, r), op.multiply(r, r))),
    "asin": _of_x(lambda x, r: op.rsqrt(op.subtract(_number(1, r), op.multiply(x, x)))),
    "acos": _of_x(lambda x, r: op.negative(op.rsqrt(op.subtract(_number(1, r), op.multiply(x, x))))),
    "atan": _of_x(lambda x, r: op.divide(_number(1, r), op.add(_number(1, r), op.multiply(x, x)))),
    "asinh": _of_x(lambda x, r: op.rsqrt(op.add(op.multiply(x, x), _number(1, r)))),
    "acosh": _of_x(lambda x, r: op.rsqrt(op.subtract(op.multiply(x, x), _number(1, r)))),
    "atanh": _of_x(lambda x, r: op.divide(_number(1, r), op.subtract(_number(1, r), op.multiply(x, x)))),
    "sinh": _of_x(lambda x, r: op.cosh(x)),
    "cosh": _of_x(lambda x, r: op.sinh(x)),
    "tanh": _of_x(lambda x, r: op.subtract(_number(1, r), op.multiply(r, r))),
    "erf": _of_x(lambda x, r: op.multiply(_number(2 / math.sqrt(math.pi), r), op.exp(op.negative(op.multiply(x, x))))),
    "power": _each(
        lambda c, r, g: op.multiply(op.multiply(g, c.args[1]), op.power(c.args[0], op.subtract(c.args[1], _number(1, r)))),
        lambda c, r, g: op.multiply(g, op.multiply(r, op.log(c.args[0]))),
    ),
    "clip": _clipped,
    "sigmoid": _of_x(lambda x, r: op.multiply(r, op.subtract(_number(1, r), r))),
    "abs": _of_x(lambda x, r: op.sign(x)),
    "nn.relu": lambda c, r, g: [op.where(op.greater(c.args[0], _number(0, r)), g, op.zeros_like(g))],
    "nn.leakyrelu": lambda c, r, g: [
        op.where(op.greater(c.args[0], _number(0, r)), g, op.multiply(g, _number(float(c.attrs["alpha"]), r)))
    ],
    "nn.silu": _of_x(lambda x, r: op.add(op.sigmoid(x), op.multiply(r, op.subtract(_number(1, r), op.sigmoid(x))))),
    "nn.softmax": _softmax,
    "nn.log_softmax": _log_softmax,
    "where": lambda c, r, g: [
        None,
        collapsed(op.where(c.args[0], g, op.zeros_like(g)), c.args[1]),
        collapsed(op.where(c.args[0], op.zeros_like(g), g), c.args[2]),
    ],
    "matmul": _matmul,
    "sum": lambda c, r, g: [_spread(c, g)],
    "mean": _mean,
    "max": _greatest,
    "min": _greatest,
    "permute_dims": _permuted,
    "reshape": _reshaped,
    "expand_dims": _reshaped,
    "squeeze": _reshaped,
    "flatten": _reshaped,
    "broadcast_to": lambda c, r, g: [collapsed(g, c.args[0])],
    "concat": _concat,
    "take": _taken_parts,
    "gather_nd": _gathered,
    "strided_slice": _sliced,
    **dict.fromkeys(("ceil", "floor", "round", "sign", "ones_like", "zeros_like"), lambda c, r, g: [None]),
    "nn.gelu": _of_x(_gelu),
    "variance": _variance,
    "cumsum": _cumsum,
    "split": lambda c, r, g: [op.concat(g, int(c.attrs["axis"]))],
    "triu": lambda c, r, g: [op.triu(g, *c.args[1:], **c.attrs)],
    "tril": lambda c, r, g: [op.tril(g, *c.args[1:], **c.attrs)],
    "nn.cross_entropy_with_logits": _cross_entropy,
    "nn.nll_loss": _nll_loss,
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "full_like"), lambda c, r, g: [None]),
    **window_gradients.ROWS,
    "astype": lambda c, r, g: [op.astype(g, c.args[0].struct_info.dtype)],
}  # fmt: skip


def _registered(make: Adjoint) -> Callable[[Any, Call, Any, Any], list[Any]]:
    """A row by the convention of the attribute "FPrimalGradient": from the variable of the result, the call and the adjoint."""

    def derive(orig_var: Any, orig_call: Call, output_grad: Any, ctx: Any) -> list[Any]:
        # A row may say nothing of the last operands: nothing is derived by them.
        found = [*make(orig_call, orig_var, output_grad), *[None] * len(orig_call.args)][: len(orig_call.args)]
        return [op.grad.no_grad(arg) if own is None else own for arg, own in zip(orig_call.args, found, strict=True)]

    return derive


for _name, _make in TABLE.items():
    Op.of(f"relax.{_name}").set_attr("FPrimalGradient", _registered(_make))
