"""Statements that surround what follows them, and those that stand alone: name -> builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import DeclarationError
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer, pointer_var
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, IterVar, Let, PointerType, PrimExpr, Range, Var
from ...tir.stmt import Allocate, AssertStmt, AttrStmt, BufferRealize, Evaluate, LetStmt
from ...tir.thread import VIRTUAL_TAGS, is_thread_tag, thread_tags
from .context import Context
from .values import Access, Builder, Number, Opened, Pending, as_condition, as_expr, as_region

_TRUE = IntImm("bool", 1)
_ITER_TYPES = (
    "DataPar", "ThreadIndex", "CommReduce", "Ordered", "DimInfo", "Unrolled", "Vectorized", "Parallelized", "Tensorized",
)  # fmt: skip


def allocate(extents: Any, dtype: str, scope: str = "global", condition: Any = None, annotations: Any = None) -> Pending:
    """Fresh memory for what follows; its name is the pointer."""
    sizes = tuple(map(as_expr, extents if isinstance(extents, (list, tuple)) else (extents,)))
    parse_dtype(dtype)
    holds = _TRUE if condition is None else as_condition(condition)

    def make(name: str) -> Opened:
        var = pointer_var(name or "buffer", dtype, scope or "global")
        return Opened(var, lambda body: Allocate(var, dtype, sizes, holds, body, FrozenMap(annotations)))

    return Pending("T.allocate", make)


def realize(region: Any, storage_scope: str = "", condition: Any = None, annotations: Any = None) -> Pending:
    """Storage of a box of a buffer for what follows."""
    if not isinstance(region, (Access, BufferLoad)):
        raise DeclarationError("T.realize takes a box of a buffer, such as A[0:16, 0:16]")
    box = as_region(region)
    if storage_scope not in ("", box.buffer.scope()):
        raise DeclarationError(f"buffer {box.buffer.name} is in {box.buffer.scope()!r}, realized in {storage_scope!r}; declare it there")
    holds = _TRUE if condition is None else as_condition(condition)
    notes = FrozenMap(annotations)
    return Pending("T.realize", lambda _: Opened(None, lambda body: BufferRealize(box.buffer, box.region, holds, body, notes)))


def attr(node: Any, attr_key: str, value: Any) -> Pending:
    """An attribute that holds for what follows."""
    subject = node if node is None or isinstance(node, (Buffer, IterVar, str, *Number)) else as_expr(node)
    worth = as_expr(value)
    return Pending("T.attr", lambda _: Opened(None, lambda body: AttrStmt(subject, attr_key, worth, body)))


def let_statement(value: Any, type_annotation: Any = None, *, var: Any = None) -> Pending:
    """``with T.LetStmt(value) as x:``; the annotation is that of a type, or of a pointer."""
    worth = as_expr(value)

    def make(name: str) -> Opened:
        bound = typed_variable(name, type_annotation, worth.dtype) if var is None else as_expr(var)
        if not isinstance(bound, Var):
            raise DeclarationError(f"T.LetStmt takes a variable, not {bound}")
        return Opened(bound, lambda body: LetStmt(bound, worth, body))

    return Pending("T.LetStmt", make)


def let(var: Any, value: Any) -> Pending:
    """``with T.let(x, value):`` for a variable that is declared already."""
    return let_statement(value, var=var)


def typed_variable(name: str, annotation: Any, dtype: str) -> Var:
    """A variable of an annotated type, such as T.int32 or T.handle("float32"); of `dtype` if there is no annotation."""
    if annotation is None:
        return Var(name or "v", dtype)
    if isinstance(annotation, Builder) and annotation.dtype:
        return Var(name or "v", annotation.dtype)
    if isinstance(annotation, PointerType):
        return Var(name or "v", "handle", annotation)
    made = annotation.make(name).value if isinstance(annotation, Pending) else None
    if isinstance(made, Var):
        return made
    raise DeclarationError("expected a type, such as T.int32 or T.handle")


def assertion(condition: Any, message: Any = "") -> Pending:
    """A condition that holds in what follows."""
    holds, text = as_condition(condition), as_expr(message)
    return Pending("T.Assert", lambda _: Opened(None, lambda body: AssertStmt(holds, text, body)))


def env_thread(context: Context, thread_tag: str, dtype: str = "int32") -> Pending:
    """The variable of a thread, for T.launch_thread."""
    _check_tag(thread_tag)

    def make(name: str) -> Opened:
        var = Var(name or thread_tag, dtype)
        context.threads[var] = thread_tag
        return Opened(var)

    return Pending("T.env_thread", make)


def launch_thread(context: Context, thread: Any, extent: Any) -> Pending:
    """What follows runs in `extent` threads; `thread` is a tag or what T.env_thread gave."""
    size = as_expr(extent)
    tag = context.threads.get(thread) if isinstance(thread, Var) else thread
    if not isinstance(tag, str):
        raise DeclarationError(f"T.launch_thread takes a tag, one of {thread_tags()}, or a variable of T.env_thread")
    _check_tag(tag)
    known: str = tag

    def make(name: str) -> Opened:
        var = thread if isinstance(thread, Var) else Var(name or known, size.dtype)
        axis = IterVar(None, var, IterVar.THREAD_INDEX, known)
        key = "virtual_thread" if known in VIRTUAL_TAGS else "thread_extent"
        return Opened(var, lambda body: AttrStmt(axis, key, size, body))

    return Pending("T.launch_thread", make)


def _check_tag(tag: str) -> None:
    if not is_thread_tag(tag):
        raise DeclarationError(f"{tag!r} is no thread; threads: {thread_tags()}")


def iter_var(var: Any, dom: Any, iter_type: str, thread_tag: str = "") -> IterVar:
    """An axis as a value, for T.attr."""
    bound = as_expr(var)
    if iter_type not in _ITER_TYPES or not isinstance(bound, Var):
        raise DeclarationError(f"T.iter_var takes a variable, its range and one of {', '.join(_ITER_TYPES)}, not {iter_type!r}")
    return IterVar(dom, bound, _ITER_TYPES.index(iter_type), thread_tag)


def range_value(first: Any, extent: Any) -> Range:
    """``T.Range(first, extent)``: the range of an axis as a value."""
    return Range(as_expr(first), as_expr(extent))


def evaluate(value: Any) -> Evaluate:
    """A value computed for its effect."""
    return Evaluate(as_expr(value))


def func_attr(context: Context, attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    if not isinstance(attrs, Mapping) or not all(isinstance(key, str) for key in attrs):
        raise DeclarationError('T.func_attr takes a dict with strings for keys, as {"tir.noalias": True}')
    context.owner().attrs.update(attrs)


def let_expression(body: Any, where: Mapping[Var, Any]) -> PrimExpr:
    """``T.Let(body, where={x: value})``; the parser has declared the variables."""
    expr = as_expr(body)
    for var, value in reversed(list(where.items())):
        expr = Let(var, as_expr(value), expr)
    return expr


FRAMES: Mapping[str, Callable[..., Any]] = {
    "allocate": allocate,
    "realize": realize,
    "attr": attr,
    "LetStmt": let_statement,
    "let": let,
    "Assert": assertion,
    "iter_var": iter_var,
    "Range": range_value,
    "evaluate": evaluate,
}
FRAMES_IN_CONTEXT: Mapping[str, Callable[..., Any]] = {
    "env_thread": env_thread,
    "launch_thread": launch_thread,
    "func_attr": func_attr,
}
