"""LegalizeOps: calls of operators become calls of tensor functions, which the rows' tensor computations are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.arithmetic import const as number
from ...tir.expr import PrimExpr
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..block_builder import BlockBuilder
from ..expr import Call, Constant, Function, Tuple, Var
from ..ops.row import ROWS, Pattern, Row, row_of
from ..struct_info import PrimStructInfo, ShapeExpr, TensorStructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator
from .gradient_marks import plain_call
from .passes import each_function

_BY_SHAPE = ("relax.ones_like", "relax.zeros_like", "relax.full_like", "relax.flatten", "relax.collapse_sum_like")
LEGALIZE = "FLegalize"  # the attribute of operators, by its name in TVM
Legalization = Callable[[BlockBuilder, Call], Any]


class _Legalizer(Mutator):
    """Rewrites calls; tensor functions are added to the builder's module."""

    def __init__(self, builder: BlockBuilder, own: Mapping[str, Legalization]) -> None:
        super().__init__()
        self._builder = builder
        self._own = own
        self._made: dict[tuple[Any, ...], Call] = {}

    def rewrite(self, expr: Any) -> Any:
        """A call of a tensor function in place of one of an operator that has a tensor computation and known shapes."""
        row = row_of(expr)
        if row is None:
            return expr
        own = self._own.get(expr.op) or expr.op.get_attr(LEGALIZE)
        if own is not None:
            return self._builder.normalize(own(self._builder, expr))
        plain = plain_call(expr)  # nobody derives tensor functions any more
        if plain is not expr:
            return plain
        if row.te is None or not has_known_shapes(expr):
            return expr
        plain = _spelled_out(expr)
        made = self._called(ROWS[plain.op], plain)
        # A split into one part is a tuple of one, and its tensor function returns no tuple.
        is_tuple = isinstance(expr.struct_info, TupleStructInfo)
        return made if is_tuple == isinstance(made.struct_info, TupleStructInfo) else Tuple((self._builder.normalize(made),))

    def _called(self, row: Row, call: Call) -> Call:
        """A call of the operator's tensor function. One of an earlier call is taken again where all that counts is the same."""
        numbers = _numbers(row, call)
        tensors = [arg for n, arg in enumerate(call.args) if isinstance(arg, (Var, Constant)) and n not in numbers]
        infos = [numbers.get(n, arg.struct_info if isinstance(arg, (Var, Constant)) else arg) for n, arg in enumerate(call.args)]
        names = list(row.arguments)
        given = {**row.bound(call), **{names[n]: value for n, value in numbers.items()}}
        # f(x, x) has one argument, so its tensor function isn't that of f(x, y).
        plain = len({id(one) for one in tensors}) == len(tensors) and not any(isinstance(arg, Tuple) for arg in call.args)
        if not plain or any(not isinstance(one, TensorStructInfo) or symbols_of(one) for one in (arg.struct_info for arg in tensors)):
            return self._builder.call_te(computation(row), **given, primfunc_name_hint=row.kernel)
        key = call.op, str(call.attrs), tuple(map(str, infos)), tuple(isinstance(one, Constant) for one in tensors)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = self._builder.call_te(computation(row), **given, primfunc_name_hint=row.kernel)
            # Operands that the computation left out or put in another order can't be replaced by place.
            if len(known.args) != 2 or [*known.args[1].fields] != tensors:
                del self._made[key]
            return known
        return Call(known.op, (known.args[0], Tuple(tuple(tensors))), known.attrs, known.sinfo_args)


def _numbers(row: Row, call: Call) -> dict[int, PrimExpr]:
    """By place the constants of one element that stand in the code of an operator on two tensors, beside one that is read."""
    # Of broadcast_to(constant, shape) nothing else would be a tensor.
    of_tensors = row.pattern == Pattern.BROADCAST and "Shape" not in row.arguments.values()
    if len(call.args) != 2 or not (of_tensors or row.name == "full"):
        return {}
    found = {n: arg for n, arg in enumerate(call.args) if isinstance(arg, Constant) and arg.data.ndim == 0}
    return {n: number(arg.view().item(), str(arg.data.dtype)) for n, arg in found.items()} if len(found) == 1 else {}


def _spelled_out(call: Call) -> Call:
    """A call that reads no tensor of which only the shape counts, in place of one of an operator that does."""
    info = call.args[0].struct_info if call.args else None
    if call.op not in _BY_SHAPE or not isinstance(info, TensorStructInfo) or not isinstance(call.struct_info, TensorStructInfo):
        return call
    shape, dtype = ShapeExpr(call.struct_info.extents or ()), call.struct_info.dtype
    match call.op.name:
        case "relax.ones_like" | "relax.zeros_like":
            return Call(Op.of(call.op.name.removesuffix("_like")), (shape,), {"dtype": dtype})
        case "relax.full_like":
            return Call(Op.of("relax.full"), (shape, call.args[1]), {"dtype": dtype})
    return Call(Op.of("relax.reshape" if call.op == "relax.flatten" else "relax.collapse_sum_to"), (call.args[0], shape))


def computation(row: Row) -> Callable[..., Any]:
    """The tensor computation of an operator, by the names of its arguments and attributes."""
    if row.te is None:
        raise DeclarationError(f"{row.name} has no tensor computation")
    te = row.te

    def compute(**given: Any) -> Any:
        return row.apply(te, given)

    return compute


def has_known_shapes(call: Call) -> bool:
    """Whether shapes and dtypes of all tensors around a call are known, and none is without elements: of these NumPy says what is what."""
    if isinstance(call.struct_info, PrimStructInfo):  # of numbers alone
        return False
    infos = [arg.struct_info for arg in call.args] + [call.struct_info]
    while infos:
        info = infos.pop()
        if isinstance(info, TupleStructInfo):
            infos.extend(info.fields)
        elif isinstance(info, TensorStructInfo) and (info.extents is None or not info.dtype or 0 in map(as_int, info.extents)):
            return False
    return True


def legalized(call: Call) -> tuple[Any, IRModule]:
    """A call as `LegalizeOps` makes it, and a module with its tensor function alone."""
    scratch = IRModule()
    return _Legalizer(BlockBuilder.over(scratch), {}).rewrite(call), scratch


def LegalizeOps(customize_legalize_map: Mapping[str, Legalization] | None = None, enable_warning: bool = False) -> ModulePass:
    """A pass: each call of an operator becomes a call of a tensor function, and one with a derivative a call without.

    Args:
        customize_legalize_map: operators such as "relax.add" -> functions that take a BlockBuilder and the call, and return an expression.
            Those that `legalize_ops.common.register_legalize` has registered hold for all such passes.
        enable_warning: accepted; calls whose shapes aren't known are left as they are, and the build names them.
    """
    own = dict(customize_legalize_map or {})
    unknown = own.keys() - ROWS.keys()
    if unknown:
        raise DeclarationError(f"LegalizeOps: no operator {', '.join(sorted(unknown))}")

    def run(func: Function, mod: IRModule) -> Function:
        return _Legalizer(BlockBuilder.over(mod), own).function(func)

    return each_function("LegalizeOps", run)
