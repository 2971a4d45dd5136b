"""The expressions of graphs. A function is a sequence of bindings, block by block, and its last value.

    lv: R.Tensor((1, 128), dtype="float32") = R.matmul(x, w)     VarBinding(lv, Call(Op("relax.matmul"), (x, w)))
    with R.dataflow(): ...                                       DataflowBlock: without effects, its variables end with it
    if c: ... else: ...                                          If(c, SeqExpr, SeqExpr)

Nodes don't change and have an identity; `struct_info` is derived from operands, or stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..dataclass import InitVar, dataclass, field, replace
from ..errors import DeclarationError, TypeMismatchError
from ..tir.arithmetic import convert
from ..tir.attrs import EMPTY, FrozenMap
from ..tir.expr import PrimExpr, Type
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.node import Object
from ..tir.op_registry import Op
from ..tir.structured import Declared, Defines, Parts, Structured
from .relations import is_base_of, struct_info_lca, without_symbols
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    RelaxExpr,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
)

Expr = RelaxExpr

# A function of the module as a value: what it takes and returns is known to the module alone.
GlobalVar.struct_info = ObjectStructInfo()  # type: ignore[attr-defined]


def _set(node: Object, **values: Any) -> None:
    """Fields of a node that is being made."""
    for name, value in values.items():
        object.__setattr__(node, name, value)


@dataclass(frozen=True, eq=False, repr=False)
class Var(RelaxExpr):
    """A value by name: a parameter, or what a binding defines.

    Args:
        name_hint: what it is called, if no other one is.
        struct_info_annotation: what is known of it; a shape for that of a tensor of float32.
    """

    structural_variable: ClassVar[bool] = True

    name_hint: str
    struct_info_annotation: StructInfo | None = None
    dtype: InitVar[Any] = None

    def __post_init__(self, dtype: Any) -> None:
        stated: Any = self.struct_info_annotation
        if stated is not None and not isinstance(stated, StructInfo):  # Var("x", (1, 784), relax.DynTensorType(2, "float32"))
            stated = TensorStructInfo(stated, getattr(dtype, "dtype", dtype) or "float32")
        _set(self, struct_info_annotation=stated)

    def _derived(self) -> StructInfo:
        return self.struct_info_annotation or ObjectStructInfo()

    def __bool__(self) -> bool:
        # `if bias:` asks whether there is one; `if condition:` of a value that is a bool means the value, which isn't known.
        return True if getattr(self.struct_info, "dtype", "") != "bool" else super().__bool__()

    @property
    def vid(self) -> Var:
        """What tells it from others of the same name: itself."""
        return self


del Var.dtype  # the default of the parameter, which would hide the property of all expressions


class DataflowVar(Var):
    """A variable that ends with its dataflow block."""


@dataclass(frozen=True, eq=False, repr=False)
class Constant(RelaxExpr):
    """A tensor that is known.

    Args:
        data: an NDArray, or what NumPy makes an array of.
        stated: what is known of it, if not its shape and dtype.
    """

    data: Any
    stated: StructInfo | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.data, "numpy"):
            from ..runtime.ndarray import array

            _set(self, data=array(np.asarray(self.data)))

    def view(self) -> Any:
        """The values as an array of NumPy on the same memory, which can't be written through it; a copy of data that lives elsewhere."""
        own = getattr(self.data, "_array", None)
        if not isinstance(own, np.ndarray):
            return self.data.numpy()
        # Weights are looked at by a dozen rules: a copy for each takes longer than what they compute.
        shown = own.view()
        shown.flags.writeable = False
        return shown

    def _derived(self) -> StructInfo:
        return self.stated or TensorStructInfo(self.data.shape, str(self.data.dtype))


@dataclass(frozen=True, eq=False, repr=False)
class PrimValue(RelaxExpr):
    """A number, or an integer expression of symbols.

    Args:
        value: of it; Python's integers are int64, its other numbers float64.
    """

    value: PrimExpr

    def __post_init__(self) -> None:
        given: Any = self.value
        # True is an int for Python, and a bool here.
        if isinstance(given, bool) or not isinstance(given, (int, float, np.number, PrimExpr)):
            given = convert(given)
        elif isinstance(given, (int, float)):
            from ..tir.arithmetic import const

            given = const(given, "int64" if isinstance(given, int) else "float64")
        _set(self, value=convert(given))

    def _derived(self) -> StructInfo:
        return PrimStructInfo(self.value.dtype, self.value)


