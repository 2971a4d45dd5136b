"""Graphs as JSON (`ir.save_json`): the rows of their nodes, on top of those of loops (`tir.serialize.node_graph`).

Constants are their bytes in base64. Attributes are JSON where they are plain values. Reading checks what making nodes checks, and that the
whole is well-formed.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import DeclarationError, RecordError
from ..runtime.ndarray import NDArray, array
from ..te.graph_nodes import TE_NODES
from ..tir.dtype import to_numpy
from ..tir.expr import PrimExpr
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.global_info import VDevice
from ..tir.op_registry import Op
from ..tir.serialize.graph_fields import INTEGER, TEXT, Field, NodeType, Types
from ..tir.serialize.module_graph import CUT
from ..tir.serialize.node_graph import read_graph, write_graph
from ..tir.serialize.rows import shown
from .analysis import check_well_formed
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .ops.row import ROWS
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
)

_MOST_TEXT = 4 << 30
_EXPR = (RelaxExpr, GlobalVar, PrimFunc, Op)


@dataclass(frozen=True, eq=False, slots=True)
class _Plain:
    """A value of Python as JSON."""

    text: str


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _saved(value: Any) -> Any:
    """An attribute as nodes."""
    if _is_plain(value):
        return _Plain(json.dumps(value))
    if isinstance(value, (tuple, list)):
        return [_saved(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _saved(one) for key, one in value.items()}
    return value


def _loaded(value: Any) -> Any:
    """An attribute as it was."""
    if isinstance(value, _Plain):
        return _tuples(json.loads(value.text))
    if isinstance(value, tuple):
        return tuple(map(_loaded, value))
    if isinstance(value, dict):
        return {key: _loaded(one) for key, one in value.items()}
    return value


def _tuples(value: Any) -> Any:
    # JSON has no tuples, and attributes are compared as tuples.
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _plain(text: str) -> _Plain:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError(f"{shown(text)} is no JSON") from None
    if not _is_plain(value):
        raise RecordError(f"{shown(text)} is no plain value")
    return _Plain(text)


def _bytes_of(data: Any) -> str:
    values = data.numpy()
    return f"{data.dtype};{','.join(map(str, values.shape))};{base64.b64encode(values.tobytes()).decode()}"


def _array_of(text: str) -> Any:
    """An array of its dtype, shape and bytes.

    Raises:
        RecordError: for a text that isn't such, or bytes that are too few or too many.
    """
    dtype, _, rest = text.partition(";")
    shape, _, content = rest.partition(";")
    try:
        extents = tuple(int(one) for one in shape.split(",")) if shape else ()
        kind, data = to_numpy(dtype), base64.b64decode(content, validate=True)
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise RecordError(f"{shown(text[:40])} is no array: dtype;extents;bytes in base64") from None
    # (-1, -4) has 4 elements, too.
    if min(extents, default=0) < 0 or math.prod(extents) * kind.itemsize != len(data):
        raise RecordError(f"an array of {extents} of {dtype} has {math.prod(extents) * kind.itemsize} bytes, not {len(data)}")
    return array(np.frombuffer(data, kind).reshape(extents), dtype=dtype)


def _op(name: str) -> Op:
    if name not in ROWS:
        raise RecordError(f"no operator {shown(name)}")
    return Op.of(name)


def _stated(call: Call) -> StructInfo | None:
    """What is known of a call that doesn't follow from it."""
    known = call.struct_info
    return None if Call(call.op, call.args, call.attrs, call.sinfo_args).struct_info == known else known


def _node(name: str, cls: type, make: Callable[..., Any], *fields: Field) -> NodeType:
    return NodeType(f"relax.{name}", cls, fields, make)


def _one(name: str, holds: Any, **options: Any) -> Field:
    return Field(name, holds, **options)


def _many(name: str, holds: Any, **options: Any) -> Field:
    return Field(name, holds, many=True, **options)


_ATTRS = Field("attrs", dict, get=lambda node: {key: _saved(value) for key, value in node.attrs.items()})
_INFO = Field("struct_info", StructInfo, optional=True)


def _with_attrs(make: Callable[..., Any]) -> Callable[..., Any]:
    """What is made with attributes as they were."""

    def made(attrs: dict[Any, Any], **values: Any) -> Any:
        if not all(isinstance(key, str) for key in attrs):
            raise RecordError("attributes are named by texts")
        return make(attrs={key: _loaded(value) for key, value in attrs.items()}, **values)

    return made


def _function_info(params: Any, ret: StructInfo, purity: int) -> FuncStructInfo:
    return FuncStructInfo(params, ret, bool(purity))


def _purity(info: FuncStructInfo) -> int:
    if info.derive_func is not None:
        raise RecordError("a function that derives its result by a function of Python has no place in a saved graph")
    return int(info.purity)


def _element(tuple_value: RelaxExpr, index: int) -> TupleGetItem:
    made = TupleGetItem(tuple_value, index)
    _ = made.struct_info  # what doesn't fit is an error here
    return made


def _called(op: Any, args: Any, attrs: Any, sinfo_args: Any, struct_info: StructInfo | None) -> Call:
    made = Call(op, args, attrs, sinfo_args, struct_info)
    _ = made.struct_info
    return made


