"""Hand-built functions, and the check that a pass kept what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass
from tensorexpr.lower.pipeline import PHASES
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.lower.specs import check_module
from tensorexpr.tir.arithmetic import convert
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import Buffer, decl_buffer, pointer_var
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.intrin import likely
from tensorexpr.tir.stmt import Allocate, BufferRealize, BufferStore, For, ForKind, IfThenElse, Stmt, seq

SERIAL, PARALLEL, VECTORIZED, UNROLLED = ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED
TRUE = IntImm("bool", 1)
Body = Callable[..., Stmt]


def loop(name: str, extent: Any, body: Body, kind: ForKind = SERIAL, low: Any = 0, dtype: str = "int32", **pragmas: Any) -> For:
    """for name in [low, low + extent): body(name)."""
    var = Var(name, dtype)
    annotations = FrozenMap({f"pragma_{key}": value for key, value in pragmas.items()})
    return For(var, convert(low, dtype), convert(extent, dtype), kind, body(var), annotations=annotations)


def vectorized(name: str, extent: Any, body: Body) -> For:
    """A vector loop."""
    return loop(name, extent, body, VECTORIZED)


def unrolled(name: str, extent: Any, body: Body) -> For:
    """An unrolled loop."""
    return loop(name, extent, body, UNROLLED)


def parallel(name: str, extent: Any, body: Body) -> For:
    """A parallel loop."""
    return loop(name, extent, body, PARALLEL)


def threads(name: str, extent: Any, body: Body, tag: str = "vthread") -> For:
    """A loop over threads."""
    bound = IterVar(None, Var(name), IterVar.THREAD_INDEX, tag)
    return replace(loop(name, extent, body, ForKind.THREAD_BINDING), thread_binding=bound)


def store(buffer: Buffer, value: Any, *indices: Any) -> BufferStore:
    """buffer[indices] = value."""
    return BufferStore(
        buffer, convert(value, buffer.dtype) if isinstance(value, (int, float)) else value, tuple(convert(i) for i in indices)
    )


def load(buffer: Buffer, *indices: Any) -> PrimExpr:
    """buffer[indices]."""
    return BufferLoad(buffer, tuple(convert(i) for i in indices))


def guard(condition: Any, body: Stmt, hint: bool = True) -> IfThenElse:
    """if likely(condition): body."""
    return IfThenElse(likely(condition) if hint else convert(condition), body)


def allocate(name: str, size: int, body: Callable[[Buffer], Stmt], dtype: str = "float32", scope: str = "global") -> Allocate:
    """Flat storage of `size` elements for body(buffer)."""
    buffer = flat(name, size, dtype, scope)
    return Allocate(buffer.data, dtype, (IntImm("int32", size),), TRUE, body(buffer))


def realize(
    name: str, bounds: Sequence[tuple[Any, Any]], body: Callable[[Buffer], Stmt], shape: Sequence[Any] | None = None
) -> BufferRealize:
    """Multi-dimensional storage of the box `bounds` for body(buffer)."""
    buffer = decl_buffer(tuple(shape or (e for _, e in bounds)), "float32", name)
    ranges = tuple(Range.from_min_extent(convert(low), convert(extent)) for low, extent in bounds)
    return BufferRealize(buffer, ranges, TRUE, body(buffer))


def flat(name: str, size: Any, dtype: str = "float32", scope: str = "global") -> Buffer:
    """A one-dimensional buffer."""
    return decl_buffer((size,), dtype, name, data=pointer_var(name, dtype, scope))


def func(body: Stmt, *params: Buffer | Var, **attrs: Any) -> PrimFunc:
    """A function of buffers and scalars."""
    handles = {p: Var(p.name, "handle") for p in params if isinstance(p, Buffer)}
    buffer_map = {handle: buffer for buffer, handle in handles.items()}
    names = {"global_symbol": "main", "tir.noalias": True, **attrs}
    return PrimFunc(tuple(handles[p] if isinstance(p, Buffer) else p for p in params), body, None, buffer_map, FrozenMap(names))


def matmul(m: int, n: int, k: int, mr: int, nr: int, lanes: int, pragma: int = 0) -> PrimFunc:
    """C = A @ B in flat buffers, with a register tile of mr x nr under the reduction."""
    a, b, c = flat("A", m * k), flat("B", k * n), flat("C", m * n)

    def tile(io: Var, jo: Var) -> Stmt:
        def at(i: PrimExpr, j: PrimExpr, v: PrimExpr) -> PrimExpr:
            return (io * mr + i) * n + jo * nr + j * lanes + v

        def over(body: Callable[..., Stmt]) -> Stmt:
            return loop("i", mr, lambda i: loop("j", nr // lanes, lambda j: vectorized("v", lanes, lambda v: body(i, j, v))))

        init = over(lambda i, j, v: store(c, 0.0, at(i, j, v)))

        def update(kk: Var) -> Stmt:
            def one(i: Var, j: Var, v: Var) -> Stmt:
                product = load(a, (io * mr + i) * k + kk) * load(b, kk * n + jo * nr + j * lanes + v)
                return store(c, load(c, at(i, j, v)) + product, at(i, j, v))

            return over(one)

        reduction = loop("k", k, update, auto_unroll_max_step=pragma) if pragma else loop("k", k, update)
        return seq(init, reduction)

    body = parallel("jo", n // nr, lambda jo: loop("io", m // mr, lambda io: tile(io, jo)))
    return func(body, a, b, c)


def arrays(function: PrimFunc, seed: int = 0) -> list[Any]:
    """Random arguments for all parameters of constant shape; small integers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    result: list[Any] = []
    for param in function.params:
        buffer = function.buffer_map[param]
        shape = tuple(int(extent) for extent in buffer.shape)  # type: ignore[call-overload]
        result.append(rng.integers(-8, 9, shape).astype(to_numpy(buffer.dtype)))
    return result


