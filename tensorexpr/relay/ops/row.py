"""An operator of Relay is one row: its signature, and its meaning in operators of graphs or as a tensor computation.

    @operator("nn.bias_add")
    def bias_add(data: Expr, bias: Expr, axis: int = 1) -> Meaning:
        return R.add(data, R.expand_dims(bias, ...))

    computed("nn.dilate", "data", topi.nn.dilate, strides=..., dilation_value=0.0)

Parameters that are `Expr` or `Exprs` (a tuple of them) are arguments of a call, the others attributes. From the rows follow the functions
of `relay`, the types of calls, and graphs: there is no compiler of Relay, nor anything else that knows an operator by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...dataclass import dataclass
from ...errors import DeclarationError, TypeMismatchError
from ...relax import expr as graph
from ...relax.block_builder import BlockBuilder
from ...relax.extents import readable
from ...relax.ops.row import signature_text
from ...relax.struct_info import RelaxExpr, StructInfo, TensorStructInfo, TupleStructInfo
from ...relax.tensor_function import tensor_function
from ...tir.arithmetic import as_int
from ...tir.op_registry import Op
from ..expr import Call, TupleWrapper, as_expr
from ..ty import Any as unknown_extent

Expr: TypeAlias = RelaxExpr
Exprs: TypeAlias = Any
_ARGUMENTS = {"Expr", "Exprs", "Expr | None"}


@dataclass(frozen=True)
class Computed:
    """A meaning as a tensor computation: a function on tensors (`topi`) with its operands and attributes."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    attrs: Mapping[str, Any]
    name: str

    def emitted(self, builder: BlockBuilder) -> Any:
        """The value in a function of a graph."""
        return builder.emit_te(self.function, *self.args, **self.attrs, primfunc_name_hint=self.name)

    @property
    def struct_info(self) -> StructInfo:
        """What is known of the value."""
        return tensor_function(self.function, self.args, dict(self.attrs)).result


Meaning: TypeAlias = Any  # an expression of graphs, whose operators say no more, a Computed, or a meaning of `dynamic`


@dataclass(frozen=True, slots=True)
class Row:
    """An operator.

    Args:
        name: Relay's.
        signature: of the function that makes calls.
        arguments: names of the parameters that are arguments, with their kinds.
        meaning: an expression of graphs, or a computation, by arguments and attributes.
        results: how many there are, by arguments and attributes; 0 for a single one that is no tuple.
    """

    name: str
    signature: inspect.Signature
    arguments: Mapping[str, str]
    meaning: Callable[..., Meaning]
    results: Callable[..., int]

    def bound(self, call: Any) -> dict[str, Any]:
        """The arguments and attributes of a call by name.

        Raises:
            TypeMismatchError: for a call with too many arguments.
        """
        if len(call.args) > len(self.arguments):
            raise TypeMismatchError(f"{self.name} takes {len(self.arguments)} arguments, not {len(call.args)}")
        # strict=False: a call may lack arguments at the end.
        found: dict[str, Any] = dict(zip(self.arguments, call.args, strict=False))
        defaults = {p.name: None if p.default is p.empty else p.default for p in self.signature.parameters.values()}
        return {name: found[name] if name in found else call.attrs.get(name, default) for name, default in defaults.items()}

    def meant(self, given: Mapping[str, Any]) -> Meaning:
        """What a call with these arguments and attributes is.

        Raises:
            DeclarationError, TypeMismatchError: if they don't fit, naming the operator.
        """
        try:
            made = self.meaning(**given)
            _ = made.struct_info  # what doesn't fit is an error here
            return made
        except (DeclarationError, TypeMismatchError) as error:
            said = readable(str(error))
            raise type(error)(said if said.startswith("relay.") else f"relay.{self.name}: {said}") from None
        except IndexError as error:  # a meaning asks for the extent of an axis
            raise TypeMismatchError(f"relay.{self.name}: an operand has too few axes ({_types_of(given)})") from error


def _types_of(given: Mapping[str, Any]) -> str:
    """The types of the operands among the arguments, for messages."""
    operands = ((name, value.struct_info) for name, value in given.items() if isinstance(value, RelaxExpr))
    return ", ".join(f"{name}: {readable(str(info))}" for name, info in operands)


ROWS: dict[str, Row] = {}


def _one(**given: Any) -> int:
    return 0


def _as_given(values: dict[str, Any]) -> dict[str, Any]:
    return values


