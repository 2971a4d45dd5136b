"""The headers of `for`: name -> builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir.attrs import FrozenMap
from ...tir.expr import IterVar, Var
from ...tir.stmt import For, ForKind, Stmt
from ...tir.thread import is_thread_tag, thread_tags
from .values import Loops, LoopSpec, span


def _loop(kind: ForKind, start: Any, stop: Any, annotations: Any, thread: str | None = None) -> Loops:
    low, extent = span(0, start) if stop is None else span(start, stop)
    return Loops((LoopSpec(low, extent, kind, thread, FrozenMap(annotations)),))


def _of_kind(kind: ForKind) -> Callable[..., Loops]:
    def build(start: Any, stop: Any = None, *, annotations: Any = None) -> Loops:
        return _loop(kind, start, stop, annotations)

    return build


def _range(start: Any, stop: Any = None, step: Any = 1) -> Loops:
    if step != 1:
        raise DeclarationError(f"a loop has steps of 1, not {step}; loop over range(extent) and multiply the index")
    return _loop(ForKind.SERIAL, start, stop, None)


def _thread_binding(start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None) -> Loops:
    # T.thread_binding(32, "threadIdx.x"): the tag by position, in place of an end.
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    if not isinstance(thread, str) or not is_thread_tag(thread):
        raise DeclarationError(f'T.thread_binding takes thread="...", one of {thread_tags()}, not {thread!r}')
    return _loop(ForKind.THREAD_BINDING, start, stop, annotations, thread)


def _grid(*extents: Any) -> Loops:
    if not extents:
        raise DeclarationError("T.grid takes one extent or more, as in T.grid(128, 128)")
    return Loops(tuple(spec for extent in extents for spec in _loop(ForKind.SERIAL, *_bounds(extent), None).specs))


def _bounds(extent: Any) -> tuple[Any, Any]:
    return (extent[0], extent[1]) if isinstance(extent, tuple) and len(extent) == 2 else (extent, None)


def loop_nest(variables: Sequence[Var], specs: Sequence[LoopSpec], body: Stmt) -> Stmt:
    """The loops of one header around `body`."""
    for var, spec in zip(reversed(variables), reversed(specs), strict=True):
        axis = None
        if spec.kind is ForKind.THREAD_BINDING:
            # The thread's own variable: two loops bound to one tag have one each, and lowering joins them by the tag.
            axis = IterVar(None, Var(spec.thread or "", var.dtype), IterVar.THREAD_INDEX, spec.thread or "")
        body = For(var, spec.min, spec.extent, spec.kind, body, axis, spec.annotations)
    return body


range_loop = _range
LOOPS: Mapping[str, Callable[..., Loops]] = {
    "serial": _of_kind(ForKind.SERIAL),
    "parallel": _of_kind(ForKind.PARALLEL),
    "vectorized": _of_kind(ForKind.VECTORIZED),
    "unroll": _of_kind(ForKind.UNROLLED),
    "thread_binding": _thread_binding,
    "grid": _grid,
}