@dataclass(frozen=True, eq=False, repr=False)
class StringImm(RelaxExpr):
    """A string."""

    value: str


@dataclass(frozen=True, eq=False, repr=False)
class DataTypeImm(RelaxExpr):
    """A dtype as a value."""

    value: str


@dataclass(frozen=True, eq=False, repr=False)
class ExternFunc(RelaxExpr):
    """A registered function by its name."""

    global_symbol: str
    stated: StructInfo | None = None

    def _derived(self) -> StructInfo:
        return self.stated or FuncStructInfo.opaque_func()


@dataclass(frozen=True, eq=False, repr=False)
class Tuple(RelaxExpr):
    """Several values as one."""

    fields: tuple[Any, ...]

    def __post_init__(self) -> None:
        _set(self, fields=tuple(convert_to_expr(one) for one in self.fields))

    def _derived(self) -> StructInfo:
        return TupleStructInfo(tuple(one.struct_info for one in self.fields))

    def _operands(self) -> Sequence[Any]:
        return self.fields

    def __getitem__(self, index: Any) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True, eq=False, repr=False)
class TupleGetItem(RelaxExpr):
    """One value of several."""

    tuple_value: RelaxExpr
    index: int

    def _operands(self) -> Sequence[Any]:
        return (self.tuple_value,)

    def _derived(self) -> StructInfo:
        info = self.tuple_value.struct_info
        if isinstance(info, TupleStructInfo):
            if not 0 <= self.index < len(info.fields):
                raise DeclarationError(f"element {self.index} of a tuple of {len(info.fields)}: {self.tuple_value}")
            return info.fields[self.index]
        if isinstance(info, ObjectStructInfo):
            return ObjectStructInfo()
        raise TypeMismatchError(f"only tuples have elements; {self.tuple_value} is {info}")


class Call(RelaxExpr):
    """A call of an operator, of a function of the module, of a registered function or of a value that is a function.

    Args:
        op: the operator (`tir.op_registry.Op`), GlobalVar, ExternFunc or expression.
        args: the arguments.
        attrs: what they don't say.
        sinfo_args: what is known of the result, for operators and functions that don't determine it.
        struct_info: of the result where the callee's module says it.
    """

    # What an operator returns, by the call; the table of operators enters itself here.
    _rule: ClassVar[Any] = None

    def __init__(
        self,
        op: Any,
        args: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        sinfo_args: Sequence[StructInfo] | StructInfo | None = None,
        struct_info: StructInfo | None = None,
    ) -> None:
        self.op = op
        self.args: tuple[Any, ...] = tuple(convert_to_expr(arg) for arg in args)
        self.attrs = attrs if isinstance(attrs, FrozenMap) else FrozenMap(attrs) if attrs else EMPTY
        self.sinfo_args = (sinfo_args,) if isinstance(sinfo_args, StructInfo) else tuple(sinfo_args or ())
        if struct_info is not None:
            # In the place of the cached property: it can't be derived without the module.
            self.__dict__["struct_info"] = struct_info

    def _derived(self) -> StructInfo:
        info: StructInfo = type(self)._rule(self)
        return info

    def _operands(self) -> Sequence[Any]:
        return self.args

    def structural_parts(self) -> Parts:
        """All but what follows from the others."""
        return ("op", self.op), ("args", self.args), ("attrs", self.attrs), ("sinfo_args", self.sinfo_args)

    def with_struct_info(self, info: StructInfo) -> Call:
        """The call with what its module says of the result."""
        return Call(self.op, self.args, self.attrs, self.sinfo_args, info)


