"""Passes as users see them: `tir.transform` and `transform`.

A pass is applied to an IRModule and returns one. The factory functions bear TVM's names; each makes the pass of that
name in `pipeline`, so single passes can be tried out by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, overload

from ..errors import LoweringError
from ..tir.function import IRModule, PrimFunc
from ..tir.stmt import AssertStmt, For, ForKind, Stmt
from .block_transform import CompactBufferAllocation as CompactBufferAllocation
from .block_transform import ConvertBlocksToOpaque as ConvertBlocksToOpaque
from .block_transform import LowerInitBlock as LowerInitBlock
from .block_transform import LowerMatchBuffer as LowerMatchBuffer
from .block_transform import LowerOpaqueBlock as LowerOpaqueBlock
from .block_transform import PlanAndUpdateBufferAllocationLocation as PlanAndUpdateBufferAllocationLocation
from .context import PassContext
from .passes import ModulePass, Pass, PassInfo, PrimFuncPass, run_pass
from .phase1.inject_prefetch import inject_prefetch
from .phase1.narrow_dtype import narrow_dtype
from .phase1.simplify import simplify
from .phase1.storage_flatten import storage_flatten
from .phase2.inject_double_buffer import inject_double_buffer
from .phase2.inject_virtual_thread import inject_virtual_thread
from .phase2.loop_partition import loop_partition
from .phase2.reduce_branching_through_overcompute import reduce_branching_through_overcompute
from .phase2.register_promotion import register_promotion
from .phase2.storage_rewrite import storage_rewrite
from .phase2.trim_no_ops import trim_no_ops
from .phase2.unroll_loop import unroll_loop
from .phase2.unroll_register_tile import unroll_register_tile
from .phase2.vectorize_loop import vectorize_loop
from .phase3.hoist_expression import hoist_expression
from .phase3.hoist_if_then_else import hoist_if_then_else
from .phase3.instrument_bound_checkers import instrument_bound_checkers
from .phase3.remove_no_op import remove_no_op
from .rebuild import map_stmt

_UserFunc = Callable[..., Any]


def _method(obj: Any, name: str) -> _UserFunc:
    """What to call of a decorated function, or of a decorated class: its method `name` on an instance."""
    if not isinstance(obj, type):
        return obj  # type: ignore[no-any-return]
    if not callable(getattr(obj, name, None)):
        raise LoweringError(f"the pass class {obj.__name__} needs a method {name}")
    return getattr(obj(), name)  # type: ignore[no-any-return]


class PassDecorator(Protocol):
    """`@decorator(opt_level=0)` on a function, or `decorator(function, opt_level=0)`."""

    @overload
    def __call__(
        self,
        pass_func: None = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Callable[[Any], Pass]: ...
    @overload
    def __call__(
        self,
        pass_func: _UserFunc | type,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Pass: ...


def _decorator(method: str, build: Callable[[str, int, tuple[str, ...], _UserFunc], Pass], summary: str) -> PassDecorator:
    """The decorator that makes passes of functions, or of classes with `method`."""

    def decorator(
        pass_func: Any = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Any:
        def make(func: Any) -> Pass:
            level, title = _checked_info(opt_level, name, func)
            return build(title, level, tuple(required or ()), _method(func, method))

        return make if pass_func is None else make(pass_func)

    decorator.__doc__ = f"""{summary}, or of a class with `{method}`; also as a decorator.

    Args:
        opt_level: contexts of a lower level leave the pass out. It has to be given.
        name: how contexts and instruments call the pass; by default the function's name.
        required: names of passes that `Sequential` runs before this one.

    Raises:
        LoweringError: if `opt_level` is missing; and when the pass runs, if it returns something else.
    """
    return decorator


def _checked_info(opt_level: int | None, name: str | None, func: Any) -> tuple[int, str]:
    title = str(name or getattr(func, "__name__", type(func).__name__))
    if opt_level is None:
        raise LoweringError(f"pass {title}: give an opt_level, as in @prim_func_pass(opt_level=0)")
    return opt_level, title


def _unused(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    return func


prim_func_pass = _decorator(
    "transform_function",
    lambda title, level, required, func: PrimFuncPass(title, _unused, level, required, pass_func=func),
    "Make a pass of a function `(func, mod, ctx) -> PrimFunc`",
)
module_pass = _decorator(
    "transform_module",
    lambda title, level, required, func: ModulePass(title, _unused, level, required, module_func=func),
    "Make a pass of a function `(mod, ctx) -> IRModule`",
)
prim_func_pass.__name__, module_pass.__name__ = "prim_func_pass", "module_pass"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Sequence(Pass):
    """Passes one after the other; each is enabled or not by itself."""

    passes: tuple[Pass, ...] = ()

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """`mod` through all passes, each after those that it requires."""
        for one in self.passes:
            if ctx.enables(one.name, one.opt_level):
                for needed in one.required:
                    mod = run_pass(_named(needed, one.name), mod, ctx)
                mod = run_pass(one, mod, ctx)
        return mod


def Sequential(
    passes: Sequence[Pass] | None = None,
    opt_level: int = 0,
    name: str = "sequential",
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Pass:
    """A pass that runs `passes` in order."""
    for one in passes or ():
        if not isinstance(one, Pass):
            raise LoweringError(f"Sequential takes passes, not {one!r}; decorate functions with @prim_func_pass or @module_pass")
    return _Sequence(name, _unused, opt_level, tuple(required or ()), passes=tuple(passes or ()))


def _named(name: str, user: str) -> Pass:
    factory = _BY_NAME.get(name.removeprefix("tir."))
    if factory is None:
        raise LoweringError(f"pass {user} requires {name!r}, which is none of {', '.join(sorted(_BY_NAME))}")
    return factory()


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass of a function from PrimFunc to PrimFunc."""
    return PrimFuncPass("tir.Apply", _unused, pass_func=lambda func, mod, ctx: ftransform(func))


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that keeps the functions for which `fcond` holds."""

    def keep(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule({var.name_hint: func for var, func in mod.functions.items() if fcond(func)}, mod.attrs)

    return ModulePass("tir.Filter", _unused, module_func=keep)


def ApplyPassToFunction(transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False) -> Pass:
    """`transform` on the functions whose names match a regular expression; the others stay."""

    def apply(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {var: func for var, func in mod.functions.items() if re.fullmatch(func_name_regex, var.name_hint)}
        if not chosen and error_if_no_function_matches_regex:
            names = ", ".join(var.name_hint for var in mod.functions)
            raise LoweringError(f"ApplyPassToFunction: no function matches {func_name_regex!r}; there are {names}")
        changed = run_pass(transform, IRModule({var.name_hint: func for var, func in chosen.items()}), ctx)
        return IRModule({var.name_hint: changed[var] if var in chosen else func for var, func in mod.functions.items()}, mod.attrs)

    return ModulePass(f"ApplyTo({func_name_regex})", _unused, module_func=apply)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module under a header."""

    def show(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"{header}\n{mod.script()}")
        return mod

    return ModulePass("PrintIR", _unused, module_func=show)


