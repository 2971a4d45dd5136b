"""An operator is one row: its signature, what is known of its result, its meaning on NumPy's arrays and as a tensor computation.

    @operator("nn.softmax", Pattern.OUT_FUSABLE, te=topi.nn.softmax, numpy=reference.softmax)
    def softmax(data: Expr, axis: int = -1) -> StructInfo:
        return tensor(data).info

The function is the rule of the result. Its parameters that are `Expr`, `Exprs` (a tuple of them), `Shape` or `Prim` are arguments of
a call, the others attributes. From the rows follow the functions of `relax.op` and `R`, the evaluator, legalisation, fusion and
constant folding.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from ...dataclass import dataclass
from ...errors import DeclarationError, TypeMismatchError
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr
from ...tir.function import GlobalVar
from ...tir.op_registry import Op
from ..expr import Call, Constant, ExternFunc, PrimValue, RelaxExpr, Tuple, const, convert_to_expr
from ..extents import readable
from ..relations import returned
from ..struct_info import FuncStructInfo, ObjectStructInfo, ShapeExpr, StructInfo, TensorStructInfo

# Kinds of arguments; parameters of a rule are annotated with them.
Expr: TypeAlias = RelaxExpr
Exprs: TypeAlias = Any
Shape: TypeAlias = Any
Prim: TypeAlias = Any
_ARGUMENTS = {"Expr", "Expr | None", "Exprs", "Shape", "Shape | None", "Prim", "Prim | None"}


class Pattern(IntEnum):
    """How the elements of a result depend on those of the arguments; what fusion goes by. The numbers are TVM's."""

    ELEMENTWISE = ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = COMM_REDUCE = 3
    OUT_FUSABLE = OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


