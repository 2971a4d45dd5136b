"""Statements, blocks, buffers and functions of saved graphs: made of their fields, after everything about them is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError, RecordError
from ..attrs import EMPTY, FrozenMap
from ..block import Block
from ..buffer import Buffer
from ..dtype import parse_dtype
from ..expr import BufferLoad, CommReducer, FloatImm, IntImm, IterVar, PrimExpr, Range, Reduce, StringImm, TupleType, Type, Var
from ..function import GlobalVar, PrimFunc
from ..stmt import Allocate, AttrStmt, BufferRealize, BufferStore, For, ForKind, LetStmt, SeqStmt, Stmt
from .rows import shown

_BUFFER_TYPES = {"1": Buffer.DEFAULT, "2": Buffer.AUTO_BROADCAST}
_MAX_ALIGNMENT = 1 << 20


@dataclass(frozen=True, eq=False, slots=True)
class Attributes:
    """The attributes of a function or module."""

    items: Mapping[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class SourceMap:
    """The texts that a module was parsed from: none."""

    source_map: Mapping[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class SavedModule:
    """A module in the fields that are saved."""

    functions: Mapping[GlobalVar, PrimFunc]
    attrs: Attributes


def saved_annotation(value: Any) -> Any:
    """An annotation as nodes: TVM's numbers are expressions."""
    match value:
        case bool():
            return IntImm("bool", int(value))
        case int():
            return IntImm("int32" if -(1 << 31) <= value < 1 << 31 else "int64", value)
        case float():
            return FloatImm("float32", value)
        case list() | tuple():
            return [saved_annotation(item) for item in value]
        case Mapping():
            return {str(key): saved_annotation(item) for key, item in value.items()}
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
            return plain_annotations(value)
        case str() | PrimExpr():
            return value
    raise RecordError(f"an annotation is a text, a number, an expression, a list or a mapping, not {shown(value)}")


def plain_annotations(items: Mapping[Any, Any]) -> FrozenMap:
    """Annotations as we have them.

    Raises:
        RecordError: for names that are no texts, or values that are none of an annotation.
    """
    if not all(isinstance(key, str) for key in items):
        raise RecordError("annotations are named by texts")
    return FrozenMap({key: _plain(item) for key, item in items.items()}) if items else EMPTY


def make_for(kind: int, thread_binding: IterVar | None, annotations: dict[Any, Any], **values: Any) -> Stmt:
    """A loop; its bounds are integers of its variable's dtype."""
    loop, low, extent = values["loop_var"], values["min"], values["extent"]
    if not loop.dtype == low.dtype == extent.dtype or not parse_dtype(loop.dtype).is_int:
        raise RecordError(f"a loop of {loop.dtype} from {low.dtype} over {extent.dtype}")
    if kind not in list(ForKind):
        raise RecordError(f"no kind of loop has the number {kind}")
    return For(kind=ForKind(kind), thread_binding=thread_binding, annotations=plain_annotations(annotations), **values)


def make_seq(seq: tuple[Stmt, ...]) -> Stmt:
    """A sequence, flat, of two statements at least."""
    if len(seq) < 2 or any(isinstance(stmt, SeqStmt) for stmt in seq):
        raise RecordError("a sequence holds two statements or more, and no sequence")
    return SeqStmt(seq)


def make_attr(node: Any, attr_key: str, value: PrimExpr, body: Stmt) -> Stmt:
    """An attribute of a node that may have some: a reducer has that of threads which reduce together."""
    if not isinstance(node, (PrimExpr, IterVar, Buffer, CommReducer, str)):
        raise RecordError(f"an attribute of {shown(node)}")
    return AttrStmt(node, attr_key, value, body)


def make_realize(condition: PrimExpr, annotations: dict[Any, Any], **values: Any) -> Stmt:
    """Storage of a phase-0 program; TVM's node of this name has no annotations."""
    if len(values["bounds"]) != values["buffer"].ndim:
        raise RecordError(f"storage for {len(values['bounds'])} dimensions of a buffer that has {values['buffer'].ndim}")
    return BufferRealize(condition=checked_condition(condition), annotations=plain_annotations(annotations), **values)


def checked_condition(condition: PrimExpr) -> PrimExpr:
    """The condition, if it is one.

    Raises:
        RecordError: if it isn't bool.
    """
    if condition.dtype != "bool":
        raise RecordError(f"a condition is {condition.dtype}")
    return condition


def _integers(name: str, exprs: tuple[PrimExpr, ...]) -> None:
    if not all(parse_dtype(expr.dtype).is_int for expr in exprs):
        raise RecordError(f"{name} are integers")


def make_store(buffer: Buffer, value: PrimExpr, indices: tuple[PrimExpr, ...], predicate: PrimExpr | None) -> Stmt:
    """A store at integer indices."""
    _integers("indices", indices)
    return BufferStore(buffer, value, indices, predicate)


