"""The words of R: types, values and operators, as a script has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TypeMismatchError
from ..runtime.device import Device, cpu
from ..script.parser.context import Context
from ..script.parser.values import Builder, Namespace, Pending
from ..tir.expr import PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.global_info import GlobalInfo, VDevice
from . import op
from .expr import DataTypeImm, ExternFunc, PrimValue, StringImm, Tuple, TupleGetItem, const, convert_to_expr
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


class GraphContext(Context):
    """Where the reader of a function of a graph stands: its symbols by name, and the devices of its module."""

    def __init__(self, evaluate: Callable[[str], PrimExpr] | None = None, devices: Sequence[GlobalInfo] = ()) -> None:
        super().__init__()
        self.devices = devices
        self.symbols: dict[str, Symbol] = {}
        self.evaluate = evaluate
        self.function_attrs: dict[str, Any] = {}


class Word(Builder):
    """A word of R: outside of a script a call works too, and names of symbols there are symbols of their own."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The type, value or call of the graph."""
        return self.function(*((Context(),) if self.in_context else ()), *args, **kwargs)


class TypeWord(Word):
    """A word of R that is a type, which may stand for itself: `R.Tensor` is any tensor."""

    __slots__ = ()

    @property
    def __name__(self) -> str:
        return self.name.removeprefix("R.")

    def as_struct_info(self, dict_globals: Any = None) -> StructInfo:
        """What the bare word says of values."""
        return _BARE[self.name]


def _extent(context: Context, value: Any) -> Any:
    """An extent: a number, an expression, or the text of one, whose names are symbols of the function."""
    if isinstance(value, Pending):  # T.int64() in place of a symbol
        return value.make("n").value
    if not isinstance(value, str):
        return value
    evaluate = getattr(context, "evaluate", None)
    if evaluate is None:
        return Symbol(value, "int64")  # of an annotation, which is read and not run
    return evaluate(value)


def tensor_type(context: Context, shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1) -> TensorStructInfo:
    """``R.Tensor((n, 16), "float32")``, ``R.Tensor("float32", ndim=2)``; without a dtype that is unknown."""
    # A text alone is a dtype, R.Tensor("float32"), unless a symbol has that name.
    if isinstance(shape, str) and dtype is None and not _is_symbol(context, shape):
        shape, dtype = None, shape
    if isinstance(shape, (tuple, list)):
        shape = ShapeExpr(tuple(_extent(context, one) for one in shape))
    if isinstance(vdevice, str) and vdevice.startswith("vdevice") and not isinstance(context, GraphContext):
        vdevice = None  # of an annotation, which is read and not run: the list of the module isn't known there
    return TensorStructInfo(shape, dtype or "", VDevice.of(vdevice, getattr(context, "devices", ())), ndim)


def _is_symbol(context: Context, text: str) -> bool:
    return text in getattr(context, "symbols", {})


def shape_type(context: Context, values: Any = None, ndim: int = -1) -> ShapeStructInfo:
    """``R.Shape([n, 16])``, ``R.Shape(ndim=2)``."""
    return ShapeStructInfo(None if values is None else tuple(_extent(context, one) for one in values), ndim)


def prim_type(context: Context, dtype: Any = None, value: Any = None) -> PrimStructInfo:
    """``R.Prim("int64")``, ``R.Prim(value="n")``."""
    return PrimStructInfo(dtype or "", None if value is None else convert_extent(context, value))


def convert_extent(context: Context, value: Any) -> PrimExpr:
    """A value of a number: an expression of symbols."""
    made = _extent(context, value)
    return made if isinstance(made, PrimExpr) else PrimValue(made).value


def info_of(annotation: Any) -> StructInfo:
    """What a type of a script says of values: also the bare words `R.Tensor`, `R.Object`, `R.Shape`, `R.Tuple`, and None.

    Raises:
        TypeMismatchError: for what is no type.
    """
    if isinstance(annotation, StructInfo):
        return annotation
    if annotation is None:
        return TupleStructInfo(())
    if isinstance(annotation, TypeWord):
        return annotation.as_struct_info()
    raise TypeMismatchError(f'expected a type such as R.Tensor((n, 16), "float32"), not {annotation!r}')


def _tuple_type(*fields: Any) -> TupleStructInfo:
    items = fields[0] if len(fields) == 1 and isinstance(fields[0], (list, tuple)) else fields
    return TupleStructInfo(tuple(map(info_of, items)))


def _callable(params: Any = None, ret: Any = None, purity: bool = True, derive_func: Any = None) -> FuncStructInfo:
    returned = ObjectStructInfo() if ret is None else info_of(ret)
    listed = None if params is None else tuple(map(info_of, params if isinstance(params, Sequence) else [params]))
    return FuncStructInfo(listed, returned, purity, derive_func)


def _stated(context: Context, infos: Any) -> Any:
    """Result types of a call, bare words among them."""
    if isinstance(infos, (tuple, list)):
        return [info_of(one) if isinstance(one, Builder) else one for one in infos]
    return info_of(infos) if isinstance(infos, Builder) else infos