@dataclass(frozen=True, slots=True)
class Row:
    """An operator.

    Args:
        name: behind "relax.".
        rule: what is known of the result, by arguments and attributes.
        arguments: names of the parameters that are arguments, with their kinds.
        signature: of calls.
        pattern: for fusion.
        numpy: the result, or a tuple of results, by NumPy's arrays; None for what runs as a function of its own.
        te: the same for tensors.
        is_pure: whether a call has no effect but its value.
        kernel: what its tensor function is called.
        as_is: whether `numpy` takes arrays in their own dtypes, also in those that NumPy has no arithmetic for.
    """

    name: str
    rule: Callable[..., StructInfo]
    arguments: Mapping[str, str]
    signature: inspect.Signature
    pattern: Pattern
    numpy: Callable[..., Any] | None
    te: Callable[..., Any] | None
    is_pure: bool
    kernel: str
    as_is: bool

    def bound(self, call: Call) -> dict[str, Any]:
        """The arguments and attributes of a call by name."""
        # strict=False: a call may lack arguments at the end.
        found: dict[str, Any] = dict(zip(self.arguments, call.args, strict=False))
        return {name: found.get(name, call.attrs.get(name)) for name in self.signature.parameters}

    def apply(self, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        """A meaning of the operator: arguments by their place, without those that are left out; attributes by name."""
        operands = [given[name] for name in self.arguments if given[name] is not None]
        return function(*operands, **{name: value for name, value in given.items() if name not in self.arguments})


ROWS: dict[str, Row] = {}


def row_of(call: Any) -> Row | None:
    """The row of a call of an operator, else None."""
    return ROWS.get(call.op) if isinstance(call, Call) and isinstance(call.op, Op) else None


def listed(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """For `settled` of `operator`: an attribute of axes, of which one may be given as a number, as a sequence of numbers."""
    return lambda attrs: {**attrs, name: (attrs[name],)} if isinstance(attrs[name], int) else attrs


def operator(
    name: str,
    pattern: Pattern = Pattern.OPAQUE,
    *,
    te: Callable[..., Any] | None = None,
    numpy: Callable[..., Any] | None = None,
    is_pure: bool = True,
    kernel: str = "",
    as_is: bool = False,
    settled: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Callable[[Callable[..., StructInfo]], Callable[..., Call]]:
    """A decorator: the rule of an operator becomes the function that makes calls of it.

    Args:
        name: behind "relax.".
        pattern, te, numpy, is_pure, as_is: as of `Row`.
        kernel: the last part of the name without one.
        settled: from attributes to the one form of those that mean the same.
    """

    def register(rule: Callable[..., StructInfo]) -> Callable[..., Call]:
        signature = inspect.signature(rule)
        kinds = {p.name: str(p.annotation) for p in signature.parameters.values() if str(p.annotation) in _ARGUMENTS}
        full = f"relax.{name}"
        ROWS[full] = Row(name, rule, kinds, signature, pattern, numpy, te, is_pure, kernel or name.rpartition(".")[2], as_is)
        Op.of(full).set_attr("TOpPattern", int(pattern))
        Op.of(full).set_attr("FPurity", is_pure)

        def make(*args: Any, **kwargs: Any) -> Call:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeMismatchError(f"relax.op.{name}: {error}; it is {name}{signature_text(signature)}") from None
            given.apply_defaults()
            values = given.arguments
            operands = [_argument(values[one], kind, f"{name}: {one}") for one, kind in kinds.items()]
            # Arguments have no names in a call: those left out at the end aren't there, one in between would move the others.
            while operands and operands[-1] is None:
                operands.pop()
            if None in operands:
                raise DeclarationError(f"relax.op.{name}: an argument before the last one given is missing")
            attrs = {
                one: None if value == "void" or (one, value) == ("out_dtype", "") else value
                for one, value in values.items()
                if one not in kinds
            }
            try:
                call = Call(Op.of(full), _in_one_dtype(operands, kinds), attrs if settled is None else settled(attrs))
                _ = call.struct_info  # what doesn't fit is an error here
            except (DeclarationError, TypeMismatchError) as error:
                said = readable(str(error))
                raise type(error)(said if said.startswith("relax.op.") else f"relax.op.{name}: {said}") from None
            return call

        make.__name__ = make.__qualname__ = name.rpartition(".")[2]
        make.__doc__, make.__signature__ = rule.__doc__, signature  # type: ignore[attr-defined]
        return make

    return register


def signature_text(signature: inspect.Signature) -> str:
    """A signature without annotations."""
    shown = (str(p.replace(annotation=inspect.Parameter.empty)) for p in signature.parameters.values())
    return f"({', '.join(shown)})"


def _argument(value: Any, kind: str, where: str) -> Any:
    """A value as an argument of its kind.

    Raises:
        TypeMismatchError: for a value of another kind.
    """
    if value is None:
        return None
    if kind.startswith("Shape"):
        return value if isinstance(value, RelaxExpr) else ShapeExpr(tuple(value) if isinstance(value, Sequence) else (value,))
    if kind.startswith("Prim"):
        return value if isinstance(value, RelaxExpr) else PrimValue(value)
    if kind == "Exprs" and isinstance(value, (tuple, list)):
        return Tuple(tuple(value))
    if not isinstance(value, (RelaxExpr, PrimExpr, bool, int, float)) and not hasattr(value, "dtype"):
        raise TypeMismatchError(f"relax.op.{where} is a tensor, not {type(value).__name__}")
    return value


def _in_one_dtype(operands: Sequence[Any], kinds: Mapping[str, str]) -> list[Any]:
    """Operands with constants for numbers, in the dtype of the tensors beside them."""
    tensors = [one.struct_info for one in operands if isinstance(one, RelaxExpr)]
    dtypes = [info.dtype for info in tensors if isinstance(info, TensorStructInfo) and info.dtype]
    dtype = next((one for one in dtypes if one != "bool"), next(iter(dtypes), None))  # a condition says nothing of numbers
    made: list[Any] = []
    for operand, kind in zip(operands, kinds.values(), strict=False):
        is_number = kind.startswith("Expr") and kind != "Exprs" and not isinstance(operand, (RelaxExpr, PrimExpr))
        made.append(const(operand, dtype) if is_number else convert_to_expr(operand))
    return made


def result_of(call: Call) -> StructInfo:
    """What is known of the result of a call.

    Raises:
        DeclarationError: if operands don't fit.
    """
    row = row_of(call)
    if row is not None:
        # Stated results come first: call_tir and its like have a rule that knows nothing.
        if call.sinfo_args:
            return call.sinfo_args[0] if len(call.sinfo_args) == 1 else _tuple(call.sinfo_args)
        return row.rule(**row.bound(call))
    if isinstance(call.op, Op):
        return call.sinfo_args[0] if call.sinfo_args else ObjectStructInfo()
    if call.sinfo_args:
        return call.sinfo_args[0] if len(call.sinfo_args) == 1 else _tuple(call.sinfo_args)
    if isinstance(call.op, (GlobalVar, ExternFunc)):
        return ObjectStructInfo()
    info = call.op.struct_info if isinstance(call.op, RelaxExpr) else ObjectStructInfo()
    if isinstance(info, FuncStructInfo):
        return returned(info, [arg.struct_info for arg in call.args], str(call.op))
    return ObjectStructInfo()


def _tuple(infos: Sequence[StructInfo]) -> StructInfo:
    from ..struct_info import TupleStructInfo

    return TupleStructInfo(tuple(infos))


# Set from here: the module of expressions can't import rows, which are made of its classes.
Call._rule = staticmethod(result_of)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor among the arguments of a rule."""

    name: str
    info: TensorStructInfo

    @property
    def dtype(self) -> str:
        """Of its elements; "" if unknown."""
        return self.info.dtype

    @property
    def ndim(self) -> int:
        """Its dimensions; -1 if unknown."""
        return self.info.ndim

    @property
    def extents(self) -> tuple[PrimExpr, ...] | None:
        """Its shape, where it is known."""
        return self.info.extents

    def axis(self, axis: int, beyond: int = 0) -> int:
        """An axis counted from the front.

        Args:
            axis: from the front, or from the back if negative.
            beyond: axes that the result has beside those of the tensor.

        Raises:
            DeclarationError: for one that there isn't.
        """
        if self.ndim == -1:
            return axis
        ndim = self.ndim + beyond
        if not -ndim <= axis < ndim:
            raise DeclarationError(f"axis {axis} of a tensor of {ndim} dimensions: {self.name} is {self.info}")
        return axis % ndim

    def axes(self, axes: int | Sequence[int] | None) -> list[int] | None:
        """Axes counted from the front, in order; all for None.

        Raises:
            DeclarationError: for one that there isn't, or one twice.
        """
        if axes is None:
            return None if self.ndim == -1 else list(range(self.ndim))
        found = [self.axis(int(one)) for one in (axes if isinstance(axes, Sequence) else [axes])]
        if len(set(found)) != len(found):
            raise DeclarationError(f"an axis of {self.name} is named twice: {axes}")
        return found

    def like(self, extents: Sequence[Any] | None, dtype: str | None = None, ndim: int = -1) -> TensorStructInfo:
        """A tensor on the same device, of another shape."""
        return TensorStructInfo(extents, self.dtype if dtype is None else dtype, self.info.vdevice, ndim)


def tensor(expr: Any, name: str = "the operand") -> Operand:
    """An argument that has to be a tensor.

    Raises:
        TypeMismatchError: if it is something else.
    """
    info = expr.struct_info if isinstance(expr, RelaxExpr) else None
    if not isinstance(info, TensorStructInfo):
        raise TypeMismatchError(f"{name} is a tensor, not {expr}, which is {info}")
    return Operand(name, info)


def floats(expr: Any, name: str = "data") -> Operand:
    """An argument that has to be a tensor of floating-point numbers.

    Raises:
        TypeMismatchError: if it is something else.
    """
    found = tensor(expr, name)
    if found.dtype and not parse_dtype(found.dtype).is_float:
        raise TypeMismatchError(f"{name} are floating-point numbers, not {found.info}; use astype first")
    return found


def indices_of(expr: Any, name: str = "indices") -> Operand:
    """A tensor of integers.

    Raises:
        TypeMismatchError: for another one.
    """
    found = tensor(expr, name)
    if found.dtype and not parse_dtype(found.dtype).is_int:
        raise TypeMismatchError(f"{name} are integers, not {found.info}; use astype first")
    return found


__all__ = ["ROWS", "Constant", "Operand", "Pattern", "Row", "floats", "indices_of", "operator", "result_of", "row_of", "tensor"]
