"""Calls of what is no operator: tensor functions of the module, registered functions, closures; and what has an effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError, TypeMismatchError
from ...tir.attrs import FrozenMap
from ...tir.function import GlobalVar, PrimFunc
from ...tir.op_registry import Op
from ..expr import Call, ExternFunc, PrimValue, RelaxExpr, StringImm, Tuple, convert_to_expr
from ..relations import BaseCheckResult, struct_info_base_check
from ..struct_info import ObjectStructInfo, ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .row import Expr, Exprs, Pattern, operator, tensor

VOID = TupleStructInfo(())


def _callee(func: Any) -> Any:
    """What is called: a function of the module by its variable, a registered one by its name.

    Raises:
        TypeMismatchError: for anything else.
    """
    if isinstance(func, str):
        return ExternFunc(func)
    if isinstance(func, (GlobalVar, RelaxExpr, PrimFunc)):
        return func
    raise TypeMismatchError(f"a function is named by its GlobalVar or a string, not {func!r}")


def _results(out_sinfo: Any, dtype: Any = None) -> StructInfo:
    """What a destination-passing function fills: a tensor or several, in today's form or that of 2022, a shape and a dtype."""
    if isinstance(out_sinfo, StructInfo):
        return out_sinfo
    given = list(out_sinfo) if isinstance(out_sinfo, (tuple, list)) else out_sinfo
    if isinstance(given, list) and given and all(isinstance(one, StructInfo) for one in given):
        return given[0] if len(given) == 1 else TupleStructInfo(tuple(given))
    if isinstance(given, (list, ShapeExpr)) and dtype is not None:
        nested = isinstance(given, list) and any(isinstance(one, (tuple, list, ShapeExpr)) for one in given)
        dtypes = dtype if isinstance(dtype, (tuple, list)) else [dtype] * len(given)
        if not nested:
            return TensorStructInfo(given, dtype)
        return TupleStructInfo(tuple(TensorStructInfo(one, kind) for one, kind in zip(given, dtypes, strict=True)))
    raise TypeMismatchError(f'results are stated as R.Tensor((1, 128), "float32"), or as a shape and dtype=, not {out_sinfo!r}')


def _tupled(args: Any) -> Any:
    # A value that is a tuple already is passed as it is; any other one is a tuple of one.
    made = convert_to_expr(args)
    return made if isinstance(made, Tuple) or isinstance(getattr(made, "struct_info", None), TupleStructInfo) else Tuple((made,))


def _passing(name: str, func: Any, args: Any, out_sinfo: Any, dtype: Any, *more: Any, attrs: Any = None) -> Call:
    return Call(Op.of(f"relax.{name}"), (_callee(func), _tupled(args), *more), attrs, _results(out_sinfo, dtype))


def call_tir(gvar: Any, args: Any, out_sinfo: Any = None, tir_vars: Any = None, *, dtype: Any = None, shape: Any = None) -> Call:
    """A call of a tensor function, which writes its results into tensors that are made for them.

    Args:
        gvar: the function's GlobalVar; the name of a registered function calls that one.
        args: a tensor or a tuple of tensors.
        out_sinfo: what the results are: R.Tensor((1, 128), "float32"), or a list of such. The form of 2022 is a shape with `dtype`.
        tir_vars: values of parameters that are integers, which no shape says.

    Raises:
        TypeMismatchError: for another callee, or results that aren't stated.
    """
    extra = () if tir_vars is None else (tir_vars if isinstance(tir_vars, RelaxExpr) else ShapeExpr(tuple(tir_vars)),)
    name = "call_dps_packed" if isinstance(gvar, (str, ExternFunc)) else "call_tir"
    return _passing(name, gvar, args, shape if out_sinfo is None else out_sinfo, dtype, *extra)


