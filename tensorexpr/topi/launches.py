"""Kernels of operators that write their own threads: where the current target is a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..target import Target
from ..te.thread_axis import thread_axis
from ..tir.arithmetic import const, convert, floordiv
from ..tir.expr import IterVar, PrimExpr, Range, Var
from ..tir.ir_builder import IRBuilder


def runs_on_gpu() -> bool:
    """Whether what is declared now will run on a GPU; without a target it gets loops, which schedules bind as they are."""
    target = Target.current()
    return target is not None and "gpu" in target.keys


@contextmanager
def launched(ib: IRBuilder, blocks: Any, threads: int) -> Iterator[tuple[PrimExpr, PrimExpr]]:
    """A kernel of so many blocks: gives the numbers of the block and of the thread in it."""
    number = convert(blocks)
    axis = Range.from_min_extent(const(0, number.dtype), number)
    block = IterVar(axis, Var("bx", number.dtype), IterVar.THREAD_INDEX, "blockIdx.x")  # as wide as what counts the blocks
    thread = thread_axis((0, threads), "threadIdx.x")
    with ib.new_scope():
        ib.scope_attr(block, "thread_extent", number)
        ib.scope_attr(thread, "thread_extent", threads)
        yield block.var, thread.var


def ceildiv(a: Any, b: Any) -> PrimExpr:
    """How many times b it takes to hold a."""
    return floordiv(a + (b - 1), b)


def power_of_two(number: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << max(0, number - 1).bit_length()
