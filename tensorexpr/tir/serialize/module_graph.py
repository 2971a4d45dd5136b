"""Functions and modules as the graphs that TVM saves: the rows of statements, blocks, buffers, functions, on top of expressions.

Modules are written with what says what they compute; types of global variables, which TVM derives, are left out and are not
read. Annotations are texts, numbers, expressions, lists and mappings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import RecordError
from ..block import Block, BlockRealize, MatchBufferRegion
from ..buffer import Buffer, BufferRegion
from ..expr import BufferLoad, CommReducer, IterVar, PointerType, PrimExpr, PrimType, Range, Reduce, TupleType, Var
from ..function import GlobalVar, IRModule, PrimFunc
from ..stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from .graph_fields import INTEGER, SPAN, TEXT, Field, NodeType, Types
from .graph_reader import read_graph
from .graph_writer import write_graph
from .module_nodes import (
    Attributes,
    SavedModule,
    SourceMap,
    checked_condition,
    make_allocate,
    make_attr,
    make_block,
    make_buffer,
    make_for,
    make_function,
    make_iter_var,
    make_let,
    make_load,
    make_module,
    make_realize,
    make_reduce,
    make_reducer,
    make_seq,
    make_store,
    plain_annotations,
    saved_annotation,
)
from .node_types import DTYPE, EXPRESSIONS, expression
from .rows import shown

# They refer to nodes of types, which have no rows here.
CUT = {"GlobalVar": ("_checked_type_", "struct_info_", "virtual_device_"), "tir.PrimFunc": ("_checked_type_",)}


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
    found = read_graph(text, NODES, CUT)
    if not isinstance(found, SavedModule):
        raise RecordError(f"a saved module is needed, not {shown(found)}")
    return module_of(found)


def module_of(found: SavedModule) -> IRModule:
    """A module of the fields that were read."""
    return IRModule(found.functions, plain_annotations(found.attrs.items))  # type: ignore[arg-type]


def _one(name: str, holds: type = PrimExpr, **options: Any) -> Field:
    return Field(name, holds, **options)


def _many(name: str, holds: type = PrimExpr) -> Field:
    return Field(name, holds, many=True)


_ANNOTATIONS = Field("annotations", dict, get=lambda node: saved_annotation(node.annotations))
_PREDICATE = Field("predicate", PrimExpr, optional=True)


def _row(key: str, cls: type, make: Callable[..., Any], *fields: Field) -> NodeType:
    """The row of a node with a span."""
    return NodeType(key, cls, (*fields, SPAN), lambda span, **values: make(**values))


def _nothing(name: str) -> Field:
    return Field(name, object, optional=True, get=lambda node: None)


def _empty(name: str) -> Field:
    return Field(name, dict, get=lambda node: {})


_FUNCTION = (
    _many("params", Var),
    _one("body", Stmt),
    # TVM's void: a tuple of no fields.
    Field("ret_type", (TupleType, PrimType, PointerType), get=lambda func: func.ret_type or TupleType()),
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
    _many("axis_separators"),
    _one("elem_offset"),
    _one("name", str),
    Field("data_alignment", INTEGER),
    Field("offset_factor", INTEGER),
    Field("buffer_type", TEXT, get=lambda buffer: str(buffer.buffer_type)),
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

_ALLOCATE = (_one("buffer_var", Var), Field("dtype", DTYPE), _many("extents"), _one("condition"), _one("body", Stmt), _ANNOTATIONS)
_REDUCE = (
    _one("combiner", CommReducer),
    _many("source"),
    _many("init"),
    _many("axis", IterVar),
    _one("condition"),
    Field("value_index", INTEGER),
)

STATEMENTS: tuple[NodeType, ...] = (
    _row("tir.For", For, make_for, *_FOR),
    _row("tir.While", While, lambda condition, body: While(checked_condition(condition), body), _one("condition"), _one("body", Stmt)),
    _row("tir.SeqStmt", SeqStmt, make_seq, _many("seq", Stmt)),
    _row("tir.BufferStore", BufferStore, make_store, _one("buffer", Buffer), _one("value"), _many("indices"), _PREDICATE),
    _row(
        "tir.IfThenElse",
        IfThenElse,
        lambda condition, **cases: IfThenElse(checked_condition(condition), **cases),
        _one("condition"),
        _one("then_case", Stmt),
        Field("else_case", Stmt, optional=True),
    ),
    _row("tir.LetStmt", LetStmt, make_let, _one("var", Var), _one("value"), _one("body", Stmt)),
    _row("tir.AssertStmt", AssertStmt, AssertStmt, _one("condition"), _one("message"), _one("body", Stmt)),
    _row("tir.AttrStmt", AttrStmt, make_attr, *_ATTR),
    _row("tir.BufferRealize", BufferRealize, make_realize, *_REALIZE),
    _row("tir.DeclBuffer", DeclBuffer, DeclBuffer, _one("buffer", Buffer), _one("body", Stmt)),
    _row("tir.Evaluate", Evaluate, Evaluate, _one("value")),
    NodeType("tir.BlockRealize", BlockRealize, (_many("iter_values"), _one("predicate"), _one("block", Block)), BlockRealize),
    NodeType("tir.Block", Block, _BLOCK, make_block),
)

NODES: Types = (
    *EXPRESSIONS,
    expression("tir.BufferLoad", BufferLoad, make_load, _one("buffer", Buffer), _many("indices"), _PREDICATE),
    _row("Range", Range, lambda min, extent: Range.from_min_extent(min, extent), _one("min"), _one("extent")),
    _row(
        "tir.IterVar",
        IterVar,
        make_iter_var,
        Field("dom", Range, optional=True),
        _one("var", Var),
        Field("iter_type", INTEGER),
        _one("thread_tag", str),
    ),
    _row("tir.Buffer", Buffer, make_buffer, *_BUFFER),
    NodeType("tir.BufferRegion", BufferRegion, (_one("buffer", Buffer), _many("region", Range)), BufferRegion),
    NodeType("tir.MatchBufferRegion", MatchBufferRegion, (_one("buffer", Buffer), _one("source", BufferRegion)), MatchBufferRegion),
    *STATEMENTS,
    _row("TupleType", TupleType, TupleType, Field("fields", object, many=True)),
    NodeType(
        "DictAttrs",
        Attributes,
        (Field("__dict__", dict, get=lambda attrs: saved_annotation(attrs.items)),),
        lambda __dict__: Attributes(__dict__),
    ),
    NodeType("SourceMap", SourceMap, (Field("source_map", dict),), SourceMap),
    _row("tir.Allocate", Allocate, make_allocate, *_ALLOCATE),
    NodeType(
        "tir.CommReducer",
        CommReducer,
        (_many("lhs", Var), _many("rhs", Var), _many("result"), _many("identity_element"), SPAN),
        make_reducer,
    ),
    expression("tir.Reduce", Reduce, make_reduce, *_REDUCE),
    _row("tir.PrimFunc", PrimFunc, make_function, *_FUNCTION),
    _row("GlobalVar", GlobalVar, lambda name_hint, **_: GlobalVar(name_hint), _one("name_hint", str), *map(_nothing, CUT["GlobalVar"])),
    NodeType("IRModule", SavedModule, _MODULE, make_module),
)


__all__ = ["CUT", "NODES", "STATEMENTS", "SavedModule", "module_from_graph", "module_of", "module_to_graph"]