def make_load(buffer: Buffer, indices: tuple[PrimExpr, ...], predicate: PrimExpr | None) -> PrimExpr:
    """A load at integer indices."""
    _integers("indices", indices)
    return BufferLoad(buffer, indices, predicate)


def make_let(var: Var, value: PrimExpr, body: Stmt) -> Stmt:
    """A let of a value of its variable's dtype."""
    if var.dtype != value.dtype:
        raise RecordError(f"a let of {value.dtype} as {var.dtype}")
    return LetStmt(var, value, body)


def make_buffer(axis_separators: tuple[Any, ...], buffer_type: str, data_alignment: int, offset_factor: int, **values: Any) -> Buffer:
    """A buffer whose parts fit together."""
    if buffer_type not in _BUFFER_TYPES:
        raise RecordError(f"{shown(buffer_type)} is no kind of buffer")
    shape, strides = values["shape"], values["strides"]
    _integers("extents, strides and offsets", (*shape, *strides, values["elem_offset"]))
    if strides and len(strides) != len(shape):
        raise RecordError(f"{len(shape)} extents and {len(strides)} strides")
    if values["data"].dtype != "handle" or not 0 < data_alignment <= _MAX_ALIGNMENT or data_alignment & (data_alignment - 1):
        raise RecordError(f"a buffer of data that is no pointer, or aligned to {data_alignment}")
    try:
        return Buffer(
            data_alignment=data_alignment,
            # 0 and 1 promise the same: nothing.
            offset_factor=max(1, offset_factor),
            buffer_type=_BUFFER_TYPES[buffer_type],
            axis_separators=axis_separators,
            **values,
        )
    except DeclarationError as error:
        raise RecordError(str(error)) from None


def make_allocate(buffer_var: Var, annotations: dict[Any, Any], **values: Any) -> Stmt:
    """Storage behind a pointer."""
    if buffer_var.dtype != "handle" or values["condition"].dtype != "bool":
        raise RecordError(f"storage behind {buffer_var.name}, a {buffer_var.dtype}, where {values['condition'].dtype}")
    _integers("extents", values["extents"])
    return Allocate(buffer_var=buffer_var, annotations=plain_annotations(annotations), **values)


def make_reducer(
    lhs: tuple[Var, ...], rhs: tuple[Var, ...], result: tuple[Any, ...], identity_element: tuple[Any, ...], **_: Any
) -> CommReducer:
    """A combiner whose parts are as many."""
    if not len(lhs) == len(rhs) == len(result) == len(identity_element):
        raise RecordError("a combiner has as many accumulators as new values, results and identity elements")
    return CommReducer(lhs, rhs, result, identity_element)


def make_reduce(combiner: CommReducer, source: tuple[Any, ...], value_index: int, condition: PrimExpr, **values: Any) -> PrimExpr:
    """A reduction of values that its combiner fits."""
    if len(source) != len(combiner.lhs) or not 0 <= value_index < len(source) or condition.dtype != "bool":
        raise RecordError(f"element {value_index} of a reduction of {len(source)} values by a combiner of {len(combiner.lhs)}")
    return Reduce(combiner, source, values["axis"], condition, value_index, values["init"])


def make_iter_var(dom: Range | None, var: Var, iter_type: int, thread_tag: str) -> IterVar:
    """An axis of a known kind."""
    if not 0 <= iter_type <= IterVar.TENSORIZED:
        raise RecordError(f"no kind of axis has the number {iter_type}")
    return IterVar(dom, var, iter_type, thread_tag)


def make_block(annotations: dict[Any, Any], **values: Any) -> Stmt:
    """A block."""
    return Block(annotations=plain_annotations(annotations), **values)


def make_function(attrs: Attributes, body: Stmt, buffer_map: dict[Any, Any], params: tuple[Var, ...], ret_type: Type, **_: Any) -> PrimFunc:
    """A function whose buffers are those of its parameters."""
    for var, buffer in buffer_map.items():
        if not isinstance(var, Var) or var not in params or not isinstance(buffer, Buffer):
            raise RecordError("the buffers of a function are those of its parameters")
    if isinstance(ret_type, TupleType) and ret_type.fields:
        raise RecordError("a function of loops returns nothing, or one number")
    returned = None if isinstance(ret_type, TupleType) else ret_type
    return PrimFunc(params, body, returned, buffer_map, plain_annotations(attrs.items))


def make_module(attrs: Attributes, functions: dict[Any, Any], **others: Any) -> SavedModule:
    """A module of functions of loops and nothing else."""
    for var, func in functions.items():
        if not isinstance(var, GlobalVar) or not isinstance(func, PrimFunc):
            raise RecordError("a saved module holds functions of loops (PrimFunc) by global variables")
    unexpected = [name for name in ("global_infos", "global_type_var_map_", "type_definitions") if others[name]]
    if unexpected:
        raise RecordError(f"a module with {', '.join(unexpected)} has no place here")
    return SavedModule(functions, attrs)
