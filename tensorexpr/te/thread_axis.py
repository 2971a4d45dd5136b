"""Thread axes, which loops are bound to."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, Range, Var
from ..tir.thread import COPROCESSOR_TAGS, is_thread_tag, thread_tags


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """An axis of threads for `s[C].bind(axis, thread_axis)`.

    Args:
        dom: the number of threads, (0, number), a `tir.Range`, or None for that of the loop that is bound. The tag may
            be given in its place: `thread_axis("vthread")`.
        tag: "vthread" or "cthread" for virtual threads, "blockIdx.x" or "threadIdx.x" (or .y, .z) for those of a device;
            "cop" for a coprocessor, which only attributes of an `ir_builder` can name.
        name: for printing; the tag by default.

    Raises:
        DeclarationError: without a tag, or with an unknown one, or with another kind of domain.
    """
    if isinstance(dom, str):
        dom, tag = None, tag or dom
    if not isinstance(tag, str) or not (is_thread_tag(tag) or tag in COPROCESSOR_TAGS):
        raise DeclarationError(f"thread_axis takes a tag of threads, not {tag!r}; tags: {thread_tags()}")
    return IterVar(_domain(dom), Var(name or tag, "int32"), IterVar.THREAD_INDEX, tag)


def _domain(dom: Any) -> Range | None:
    if dom is None or isinstance(dom, Range):
        return dom
    low, high = dom if isinstance(dom, (tuple, list)) and len(dom) == 2 else (0, dom)
    try:
        first, last = convert(low), convert(high)
        extent = last - first
    except Exception as error:
        raise DeclarationError(f"thread_axis takes its domain as a number, (0, number) or a tir.Range, not {dom!r}") from error
    if not parse_dtype(extent.dtype).is_int:
        raise DeclarationError(f"thread_axis takes its domain as a number, (0, number) or a tir.Range, not {dom!r}")
    return Range.from_min_extent(first, extent)
