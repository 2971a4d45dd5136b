"""Expressions as TVMScript: ``A[i, j] * T.float32(2.0)``."""

from __future__ import annotations

import json
import math
from typing import Any

from ...target import Target
from .. import expr as ir
from .. import unknown
from ..buffer import Buffer
from ..device_intrin import STATING_FIRST, STATING_LAST
from ..dtype import parse_dtype
from .text import AND, ANY, ATOM, COMPARE, NOT, OR, PRODUCT, SUM, Format, Names, Operand, Parts, call, join, render

_SYMBOLS: dict[type[ir.PrimExpr], tuple[str, int]] = {
    ir.Add: (" + ", SUM), ir.Sub: (" - ", SUM), ir.Mul: (" * ", PRODUCT), ir.Div: (" / ", PRODUCT), ir.FloorDiv: (" // ", PRODUCT),
    ir.FloorMod: (" % ", PRODUCT), ir.And: (" and ", AND), ir.Or: (" or ", OR), ir.EQ: (" == ", COMPARE), ir.NE: (" != ", COMPARE),
    ir.LT: (" < ", COMPARE), ir.LE: (" <= ", COMPARE), ir.GT: (" > ", COMPARE), ir.GE: (" >= ", COMPARE),
}  # fmt: skip
_ITER_TYPES = (
    "DataPar", "ThreadIndex", "CommReduce", "Ordered", "DimInfo", "Unrolled", "Vectorized", "Parallelized", "Tensorized",
)  # fmt: skip
# Calls whose result type can't be seen from their operands name it first.
_TYPED_CALLS = frozenset(
    {
        "tir.reinterpret",
        "tir.call_extern",
        "tir.call_pure_extern",
        "tir.call_llvm_intrin",
        "tir.call_llvm_pure_intrin",
        "tir.type_annotation",
        *STATING_FIRST,
    }
)


_CALL_NAMES = {f"tir.tvm_call_{name}": f"call_{name}" for name in ("packed", "cpacked", "packed_lowered", "cpacked_lowered")}

# TVMScript writes integral values in full, however large; Python would change to an exponent here.
_ALL_DIGITS_FROM = 1e16


def float_text(value: float) -> str:
    """The shortest text that gives `value` back; infinities and NaN in quotes."""
    if not math.isfinite(value):
        return f'"{value}"'
    if value.is_integer() and abs(value) >= _ALL_DIGITS_FROM:
        return f"{value:.1f}"
    return repr(value)


def quoted(text: str) -> str:
    """A string literal with double quotes."""
    return json.dumps(text, ensure_ascii=False)


def dtype_text(dtype: str) -> str:
    """A dtype as a string literal; vectors of bools are named after their bits."""
    return quoted(dtype.replace("bool", "uint1") if dtype.startswith("boolx") else dtype)


def _int(node: ir.IntImm, names: Names) -> tuple[int, Parts]:
    if node.dtype == names.options.int_dtype:
        return ATOM, (str(node.value),)
    if parse_dtype(node.dtype).code == "bool":
        return ATOM, (f"T.bool({bool(node.value)})",)
    return ATOM, (f"T.{node.dtype}({node.value})",)


def _var(node: ir.Var, names: Names) -> tuple[int, Parts]:
    return ATOM, (names.get(node, node.name),)


def _infix(node: ir.BinaryExpr | ir.CmpExpr | ir.LogicalExpr, _names: Names) -> tuple[int, Parts]:
    """Operators group to the left; comparisons don't chain, so both sides of one get parentheses."""
    symbol, strength = _SYMBOLS[type(node)]
    if _is_literal(node.a) and _is_literal(node.b):  # which would be calculated when it is read
        return call(f"T.{type(node).__name__}", (node.a, ANY), (node.b, ANY))
    left = strength + 1 if strength == COMPARE else strength
    return strength, ((node.a, left), symbol, (node.b, strength + 1))


def _is_literal(expr: ir.PrimExpr) -> bool:
    return isinstance(expr, (ir.IntImm, ir.FloatImm))


def _float(node: ir.FloatImm, names: Names) -> tuple[int, Parts]:
    text = float_text(node.value)
    return ATOM, (text if node.dtype == names.options.float_dtype else f"T.{node.dtype}({text})",)


