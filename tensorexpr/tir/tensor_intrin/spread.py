"""Matrices spread over the registers of a warp: what `mma` of NVIDIA and the matrix cores of AMD work on.

A buffer of scope "warp" holds a tile: element (i, j) is the register `place(i, j)[1]` of the thread `place(i, j)[0]`. What such
units compute differs in the places alone, so it is described here, once; `mma` and `mfma` say how they do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..expr import IntImm, IterVar, PrimExpr, Var
from ..function import PrimFunc
from ..stmt import For, ForKind, Stmt
from .parts import function, over, reduced, spatial

Place = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Spread:
    """How a tile of `shape` lies in the `registers` of each of `threads`."""

    shape: tuple[int, int]
    threads: int
    registers: int
    place: Place

    def transposed(self) -> Spread:
        """The same registers for the tile's transpose."""
        return Spread((self.shape[1], self.shape[0]), self.threads, self.registers, lambda i, j: self.place(j, i))

    def buffer(self, name: str, dtype: str, offset_factor: int = 1) -> Buffer:
        """The registers."""
        return decl_buffer((self.threads, self.registers), dtype, name, scope="warp", offset_factor=offset_factor)


def strided(name: str, shape: tuple[int, int], dtype: str, scope: str, offset_factor: int = 1) -> Buffer:
    """A tile of a larger matrix in memory, with its strides."""
    strides = [Var(f"{name}_s{d}", "int32") for d in range(2)]
    return decl_buffer(shape, dtype, name, strides=strides, scope=scope, offset_factor=offset_factor)


def filled(spread: Spread, warp: Buffer) -> PrimFunc:
    """Description: zeros in all registers."""
    axes = spatial(i=spread.shape[0], j=spread.shape[1])
    return function([warp], [], [warp], over(axes, "fill", lambda i, j: (warp, spread.place(i, j), const(0, warp.dtype)), lambda i, j: []))


def loaded(spread: Spread, warp: Buffer, memory: Buffer) -> PrimFunc:
    """Description: registers from a tile in memory."""
    axes = spatial(i=spread.shape[0], j=spread.shape[1])
    body = over(axes, "load", lambda i, j: (warp, spread.place(i, j), memory[i, j]), lambda i, j: [(memory, (i, j))])
    return function([warp, memory], [memory], [warp], body)


def stored(spread: Spread, warp: Buffer, memory: Buffer) -> PrimFunc:
    """Description: registers to a tile in memory."""
    axes = spatial(i=spread.shape[0], j=spread.shape[1])
    body = over(axes, "store", lambda i, j: (memory, (i, j), warp[spread.place(i, j)]), lambda i, j: [(warp, spread.place(i, j))])
    return function([warp, memory], [warp], [memory], body)


def multiplied(spreads: tuple[Spread, Spread, Spread], buffers: tuple[Buffer, Buffer, Buffer]) -> PrimFunc:
    """Description: C += A * B, in the dtype of C."""
    (left, right, total), (a, b, c) = spreads, buffers

    def made(i: Var, j: Var, k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        # Widened first: a product of two int8 has 16 bits.
        product = a[left.place(i, k)].astype(c.dtype) * b[right.place(k, j)].astype(c.dtype)
        return c, total.place(i, j), c[total.place(i, j)] + product

    axes = [*spatial(i=total.shape[0], j=total.shape[1]), *reduced(k=left.shape[1])]
    body = over(axes, "C", made, lambda i, j, k: [(c, total.place(i, j)), (a, left.place(i, k)), (b, right.place(k, j))])
    return function([a, b, c], [c, a, b], [c], body)


def per_thread(threads: int, body: Callable[[Var], Stmt]) -> Stmt:
    """What each thread of a warp does."""
    thread = Var("tx", "int32")
    axis = IterVar(None, Var("threadIdx.x", "int32"), IterVar.THREAD_INDEX, "threadIdx.x")
    return For(thread, IntImm("int32", 0), IntImm("int32", threads), ForKind.THREAD_BINDING, body(thread), thread_binding=axis)


def per_register(registers: int, body: Callable[[Var], Stmt]) -> Stmt:
    """What a thread does with each of its registers."""
    register = Var("local_id", "int32")
    return For(register, IntImm("int32", 0), IntImm("int32", registers), ForKind.SERIAL, body(register))
