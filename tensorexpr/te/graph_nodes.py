"""Computations as the graphs that TVM saves (`tir.serialize.node_graph`): the rows of tensors and operations, on top of loops.

Reading checks everything that declaring checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import RecordError
from ..tir.attrs import FrozenMap
from ..tir.buffer import Buffer
from ..tir.expr import IterVar, PrimExpr, ProducerLoad
from ..tir.serialize.graph_fields import INTEGER, TEXT, Field, NodeType, Types
from ..tir.serialize.module_graph import NODES
from ..tir.serialize.module_nodes import plain_annotations, saved_annotation
from ..tir.serialize.node_types import DTYPE, expression
from ..tir.stmt import Stmt
from .checked import checked_compute, checked_extent
from .extern import ExternOp
from .operation import ComputeOp, Operation, PlaceholderOp
from .recurrence import scan_of
from .scan_op import ScanOp
from .serialize_extern import check_calls, extern_of
from .tensor import Tensor

_HEAD = (Field("name", TEXT), Field("tag", TEXT), Field("attrs", dict, get=lambda op: saved_annotation(op.attrs)))


def _tensors(name: str) -> Field:
    return Field(name, Tensor, many=True)


def _tensor(op: Operation, value_index: int, shape: tuple[PrimExpr, ...], dtype: str) -> Tensor:
    tensor = op.output(value_index)
    # the format says both once more; the operation is the authority
    if tensor.dtype != dtype or tuple(map(str, tensor.shape)) != tuple(map(str, shape)):
        raise RecordError(f"output {value_index} of {op.name} is {list(map(str, tensor.shape))} of {tensor.dtype}")
    return tensor


def _placeholder(name: str, tag: str, attrs: Any, shape: tuple[PrimExpr, ...], dtype: str) -> PlaceholderOp:
    return PlaceholderOp(name, tuple(map(checked_extent, shape)), dtype, tag, _attrs(attrs))


def _compute(axis: tuple[IterVar, ...], reduce_axis: tuple[IterVar, ...], body: tuple[PrimExpr, ...], **head: Any) -> ComputeOp:
    op = checked_compute(head["name"], head["tag"], _attrs(head["attrs"]), axis, body)
    if op.reduce_axis != reduce_axis:
        raise RecordError(f"{op.name} reduces other axes than its bodies")
    return op


def _scan(init: Any, update: Any, state_placeholder: Any, inputs: Any, scan_axis: IterVar, spatial_axis_: Any, **head: Any) -> ScanOp:
    if not state_placeholder or not len(init) == len(update) == len(state_placeholder):
        raise RecordError("a scan has one init, update and state for each result")
    op = scan_of(head["name"], head["tag"], _attrs(head["attrs"]), init, update, state_placeholder, inputs)
    # the axes follow from the states, so those of the file are only compared
    if len(op.spatial_axis_) != len(spatial_axis_) or op.scan_axis.dtype != scan_axis.dtype:
        raise RecordError(f"{op.name} has other axes than its states")
    return op


def _extern(inputs: Any, input_placeholders: Any, output_placeholders: Any, body: Stmt, **head: Any) -> ExternOp:
    if len(inputs) != len(input_placeholders):
        raise RecordError("an extern has one buffer for each input")
    check_calls(body)
    return extern_of(head["name"], head["tag"], _attrs(head["attrs"]), inputs, body, (*input_placeholders, *output_placeholders))


def _attrs(items: dict[Any, Any]) -> FrozenMap:
    return FrozenMap(plain_annotations(items))


def _row(key: str, cls: type, make: Callable[..., Any], *fields: Field) -> NodeType:
    return NodeType(key, cls, fields, make)


TE_NODES: Types = (
    *NODES,
    expression("tir.ProducerLoad", ProducerLoad, ProducerLoad, Field("producer", Tensor), Field("indices", PrimExpr, many=True)),
    _row(
        "Tensor",
        Tensor,
        _tensor,
        Field("shape", PrimExpr, many=True),
        Field("dtype", DTYPE),
        Field("op", Operation),
        Field("value_index", INTEGER),
    ),
    _row("PlaceholderOp", PlaceholderOp, _placeholder, *_HEAD, Field("shape", PrimExpr, many=True), Field("dtype", DTYPE)),
    _row(
        "ComputeOp",
        ComputeOp,
        _compute,
        *_HEAD,
        Field("axis", IterVar, many=True),
        Field("reduce_axis", IterVar, many=True),
        Field("body", PrimExpr, many=True),
    ),
    _row(
        "ScanOp",
        ScanOp,
        _scan,
        *_HEAD,
        Field("scan_axis", IterVar),
        *map(_tensors, ("init", "update", "state_placeholder", "inputs")),
        Field("spatial_axis_", IterVar, many=True),
    ),
    _row(
        "ExternOp",
        ExternOp,
        _extern,
        *_HEAD,
        _tensors("inputs"),
        Field("input_placeholders", Buffer, many=True),
        Field("output_placeholders", Buffer, many=True),
        Field("body", Stmt),
    ),
)
