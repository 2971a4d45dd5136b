"""What equality and hash of programs take a node to be made of: its fields, and the variables that it binds.

Both walks read nodes through these functions only, so that equal programs have one hash.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from .block import Block
from .buffer import Buffer
from .expr import CommReducer, IterVar, Let, Reduce, Var
from .function import IRModule, PrimFunc
from .reduce import Range
from .rewriting import variables
from .scopes import buffer_vars, parts
from .stmt import BufferBind, BufferRealize, Stmt

# Fields that do not tell programs apart: names, and what other fields determine.
_IGNORED = {"name", "name_hint"}
_NAMES_OF: dict[type, tuple[str, ...]] = {}


def field_names(cls: type) -> tuple[str, ...]:
    """The fields by which two nodes of a class are told apart, in order."""
    names = _NAMES_OF.get(cls)
    if names is None:
        own = fields(cast(Any, cls)) if hasattr(cls, "__dataclass_fields__") else ()
        names = _NAMES_OF[cls] = tuple(f.name for f in own if f.init and f.name not in _IGNORED)
    return names


def bound_parts(node: Any) -> tuple[tuple[Any, ...], tuple[Var, ...], tuple[Any, ...]] | None:
    """For a node that binds variables: what stands outside their scope, the variables, what stands inside."""
    match node:
        case Let():
            return (node.value,), (node.var,), (node.body,)
        case Reduce():
            # The range of an axis may depend on those before it: k of 0:j + 1 beside j. Such a range stands inside.
            axes = {axis.var for axis in node.axis}
            dependent = tuple(axis.dom if axis.dom is not None and _mentions(axis.dom, axes) else None for axis in node.axis)
            free = tuple(axis.dom if inner is None else None for axis, inner in zip(node.axis, dependent, strict=True))
            kinds = tuple((axis.iter_type, axis.thread_tag) for axis in node.axis)
            outside = (node.combiner, node.init, node.value_index, free, kinds)
            # Only where there are any, so that hashes of the others stay; `free` tells the two forms apart.
            inside = (node.source, node.condition, *([dependent] if any(dependent) else []))
            return outside, tuple(axis.var for axis in node.axis), inside
        case CommReducer():
            return (node.identity_element,), node.lhs + node.rhs, (node.result,)
        case BufferRealize():
            return (
                (node.bounds, node.condition, *([dict(node.annotations)] if node.annotations else [])),
                (node.buffer.data,),
                (node.buffer, node.body),
            )
        case Block():
            kinds = tuple((axis.iter_type, axis.thread_tag) for axis in node.iter_vars)
            inside = (node.alloc_buffers, node.match_buffers, node.reads, node.writes, node.init, node.body, node.annotations)
            return (tuple(axis.dom for axis in node.iter_vars), kinds), node.defines(), inside
        # The box is read outside; strides and offset that the view defines hold for its shape and body.
        case BufferBind():
            return (node.source,), node.defines(), (node.buffer, node.body)
        case Stmt():
            own = parts(node)
            return (_rest(node, own.defines), own.defines, own.bodies) if own.defines else None
    # Of rows above this one: maps of indices.
    said = getattr(node, "structural_bound_parts", None)
    found: tuple[tuple[Any, ...], tuple[Var, ...], tuple[Any, ...]] | None = None if said is None else said()
    return found


def _mentions(dom: Range, own: set[Var]) -> bool:
    return not (variables(dom.min) | variables(dom.extent)).isdisjoint(own)


def _rest(stmt: Stmt, defines: tuple[Var, ...]) -> tuple[Any, ...]:
    """The fields of a defining statement other than what it defines and its body."""
    values = [getattr(stmt, name) for name in field_names(type(stmt)) if name != "body"]
    return tuple(v.thread_tag if isinstance(v, IterVar) else v for v in values if not any(v is var for var in defines))


def bound_variables(node: Any) -> tuple[Var, ...]:
    """The variables that a node defines."""
    if isinstance(node, PrimFunc):
        return signature(node)
    bound = bound_parts(node)
    return () if bound is None else bound[1]


def array_key(array: Any) -> tuple[Any, ...]:
    """What an array of the runtime is equal by."""
    values = array.numpy()
    return str(array.dtype), values.shape, values.tobytes()


def layout_fields(buffer: Buffer) -> tuple[Any, ...]:
    """All of a buffer; what few have counts only where it is there, so that hashes of the others stay."""
    usual = (buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset, buffer.data_alignment, buffer.offset_factor)
    special = buffer.buffer_type != Buffer.DEFAULT or buffer.axis_separators
    return (*usual, buffer.buffer_type, buffer.axis_separators) if special else usual


def named_functions(mod: IRModule) -> dict[str, PrimFunc]:
    """The functions of a module by their names: the variables that stand for them are each module's own."""
    return {var.name_hint: func for var, func in mod.functions_items()}


def signature(func: PrimFunc) -> tuple[Var, ...]:
    """What the arguments of a call define, in order: parameters, then pointers and sizes of their buffers."""
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    # A size may be a parameter and stand in shapes, too: it is defined once.
    return tuple(dict.fromkeys([*func.params, *(v for b in buffers for v in (b.data, *buffer_vars(b)))]))
