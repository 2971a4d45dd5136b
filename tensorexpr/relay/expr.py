"""The expressions of Relay's programs: those of graphs (`relax.expr`), made without names for what is between.

    y = relay.nn.relu(relay.nn.dense(x, w))          Call(Op("nn.relu"), (Call(Op("nn.dense"), (x, w)),))
    f = relay.Function([x, w], y)                    `to_graph` gives each value a name, once, however often it is used

Nodes don't change and have an identity: a node that two others use is one value. Operators have Relay's names, and a meaning in those of
graphs (`ops.row`). What is known of a value (`checked_type`, `struct_info`) follows from its operands, whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError, TypeMismatchError
from ..later import later
from ..relax import expr as graph
from ..relax.relations import returned
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, RelaxExpr, StructInfo, symbols_of
from ..tir.attrs import FrozenMap
from ..tir.expr import IntImm
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.op_registry import Op
from ..tir.structured import Declared, Defines, Parts
from . import generics
from .ty import TensorType, Type, info_of, type_of


class Attrs(FrozenMap):
    """The attributes of a call: `call.attrs.strides`, `call.attrs["strides"]`, `call.attrs.keys()`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"no attribute {name!r}; there are {', '.join(self) or 'none'}")
        return self[name]

    def get_int(self, key: str) -> int:
        """An attribute as an integer."""
        return int(self[key])

    def get_str(self, key: str) -> str:
        """An attribute as a text."""
        return str(self[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute as integers."""
        return tuple(int(one) for one in self[key])


class Expr(RelaxExpr):
    """Base of the expressions of Relay's programs. Python's operators make calls: `x + y` is `relay.add(x, y)`."""

    # Not those of graphs, so that what a program looks at has Relay's names.
    _operators: ClassVar[dict[str, Callable[..., Any]]] = {}
    span: Any = None  # where it stands in a text, as a `relay.Span`

    @property
    def checked_type(self) -> Any:  # a TensorType, TupleType or FuncType
        """The type of the value.

        Raises:
            DeclarationError: if operands don't fit.
            TypeMismatchError: where the type of a variable isn't stated.
        """
        from .visitor import know_operands

        know_operands(self)
        found = type_of(self.struct_info)
        if found is None:
            raise TypeMismatchError(f"the type of {self} isn't known: state the types of the variables that it is made of")
        return found

    _checked_type_ = checked_type

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The expression as text in Relay's syntax, behind a line with the version of that; `str(expr)` is the text alone.

        Args:
            show_meta_data: with the constants that have no literals, so that `relay.fromtext` reads the text back.
            annotate: remarks by expression, which end the line of its value.
        """
        from .text import expression_text

        return f'#[version = "0.0.5"]\n{expression_text(self, annotate, show_meta_data)}'

    def as_function(self) -> Function:
        """The function of the free variables that computes this; a function is itself."""
        from .visitor import free_vars

        return self if isinstance(self, Function) else Function(tuple(free_vars(self)), self)

    @staticmethod
    def to_json(node: Any) -> str:
        """The JSON of a module or an expression of Relay."""
        from .saved import to_json

        return to_json(node)

    def script(self, **options: Any) -> str:
        """As `astext`."""
        return str(self)

    def __str__(self) -> str:
        from .text import expression_text

        return expression_text(self)

    __repr__ = __str__


RelayExpr = ExprWithOp = Expr


class Var(Expr, graph.Var):
    """A variable: a parameter of a function, or what a Let binds.

    Args:
        name_hint: what it is called.
        type_annotation: its type; None if it follows from what is bound to it.
    """

    def __init__(self, name_hint: str, type_annotation: Any = None, span: Any = None) -> None:
        graph.Var.__init__(self, name_hint, info_of(type_annotation))
        placed(self, span)

    @property
    def type_annotation(self) -> Any:
        """Its type as it was stated; None if it wasn't."""
        return None if self.struct_info_annotation is None else type_of(self.struct_info_annotation)


class Constant(Expr, graph.Constant):
    """A tensor that is known.

    Args:
        data: an NDArray, or what NumPy makes an array of.
    """

    def __init__(self, data: Any, span: Any = None, stated: StructInfo | None = None) -> None:
        graph.Constant.__init__(self, data, stated)
        placed(self, span)


class Tuple(Expr, graph.Tuple):
    """Several values as one."""

    def __init__(self, fields: Sequence[Any], span: Any = None) -> None:
        object.__setattr__(self, "fields", tuple(as_expr(one) for one in fields))
        placed(self, span)

    def astype(self, dtype: str) -> Any:
        """Refused: a tuple has no dtype."""
        raise TypeMismatchError("astype can't be called on a tuple; take its elements")


class TupleGetItem(Expr, graph.TupleGetItem):
    """One value of several."""

    def __init__(self, tuple_value: Any, index: int, span: Any = None) -> None:
        graph.TupleGetItem.__init__(self, as_expr(tuple_value), index)
        placed(self, span)


class If(Expr, graph.If):
    """One of two values; the other one isn't computed.

    Args:
        cond: a bool without dimensions.
        true_branch, false_branch: the values.
    """

    def __init__(self, cond: Any, true_branch: Any, false_branch: Any, span: Any = None) -> None:
        if isinstance(cond, bool):  # x == y of Python, which asks whether both are one node
            raise TypeMismatchError(f"the condition of an If is an expression, not {cond}; relay.equal(x, y) compares values")
        graph.If.__init__(self, *map(as_expr, (cond, true_branch, false_branch)))
        placed(self, span)

    def _derived(self) -> StructInfo:
        # Values of algebraic types are more than the objects that graphs know.
        infos = self.true_branch.struct_info, self.false_branch.struct_info
        return generics.joined(*infos) if any(map(generics.is_generic, infos)) else graph.If._derived(self)


class Call(Expr, graph.Call):
    """A call of an operator, a function of the module or a value that is a function.

    Args:
        op: `relay.op.get("nn.relu")`, a GlobalVar, a Function or a variable.
        args: the arguments.
        attrs: what they don't say.
        type_args: accepted; types follow from the arguments.
        span: where it stands in a text.
    """

    def __init__(
        self, op: Any, args: Sequence[Any], attrs: Mapping[str, Any] | None = None, type_args: Any = None, span: Any = None
    ) -> None:
        if isinstance(op, str) and not isinstance(op, Op):
            raise TypeMismatchError(
                f"a call's op is an operator, a GlobalVar or a function, not the text {op!r}; relay.op.get({op!r}) finds it"
            )
        graph.Call.__init__(self, op, (), Attrs(attrs))
        self.args = tuple(as_expr(arg) for arg in args)
        placed(self, span)

    @property
    def type_args(self) -> tuple[Any, ...]:
        """The types of the arguments."""
        return tuple(type_of(arg.struct_info) for arg in self.args)

    def _derived(self) -> StructInfo:
        if isinstance(self.op, Op):
            return graph.Call._derived(self)
        if isinstance(self.op, GlobalVar) and self.op.type_annotation is None:
            return ObjectStructInfo()  # the module knows it: InferType, or building, looks there
        info = info_of(self.op.type_annotation) if isinstance(self.op, GlobalVar) else self.op.struct_info
        if isinstance(info, FuncStructInfo):
            given = [arg.struct_info for arg in self.args]
            return generics.returned(info, given) if generics.is_generic(info) else returned(info, given, "the function")
        return ObjectStructInfo()


@dataclass(frozen=True, eq=False, repr=False)
class Let(Expr):
    """`let var = value; body`.

    Args:
        var: the variable, which stands for the value in the body; a function may use it in itself.
        value, body: expressions.
    """

    var: Var
    value: Any
    body: Any
    span: Any = None

    def _derived(self) -> StructInfo:
        info: StructInfo = self.body.struct_info
        return info

    def structural_parts(self) -> Parts:
        """The value, the variable, then what uses it."""
        return ("value", self.value), ("var", Declared(self.var)), ("body", self.body)


@dataclass(frozen=True, eq=False, repr=False)
class Function(Expr):
    """A function.

    Args:
        params: its parameters.
        body: what it returns.
        ret_type: the type of that, if stated.
        type_params: types that stand for any: of parameters, results and what is in them.
        attrs: such as {"Primitive": 1}.
    """

    structural_scope: ClassVar[bool] = True

    params: tuple[Any, ...]
    body: Any
    ret_type: Any = None
    type_params: tuple[Any, ...] = ()
    attrs: FrozenMap = field(default_factory=FrozenMap)
    span: Any = None

    def __post_init__(self) -> None:
        params = tuple(self.params)
        for param in params:
            if not isinstance(param, graph.Var):
                raise TypeMismatchError(f"a parameter of a function is a relay.Var, not {type(param).__name__}")
        attrs = self.attrs if isinstance(self.attrs, Attrs) else Attrs(self.attrs)
        for name, value in (
            ("params", params),
            ("body", as_expr(self.body)),
            ("attrs", attrs),
            ("type_params", tuple(self.type_params or ())),
        ):
            object.__setattr__(self, name, value)

    @property
    def checked_type(self) -> Any:
        """The type of the function, with its type parameters."""
        # What is stated needs no body, in which functions of the module may be called that are known there alone.
        is_stated = self.ret_type is not None and all(param.struct_info_annotation is not None for param in self.params)
        found = type_of(self.struct_info) if is_stated else super().checked_type
        return replace(found, type_params=self.type_params) if self.type_params else found

    def _derived(self) -> StructInfo:
        stated = info_of(self.ret_type)
        return FuncStructInfo(tuple(param.struct_info for param in self.params), stated or self.body.struct_info)

    def structural_parts(self) -> Parts:
        """The symbols and parameters, the body, and what is said about it."""
        symbols = dict.fromkeys(symbol for param in self.params for symbol in symbols_of(param.struct_info))
        defined = Defines(tuple(symbols), only_new=True)
        # Passes write {"Primitive": 1}, programs IntImm("int32", 1), and mean the same.
        attrs = Attrs({name: value.value if isinstance(value, IntImm) else value for name, value in self.attrs.items()})
        return ("symbols", defined), ("params", tuple(map(Declared, self.params))), ("body", self.body), ("attrs", attrs)

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> Function:
        """This function with one attribute, or all of a mapping, set."""
        new = attr_key_or_dict if isinstance(attr_key_or_dict, Mapping) else {attr_key_or_dict: attr_value}
        return replace(self, attrs=Attrs({**self.attrs, **new}))

    def as_module(self) -> IRModule:
        """A module of this function."""
        return IRModule.from_expr(self)

    @staticmethod
    def module_to_graph(mod: IRModule) -> IRModule:
        """The graph of a module that has functions of Relay."""
        from .to_graph import to_graph

        return to_graph(mod)

    @staticmethod
    def module_text(mod: IRModule, metadata: bool = False) -> str:
        """The text of a module that has functions of Relay."""
        from .text import module_text

        return module_text(mod, None, metadata)

    def with_attrs(self, attr_map: Mapping[str, Any]) -> Function:
        """This function with all attributes of a mapping set."""
        return self.with_attr(attr_map)

    def without_attr(self, attr_key: str) -> Function:
        """This function without an attribute."""
        return replace(self, attrs=Attrs({key: value for key, value in self.attrs.items() if key != attr_key}))

    def __call__(self, *args: Any, attrs: Any = None) -> Call:
        """A call of the function."""
        return Call(self, args)


def placed(node: Any, span: Any) -> Any:
    """A node that stands at a place of a text; None says nothing."""
    if span is not None:
        object.__setattr__(node, "span", span)  # nodes don't change: it is set where they are made
    return node


class TupleWrapper:
    """The results of an operator that has several: `a, b = relay.split(x, 2)`, `relay.split(x, 2)[0]`.

    Args:
        tuple_value: the call.
        size: how many there are.
    """

    def __init__(self, tuple_value: Any, size: int) -> None:
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Any:
        """The value of the tuple."""
        return self.tuple_value

    def astext(self) -> str:
        """The tuple as text."""
        return str(self.tuple_value.astext())

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"element {index} of {self.size} results")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value}, {self.size})"

    @property
    def checked_type(self) -> Any:
        """The type of the tuple."""
        return self.tuple_value.checked_type


