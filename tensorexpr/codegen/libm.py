"""The C library's functions on vectors, lane by lane, in functions that a module holds once each."""

from __future__ import annotations

from ..errors import CodegenError
from .builder import FunctionText
from .context import FunctionContext
from .lanes import Lanes
from .types import symbol, vector_of


def c_name(function: str, kind: str) -> str:
    """The name of a function in C: `expf` on floats."""
    return f"{function}f" if kind == "float" else function


def by_lane(ctx: FunctionContext, function: str, kind: str, lanes: int, values: list[str]) -> str:
    """The C function `function` of values of the LLVM scalar type `kind`, in every lane.

    Raises:
        CodegenError: on a device, which has no C library.
    """
    if ctx.module.is_device:
        wanted = "compute in float32, which has a formula of it" if kind == "double" else "make it of exp, log and the like"
        raise CodegenError(f"In {ctx.name}: {function} is a function of the C library, which a device hasn't; {wanted}")
    # memory(none): nobody looks at errno, so equal calls may be merged and unused ones dropped.
    called = ctx.module.declare(function, kind, *[kind] * len(values), attributes=" nounwind willreturn memory(none)")
    typed = ", ".join(f"{vector_of(kind, lanes)} {value}" for value in values)
    if lanes == 1:
        return ctx.text.value(f"call {kind} {called}({typed})")
    return ctx.text.value(f"call {vector_of(kind, lanes)} {_lane_function(ctx, function, called, kind, lanes, len(values))}({typed})")


def _lane_function(ctx: FunctionContext, function: str, called: str, kind: str, lanes: int, arity: int) -> str:
    """The module's function that applies a C function to each lane; written on first use."""
    name = symbol(f"each.{function}.v{lanes}")
    if name in ctx.module.lane_functions:
        return name
    ctx.module.lane_functions.add(name)
    text, vector = FunctionText(ctx.module.text), vector_of(kind, lanes)
    result = "poison"
    for lane in range(lanes):
        parts = [text.value(f"extractelement {vector} %x{number}, i64 {lane}") for number in range(arity)]
        value = text.value(f"call {kind} {called}({', '.join(f'{kind} {part}' for part in parts)})")
        result = text.value(f"insertelement {vector} {result}, {kind} {value}, i64 {lane}")
    text.emit(f"ret {vector} {result}")
    arguments = ", ".join(f"{vector} %x{number}" for number in range(arity))
    lines = "\n".join(map(str, text.lines))
    ctx.module.text.functions.append(f"define internal {vector} {name}({arguments}) #0 {{\n{lines}\n}}")
    return name


def patched(rare: Lanes, function: str, x: Lanes, usual: Lanes) -> Lanes:
    """`usual`, but where the mask `rare` holds the C function of x, if there is a C library.

    Its branch is not taken as long as no lane needs it.
    """
    ctx, text = x.ctx, x.ctx.text
    if ctx.module.is_device:
        return usual
    fix, done = text.fresh("rare"), text.fresh("usual")
    wanted, before = rare.any(), text.block
    text.branch(wanted, fix, done)
    text.start(fix)
    exact = Lanes(ctx, x.kind, x.lanes, by_lane(ctx, function, x.kind, x.lanes, [x.text]))
    mixed = rare.choose(exact, usual)
    text.jump(done)
    text.start(done)
    return usual.like(f"phi {usual.llvm_type} [ {usual.text}, %{before} ], [ {mixed.text}, %{fix} ]")