def _copy(array: Any) -> Any:
    """A copy with the same strides."""
    span = (
        1 + sum((extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)) // array.itemsize if array.size else 0
    )
    result = np.lib.stride_tricks.as_strided(np.zeros(span, array.dtype), array.shape, array.strides)
    result[...] = array
    return result


def run(function: PrimFunc, args: Sequence[Any]) -> list[Any]:
    """What the arguments hold after the function ran on copies of them."""
    copies = [_copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    interpret(function, copies)
    return copies


def check_kept(before: PrimFunc, after: PrimFunc, args: Sequence[Any] | None = None, phase: int | None = None) -> None:
    """Both functions compute the same, and the new one is well formed."""
    check_module(IRModule.from_expr(after), "the pass", phase, by_user=False)
    given = arrays(before) if args is None else args
    for wanted, found in zip(run(before, given), run(after, given), strict=True):
        np.testing.assert_array_equal(wanted, found)


def applied(
    one: Callable[[PrimFunc, PassContext], PrimFunc],
    function: PrimFunc,
    args: Sequence[Any] | None = None,
    config: dict[str, Any] | None = None,
) -> PrimFunc:
    """The function after a pass, checked to compute what it did."""
    with PassContext(config=config) as ctx:
        result = one(function, ctx)
    check_kept(function, result, args)
    return result


def statements(function: PrimFunc, *kinds: type[Stmt]) -> list[Any]:
    """The statements of some kinds, in program order."""
    return [stmt for stmt in walk_statements(function.body) if isinstance(stmt, kinds)]


def loops(function: PrimFunc) -> list[str]:
    """Every loop as text, such as "i.o 0:4" or "p 0:2 PARALLEL"."""
    result = []
    for stmt in statements(function, For):
        kind = "" if stmt.kind is SERIAL else f" {stmt.kind.name}"
        result.append(f"{stmt.loop_var.name} {stmt.min}:{stmt.min + stmt.extent}{kind}")
    return result


def stores(function: PrimFunc) -> list[str]:
    """Every store as text."""
    return [str(stmt).strip().splitlines()[-1].strip() for stmt in statements(function, BufferStore)]


def pipeline_pass(name: str) -> Pass:
    """The pass of the pipeline of that name; one called by name may work on other programs."""
    return next(one for passes in PHASES.values() for one in passes if one.name == f"tir.{name}")