def as_expr(value: Any) -> Any:
    """A value as an expression: tuples and lists become tuples, wrapped results the value that they wrap.

    Raises:
        TypeMismatchError: for what is neither, such as a number: `relay.const` makes constants.
    """
    if isinstance(value, (RelaxExpr, GlobalVar, PrimFunc, Op)):
        return value
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, (tuple, list)):
        return Tuple(value)
    raise TypeMismatchError(f"a value of a graph is an expression, not {type(value).__name__} {value!r}; relay.const makes constants")


def var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32", span: Any = None) -> Var:
    """A variable.

    Args:
        name_hint: what it is called.
        type_annotation: its type; the dtype of a scalar as a text.
        shape: extents of a tensor, in place of a type.
        dtype: of its elements, with `shape`.
        span: where it stands in a text.

    Raises:
        DeclarationError: for a type and a shape.
    """
    if type_annotation is not None and shape is not None:
        raise DeclarationError("relay.var: state a type or a shape, not both")
    return Var(name_hint, TensorType(shape, dtype) if shape is not None else type_annotation, span)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Constant:
    """A constant.

    Args:
        value: a number, a bool, a list, a NumPy array or an NDArray.
        dtype: of its elements; of Python's numbers int32 and float32, and of NumPy's float64 and int64 as they are.
        span: where it stands in a text.
    """
    return Constant(graph.const(value, dtype).data, span)


def bind(expr: Any, binds: Mapping[Any, Any]) -> Any:
    """An expression, or function, with values in place of variables; bound parameters leave a function's signature.

    Args:
        expr: of Relay.
        binds: variables, or their names, -> expressions or arrays.
    """
    from .visitor import substitute

    named = {one.name_hint: one for one in getattr(expr, "params", ())}
    values = {named[key] if isinstance(key, str) and key in named else key: _value(value) for key, value in binds.items()}
    if not isinstance(expr, Function):
        return substitute(expr, values)
    left = tuple(param for param in expr.params if param not in values)
    return replace(expr, params=left, body=substitute(expr.body, values))


def _value(value: Any) -> Any:
    return value if isinstance(value, RelaxExpr) else const(value)


Module = IRModule
__getattr__, __dir__ = later(__name__, {".references": "RefCreate RefRead RefWrite"})

__all__ = [
    "Attrs", "Call", "Constant", "Expr", "ExprWithOp", "Function", "GlobalVar", "If", "Let", "RelayExpr", "Tuple", "TupleGetItem",
    "TupleWrapper", "Type", "Var", "as_expr", "bind", "const", "var",
]  # fmt: skip