def _div(node: ir.Div, names: Names) -> tuple[int, Parts]:
    """`/` means nothing on integers, where the truncating division has a name."""
    return _infix(node, names) if parse_dtype(node.dtype).is_float else call("T.Div", (node.a, ANY), (node.b, ANY))


def _named(name: str) -> Format:
    return lambda node, _names: call(name, (node.a, ANY), (node.b, ANY))


def index_parts(indices: tuple[ir.PrimExpr, ...]) -> Parts:
    """The inside of the brackets of an access; a ramp with a constant step reads as a slice."""
    if not indices:
        return ("()",)
    parts: list[str | Operand] = []
    for number, index in enumerate(indices):
        parts += (", ",) if number else ()
        # A slice of a script has a positive constant for a step.
        if isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value > 0:
            parts += _slice(index.base, index.lanes * index.stride.value, index.stride.value)
        else:
            parts.append((index, ANY))
    return tuple(parts)


def _slice(base: ir.PrimExpr, extent: Any, step: int) -> Parts:
    tail = f":{step}" if step != 1 else ""
    if isinstance(extent, ir.PrimExpr):  # of a scalable vector
        zero = isinstance(base, ir.IntImm) and base.value == 0
        return ((base, ANY), ":", *(((extent, SUM),) if zero else ((base, SUM), " + ", (extent, PRODUCT))), tail)
    # Constant bounds are added up: 8:24, not 8:8 + 16.
    if isinstance(base, ir.IntImm):
        stop: Parts = ((ir.IntImm(base.dtype, base.value + extent), SUM),)
    else:
        stop = ((base, SUM), " + ", (ir.IntImm(base.dtype, extent), ATOM))
    return ((base, ANY), ":", *stop, tail)


def _load(node: ir.BufferLoad, names: Names) -> tuple[int, Parts]:
    buffer = names.get(node.buffer, node.buffer.name)
    if node.predicate is None:
        return ATOM, (f"{buffer}[", *index_parts(node.indices), "]")
    return call(f"{buffer}.vload", ("[", *_list(node.indices), "]"), ("predicate=", (node.predicate, ANY)))


def _list(items: tuple[ir.PrimExpr, ...]) -> Parts:
    return join(", ", tuple((item, ANY) for item in items))


def _producer_load(node: ir.ProducerLoad, names: Names) -> tuple[int, Parts]:
    return ATOM, (f"{names.get(node.producer, node.producer.name)}[", *index_parts(node.indices), "]")


def _let(node: ir.Let, names: Names) -> tuple[int, Parts]:
    return call("T.Let", (node.body, ANY), ("where={", (node.var, ANY), ": ", (node.value, ANY), "}"))


def _call(node: ir.Call, names: Names) -> tuple[int, Parts]:
    # Before `removeprefix`: the name of a function is no string.
    if hasattr(node.op, "name_hint"):  # a function of the same module
        return call(f"Module.{node.op.name_hint}", *((arg, ANY) for arg in node.args))
    typed = (dtype_text(node.dtype),) if node.op in _TYPED_CALLS else ()
    last = (dtype_text(node.dtype),) if node.op in STATING_LAST else ()
    return call(f"T.{_CALL_NAMES.get(node.op, node.op.removeprefix('tir.'))}", *typed, *((arg, ANY) for arg in node.args), *last)


def _comm_reducer(combiner: ir.CommReducer, names: Names) -> Parts:
    params = ", ".join(names.get(v, v.name) for v in combiner.lhs + combiner.rhs)
    body = _list(combiner.result) if len(combiner.result) == 1 else ("(", *_list(combiner.result), ")")
    return (f"T.comm_reducer(lambda {params}: ", *body, ", [", *_list(combiner.identity_element), "])")


def declared_type(var: ir.Var) -> str:
    """What a variable that nothing else defines is made by: ``T.int32()``."""
    pointer = var.type_annotation
    if pointer is None:
        return f"T.{var.dtype}(is_size_var=True)" if isinstance(var, ir.SizeVar) else f"T.{var.dtype}()"
    scope = "" if pointer.storage_scope == "global" else f", {quoted(pointer.storage_scope)}"
    return f"T.handle({quoted(pointer.element_type.dtype)}{scope})"


def iter_var_parts(axis: ir.IterVar) -> Parts:
    """An axis as ``T.iter_var(k, T.Range(0, 16), "CommReduce", "")``."""
    dom: Parts = ("None",) if axis.dom is None else call("T.Range", (axis.dom.min, ANY), _end(axis.dom))[1]
    return call("T.iter_var", (axis.var, ANY), dom, quoted(_ITER_TYPES[axis.iter_type]), quoted(axis.thread_tag))[1]


