"""The door of code generation: functions in, the text of one LLVM module and the functions' signatures out.

The two tables here say which function writes the code of which node.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..dataclass import dataclass, field, replace
from ..errors import CodegenError
from ..target import Target
from ..target.kinds import DEVICE_KINDS
from ..tir import expr, stmt
from ..tir.dtype import parse_dtype
from ..tir.expr import FloatImm, IntImm, PrimExpr, Var
from ..tir.function import IRModule, PrimFunc
from ..tir.printer.program import statement_lines
from ..tir.returned import returned_dtype, with_result
from . import arithmetic, conditionals, control, division, intrinsics, memory, nontemporal, parallel, storage, vectors
from .builder import LINE_LIMIT, ModuleText
from .casts import convert, emit_cast
from .context import ExprHandler, FunctionContext, ModuleContext, StmtHandler
from .debug_lines import DebugLines
from .function import finish
from .kernels import emit_kernel
from .platform import CPU, DEVICES
from .signature import BufferParam, Signature, describe, natural_alignment, shape_symbols
from .types import VALUE_TYPE, float_bits, identifier, int_constant, size_in_bytes

# Python frames per nested node are few, and a node this deep is possible: unrolled reductions nest to the left.
_RECURSION_LIMIT = 50_000


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """The text of an LLVM module, how to call each of its functions, the C functions that it calls by name, and LLVM IR to link."""

    text: str
    signatures: Mapping[str, Signature]
    externs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    shared: Mapping[str, int] = field(default_factory=dict)  # bytes by kernel, static
    dynamic: Mapping[str, int] = field(default_factory=dict)


def _int(ctx: FunctionContext, node: PrimExpr) -> str:
    assert isinstance(node, IntImm)
    return int_constant(node.value, node.dtype)


def _float(ctx: FunctionContext, node: PrimExpr) -> str:
    assert isinstance(node, FloatImm)
    return float_bits(float(node), node.dtype)


def _variable(ctx: FunctionContext, node: PrimExpr) -> str:
    assert isinstance(node, Var)
    return ctx.variable(node)


_EXPRESSIONS: dict[type, ExprHandler] = {
    expr.IntImm: _int,
    expr.FloatImm: _float,
    expr.Var: _variable,
    expr.SizeVar: _variable,
    **dict.fromkeys((expr.Add, expr.Sub, expr.Mul), arithmetic.emit_binary),
    **dict.fromkeys((expr.Div, expr.Mod, expr.FloorDiv, expr.FloorMod), division.emit_division),
    **dict.fromkeys((expr.Min, expr.Max), arithmetic.emit_extreme),
    **dict.fromkeys((expr.EQ, expr.NE, expr.LT, expr.LE, expr.GT, expr.GE), arithmetic.emit_compare),
    **dict.fromkeys((expr.And, expr.Or), conditionals.emit_logical),
    expr.Not: arithmetic.emit_not,
    expr.Select: conditionals.emit_select,
    expr.Cast: emit_cast,
    expr.BufferLoad: memory.emit_load,
    expr.Ramp: vectors.emit_ramp,
    expr.Broadcast: vectors.emit_broadcast,
    expr.Shuffle: vectors.emit_shuffle,
    expr.Let: control.emit_let,
    expr.Call: intrinsics.emit_call,
}

_STATEMENTS: dict[type, StmtHandler] = {
    stmt.For: parallel.emit_for,
    stmt.While: control.emit_while,
    stmt.BufferStore: memory.emit_store,
    stmt.Allocate: storage.emit_allocate,
    stmt.AllocateConst: storage.emit_constant,
    stmt.DeclBuffer: control.emit_body,
    stmt.AttrStmt: nontemporal.emit_attr,
    stmt.SeqStmt: control.emit_sequence,
    stmt.IfThenElse: control.emit_if,
    stmt.LetStmt: control.emit_let_stmt,
    stmt.AssertStmt: control.emit_assert,
    stmt.Evaluate: control.emit_evaluate,
    stmt.Prefetch: lambda emitter, node: None,  # a hint, which the caches of this target need not
}


def emit_module(funcs: Mapping[str, PrimFunc], target: Target, line_limit: int = LINE_LIMIT, debug: bool = False) -> EmittedModule:
    """Write the functions as one LLVM module. A function's symbol is its "global_symbol", else its key.

    With `debug`, instructions say which line of the module's script they come from, as lines of a file main.tir.

    Raises:
        CodegenError: for nodes that earlier phases should have removed, code beyond `line_limit` lines, or
            expressions nested too deeply.
    """
    platform = DEVICES.get(target.kind.name, CPU)
    names = {key: str(func.attrs.get("global_symbol", key)) for key, func in funcs.items()}
    if len(set(names.values())) < len(names):
        raise CodegenError(f"two functions of the module have one symbol: {', '.join(sorted(names.values()))}; set distinct global_symbol")
    module = ModuleContext(
        target,
        ModuleText(line_limit),
        _EXPRESSIONS,
        {**_STATEMENTS, **platform.statements},
        symbols=frozenset(names.values()),
        features=platform.features(target),
        calls=platform.calls,
        formulas=platform.formulas,
        index=platform.index,
        is_device=platform.is_device,
    )
    if debug:
        module.debug = lines = DebugLines(module.text, statement_lines(IRModule({name: func for name, func in funcs.items()})))
        module.statements = {kind: lines.traced(handler) for kind, handler in module.statements.items()}
    with deep_recursion():
        signatures = {names[key]: _emit_function(module, names[key], func) for key, func in funcs.items()}
    module.text.attributes.append(f"attributes #0 = {{ nounwind{_width(target)} }}")
    externs = tuple(sorted(module.externs - module.symbols))
    return EmittedModule(module.text.text(), signatures, externs, tuple(module.imports), module.shared, module.dynamic)


def _width(target: Target) -> str:
    """What functions of a target say of themselves.

    LLVM uses 512-bit registers only when told so; told of a smaller width (and that no more is legal) it splits vectors.

    Registers of SVE hold vectors of fixed lengths only when it knows how many times 128 bits they have.
    """
    if target.kind in DEVICE_KINDS:
        return ' "no-jump-tables"="true"'  # a table of labels is a read of memory by each thread, and a few comparisons cost less
    if target.sve_bits:
        return f" vscale_range({target.sve_bits // 128},{target.sve_bits // 128})"
    if "avx512f" not in target.features:
        return ""
    return f' "prefer-vector-width"="{target.vector_bits}"' + (' "min-legal-vector-width"="0"' if target.vector_bits < 512 else "")


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for the recursion over deep expressions, and an error in words where it doesn't suffice."""
    outer = sys.getrecursionlimit()
    sys.setrecursionlimit(max(outer, _RECURSION_LIMIT))
    try:
        yield
    except RecursionError:
        raise CodegenError("an expression or loop nest is too deep for code generation; unroll less, or split the statement") from None
    finally:
        sys.setrecursionlimit(outer)


