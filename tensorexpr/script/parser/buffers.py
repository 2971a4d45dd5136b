"""Declarations of buffers: name -> builder. All take the shape first and then the same options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir.arithmetic import as_int, convert
from ...tir.block import MatchBufferRegion
from ...tir.buffer import Buffer, BufferRegion, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ...tir.stmt import Allocate, BufferBind, DeclBuffer, Stmt
from .context import Context
from .stores import store
from .values import Access, Opened, Pending, as_expr, as_region

_TYPES = {"": "", "default": "", "auto": "auto_broadcast"}


def _declared(
    name: str,
    shape: Any,
    dtype: str,
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Any = None,
) -> Buffer:
    """A buffer from the options of a declaration. Strings in strides and offset are new variables."""
    if buffer_type not in _TYPES:
        raise DeclarationError(f'buffer {name}: buffer_type {buffer_type!r} is not supported; it is "default" or "auto"')
    if data is not None and not isinstance(data, Var):
        raise DeclarationError(f"buffer {name}: data is a pointer variable, such as A.data, not {data!r}")
    extents = _extents(name, shape)
    kind = extents[0].dtype if extents else "int32"
    steps = [_variable_or(step, kind) for step in strides] if strides else None
    if steps and len(steps) == 1 < len(extents) and as_int(steps[0]) == 1:
        steps = None  # TVM's cache_index writes one stride of 1, whatever the rank
    offset = None if elem_offset is None else _variable_or(elem_offset, kind)
    held = None if data is None else data.type_annotation
    if held is not None and scope not in ("global", "", held.storage_scope):
        raise DeclarationError(f"buffer {name}: scope {scope!r}, but its data {data} is in {held.storage_scope!r}")
    alignment, factor = as_int(align) or 0, as_int(offset_factor) or 0
    return decl_buffer(extents, dtype, name or "buffer", data, steps, offset, scope, alignment if alignment > 0 else -1, factor,
        _TYPES[buffer_type], axis_separators,
    )  # fmt: skip


def _extents(name: str, shape: Any) -> list[PrimExpr]:
    """The extents of a shape, or the only one."""
    extents = [as_expr(extent) for extent in (shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,))]
    if any(not parse_dtype(extent.dtype).is_int or (isinstance(extent, IntImm) and extent.value < 0) for extent in extents):
        shown = ", ".join(map(str, extents))
        raise DeclarationError(f"buffer {name}: the extents of a shape are integers of at least 0, not ({shown})")
    return extents


def _variable_or(value: Any, dtype: str) -> PrimExpr:
    return Var(value, dtype) if isinstance(value, str) else as_expr(value)


def buffer(shape: Any, dtype: str = "float32", data: Any = None, *options: Any, **named: Any) -> Pending:
    """``T.Buffer(shape, dtype)``: a parameter's type, or with `data` another view of memory."""
    return Pending("T.Buffer", lambda name: Opened(_declared(name, shape, dtype, data, *options, **named)))


def alloc_buffer(context: Context, shape: Any, dtype: str = "float32", *options: Any, **named: Any) -> Pending:
    """A buffer that exists within the block around, or within the function."""

    def make(name: str) -> Opened:
        made = _declared(name, shape, dtype, *options, **named)
        (context.blocks[-1] if context.blocks else context.owner()).allocated.append(made)
        return Opened(made)

    return Pending("T.alloc_buffer", make)


def match_buffer(context: Context, param: Any, shape: Any = None, dtype: str | None = None, *options: Any, **named: Any) -> Pending:
    """The buffer behind a parameter, or one that stands for a box of another."""

    def make(name: str) -> Opened:
        if isinstance(param, (Access, BufferLoad)):
            return _match_region(context, name, param, shape, dtype, options, named)
        function = context.owner()
        if not isinstance(param, Var) or param not in function.params:
            raise DeclarationError("T.match_buffer takes a parameter of the function, or a region of a buffer such as A[0:16]")
        if param.dtype != "handle":
            raise DeclarationError(f"the parameter {param.name} is {param.dtype}; a buffer comes as a T.handle")
        if param in function.buffer_map:
            raise DeclarationError(f"the parameter {param.name} has a buffer already, {function.buffer_map[param].name}")
        if shape is None:
            raise DeclarationError(f"the buffer behind {param.name} needs a shape, as in T.match_buffer({param.name}, (16, 16))")
        made = function.buffer_map[param] = _declared(name, shape, dtype or "float32", *options, **named)
        return Opened(made)

    return Pending("T.match_buffer", make)