def operator(
    name: str, *, results: Callable[..., int] = _one, also: tuple[str, ...] = (),
    settled: Callable[[dict[str, Any]], dict[str, Any]] = _as_given,
) -> Callable[[Callable[..., Meaning]], Any]:  # fmt: skip
    """A decorator: the meaning of an operator becomes the function that makes calls of it.

    Args:
        name: of the operator.
        results: for operators with several; gets arguments and attributes by name.
        also: older names, under which calls may be read.
        settled: says how a call keeps arguments and attributes, which it gets by name, where these may be written in several ways.
    """

    def register(meaning: Callable[..., Meaning]) -> Callable[..., Any]:
        signature = inspect.signature(meaning)
        kinds = {p.name: str(p.annotation) for p in signature.parameters.values() if str(p.annotation) in _ARGUMENTS}
        row = Row(name, signature, kinds, meaning, results)
        for one in (name, *also):
            ROWS[one] = row
            Op.of(one).set_attr("TRelayArguments", tuple(kinds))

        def make(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeMismatchError(f"relay.{name}: {error}; it is {name}{signature_text(signature)}") from None
            given.apply_defaults()
            values = settled(dict(given.arguments))
            operands = [_operand(values[one], f"{name}: {one}") for one in kinds if values[one] is not None]
            call = Call(Op.of(name), operands, {one: plain(value) for one, value in values.items() if one not in kinds})
            count = results(**values)
            return TupleWrapper(call, count) if count else call

        make.__name__ = make.__qualname__ = name.rpartition(".")[2]
        make.__doc__, make.__signature__, make.__wrapped__ = meaning.__doc__, signature, meaning  # type: ignore[attr-defined]
        return make

    return register


def _operand(value: Any, where: str) -> Any:
    """A value as an argument.

    Raises:
        TypeMismatchError: for a number, or anything else that is no expression.
    """
    try:
        return as_expr(value)
    except TypeMismatchError:
        raise TypeMismatchError(f"relay.{where} is an expression, not {value!r}; relay.const({value!r}) makes one") from None


def of_planes(rank: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """For `settled` of a window over `rank` axes: an extent for each axis, and the padding in front of each and then behind each."""

    def made(values: dict[str, Any]) -> dict[str, Any]:
        found = dict(values)
        for name in ("kernel_size", "strides", "dilation", "padding"):
            value = found.get(name)
            # What else it may be is looked at where the operator gets its meaning.
            found[name] = (value,) * rank if isinstance(value, int) else value
        pads = found["padding"]
        return {**found, "padding": (*pads, *pads) if isinstance(pads, (list, tuple)) and len(pads) == rank else pads}

    return made


def plain(value: Any) -> Any:
    """An attribute as it is kept: sequences as tuples, integers of expressions as integers."""
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    known = as_int(value) if not isinstance(value, (bool, int, float, str)) else None
    return value if known is None else known


def result_of(call: Call) -> StructInfo:
    """What is known of the result of a call of an operator.

    Raises:
        DeclarationError: for an operator that there isn't, or operands that don't fit.
    """
    row = ROWS.get(call.op)
    if row is None:
        if str(call.op).startswith("relax."):
            info: StructInfo = graph.Call(call.op, call.args, call.attrs).struct_info
            return info
        raise DeclarationError(f"no operator {str(call.op)!r}; relay.op.list_op_names() lists those that there are")
    given = row.bound(call)
    return with_extents(row.meant({name: _stand_in(value) for name, value in given.items()}).struct_info)


def with_extents(info: StructInfo) -> StructInfo:
    """What is known of a value, with a symbol for each extent that is known when the graph runs."""
    match info:
        case TensorStructInfo(shape=None) if info.ndim >= 0:
            return TensorStructInfo(tuple(unknown_extent() for _ in range(info.ndim)), info.dtype, info.vdevice)
        case TupleStructInfo(fields):
            made = tuple(map(with_extents, fields))
            return info if all(a is b for a, b in zip(made, fields, strict=True)) else TupleStructInfo(made)
    return info


def emitted(builder: BlockBuilder, meaning: Meaning) -> Any:
    """The value of a meaning in a function of a graph."""
    if not isinstance(meaning, RelaxExpr):
        return meaning.emitted(builder)
    leaves = (graph.Var, graph.Constant)
    is_leaf = isinstance(meaning, leaves) or (isinstance(meaning, graph.Tuple) and all(isinstance(one, leaves) for one in meaning.fields))
    return meaning if is_leaf else builder.emit(meaning)


def _stand_in(value: Any) -> Any:
    """An argument by what is known of it: its own expression may be large. Constants stay, as some results depend on their values."""
    if isinstance(value, graph.Tuple):
        return graph.Tuple(tuple(map(_stand_in, value.fields)))
    if not isinstance(value, RelaxExpr) or isinstance(value, (graph.Constant, graph.Var)):
        return value
    return graph.Var("operand", value.struct_info)


# Set from here: the module of expressions can't import rows, which are made of its classes.
Call._rule = staticmethod(result_of)


def shape(data: Any) -> tuple[Any, ...]:
    """The extents of an operand: integers, or expressions.

    Raises:
        TypeMismatchError: for what is no tensor of known dimensions.
    """
    info = data.struct_info
    if not isinstance(info, TensorStructInfo) or info.extents is None:
        raise TypeMismatchError(f"the operand {data} is {info}, and its shape is needed; state the types of the variables")
    known = [as_int(one) for one in info.extents]
    return tuple(extent if number is None else number for extent, number in zip(info.extents, known, strict=True))


def dtype(data: Any) -> str:
    """The dtype of an operand.

    Raises:
        TypeMismatchError: for what is no tensor.
    """
    info = data.struct_info
    if not isinstance(info, TensorStructInfo):
        raise TypeMismatchError(f"the operand {data} is {info}, and not a tensor; state the types of the variables")
    return info.dtype


def by_layout(layout: str, **functions: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a layout.

    Raises:
        DeclarationError: for a layout that has none.
    """
    if layout not in functions:
        raise DeclarationError(f"the layout is {' or '.join(functions)}, not {layout}")
    return functions[layout]


def number(data: Any) -> Any:
    """The value of a constant.

    Raises:
        DeclarationError: for what is known only when the graph runs.
    """
    if not isinstance(data, graph.Constant):
        raise DeclarationError(f"{data} has to be a constant")
    return data.data.numpy()
