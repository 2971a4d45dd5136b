"""Functions made from hand-written LLVM IR, so that the runtime is tested without the compiler above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tensorexpr.codegen.signature import BufferParam, Param, ScalarParam, Signature
from tensorexpr.runtime import engine
from tensorexpr.runtime.code import CompiledCode
from tensorexpr.runtime.entries import argument_types, entries_text
from tensorexpr.runtime.module import Module
from tensorexpr.target import Target
from tensorexpr.tir.dtype import parse_dtype
from tensorexpr.tir.expr import IntImm, PrimExpr, Var

Extent: TypeAlias = "int | PrimExpr"


def buffer(
    name: str,
    shape: Sequence[Extent],
    dtype: str = "float32",
    *,
    written: bool = False,
    strides: Sequence[Extent] = (),
    alignment: int | None = None,
    offset: Extent = 0,
) -> BufferParam:
    """A buffer parameter with integers or expressions as extents."""
    natural = parse_dtype(dtype).itemsize
    return BufferParam(name, dtype, _exprs(shape), _exprs(strides), _exprs([offset])[0], alignment or natural, not written, written)


def scalar(name: str, dtype: str) -> ScalarParam:
    """A scalar parameter with a variable of its own."""
    return ScalarParam(name, dtype, Var(name, dtype))


def signature(*params: Param, symbols: Sequence[Var] = (), name: str = "f", errors: Sequence[str] = ()) -> Signature:
    """A signature of the given parameters."""
    return Signature(name, params, tuple(symbols), tuple(errors))


def _exprs(values: Sequence[Extent]) -> tuple[PrimExpr, ...]:
    return tuple(IntImm("int32", value) if isinstance(value, int) else value for value in values)


def module_of(described: Signature, body: str = "ret i32 0", declarations: str = "", opt_level: int = 0) -> Module:
    """A module with one function; its arguments are called %0, %1, ..."""
    types = ", ".join(argument_types(described))
    text = f"{declarations}\ndefine i32 @{described.name}({types}) {{\n{body}\n}}\n{entries_text([described])}"
    target = Target("llvm")
    data = engine.compile_text(text, target, opt_level).data
    return Module(CompiledCode(text, data, {described.name: described}, target, opt_level))