def _module(functions: dict[Any, Any], attrs: dict[str, Any], global_infos: dict[str, Any]) -> IRModule:
    for var, func in functions.items():
        if not isinstance(var, GlobalVar) or not isinstance(func, (Function, PrimFunc)):
            raise RecordError("a saved module holds functions by global variables")
    return IRModule(functions, attrs, global_infos)


def _device(target: str, vdevice_id: int, memory_scope: str) -> VDevice:
    found = json.loads(_plain_or_map(target))
    return VDevice(found, vdevice_id, memory_scope)


def _plain_or_map(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError(f"{shown(text)} is no JSON") from None
    return text


def _block(cls: type) -> Callable[..., Any]:
    return lambda bindings: cls(bindings)


NODES: Types = (
    *TE_NODES,
    NodeType("relax.Plain", _Plain, (), _plain, shared=False, repr_text=lambda node: node.text),
    NodeType("relax.NDArray", NDArray, (), _array_of, repr_text=_bytes_of),
    NodeType("relax.Op", Op, (), _op, shared=False, repr_text=str),
    _node("ObjectStructInfo", ObjectStructInfo, ObjectStructInfo),
    _node("PrimStructInfo", PrimStructInfo, PrimStructInfo, _one("dtype", TEXT), _one("value", PrimExpr, optional=True)),
    _node("ShapeStructInfo", ShapeStructInfo, ShapeStructInfo, _many("values", PrimExpr, optional=True), _one("ndim", INTEGER)),
    _node(
        "TensorStructInfo", TensorStructInfo, TensorStructInfo, _one("shape", RelaxExpr, optional=True), _one("dtype", TEXT),
        _one("vdevice", VDevice, optional=True), _one("ndim", INTEGER),
    ),
    _node("TupleStructInfo", TupleStructInfo, TupleStructInfo, _many("fields", StructInfo)),
    _node(
        "FuncStructInfo", FuncStructInfo, _function_info, _many("params", StructInfo, optional=True), _one("ret", StructInfo),
        _one("purity", INTEGER, get=_purity),
    ),
    _node(
        "VDevice", VDevice, _device, _one("target", TEXT, get=lambda d: json.dumps(None if d.target is None else d.target.export())),
        _one("vdevice_id", INTEGER), _one("memory_scope", TEXT),
    ),
    *(
        _node(cls.__name__, cls, lambda name_hint, struct_info, cls=cls: cls(name_hint, struct_info), _one("name_hint", TEXT), _INFO)
        for cls in (Var, DataflowVar)
    ),
    _node("Constant", Constant, Constant, _one("data", NDArray), _one("stated", StructInfo, optional=True)),
    _node("PrimValue", PrimValue, PrimValue, _one("value", PrimExpr)),
    _node("StringImm", StringImm, StringImm, _one("value", str)),
    _node("DataTypeImm", DataTypeImm, DataTypeImm, _one("value", str)),
    _node("ExternFunc", ExternFunc, ExternFunc, _one("global_symbol", str), _one("stated", StructInfo, optional=True)),
    _node("ShapeExpr", ShapeExpr, ShapeExpr, _many("values", PrimExpr)),
    _node("Tuple", Tuple, Tuple, _many("fields", _EXPR)),
    _node("TupleGetItem", TupleGetItem, _element, _one("tuple_value", RelaxExpr), _one("index", INTEGER)),
    _node(
        "Call", Call, _with_attrs(_called), _one("op", _EXPR), _many("args", _EXPR), _ATTRS, _many("sinfo_args", StructInfo),
        _one("struct_info", StructInfo, optional=True, get=_stated),
    ),
    _node("If", If, If, _one("cond", RelaxExpr), _one("true_branch", RelaxExpr), _one("false_branch", RelaxExpr)),
    _node("VarBinding", VarBinding, VarBinding, _one("var", Var), _one("value", _EXPR)),
    _node("MatchCast", MatchCast, MatchCast, _one("var", Var), _one("value", RelaxExpr), _one("struct_info", StructInfo)),
    *(_node(cls.__name__, cls, _block(cls), _many("bindings", Binding)) for cls in (BindingBlock, DataflowBlock)),
    _node("SeqExpr", SeqExpr, SeqExpr, _many("blocks", BindingBlock), _one("body", _EXPR)),
    _node(
        "Function", Function, _with_attrs(lambda is_pure, **values: Function(is_pure=bool(is_pure), **values)), _many("params", Var),
        _one("body", SeqExpr), _one("ret_struct_info", StructInfo), _one("is_pure", INTEGER, get=lambda func: int(func.is_pure)), _ATTRS,
    ),
    _node("IRModule", IRModule, _with_attrs(_module), _one("functions", dict), _ATTRS, _one("global_infos", dict)),
)  # fmt: skip


def save_graph(node: Any) -> str:
    """A module with graphs, or nodes of graphs, as JSON.

    Raises:
        RecordError: for what has no place in it, such as a function of Python.
    """
    return write_graph(node, NODES)


def load_graph(text: str) -> Any:
    """The module or nodes of a text of `save_graph`.

    Raises:
        RecordError: for anything else, and for a module that isn't well-formed.
    """
    found = read_graph(text, NODES, CUT, _MOST_TEXT)
    if isinstance(found, (IRModule, Function)):
        try:
            check_well_formed(found)
        except DeclarationError as error:
            raise RecordError(f"a saved graph: {error}") from None
    return found