def _emit_function(module: ModuleContext, name: str, func: PrimFunc) -> Signature:
    if module.is_device:
        return emit_kernel(module, name, func)
    returned = returned_dtype(func)
    if returned is not None:
        return replace(_emit_plain(module, name, with_result(func, returned)), returns=returned)
    return _emit_plain(module, name, func)


def _emit_plain(module: ModuleContext, name: str, func: PrimFunc) -> Signature:
    ctx = FunctionContext(module, name, noalias=bool(func.attrs.get("tir.noalias", False)))
    names = [f"%{ctx.text.fresh(identifier(var.name))}" for var in (*func.params, *shape_symbols(func))]
    types: list[str] = []
    for var, argument in zip((*func.params, *shape_symbols(func)), names, strict=True):
        buffer = func.buffer_map.get(var)
        if buffer is not None:
            ctx.bind(buffer.data, argument)
            ctx.alignments[buffer.data] = natural_alignment(buffer)
            types.append("ptr")
        elif var.dtype == "handle":
            ctx.bind(var, ctx.text.value(f"inttoptr i64 {argument} to ptr"))  # of any alignment: nobody has looked at it
            types.append("i64")
        else:
            types.append(_bind_scalar(ctx, var, argument))
    control.statement(ctx, func.body)
    # After the body, which has noted the arrays that it reads and writes.
    signature = describe(name, func, ctx.read_through, ctx.written_through)
    for number, param in enumerate(signature.params):
        if isinstance(param, BufferParam):
            types[number] += _promises(param, ctx.noalias)
    finish(ctx, [f"{kind} {argument}" for kind, argument in zip(types, names, strict=True)])
    return replace(signature, errors=tuple(ctx.errors))  # `finish` may add the last of them


def _promises(param: BufferParam, noalias: bool) -> str:
    """What the runtime has checked about an array."""
    words = ["noalias"] if noalias else []
    if not param.is_written:
        words.append("readonly")
    extents = [extent.value for extent in param.shape if isinstance(extent, IntImm)]
    # With strides the elements may lie apart, and the product says nothing of the bytes.
    if len(extents) == len(param.shape) and not param.strides:
        size = size_in_bytes(param.dtype)
        for extent in extents:
            size *= extent
        if size > 0:  # an empty array may have no address
            words += ["nonnull", f"dereferenceable({size})"]
    return "".join(f" {word}" for word in [*words, f"align {param.alignment}"])


def _bind_scalar(ctx: FunctionContext, var: Var, argument: str) -> str:
    """Bind a number's variable; the type of its argument. Integers come as i64, floats as double."""
    wanted = VALUE_TYPE[var.dtype]
    if parse_dtype(var.dtype).is_float:
        ctx.bind(var, convert(ctx, "float64", var.dtype, argument))
        return "double"
    if wanted == "i1":
        ctx.bind(var, ctx.text.value(f"icmp ne i64 {argument}, 0"))
    else:
        ctx.wide[var] = argument
        ctx.levels[var] = 0
    return "i64"