def call_tir_inplace(gvar: Any, args: Any, inplace_indices: int | Sequence[int], out_sinfo: Any, tir_vars: Any = None) -> Call:
    """As `call_tir`, of a function that writes results into arguments: -1 for a result with a tensor of its own.

    Raises:
        DeclarationError: for an index of no argument, an argument twice, no argument at all, or one that isn't what the result is.
    """
    extra = () if tir_vars is None else (ShapeExpr(tuple(tir_vars)),)
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    made = _passing("call_tir_inplace", gvar, args, out_sinfo, None, *extra, attrs={"inplace_indices": tuple(places)})
    operands: Any = made.args[1].struct_info
    _check_places("call_tir_inplace", places, len(operands.fields))
    stated = made.sinfo_args[0]
    for info, place in zip(stated.fields if isinstance(stated, TupleStructInfo) else (stated,), places, strict=False):
        own = operands.fields[place] if place >= 0 else info
        if not isinstance(own, TensorStructInfo) or struct_info_base_check(info, own) <= BaseCheckResult.FAIL_L1:
            raise DeclarationError(f"call_tir_inplace: a result that is {info} is written into argument {place}, which is {own}")
    return made


def _check_places(name: str, places: Sequence[int], count: int) -> None:
    """Check that results are written into arguments, each into another one."""
    written = [place for place in places if place != -1]
    if not written or len(set(written)) != len(written) or not all(0 <= place < count for place in written):
        raise DeclarationError(f"{name}: results are written into arguments {list(places)} of {count}")


def call_tir_with_grad(
    gvar: GlobalVar, args: Any, out_sinfo: Any, te_grad_name: str, te_grad_kwargs: Mapping[str, Any] | None = None, tir_vars: Any = None
) -> Call:
    """As `call_tir`, of a function whose derivative `relax.transform.Gradient` knows by a name.

    Args:
        gvar, args, out_sinfo, tir_vars: as of `call_tir`.
        te_grad_name: of a function that `relax.training.utils.register_te_gradient` has registered.
        te_grad_kwargs: what that one takes besides tensors.

    Raises:
        TypeMismatchError: for another callee than a GlobalVar, or results that aren't stated.
    """
    if not isinstance(gvar, GlobalVar):
        raise TypeMismatchError(f"call_tir_with_grad calls a tensor function of the module, by its GlobalVar, not {gvar!r}")
    extra = () if tir_vars is None else (tir_vars if isinstance(tir_vars, RelaxExpr) else ShapeExpr(tuple(tir_vars)),)
    attrs = {"te_grad_name": str(te_grad_name), "te_grad_kwargs": FrozenMap(te_grad_kwargs)}
    return _passing("call_tir_with_grad", gvar, args, out_sinfo, None, *extra, attrs=attrs)


def without_gradient(expr: Any) -> Any:
    """`call_tir` in place of a `call_tir_with_grad`; others are themselves."""
    if not isinstance(expr, Call) or expr.op != "relax.call_tir_with_grad":
        return expr
    return Call(Op.of("relax.call_tir"), expr.args, None, expr.sinfo_args)


def call_dps_packed(func: Any, args: Any, out_sinfo: Any = None, *, dtype: Any = None) -> Call:
    """A call of a registered function that writes its results into its last arguments."""
    return _passing("call_dps_packed", func, args, out_sinfo, dtype)


def call_packed(func: Any, *args: Any, sinfo_args: Any = None, type_args: Any = None, **attrs: Any) -> Call:
    """A call of a registered function, which may have effects and returns its result."""
    stated = sinfo_args if sinfo_args is not None else type_args
    return Call(_callee(func), args, attrs, _stated(stated))


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None) -> Call:
    """A call of a registered function without effects, which returns its result."""
    return Call(Op.of("relax.call_pure_packed"), (_callee(func), *args), None, _stated(sinfo_args))


def call_inplace_packed(func: Any, *args: Any, inplace_indices: int | Sequence[int], sinfo_args: Any = None) -> Call:
    """As `call_pure_packed`, of a function that writes results into arguments and returns these: -1 for a result of its own.

    Raises:
        DeclarationError: for an index of no argument, an argument twice, or no argument at all.
    """
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    _check_places("call_inplace_packed", places, len(args))
    return Call(Op.of("relax.call_inplace_packed"), (_callee(func), *args), {"inplace_indices": tuple(places)}, _stated(sinfo_args))