@dataclass(frozen=True, eq=False, repr=False)
class If(RelaxExpr):
    """One of two values.

    Args:
        cond: a bool without dimensions.
        true_branch, false_branch: sequences.
    """

    cond: RelaxExpr
    true_branch: RelaxExpr
    false_branch: RelaxExpr

    def _derived(self) -> StructInfo:
        return struct_info_lca(self.true_branch.struct_info, self.false_branch.struct_info)


class Binding(Structured):
    """Base of bindings: `var` is the value of `value`."""

    structural_line: ClassVar[bool] = True

    var: Var
    value: Any

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__


@dataclass(frozen=True, eq=False, repr=False)
class VarBinding(Binding):
    """`var = value`."""

    var: Var
    value: Any

    def structural_parts(self) -> Parts:
        """The value, then the variable, which a function may mention in itself."""
        before = (("itself", Defines((self.var,))),) if isinstance(self.value, Function) else ()
        return *before, ("value", self.value), ("var", Declared(self.var))


@dataclass(frozen=True, eq=False, repr=False)
class MatchCast(Binding):
    """`var = R.match_cast(value, struct_info)`: checked when it runs; symbols of `struct_info` that aren't known yet are defined."""

    var: Var
    value: RelaxExpr
    struct_info: StructInfo

    def structural_parts(self) -> Parts:
        """The value, the symbols that it is matched with, and the variable."""
        symbols = Defines(symbols_of(self.struct_info), only_new=True)
        return ("value", self.value), ("symbols", symbols), ("struct_info", self.struct_info), ("var", Declared(self.var))


@dataclass(frozen=True, eq=False, repr=False)
class BindingBlock(Structured):
    """Bindings one after the other."""

    bindings: tuple[Binding, ...]

    def __post_init__(self) -> None:
        _set(self, bindings=tuple(self.bindings))

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__


class DataflowBlock(BindingBlock):
    """Bindings without effects."""


@dataclass(frozen=True, eq=False, repr=False)
class SeqExpr(RelaxExpr):
    """Blocks of bindings, and the value at their end."""

    blocks: tuple[BindingBlock, ...]
    body: RelaxExpr

    def __post_init__(self) -> None:
        _set(self, blocks=tuple(self.blocks))

    def _derived(self) -> StructInfo:
        return self.body.struct_info

    def bindings(self) -> Iterator[Binding]:
        """All bindings in order."""
        for block in self.blocks:
            yield from block.bindings


@dataclass(frozen=True, eq=False, repr=False)
class Function(RelaxExpr):
    """A function of a graph.

    Args:
        params: its parameters, whose struct infos define symbols.
        body: a SeqExpr; another expression becomes one.
        ret_struct_info: what it returns; what its body says where that is not less, in symbols that its callers know.
        is_pure: whether a call has no effect but its value.
        attrs: such as "global_symbol", without which it is private.
    """

    structural_scope: ClassVar[bool] = True

    params: tuple[Var, ...]
    body: Any
    ret_struct_info: StructInfo = None  # type: ignore[assignment]
    is_pure: bool = True
    attrs: FrozenMap = field(default=EMPTY)

    def __post_init__(self) -> None:
        body = self.body if isinstance(self.body, SeqExpr) else SeqExpr((), self.body)
        attrs = self.attrs if isinstance(self.attrs, FrozenMap) else FrozenMap(self.attrs)
        params, stated, found = tuple(self.params), self.ret_struct_info, body.struct_info
        if stated is None or (stated is not found and is_base_of(stated, found)):
            infos = [*(param.struct_info for param in params), *([] if stated is None else [stated])]
            stated = without_symbols(found, {symbol for info in infos for symbol in symbols_of(info)})
        _set(self, params=params, body=body, attrs=attrs, ret_struct_info=stated)

    def __bool__(self) -> bool:
        # A program of the graph, and no value in it: `if func:` asks whether there is one.
        return True

    def _derived(self) -> StructInfo:
        return FuncStructInfo(tuple(param.struct_info for param in self.params), self.ret_struct_info, self.is_pure)

    def structural_parts(self) -> Parts:
        """The symbols and parameters, which it defines, the body, and what is said about it."""
        symbols = dict.fromkeys(symbol for param in self.params for symbol in symbols_of(param.struct_info))
        return (
            ("symbols", Defines(tuple(symbols), only_new=True)),
            ("params", tuple(map(Declared, self.params))),
            ("body", self.body),
            ("ret_struct_info", self.ret_struct_info),
            ("is_pure", self.is_pure),
            ("attrs", self.attrs),
        )

    @staticmethod
    def create_empty(
        params: Sequence[Var], ret_struct_info: StructInfo, is_pure: bool = True, attrs: Mapping[str, Any] | None = None
    ) -> Function:
        """A function without a body, to state what one that is made later takes and returns."""
        body = Call(ExternFunc("a function without a body"), (), struct_info=ret_struct_info)
        return Function(tuple(params), body, ret_struct_info, is_pure, FrozenMap(attrs))

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> Function:
        """This function with one attribute, or all of a mapping, set."""
        new = attr_key_or_dict if isinstance(attr_key_or_dict, Mapping) else {attr_key_or_dict: attr_value}
        return replace(self, attrs=self.attrs.set(**new))

    def with_attrs(self, attr_map: Mapping[str, Any]) -> Function:
        """This function with other attributes in place of its own."""
        return replace(self, attrs=FrozenMap(attr_map))

    def without_attr(self, attr_key: str) -> Function:
        """This function without an attribute."""
        return replace(self, attrs=FrozenMap({key: value for key, value in self.attrs.items() if key != attr_key}))

    def with_body(self, body: RelaxExpr) -> Function:
        """This function around another body."""
        return replace(self, body=body)