def StorageFlatten(cache_line_size: int = 64, create_bound_attribute: bool = False) -> Pass:
    """Every buffer with one dimension, BufferRealize as Allocate. Allocations are aligned to 64 bytes in any case."""
    return Pass("tir.StorageFlatten", storage_flatten)


def InjectPrefetch() -> Pass:
    """Scheduled prefetches as calls, one per cache line."""
    return Pass("tir.InjectPrefetch", inject_prefetch)


def FlattenBuffer() -> Pass:
    """As `StorageFlatten`."""
    return StorageFlatten()


def NarrowDataType(target_bits: int = 32) -> Pass:
    """Indices in `target_bits` bits where that is proved to be enough."""
    return Pass("tir.NarrowDataType", lambda func, ctx: narrow_dtype(func, ctx, target_bits))


def ForceNarrowIndexToInt32() -> Pass:
    """As `NarrowDataType(32)`: what can't be proved to fit stays wide."""
    return NarrowDataType(32)


def Simplify() -> Pass:
    """Simpler expressions, without guards and loops that decide nothing."""
    return Pass("tir.Simplify", simplify)


def TrimNoOps() -> Pass:
    """Trim reduction loops to the iterations that a condition lets do something."""
    return Pass("tir.TrimNoOps", trim_no_ops)


