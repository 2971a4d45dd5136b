"""Operators that are functions of others: those that the standard defines so, and those that a model brings along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import relax
from ...errors import ModelError
from ...tir.arithmetic import as_int
from .dtypes import NUMBERS
from .registry import plain_domain


def schema_of(domain: str, name: str, opset: int) -> Any:
    """The operator's entry in the standard, or None."""
    from onnx import defs

    try:
        return defs.get_schema(name, opset, plain_domain(domain))
    except defs.SchemaError:
        return None


def has_function(domain: str, name: str, opset: int) -> bool:
    """Whether the standard defines an operator by others."""
    schema = schema_of(domain, name, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def plain_function(domain: str, name: str, opset: int) -> Any:
    """The function that the standard defines an operator by whatever its operands are, or None."""
    import onnx

    schema = schema_of(domain, name, opset)
    if schema is None or not schema.function_opset_versions or schema.context_dependent_function_opset_versions:
        return None
    version = _version(schema.function_opset_versions, opset)
    return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(version))


def _version(versions: Sequence[int], opset: int) -> int:
    """The newest function up to an opset; else the oldest, which says the same by operators of its own opset."""
    return max((one for one in versions if one <= opset), default=min(versions))


def standard_function(node: Any, opset: int, infos: Sequence[Any]) -> Any:
    """The function that the standard defines an operator by, or None.

    Args:
        node: the node, as its attributes and operands may matter.
        opset: of its domain.
        infos: what is known of its operands; None for those that are left out.
    """
    import onnx

    schema = schema_of(node.domain, node.op_type, opset)
    if schema is None:
        return None
    versions = schema.context_dependent_function_opset_versions
    # Such a body is made for the types of the operands, and of these nothing is known.
    if versions and not any(isinstance(info, relax.ObjectStructInfo) for info in infos):
        types = [type_of(info).SerializeToString() for info in infos]
        try:
            body = schema.get_context_dependent_function_with_opset_version(_version(versions, opset), node.SerializeToString(), types)
        except (ValueError, RuntimeError) as error:  # what the standard's code says of attributes that don't fit
            raise ModelError(f"{node.op_type} {node.name or ', '.join(node.output)!r}: {error}") from error
        return onnx.FunctionProto.FromString(body) if body else None
    return plain_function(node.domain, node.op_type, opset)


def type_of(info: Any) -> Any:
    """A struct info as a TypeProto of ONNX."""
    from onnx import TypeProto

    made = TypeProto()
    if isinstance(info, relax.TupleStructInfo):
        made.sequence_type.elem_type.CopyFrom(type_of(info.fields[0] if info.fields else relax.TensorStructInfo(None, "float32")))
    if isinstance(info, relax.TensorStructInfo):
        made.tensor_type.elem_type = NUMBERS.get(info.dtype, 0)
        if info.ndim >= 0:
            made.tensor_type.shape.SetInParent()
            for extent in info.extents or [None] * info.ndim:
                added = made.tensor_type.shape.dim.add()
                number = None if extent is None else as_int(extent)
                if number is not None:
                    added.dim_value = number
    return made


def with_attributes(nodes: Sequence[Any], given: Mapping[str, Any]) -> list[Any]:
    """The nodes of a function with attributes of the call in place of references to them."""
    return [_with_attributes(node, given) for node in nodes]


def _with_attributes(node: Any, given: Mapping[str, Any]) -> Any:
    from onnx import NodeProto

    made = NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for one in node.attribute:
        if one.ref_attr_name:
            # One that the call doesn't state is left out, so the default of the inner operator holds.
            if one.ref_attr_name in given:
                made.attribute.add().CopyFrom(given[one.ref_attr_name])
                made.attribute[-1].name = one.name
            continue
        added = made.attribute.add()
        added.CopyFrom(one)
        for graph in [added.g] if one.type == 5 else added.graphs:
            inner = with_attributes(graph.node, given)
            del graph.node[:]
            graph.node.extend(inner)
    return made


def attributes_of_call(node: Any, function: Any, opset: int) -> dict[str, Any]:
    """The attributes of a call of a function: stated ones, else defaults of the function or of the standard."""
    found = {one.name: one for one in function.attribute_proto}
    schema = schema_of(node.domain, node.op_type, opset)
    if schema is not None:
        # Where an attribute has no default, its default_value has no name.
        found.update({name: one.default_value for name, one in schema.attributes.items() if one.default_value.name})
    found.update({one.name: one for one in node.attribute})
    return found