def convert_to_expr(value: Any) -> Any:
    """A value of Python as an expression: numbers, strings, tuples and lists of them; expressions and names of functions are themselves.

    Raises:
        TypeMismatchError: for anything else.
    """
    if isinstance(value, (RelaxExpr, GlobalVar, PrimFunc, Op)):
        return value
    if isinstance(value, (bool, int, float, np.number, PrimExpr)):
        return PrimValue(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(value))
    raise TypeMismatchError(f"a value of a graph is an expression, a number, a string or a tuple of these, not {type(value).__name__}")


def const(value: Any, dtype: str | StructInfo | Type | None = None) -> Constant:
    """A constant tensor.

    Args:
        value: a number, a list, a NumPy array or an NDArray.
        dtype: of elements, or a struct info or a type with it; as the value has it, and float32 and int32 of Python's numbers.
    """
    if isinstance(dtype, (StructInfo, Type)):
        dtype = getattr(dtype, "dtype", None)
    if hasattr(value, "numpy") and dtype is None:
        return Constant(value)
    given = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "numpy"):
        # NumPy makes float64 and int64 of Python's numbers.
        dtype = {"f": "float32", "i": "int32"}.get(given.dtype.kind)
    from ..runtime.ndarray import array

    return Constant(array(given, dtype=dtype) if dtype else array(given))


def owned(values: Any) -> Constant:
    """A constant of an array of NumPy that nobody else writes, without a copy where it stands in memory as kernels want it."""
    from ..runtime.ndarray import adopted

    return Constant(adopted(values))


def extern(name: str, struct_info: StructInfo | None = None) -> ExternFunc:
    """A registered function by its name."""
    return ExternFunc(name, struct_info)


def get_shape_of(expr: RelaxExpr) -> RelaxExpr:
    """The shape of a tensor, where it is known; else a call that finds it.

    Raises:
        TypeMismatchError: for what is no tensor.
    """
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo):
        raise TypeMismatchError(f"only tensors have shapes; {expr} is {info}")
    found: RelaxExpr = info.shape if info.shape is not None else expr._by("shape_of", expr)
    return found


Module = IRModule

__all__ = [
    "Binding", "BindingBlock", "Call", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar", "Expr", "ExternFunc", "Function",
    "GlobalVar", "If", "MatchCast", "PrimValue", "RelaxExpr", "SeqExpr", "ShapeExpr", "ShapeStructInfo", "StringImm", "Tuple",
    "TupleGetItem", "Var", "VarBinding", "const", "convert_to_expr", "extern", "get_shape_of",
]  # fmt: skip