def _end(dom: ir.Range) -> Parts:
    """What a range stops before."""
    low, extent = dom.min, dom.extent
    if isinstance(low, ir.IntImm) and isinstance(extent, ir.IntImm):
        return ((ir.IntImm(low.dtype, low.value + extent.value), ANY),)
    if isinstance(low, ir.IntImm) and low.value == 0:
        return ((extent, ANY),)
    # `values.span` of the parser takes the extent off again: a sum in parentheses, as in k + (n + 1), comes back as it was.
    return ((low, SUM), " + ", (extent, SUM + 1))


def _reduce(node: ir.Reduce, names: Names) -> tuple[int, Parts]:
    axes: list[str | Operand] = []
    for number, axis in enumerate(node.axis):
        axes += ((", ",) if number else ()) + iter_var_parts(axis)
    return call(
        "T.reduce",
        _comm_reducer(node.combiner, names),
        ("source=[", *_list(node.source), "]"),
        ("init=[", *_list(node.init), "]"),
        ("axis=[", *axes, "]"),
        ("condition=", (node.condition, ANY)),
        f"value_index={node.value_index}",
    )


def _shuffle(node: ir.Shuffle, _names: Names) -> tuple[int, Parts]:
    return call("T.Shuffle", ("[", *_list(node.vectors), "]"), str(list(node.indices)))


SCRIPT: dict[type, Format] = {
    ir.Var: _var,
    ir.SizeVar: _var,
    unknown.Any: lambda node, _: (ATOM, ("T.Any()",)),
    ir.IntImm: _int,
    ir.FloatImm: _float,
    ir.StringImm: lambda node, _: (ATOM, (quoted(node.value),)),
    **dict.fromkeys(_SYMBOLS, _infix),
    ir.Div: _div,
    ir.Mod: _named("T.truncmod"),
    ir.Min: _named("T.min"),
    ir.Max: _named("T.max"),
    ir.Not: lambda node, _: (NOT, ("not ", (node.a, NOT))),
    ir.Select: lambda node, _: call("T.Select", (node.condition, ANY), (node.true_value, ANY), (node.false_value, ANY)),
    ir.Cast: lambda node, _: call("T.Cast", dtype_text(node.dtype), (node.value, ANY)),
    ir.BufferLoad: _load,
    ir.ProducerLoad: _producer_load,
    ir.Reduce: _reduce,
    ir.Ramp: lambda node, _: call("T.Ramp", (node.base, ANY), (node.stride, ANY), str(node.lanes)),
    ir.Broadcast: lambda node, _: call("T.Broadcast", (node.value, ANY), str(node.lanes)),
    ir.Shuffle: _shuffle,
    ir.Let: _let,
    ir.Call: _call,
}


def script_expr(expr: ir.PrimExpr, names: Names | None = None) -> str:
    """`expr` as TVMScript; without `names`, variables are named on sight and different ones of one name get _1, _2."""
    return render(expr, SCRIPT, Names() if names is None else names)


def script_value(value: Any, names: Names) -> str:
    """An attribute's value: Python data, expressions, axes and buffers; anything else is its `str` in quotes."""
    if isinstance(value, bool):
        return f"T.bool({value})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'  # `inf` is no name of a script
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, ir.PrimExpr):
        return script_expr(value, names)
    if isinstance(value, ir.IterVar):
        return _joined(iter_var_parts(value), names)
    if isinstance(value, ir.CommReducer):
        return _joined(_comm_reducer(value, names), names)
    if isinstance(value, Target):
        return f"T.target({script_map(value.export(), names)})"
    if isinstance(value, Buffer):
        return names.get(value, value.name)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(script_value(item, names) for item in value)}]"
    if hasattr(value, "items"):
        return script_map(value, names)
    return "None" if value is None else quoted(str(value))


def _joined(parts: Parts, names: Names) -> str:
    return "".join(part if isinstance(part, str) else render(part[0], SCRIPT, names, part[1]) for part in parts)


def script_map(items: Any, names: Names) -> str:
    """A mapping with its keys in alphabetical order."""
    return "{" + ", ".join(f"{quoted(str(key))}: {script_value(items[key], names)}" for key in sorted(items)) + "}"