def _with_results(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A call whose results are stated."""

    def build(context: Context, *args: Any, **kwargs: Any) -> Any:
        given = {
            key: _stated(context, value) if key in ("out_sinfo", "sinfo_args", "type_args") else value for key, value in kwargs.items()
        }
        values = [_stated(context, value) if isinstance(value, (list, Builder)) else value for value in args]
        return function(*values, **given)

    return build


class Cast:
    """``R.match_cast(value, R.Tensor((n, 3)))``, until its name is known."""

    def __init__(self, value: Any, info: StructInfo) -> None:
        self.value, self.info = value, info


class Output:
    """``R.output(a, b)``."""

    def __init__(self, *values: Any) -> None:
        self.values = values


class EmitTe:
    """``R.emit_te(topi.add, x, y)``, until the module takes the tensor function."""

    def __init__(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs


def _match_cast(value: Any, struct_info: Any) -> Cast:
    return Cast(convert_to_expr(value), info_of(struct_info))


def _match_shape(context: Context, value: Any, shape: Any) -> Cast:
    """The form of 2022: the shape of a tensor, whose dtype stays, or of a shape."""
    made = convert_to_expr(value)
    info, extents = made.struct_info, tuple(_extent(context, one) for one in shape)
    return Cast(made, TensorStructInfo(ShapeExpr(extents), info.dtype) if isinstance(info, TensorStructInfo) else ShapeStructInfo(extents))


def _pad(data: Any, *args: Any, **kwargs: Any) -> Any:
    """`R.nn.pad(x, [1, 1])`, and what is printed of its call, whose second operand is the value: `R.nn.pad(x, value, pad_width=[1, 1])`."""
    if args and "pad_width" in kwargs:
        kwargs["pad_value"], args = args[0], args[1:]
    return op.nn.pad(data, *args, **kwargs)


def _func_attr(context: Context, attrs: Any) -> None:
    getattr(context, "function_attrs", {}).update(attrs)


def _to_vdevice(context: Context, data: Any, dst_vdevice: Any) -> Any:
    return op.to_vdevice(data, VDevice.of(dst_vdevice, getattr(context, "devices", ())) or dst_vdevice)


def _builders(prefix: str, names: Sequence[str], home: Any) -> dict[str, Any]:
    return {name: Word(f"{prefix}.{name}", getattr(home, name)) for name in names if callable(getattr(home, name))}


IMAGE = Namespace("R.image", _builders("R.image", op.image.__all__, op.image))
NN = Namespace("R.nn", {**_builders("R.nn", op.nn.__all__, op.nn), "pad": Word("R.nn.pad", _pad)})
_CALLS = (
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "call_dps_packed",
    "call_packed",
    "call_pure_packed",
    "call_inplace_packed",
    "invoke_closure",
    "invoke_pure_closure",
    "loop",
)
RELAX = Namespace(
    "R",
    {
        "builtin": Namespace("R.builtin", _builders("R.builtin", op.builtin.__all__, op.builtin)),
        "ccl": Namespace("R.ccl", _builders("R.ccl", op.ccl.__all__, op.ccl)),
        "grad": Namespace("R.grad", _builders("R.grad", op.grad.__all__, op.grad)),
        "memory": Namespace("R.memory", _builders("R.memory", op.memory.__all__, op.memory)),
        "vm": Namespace("R.vm", _builders("R.vm", op.vm.__all__, op.vm)),
        "inspect": Namespace("R.inspect", _builders("R.inspect", op.inspect.__all__, op.inspect)),
        **_builders("R", op.__all__, op),
        **{name: Word(f"R.{name}", _with_results(getattr(op, name), name), True) for name in _CALLS},
        "Callable": TypeWord("R.Callable", _callable),
        "ExternFunc": Word("R.ExternFunc", ExternFunc),
        "Object": TypeWord("R.Object", ObjectStructInfo),
        "Prim": TypeWord("R.Prim", prim_type, True),
        "Shape": TypeWord("R.Shape", shape_type, True),
        "ShapeExpr": Word("R.ShapeExpr", lambda values: ShapeExpr(tuple(values))),
        "Tensor": TypeWord("R.Tensor", tensor_type, True),
        "Tuple": TypeWord("R.Tuple", _tuple_type),
        "TupleGetItem": Word("R.TupleGetItem", TupleGetItem),
        "const": Word("R.const", const),
        "cpu": Word("R.cpu", cpu),
        "dataflow": Word("R.dataflow", lambda: None),
        "device": Word("R.device", Device),
        "dtype": Word("R.dtype", DataTypeImm),
        "emit_te": Word("R.emit_te", EmitTe),
        "func_attr": Word("R.func_attr", _func_attr, True),
        "function": Word("R.function", lambda func: func),
        "match_cast": Word("R.match_cast", _match_cast),
        "match_shape": Word("R.match_shape", _match_shape, True),
        "image": IMAGE,
        "linalg": Namespace("R.linalg", _builders("R.linalg", op.linalg.__all__, op.linalg)),
        "nn": NN,
        "output": Word("R.output", Output),
        "prim_value": Word("R.prim_value", PrimValue),
        "shape": Word("R.shape", lambda values: ShapeExpr(tuple(values))),
        "str": Word("R.str", StringImm),
        "to_vdevice": Word("R.to_vdevice", _to_vdevice, True),
        "tuple": Word("R.tuple", lambda *fields: Tuple(fields)),
    },
)


def _of_package(name: str) -> Any:
    """What `relax.name` is in a script: what the package has by that name, else the word of R, as programs of 2022 write these."""
    from .. import relax

    return getattr(relax, name, None) or RELAX.find(name)


PACKAGE = Namespace("relax", {}, _of_package)
_BARE = {
    "R.Tensor": TensorStructInfo(None, ""), "R.Object": ObjectStructInfo(), "R.Shape": ShapeStructInfo(),
    "R.Prim": PrimStructInfo(), "R.Tuple": TupleStructInfo(()), "R.Callable": FuncStructInfo.opaque_func(),
}  # fmt: skip