def _match_region(
    context: Context, name: str, param: Any, shape: Any, dtype: str | None, options: Sequence[Any], named: Mapping[str, Any]
) -> Opened:
    """In the lines with which a block begins a view of the block, else a statement."""
    source = as_region(param)
    extents = [r.extent for r in source.region] if shape is None else shape
    _check_box(name, source, extents if isinstance(extents, (list, tuple)) else (extents,))
    made = _declared(name, extents, dtype or source.buffer.dtype, *options, **named)
    # `begun`: views belong to the head of a block; further down the box may depend on what has been computed since.
    if context.blocks and not context.blocks[-1].begun:
        view = MatchBufferRegion(made, source)
        view.defines()  # which checks that the view fits the box
        context.blocks[-1].views.append(view)
        return Opened(made)
    return Opened(made, lambda body: BufferBind(made, source, body))


def _check_box(name: str, source: BufferRegion, shape: Sequence[Any]) -> None:
    """A view has the shape of its box, but for leading extents of 1 that it may leave out.

    Raises:
        DeclarationError: where extents are surely different.
    """
    box = [as_int(r.extent) for r in source.region]
    wanted = [as_int(extent) for extent in shape]
    missing = len(box) - len(wanted)
    kept = box[missing:] if missing > 0 else box
    if (
        missing < 0
        or any(extent not in (1, None) for extent in box[: max(missing, 0)])
        or any(None not in (a, b) and a != b for a, b in zip(kept, wanted, strict=True))
    ):
        shown = ", ".join("?" if extent is None else str(extent) for extent in box)
        raise DeclarationError(f"buffer {name} of shape ({', '.join(map(str, shape))}) can't stand for a box of ({shown}) elements")


def decl_buffer_statement(context: Context, shape: Any, dtype: str = "float32", data: Any = None, *options: Any, **named: Any) -> Pending:
    """A view of memory as a statement; without `data`, of fresh memory."""

    def make(name: str) -> Opened:
        made = _declared(name, shape, dtype, data, *options, **named)

        def declare(body: Stmt) -> Stmt:
            inner = DeclBuffer(made, body)
            return inner if data is not None else Allocate(made.data, dtype, made.shape, IntImm("bool", 1), inner)

        return Opened(made, declare)

    return Pending("T.decl_buffer", make)


BUFFERS: Mapping[str, Callable[..., Pending]] = {
    "alloc_buffer": alloc_buffer,
    "match_buffer": match_buffer,
    "decl_buffer": decl_buffer_statement,
}


def _vload(of: Buffer, indices: Any, dtype: str | None = None, predicate: Any = None) -> PrimExpr:
    """The load at `indices`; with a dtype of lanes, of as many elements along the last axis."""
    if predicate is None and dtype is not None:
        return of.vload([as_expr(index) for index in indices], dtype)
    return BufferLoad(of, _indices(indices), None if predicate is None else as_expr(predicate))


def _vstore(of: Buffer, indices: Any, value: Any, predicate: Any = None) -> Any:
    """The store at `indices`."""
    return store(of, _indices(indices), value, None if predicate is None else as_expr(predicate))


def _indices(items: Any) -> tuple[PrimExpr, ...]:
    return tuple(as_expr(item) for item in (items if isinstance(items, (list, tuple)) else (items,)))


def _access_ptr(of: Buffer, access_mask: Any, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None) -> Any:
    """The pointer to a part of the buffer, for a foreign function."""
    mask = access_mask if isinstance(access_mask, str) else int(access_mask)
    return of.access_ptr(mask, ptr_type, content_lanes, convert(offset), None if extent is None else convert(extent))


METHODS: Mapping[str, Callable[..., Any]] = {"vload": _vload, "vstore": _vstore, "access_ptr": _access_ptr, "scope": Buffer.scope}
FIELDS: Mapping[str, Callable[[Buffer], Any]] = {
    "data": lambda of: of.data,
    "shape": lambda of: of.shape,
    "strides": lambda of: of.strides,
    "elem_offset": lambda of: of.elem_offset,
    "dtype": lambda of: of.dtype,
    "name": lambda of: of.name,
}
