"""Gradient: a function that returns the derivatives of its result by its parameters too (reverse mode; Griewank and Walther 2008, 3.2).

Each operator of the table says what its operands' adjoints are by that of its result. Adjoints of a value are summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr
from ...tir.function import IRModule
from .. import op
from ..analysis import remove_all_unused
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding, const
from ..ops.manipulate import product
from ..struct_info import StructInfo, TensorStructInfo
from ..visitor import Mutator, walk
from . import window_gradients
from .passes import graph_pass
from .rewriting import Rewriter

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
    if a.struct_info.ndim < 2 or b.struct_info.ndim < 2:
        raise DeclarationError(f"Gradient: products of vectors have none here, reshape them to matrices: {call}")
    return collapsed(op.matmul(adjoint, _swapped(b)), a), collapsed(op.matmul(_swapped(a), adjoint), b)


def _kept(call: Call) -> list[Any]:
    """The shape of a reduction's operand with 1 in place of what is reduced."""
    own, axes = extents(call.args[0]), call.attrs["axis"]
    gone = range(len(own)) if axes is None else [int(n) % len(own) for n in ([axes] if isinstance(axes, int) else axes)]
    return [1 if n in gone else extent for n, extent in enumerate(own)]


def _spread(call: Call, adjoint: Any) -> Any:
    """An adjoint of a reduction for each element that went into it."""
    return op.broadcast_to(op.reshape(adjoint, _kept(call)), extents(call.args[0]))