def ReduceBranchingThroughOvercompute() -> Pass:
    """Local tiles computed whole where that is safe, so that only what leaves them is guarded. For the end of phase 1."""
    return Pass("tir.ReduceBranchingThroughOvercompute", reduce_branching_through_overcompute)


def LoopPartition() -> Pass:
    """Loops cut at the borders of their guards."""
    return Pass("tir.LoopPartition", loop_partition)


def VectorizeLoop(enable_vectorize: bool = True) -> Pass:
    """VECTORIZED loops as vector code, or as serial loops."""
    if enable_vectorize:
        return Pass("tir.VectorizeLoop", vectorize_loop)
    return Pass("tir.VectorizeLoop", lambda func, ctx: vectorize_loop(func, PassContext(config={"tir.disable_vectorize": 1})))


def UnrollRegisterTile() -> Pass:
    """The loops of register tiles marked as unrolled."""
    return Pass("tir.UnrollRegisterTile", unroll_register_tile)


def UnrollLoop() -> Pass:
    """Unrolled loops expanded."""
    return Pass("tir.UnrollLoop", unroll_loop)


def RegisterPromotion() -> Pass:
    """Accumulators and small buffers in registers."""
    return Pass("tir.RegisterPromotion", register_promotion)


def InjectDoubleBuffer() -> Pass:
    """Double buffered stages filled one iteration ahead."""
    return Pass("tir.InjectDoubleBuffer", inject_double_buffer)


def InjectVirtualThread() -> Pass:
    """Virtual threads interleaved."""
    return Pass("tir.InjectVirtualThread", inject_virtual_thread)


def StorageRewrite() -> Pass:
    """Allocations hoisted out of serial loops, and shared."""
    return Pass("tir.StorageRewrite", storage_rewrite)


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """Invariant conditions outside their loops."""
    return Pass("tir.HoistIfThenElse", hoist_if_then_else)


def HoistExpression() -> Pass:
    """Invariant values in front of their loops."""
    return Pass("tir.HoistExpression", hoist_expression)


def RemoveNoOp() -> Pass:
    """No statements without effect."""
    return Pass("tir.RemoveNoOp", remove_no_op)


def InstrumentBoundCheckers() -> Pass:
    """Bounds asserted before every access, whatever the context says."""
    ctx = PassContext(config={"tir.instrument_bound_checkers": 1})
    return Pass("tir.InstrumentBoundCheckers", lambda func, _: instrument_bound_checkers(func, ctx))


def ConvertForLoopsToSerial() -> Pass:
    """Every parallel loop serial."""

    def serial(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, serial)
        return replace(result, kind=ForKind.SERIAL) if isinstance(result, For) and result.kind is ForKind.PARALLEL else result

    return Pass("tir.ConvertForLoopsToSerial", lambda func, ctx: func.with_body(serial(func.body)))


def SkipAssert() -> Pass:
    """No asserts."""

    def skip(stmt: Stmt) -> Stmt:
        return skip(stmt.body) if isinstance(stmt, AssertStmt) else map_stmt(stmt, skip)

    return Pass("tir.SkipAssert", lambda func, ctx: func.with_body(skip(func.body)))


_BY_NAME: dict[str, Callable[[], Pass]] = {
    factory.__name__: factory
    for factory in (
        StorageFlatten, FlattenBuffer, NarrowDataType, ForceNarrowIndexToInt32, Simplify, TrimNoOps, LoopPartition, VectorizeLoop,
        ReduceBranchingThroughOvercompute, InjectDoubleBuffer, InjectVirtualThread, UnrollRegisterTile, UnrollLoop, RegisterPromotion,
        StorageRewrite, HoistIfThenElse, HoistExpression, RemoveNoOp,
        LowerInitBlock, PlanAndUpdateBufferAllocationLocation, ConvertBlocksToOpaque, CompactBufferAllocation, LowerMatchBuffer,
        LowerOpaqueBlock, InstrumentBoundCheckers, ConvertForLoopsToSerial, SkipAssert, InjectPrefetch,
    )
}  # fmt: skip

__all__ = [
    "Apply", "ApplyPassToFunction", "Filter", "ModulePass", "Pass", "PassContext", "PassInfo", "PrimFuncPass", "PrintIR", "Sequential",
    "module_pass", "prim_func_pass", *_BY_NAME,
]  # fmt: skip
