"""Functions and modules as the graphs that TVM saves: the rows of statements, blocks, buffers, functions, on top of expressions.

Modules are written with what says what they compute; types of global variables, which TVM derives, are left out and are not
read. Annotations are texts, numbers, expressions, lists and mappings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import RecordError
from ..attrs import EMPTY, FrozenMap
from ..block import Block, BlockRealize, MatchBufferRegion
from ..buffer import Buffer, BufferRegion
from ..dtype import parse_dtype
from ..expr import BufferLoad, FloatImm, IntImm, IterVar, PrimExpr, Range, StringImm, Var
from ..function import GlobalVar, IRModule, PrimFunc
from ..stmt import (
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from .node_graph import INTEGER, SPAN, TEXT, Field, NodeType, Types, read_graph, write_graph
from .node_types import DTYPE, EXPRESSIONS, expression
from .rows import shown

_DEFAULT_BUFFER = "1"  # the other kind broadcasts dimensions of extent 1
_MAX_ALIGNMENT = 1 << 20
_CUT = {"GlobalVar": ("_checked_type_", "struct_info_", "virtual_device_"), "tir.PrimFunc": ("_checked_type_",)}


@dataclass(frozen=True, eq=False, slots=True)
class Attributes:
    """The attributes of a function or module."""

    items: Mapping[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class TupleType:
    """The type of a function that returns nothing."""

    fields: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class SourceMap:
    """The texts that a module was parsed from: none."""

    source_map: Mapping[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class SavedModule:
    """A module in the fields that are saved."""

    functions: Mapping[GlobalVar, PrimFunc]
    attrs: Attributes


def module_to_graph(mod: IRModule) -> str:
    """The text of a module, which `module_from_graph` and TVM read.

    Raises:
        RecordError: if it holds what has no place in such a text: functions that aren't loops, steps of lowering.
    """
    for func in mod.functions.values():
        if not isinstance(func, PrimFunc):
            raise RecordError(f"a saved module holds functions of loops (PrimFunc), not a {type(func).__name__}")
    return write_graph(SavedModule(mod.functions, Attributes(mod.attrs)), NODES)


def module_from_graph(text: str) -> IRModule:
    """The module of a text.

    Raises:
        RecordError: for anything else than the text of a module of functions of loops.
    """
    found = read_graph(text, NODES, _CUT)
    if not isinstance(found, SavedModule):
        raise RecordError(f"a saved module is needed, not {shown(found)}")
    return IRModule(found.functions, _plain_map(found.attrs.items))  # type: ignore[arg-type]


def _saved(value: Any) -> Any:
    """An annotation as nodes: TVM's numbers are expressions."""
    match value:
        case bool():
            return IntImm("bool", int(value))
        case int():
            return IntImm("int32" if -(1 << 31) <= value < 1 << 31 else "int64", value)
        case float():
            return FloatImm("float32", value)
        case list() | tuple():
            return [_saved(item) for item in value]
        case Mapping():
            return {str(key): _saved(item) for key, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    """An annotation as we have it."""
    match value:
        case IntImm():
            return bool(value.value) if value.dtype == "bool" else value.value
        case FloatImm() | StringImm():
            return value.value
        case tuple():
            return tuple(_plain(item) for item in value)
        case dict():
            return _plain_map(value)
        case str() | PrimExpr():
            return value
    raise RecordError(f"an annotation is a text, a number, an expression, a list or a mapping, not {shown(value)}")


def _plain_map(items: Mapping[Any, Any]) -> FrozenMap:
    if not all(isinstance(key, str) for key in items):
        raise RecordError("annotations are named by texts")
    return FrozenMap({key: _plain(item) for key, item in items.items()}) if items else EMPTY


def _one(name: str, holds: type = PrimExpr, **options: Any) -> Field:
    return Field(name, holds, **options)


def _many(name: str, holds: type = PrimExpr) -> Field:
    return Field(name, holds, many=True)


_ANNOTATIONS = Field("annotations", dict, get=lambda node: _saved(node.annotations))
_PREDICATE = Field("predicate", PrimExpr, optional=True)


def _row(key: str, cls: type, make: Callable[..., Any], *fields: Field) -> NodeType:
    """The row of a node with a span."""
    return NodeType(key, cls, (*fields, SPAN), lambda span, **values: make(**values))


def _for(kind: int, thread_binding: IterVar | None, annotations: dict[Any, Any], **values: Any) -> Stmt:
    loop, low, extent = values["loop_var"], values["min"], values["extent"]
    if not loop.dtype == low.dtype == extent.dtype or not parse_dtype(loop.dtype).is_int:
        raise RecordError(f"a loop of {loop.dtype} from {low.dtype} over {extent.dtype}")
    if kind not in list(ForKind):
        raise RecordError(f"no kind of loop has the number {kind}")
    return For(kind=ForKind(kind), thread_binding=thread_binding, annotations=_plain_map(annotations), **values)


def _seq(seq: tuple[Stmt, ...]) -> Stmt:
    if len(seq) < 2 or any(isinstance(stmt, SeqStmt) for stmt in seq):
        raise RecordError("a sequence holds two statements or more, and no sequence")
    return SeqStmt(seq)


def _attr(node: Any, attr_key: str, value: PrimExpr, body: Stmt) -> Stmt:
    if not isinstance(node, (PrimExpr, IterVar, Buffer, str)):
        raise RecordError(f"an attribute of {shown(node)}")
    return AttrStmt(node, attr_key, value, body)


def _realize(condition: PrimExpr, annotations: dict[Any, Any], **values: Any) -> Stmt:
    """Storage of a phase-0 program; TVM's node of this name has no annotations."""
    if len(values["bounds"]) != values["buffer"].ndim:
        raise RecordError(f"storage for {len(values['bounds'])} dimensions of a buffer that has {values['buffer'].ndim}")
    return BufferRealize(condition=_condition(condition), annotations=_plain_map(annotations), **values)


def _condition(condition: PrimExpr) -> PrimExpr:
    if condition.dtype != "bool":
        raise RecordError(f"a condition is {condition.dtype}")
    return condition


def _integers(name: str, exprs: tuple[PrimExpr, ...]) -> None:
    if not all(parse_dtype(expr.dtype).is_int for expr in exprs):
        raise RecordError(f"{name} are integers")


def _store(buffer: Buffer, value: PrimExpr, indices: tuple[PrimExpr, ...], predicate: PrimExpr | None) -> Stmt:
    _integers("indices", indices)
    return BufferStore(buffer, value, indices, predicate)


def _load(buffer: Buffer, indices: tuple[PrimExpr, ...], predicate: PrimExpr | None) -> PrimExpr:
    _integers("indices", indices)
    return BufferLoad(buffer, indices, predicate)


def _let(var: Var, value: PrimExpr, body: Stmt) -> Stmt:
    if var.dtype != value.dtype:
        raise RecordError(f"a let of {value.dtype} as {var.dtype}")
    return LetStmt(var, value, body)


def _buffer(axis_separators: tuple[Any, ...], buffer_type: str, data_alignment: int, offset_factor: int, **values: Any) -> Buffer:
    if axis_separators or buffer_type != _DEFAULT_BUFFER:
        raise RecordError("a buffer with axis separators, or that broadcasts, has no place here")
    shape, strides = values["shape"], values["strides"]
    _integers("extents, strides and offsets", (*shape, *strides, values["elem_offset"]))
    if strides and len(strides) != len(shape):
        raise RecordError(f"{len(shape)} extents and {len(strides)} strides")
    if values["data"].dtype != "handle" or not 0 < data_alignment <= _MAX_ALIGNMENT or data_alignment & (data_alignment - 1):
        raise RecordError(f"a buffer of data that is no pointer, or aligned to {data_alignment}")
    return Buffer(data_alignment=data_alignment, offset_factor=max(1, offset_factor), **values)


def _iter_var(dom: Range | None, var: Var, iter_type: int, thread_tag: str) -> IterVar:
    if not 0 <= iter_type <= IterVar.TENSORIZED:
        raise RecordError(f"no kind of axis has the number {iter_type}")
    return IterVar(dom, var, iter_type, thread_tag)


def _block(annotations: dict[Any, Any], **values: Any) -> Stmt:
    return Block(annotations=_plain_map(annotations), **values)


def _function(
    attrs: Attributes, body: Stmt, buffer_map: dict[Any, Any], params: tuple[Var, ...], ret_type: TupleType, **_: Any
) -> PrimFunc:
    for var, buffer in buffer_map.items():
        if not isinstance(var, Var) or var not in params or not isinstance(buffer, Buffer):
            raise RecordError("the buffers of a function are those of its parameters")
    if ret_type.fields:
        raise RecordError("a function of loops returns nothing")
    return PrimFunc(params, body, buffer_map, _plain_map(attrs.items))


def _module(attrs: Attributes, functions: dict[Any, Any], **others: Any) -> SavedModule:
    for var, func in functions.items():
        if not isinstance(var, GlobalVar) or not isinstance(func, PrimFunc):
            raise RecordError("a saved module holds functions of loops (PrimFunc) by global variables")
    unexpected = [name for name in ("global_infos", "global_type_var_map_", "type_definitions") if others[name]]
    if unexpected:
        raise RecordError(f"a module with {', '.join(unexpected)} has no place here")
    return SavedModule(functions, attrs)


def _nothing(name: str) -> Field:
    return Field(name, object, optional=True, get=lambda node: None)


def _empty(name: str) -> Field:
    return Field(name, dict, get=lambda node: {})


_FUNCTION = (
    _many("params", Var),
    _one("body", Stmt),
    Field("ret_type", TupleType, get=lambda func: TupleType()),
    Field("buffer_map", dict),
    Field("attrs", Attributes, get=lambda func: Attributes(func.attrs)),
    _nothing("_checked_type_"),
)
_MODULE = (
    _one("functions", dict),
    Field("global_var_map_", dict, get=lambda mod: {var.name_hint: var for var in mod.functions}),
    *map(_empty, ("type_definitions", "global_type_var_map_", "global_infos")),
    Field("source_map", SourceMap, get=lambda mod: SourceMap({})),
    Field("attrs", Attributes),
)
_BUFFER = (
    _one("data", Var),
    Field("dtype", DTYPE),
    _many("shape"),
    _many("strides"),
    Field("axis_separators", PrimExpr, many=True, get=lambda buffer: ()),
    _one("elem_offset"),
    _one("name", str),
    Field("data_alignment", INTEGER),
    Field("offset_factor", INTEGER),
    Field("buffer_type", TEXT, get=lambda buffer: _DEFAULT_BUFFER),
)
_BLOCK = (
    _many("iter_vars", IterVar),
    _many("reads", BufferRegion),
    _many("writes", BufferRegion),
    _one("name_hint", str),
    _one("body", Stmt),
    Field("init", Stmt, optional=True),
    _many("alloc_buffers", Buffer),
    _many("match_buffers", MatchBufferRegion),
    _ANNOTATIONS,
)
_FOR = (
    _one("loop_var", Var),
    _one("min"),
    _one("extent"),
    Field("kind", INTEGER, get=lambda loop: int(loop.kind)),
    _one("body", Stmt),
    Field("thread_binding", IterVar, optional=True),
    _ANNOTATIONS,
)
_REALIZE = (_one("buffer", Buffer), _many("bounds", Range), _one("condition"), _one("body", Stmt), _ANNOTATIONS)
_ATTR = (Field("node", object, optional=True), _one("attr_key", str), _one("value"), _one("body", Stmt))

STATEMENTS: tuple[NodeType, ...] = (
    _row("tir.For", For, _for, *_FOR),
    _row("tir.While", While, lambda condition, body: While(_condition(condition), body), _one("condition"), _one("body", Stmt)),
    _row("tir.SeqStmt", SeqStmt, _seq, _many("seq", Stmt)),
    _row("tir.BufferStore", BufferStore, _store, _one("buffer", Buffer), _one("value"), _many("indices"), _PREDICATE),
    _row(
        "tir.IfThenElse",
        IfThenElse,
        lambda condition, **cases: IfThenElse(_condition(condition), **cases),
        _one("condition"),
        _one("then_case", Stmt),
        Field("else_case", Stmt, optional=True),
    ),
    _row("tir.LetStmt", LetStmt, _let, _one("var", Var), _one("value"), _one("body", Stmt)),
    _row("tir.AssertStmt", AssertStmt, AssertStmt, _one("condition"), _one("message"), _one("body", Stmt)),
    _row("tir.AttrStmt", AttrStmt, _attr, *_ATTR),
    _row("tir.BufferRealize", BufferRealize, _realize, *_REALIZE),
    _row("tir.DeclBuffer", DeclBuffer, DeclBuffer, _one("buffer", Buffer), _one("body", Stmt)),
    _row("tir.Evaluate", Evaluate, Evaluate, _one("value")),
    NodeType("tir.BlockRealize", BlockRealize, (_many("iter_values"), _one("predicate"), _one("block", Block)), BlockRealize),
    NodeType("tir.Block", Block, _BLOCK, _block),
)

NODES: Types = (
    *EXPRESSIONS,
    expression("tir.BufferLoad", BufferLoad, _load, _one("buffer", Buffer), _many("indices"), _PREDICATE),
    _row("Range", Range, Range, _one("min"), _one("extent")),
    _row(
        "tir.IterVar",
        IterVar,
        _iter_var,
        Field("dom", Range, optional=True),
        _one("var", Var),
        Field("iter_type", INTEGER),
        _one("thread_tag", str),
    ),
    _row("tir.Buffer", Buffer, _buffer, *_BUFFER),
    NodeType("tir.BufferRegion", BufferRegion, (_one("buffer", Buffer), _many("region", Range)), BufferRegion),
    NodeType("tir.MatchBufferRegion", MatchBufferRegion, (_one("buffer", Buffer), _one("source", BufferRegion)), MatchBufferRegion),
    *STATEMENTS,
    _row("TupleType", TupleType, TupleType, Field("fields", object, many=True)),
    NodeType(
        "DictAttrs", Attributes, (Field("__dict__", dict, get=lambda attrs: _saved(attrs.items)),), lambda __dict__: Attributes(__dict__)
    ),
    NodeType("SourceMap", SourceMap, (Field("source_map", dict),), SourceMap),
    _row("tir.PrimFunc", PrimFunc, _function, *_FUNCTION),
    _row("GlobalVar", GlobalVar, lambda name_hint, **_: GlobalVar(name_hint), _one("name_hint", str), *map(_nothing, _CUT["GlobalVar"])),
    NodeType("IRModule", SavedModule, _MODULE, _module),
)