def _mean(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    # Axes of extent 1 that stay look as if they were reduced; they count as 1.
    shares = [as_int(extent) for extent, one in zip(extents(call.args[0]), _kept(call), strict=True) if one == 1]
    count = 1
    for one in shares:
        if one is None:
            raise DeclarationError(f"Gradient: how many elements are taken together isn't known: {call}")
        count *= one
    return [_spread(call, op.divide(adjoint, _number(float(count), adjoint)))]


def _greatest(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    # Of several that are the greatest, each gets all of the adjoint.
    wide = op.broadcast_to(op.reshape(result, _kept(call)), extents(call.args[0]))
    return [op.where(op.equal(call.args[0], wide), _spread(call, adjoint), op.zeros_like(call.args[0]))]


def _permuted(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    ndim = call.args[0].struct_info.ndim
    axes = [int(n) % ndim for n in call.attrs["axes"]] if call.attrs["axes"] is not None else list(range(ndim))[::-1]
    # The inverse: of (2, 0, 1) it is (1, 2, 0).
    return [op.permute_dims(adjoint, sorted(range(ndim), key=lambda n: axes[n]))]


def _concat(call: Call, result: Any, adjoint: Any) -> Sequence[Any]:
    axis, parts, begin = int(call.attrs["axis"] or 0), list[Any](), cast(PrimExpr, IntImm("int64", 0))
    for field in call.args[0].fields:
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
    **dict.fromkeys(("ceil", "floor", "round", "sign", "ones_like", "zeros_like"), lambda c, r, g: [None]),
    **window_gradients.ROWS,
    "astype": lambda c, r, g: [op.astype(g, c.args[0].struct_info.dtype)],
}  # fmt: skip


class _Reverse(Rewriter):
    """Goes through the bindings of a block from the last one on, and emits adjoints."""

    def __init__(self, bindings: Sequence[Binding], wanted: set[Var]) -> None:
        super().__init__({})
        self._in_dataflow = True
        self._bindings = bindings
        # What depends on no wanted parameter gets no adjoint, and its operators need no row in the table.
        self._needed = set(wanted)
        for binding in bindings:
            if any(node in self._needed for node in walk(binding.value)):
                self._needed.add(binding.var)
        self.adjoints: dict[Any, Any] = {}

    def give(self, value: Any, adjoint: Any) -> None:
        """Add to the adjoint of a value, if somebody wants it."""
        if isinstance(value, Tuple):
            for n, field in enumerate(value.fields):
                self.give(field, adjoint.fields[n] if isinstance(adjoint, Tuple) else TupleGetItem(adjoint, n))
        elif value in self._needed and adjoint is not None:
            name = f"{value.name_hint}_adjoint"
            known = self.adjoints.get(value)
            self.adjoints[value] = self.emit(adjoint if known is None else op.add(known, adjoint), name)

    def run(self, target: Var) -> list[Binding]:
        """The bindings of the adjoints.

        Raises:
            DeclarationError: for an operator without a row in the table.
        """
        info: Any = target.struct_info
        self.adjoints[target] = self.emit(op.ones(tuple(extents(target)), info.dtype), f"{target.name_hint}_adjoint")
        # All that reads a value stands behind it, so its adjoint is whole when its binding's turn comes.
        for binding in reversed(self._bindings):
            adjoint = self.adjoints.get(binding.var)
            if adjoint is None:
                continue
            value = binding.value
            if isinstance(value, (Var, Tuple)):
                self.give(value, adjoint)
                continue
            make = TABLE.get(str(value.op).removeprefix("relax.")) if isinstance(value, Call) else None
            if make is None:
                raise DeclarationError(f"Gradient: no derivative is known of {value}; there are those of {', '.join(sorted(TABLE))}")
            for arg, own in zip(value.args, make(value, binding.var, adjoint), strict=False):
                self.give(arg, own)
        return self._taken()


class _Fresh(Mutator):
    """A copy with variables of its own."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """A new variable."""
        self._variables[var] = made = type(var)(var.name_hint, info)
        return made


def with_gradient(func: Function, name: str, require_grads: Any = None, target_index: int = 0) -> Function:
    """A function that returns what `func` does, and a tuple of the derivatives of one result by parameters; see `Gradient`."""
    given = require_grads if isinstance(require_grads, (list, tuple)) else func.params if require_grads is None else [require_grads]
    wrong = [param for param in given if param not in func.params]
    if wrong:
        raise DeclarationError(f"Gradient: {wrong[0]} is no parameter of {name}, which has {', '.join(p.name_hint for p in func.params)}")
    if len(func.body.blocks) != 1 or not isinstance(func.body.blocks[0], DataflowBlock):
        raise DeclarationError(f"Gradient: {name} is more than one dataflow block; ConvertToDataflow makes one of what has no effects")
    fresh = {param: Var(param.name_hint, param.struct_info) for param in func.params}
    body: Any = _Fresh(fresh).visit(func.body)
    results = body.body.fields if isinstance(body.body, Tuple) else (body.body,)
    if not 0 <= target_index < len(results) or not isinstance(results[target_index], Var):
        raise DeclarationError(f"Gradient: result {target_index} of {name}, which returns {len(results)}, is to be derived")
    target = results[target_index]
    if extents(target):
        raise DeclarationError(
            f"Gradient: what is derived is a number, a tensor without axes; result {target_index} is {target.struct_info}"
        )
    wanted = [fresh[param] for param in given]
    reverse = _Reverse(body.blocks[0].bindings, set(wanted))
    bindings = [*body.blocks[0].bindings, *reverse.run(target)]
    outputs: list[Var] = []
    for param in wanted:
        outputs.append(Var(f"{param.name_hint}_adjoint_out", param.struct_info))
        # Zeros for a parameter that the result doesn't depend on.
        none = op.zeros(tuple(extents(param)), param.struct_info.dtype)  # type: ignore[attr-defined]
        bindings.append(VarBinding(outputs[-1], reverse.adjoints.get(param, none)))
    block: BindingBlock = DataflowBlock(tuple(bindings))
    result = SeqExpr((block,), Tuple((body.body, Tuple(tuple(outputs)))))
    return remove_all_unused(Function(tuple(fresh.values()), result, result.struct_info, func.is_pure, func.attrs))


def Gradient(func_name: str, require_grads: Any = None, target_index: int = 0) -> ModulePass:
    """A pass: beside a function of one dataflow block there is `<name>_adjoint`, which returns its result and derivatives of it.

    Args:
        func_name: of the function; it returns a number, or a tuple with one.
        require_grads: the parameters by which is derived, or one of them; all if None.
        target_index: which element of a tuple is derived.

    Raises:
        DeclarationError: for functions that there aren't or of another form, and operators without a derivative.
    """

    def run(mod: IRModule) -> IRModule:
        func: Any = {var.name_hint: one for var, one in mod.functions_items()}.get(func_name)
        if not isinstance(func, Function):
            raise DeclarationError(f"Gradient: the module has no function {func_name!r} of a graph")
        made = mod.clone()
        name = f"{func_name}_adjoint"
        attrs = {"global_symbol": name} if "global_symbol" in func.attrs else {}
        new: Any = with_gradient(func, func_name, require_grads, target_index)
        made.update_func(name, new.with_attr(attrs) if attrs else new)
        return made

    return graph_pass("Gradient", run)