def _stated(infos: Any) -> tuple[StructInfo, ...]:
    given = infos if isinstance(infos, (tuple, list)) else () if infos is None else (infos,)
    made = tuple(one() if isinstance(one, type) else one for one in given)
    if any(not isinstance(one, StructInfo) for one in made):
        raise TypeMismatchError(f"results of registered functions are stated as sinfo_args=R.Tensor(...), not {infos!r}")
    return made


def make_closure(func: Any, args: Any) -> Call:
    """A function with its first arguments as a value, which takes the others.

    Args:
        func: the function's GlobalVar.
        args: its first arguments: a value or a tuple of values.
    """
    return Call(Op.of("relax.make_closure"), (func, _tupled(args)))


def invoke_closure(closure: Any, args: Any, sinfo_args: Any = None) -> Call:
    """A call of a value that is a function."""
    return Call(Op.of("relax.invoke_closure"), (closure, _tupled(args)), None, _stated(sinfo_args))


def invoke_pure_closure(closure: Any, args: Any, sinfo_args: Any = None) -> Call:
    """A call of a value that is a function without effects."""
    return Call(Op.of("relax.invoke_pure_closure"), (closure, _tupled(args)), None, _stated(sinfo_args))


def _rule_of_calls(name: str, is_pure: bool = True) -> None:
    """A row for calls that state their results."""

    def rule() -> StructInfo:
        return ObjectStructInfo()

    operator(name, is_pure=is_pure)(rule)


for _name in (
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "call_dps_packed",
    "call_pure_packed",
    "call_inplace_packed",
    "make_closure",
    "invoke_pure_closure",
):
    _rule_of_calls(_name)
_rule_of_calls("invoke_closure", is_pure=False)


@operator("print", is_pure=False)
def _print(values: Exprs, format: str = "") -> StructInfo:
    """Print values when the graph runs."""
    return VOID


def print(*values: Any, format: Any = "") -> Call:
    """Print values when the graph runs, by a format of `str.format` or each by itself."""
    return _print(values, format.value if isinstance(format, StringImm) else format)


@operator("assert_op", is_pure=False)
def _assert(condition: Expr, values: Exprs, format: str = "") -> StructInfo:
    """Stop the graph where a condition doesn't hold."""
    return VOID


def assert_op(condition: Any, format_args: Any = None, format: Any = "") -> Call:
    """Stop the graph with a text where a condition, a bool without axes, doesn't hold."""
    given = format_args if isinstance(format_args, (tuple, list)) else () if format_args is None else (format_args,)
    return _assert(condition, given, format.value if isinstance(format, StringImm) else format)


@operator("shape_of", Pattern.OPAQUE, numpy=lambda expr: tuple(expr.shape))
def shape_of(expr: Expr) -> StructInfo:
    """The shape of a tensor, as a shape."""
    operand = tensor(expr, "expr")
    return ShapeStructInfo(operand.extents, operand.ndim)


def element(value: Any, index: Any) -> Any:
    """One value of a tuple.

    Raises:
        DeclarationError: for what is no constant index.
    """
    from ..expr import TupleGetItem

    if isinstance(index, PrimValue):
        index = getattr(index.value, "value", index.value)
    info = value.struct_info
    if not isinstance(index, int) or isinstance(index, bool):
        raise DeclarationError(
            f"elements of tuples are named by constant integers, not {index!r}; of tensors they are taken by R.take or R.strided_slice"
        )
    if isinstance(info, TensorStructInfo):
        raise TypeMismatchError(f"{value} is a tensor, whose elements are taken by R.take or R.strided_slice")
    if isinstance(info, TupleStructInfo) and not 0 <= index < len(info.fields):
        raise IndexError(f"element {index} of a tuple of {len(info.fields)}")  # ends `a, b = value` in Python
    if isinstance(value, Tuple):
        return value.fields[index]
    return TupleGetItem(value, index)


def call(func: Any, args: Sequence[Any], attrs: Any = None) -> Call:
    """A call of a value that is a function."""
    return Call(func, args, attrs)
