"""Statements that surround what follows them, and those that stand alone: name -> builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from ...errors import DeclarationError
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer, BufferRegion, pointer_var
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, Call, CommReducer, IntImm, IterVar, Let, PointerType, PrimExpr, Range, StringImm, Var
from ...tir.stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    Evaluate,
    IfThenElse,
    LetStmt,
    Prefetch,
    Stmt,
    While,
)
from ...tir.thread import VIRTUAL_TAGS, is_thread_tag, thread_tags
from .context import Context
from .stores import store
from .values import Access, Bounds, Builder, Number, Opened, Pending, as_condition, as_expr, as_region, span

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
        var = pointer_var(name or "v", dtype, scope or "global")
        return Opened(var, lambda body: Allocate(var, dtype, sizes, holds, body, FrozenMap(annotations)))

    return Pending("T.allocate", make)


def allocate_const(data: Any, dtype: str, extents: Any, annotations: Any = None) -> Pending:
    """Constants for what follows; its name is the pointer. `data` are the elements, or the number of an array of the module."""
    sizes = tuple(map(as_expr, extents if isinstance(extents, (list, tuple)) else (extents,)))

    def make(name: str) -> Opened:
        var = pointer_var(name or "v", dtype, "global")
        return Opened(var, lambda body: AllocateConst(var, dtype, sizes, data, body, FrozenMap(annotations)))

    return Pending("T.allocate_const", make)


def realize(region: Any, storage_scope: str = "", condition: Any = None, annotations: Any = None) -> Pending:
    """Storage of a box of a buffer for what follows."""
    if not isinstance(region, (Access, BufferLoad, BufferRegion)):
        raise DeclarationError("T.realize takes a box of a buffer, such as A[0:16, 0:16]")
    box = as_region(region)
    holds = _TRUE if condition is None else as_condition(condition)
    notes = FrozenMap(annotations)

    def around(body: Stmt) -> Stmt:
        made = BufferRealize(box.buffer, box.region, holds, body, notes)
        # A scope that the buffer has already isn't said twice, so that what is printed reads back as it was.
        if storage_scope in ("", box.buffer.scope()):
            return made
        return AttrStmt(box.buffer, "realize_scope", StringImm(storage_scope), made)

    return Pending("T.realize", lambda _: Opened(None, around))


def attr(node: Any, attr_key: str, value: Any) -> Pending:
    """An attribute that holds for what follows."""
    plain = node is None or isinstance(node, (Buffer, IterVar, CommReducer, Target, list, tuple, Mapping, str, *Number))
    subject = node if plain else as_expr(node)
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


def while_loop(condition: Any) -> Pending:
    """``with T.While(condition):`` what follows runs as long as the condition holds."""
    holds = as_condition(condition)
    return Pending("T.While", lambda _: Opened(None, lambda body: While(holds, body)), with_only=True)


def if_frame(context: Context, condition: Any) -> Pending:
    """``with T.If(condition):`` around ``with T.Then():`` and ``with T.Else():``."""
    holds = as_condition(condition)

    def make(_: str) -> Opened:
        arms: dict[str, Stmt] = {}
        # T.If may stand in an arm of another one: arms that open from here on belong to the last
        context.arms.append(arms)

        def close(body: Stmt) -> Stmt:
            context.arms.pop()
            # Arms give None and leave nothing; anything else in the body is a statement of nobody's.
            if body is not NOP:
                raise DeclarationError("what belongs to T.If stands in `with T.Then():` or `with T.Else():`")
            if "T.Then" not in arms:
                raise DeclarationError("T.If needs a `with T.Then():`")
            return IfThenElse(holds, arms["T.Then"], arms.get("T.Else"))

        return Opened(None, close)

    return Pending("T.If", make, with_only=True)


def _arm(what: str) -> Callable[[Context], Pending]:
    def build(context: Context) -> Pending:
        """One arm of T.If."""

        def close(body: Stmt) -> None:
            if not context.arms:
                raise DeclarationError(f"{what} stands outside of `with T.If(condition):`")
            if what in context.arms[-1]:
                raise DeclarationError(f"T.If has one {what}, and this is the second")
            context.arms[-1][what] = body

        return Pending(what, lambda _: Opened(None, close), with_only=True)

    return build


def _bounds(place: slice, extent: PrimExpr | None) -> Bounds:
    step = 1 if place.step is None else as_int(place.step)
    if step is None or step < 1:
        raise DeclarationError("the step of a slice is a positive constant; for another one write T.Ramp(first, step, lanes)")
    return Bounds(0 if place.start is None else place.start, extent if place.stop is None else place.stop, step)


def buffer_store(buffer: Buffer, value: Any, indices: Any, predicate: Any = None) -> Stmt:
    """``T.buffer_store(A, value, [i, j])``: the statement A[i, j] = value."""
    places = indices if isinstance(indices, (list, tuple)) else (indices,)
    bounds = (_bounds(place, extent) if isinstance(place, slice) else place for place, extent in zip_longest(places, buffer.shape))
    access = Access(buffer, tuple(bounds)[: len(places)])
    return store(buffer, access.indices(), value, None if predicate is None else as_expr(predicate))


def prefetch(*args: Any) -> Stmt | PrimExpr:
    """``T.prefetch(A, [T.Range(0, 64)])``: a box of a buffer is brought near; of an address and flags, the call that does it."""
    if args and isinstance(args[0], Buffer):
        (buffer, box), ends = args, [r if isinstance(r, Range) else range_value(*r) for r in args[1]]
        if len(box) != len(buffer.shape):
            raise DeclarationError(f"T.prefetch takes a range for each dimension of {buffer.name}, {len(buffer.shape)}, not {len(box)}")
        return Prefetch(buffer, tuple(ends))
    return Call("int32", "tir.prefetch", tuple(map(as_expr, args)))


def target(target_config: Any, host: Any = None) -> Target:
    """What code is made for, as an attribute: a kind, a line of options, or a dict of them."""
    config = dict(target_config) if isinstance(target_config, Mapping) else target_config
    return Target(config, host)


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
        # `var` is what the body uses; the tag is what says that two launches are one dimension of threads.
        axis = IterVar(Range.from_min_extent(IntImm(size.dtype, 0), size), var, IterVar.THREAD_INDEX, known)
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


def range_value(begin: Any, end: Any = None) -> Range:
    """``T.Range(begin, end)``: the range of an axis as a value; of one argument it begins at 0."""
    return Range.from_min_extent(*(span(0, begin) if end is None else span(begin, end)))


def evaluate(value: Any) -> Evaluate:
    """A value computed for its effect."""
    return Evaluate(as_expr(value))


def func_attr(context: Context, attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    if not isinstance(attrs, Mapping) or not all(isinstance(key, str) for key in attrs):
        raise DeclarationError('T.func_attr takes a dict with strings for keys, as {"tir.noalias": True}')
    function = context.owner()
    if function.private and "global_symbol" in attrs:
        raise DeclarationError("a private function has no global_symbol; leave out private=True or the attribute")
    if function.stated:
        raise DeclarationError("the attributes of a function are stated twice; write them in one dict")
    function.stated = True
    function.attrs.update(attrs)


def let_expression(body: Any, where: Mapping[Var, Any]) -> PrimExpr:
    """``T.Let(body, where={x: value})``; the parser has declared the variables."""
    expr = as_expr(body)
    # The first is outermost, as the printer lists them.
    for var, value in reversed(list(where.items())):
        expr = Let(var, as_expr(value), expr)
    return expr


FRAMES: Mapping[str, Callable[..., Any]] = {
    "allocate": allocate,
    "allocate_const": allocate_const,
    "realize": realize,
    "attr": attr,
    "LetStmt": let_statement,
    "let": let,
    "Assert": assertion,
    "iter_var": iter_var,
    "Range": range_value,
    "evaluate": evaluate,
    "While": while_loop,
    "buffer_store": buffer_store,
    "prefetch": prefetch,
    "target": target,
}
FRAMES_IN_CONTEXT: Mapping[str, Callable[..., Any]] = {
    "env_thread": env_thread,
    "launch_thread": launch_thread,
    "func_attr": func_attr,
    "If": if_frame,
    "Then": _arm("T.Then"),
    "Else": _arm("T.Else"),
}
