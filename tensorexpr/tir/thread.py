"""Thread axes: the tags that exist, and which of them are virtual."""

from __future__ import annotations

from .stmt import For, ForKind, Stmt

HARDWARE_TAGS: tuple[str, ...] = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
"""Dimensions of a grid of threads, as devices launch them."""

MAX_THREADS = 1024
"""The threads of a block, at most, on every GPU that says nothing else."""

VIRTUAL_TAGS: tuple[str, ...] = ("vthread", "vthread.x", "vthread.y", "vthread.z", "cthread")
"""Threads that lowering interleaves in one thread of control."""


COPROCESSOR_TAGS: tuple[str, ...] = ("cop", "pipeline")
"""Units of an accelerator. Attributes of statements may name an axis of these; loops can't be bound to one."""


def is_thread_tag(tag: str) -> bool:
    """True for the tags that a loop can be bound to."""
    return tag in HARDWARE_TAGS or tag in VIRTUAL_TAGS


def thread_tags() -> str:
    """All tags, for messages."""
    return "blockIdx.x, .y, .z, threadIdx.x, .y, .z, vthread, cthread"


def bound_tag(stmt: Stmt) -> str | None:
    """The tag of a loop over threads, or None for other statements."""
    if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING and stmt.thread_binding is not None:
        return stmt.thread_binding.thread_tag
    return None
