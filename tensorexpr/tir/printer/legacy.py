"""Expressions in the style of the compute DAG's listing: ``(A[i, k]*B[k, j])``, ``floordiv(i, 2)``, ``0f``."""

from __future__ import annotations

from .. import expr as ir
from .expressions import quoted
from .text import ANY, ATOM, Format, Names, Operand, Parts, call, join, render

_SYMBOLS: dict[type[ir.PrimExpr], str] = {
    ir.Add: " + ", ir.Sub: " - ", ir.Mul: "*", ir.Div: "/", ir.Mod: " % ", ir.And: " && ", ir.Or: " || ",
    ir.EQ: " == ", ir.NE: " != ", ir.LT: " < ", ir.LE: " <= ", ir.GT: " > ", ir.GE: " >= ",
}  # fmt: skip
_FUNCTIONS: dict[type[ir.PrimExpr], str] = {ir.FloorDiv: "floordiv", ir.FloorMod: "floormod", ir.Min: "min", ir.Max: "max"}
_FLOAT_SUFFIX = {"float32": "f", "float64": "", "float16": "h", "bfloat16": "h"}


def _list(items: tuple[ir.PrimExpr, ...]) -> Parts:
    return join(", ", tuple((item, ANY) for item in items))


def _infix(symbol: str) -> Format:
    return lambda node, _names: (ATOM, ("(", (node.a, ANY), symbol, (node.b, ANY), ")"))


def _function(name: str) -> Format:
    return lambda node, _names: call(name, (node.a, ANY), (node.b, ANY))


def _int(node: ir.IntImm, _names: Names) -> tuple[int, Parts]:
    return ATOM, (str(node.value) if node.dtype == "int32" else f"({node.dtype}){node.value}",)


def _var(node: ir.Var, _names: Names) -> tuple[int, Parts]:
    return ATOM, (f"{{{node.name}|{node.name}>=0}}" if isinstance(node, ir.SizeVar) else node.name,)


def _access(name: str, indices: tuple[ir.PrimExpr, ...]) -> tuple[int, Parts]:
    return ATOM, (f"{name}[", *_list(indices), "]")


def _axes(axes: tuple[ir.IterVar, ...]) -> Parts:
    parts: list[str | Operand] = []
    for number, axis in enumerate(axes):
        parts.append(f"{', ' if number else ''}iter_var({axis.var.name}")
        if axis.dom is not None:
            parts += (", range(min=", (axis.dom.min, ANY), ", ext=", (axis.dom.extent, ANY), ")")
        parts.append(")")
    return tuple(parts)


def _reduce(node: ir.Reduce, _names: Names) -> tuple[int, Parts]:
    combiner = node.combiner
    reducer = call(
        "comm_reducer",
        ("result=[", *_list(combiner.result), "]"),
        ("lhs=[", *_list(combiner.lhs), "]"),
        ("rhs=[", *_list(combiner.rhs), "]"),
        ("identity_element=[", *_list(combiner.identity_element), "]"),
    )[1]
    return call(
        "reduce",
        ("combiner=", *reducer),
        ("source=[", *_list(node.source), "]"),
        ("init=[", *_list(node.init), "]"),
        ("axis=[", *_axes(node.axis), "]"),
        ("where=", (node.condition, ANY)),
        f"value_index={node.value_index}",
    )


LEGACY: dict[type, Format] = {
    ir.Var: _var,
    ir.SizeVar: _var,
    ir.IntImm: _int,
    ir.FloatImm: lambda node, _: (ATOM, (f"{node.value:g}{_FLOAT_SUFFIX[node.dtype]}",)),
    ir.StringImm: lambda node, _: (ATOM, (quoted(node.value),)),
    **{kind: _infix(symbol) for kind, symbol in _SYMBOLS.items()},
    **{kind: _function(name) for kind, name in _FUNCTIONS.items()},
    ir.Not: lambda node, _: (ATOM, ("!", (node.a, ANY))),
    ir.Select: lambda node, _: call("select", (node.condition, ANY), (node.true_value, ANY), (node.false_value, ANY)),
    ir.Cast: lambda node, _: call(node.dtype, (node.value, ANY)),
    ir.BufferLoad: lambda node, _: _access(node.buffer.name, node.indices),
    ir.ProducerLoad: lambda node, _: _access(node.producer.name, node.indices),
    ir.Reduce: _reduce,
    ir.Ramp: lambda node, _: call("ramp", (node.base, ANY), (node.stride, ANY), str(node.lanes)),
    ir.Broadcast: lambda node, _: call(f"x{node.lanes}", (node.value, ANY)),
    ir.Shuffle: lambda node, _: call("shuffle", *((vector, ANY) for vector in node.vectors), *map(str, node.indices)),
    ir.Let: lambda node, _: (ATOM, ("(let ", (node.var, ANY), " = ", (node.value, ANY), " in ", (node.body, ANY), ")")),
    ir.Call: lambda node, _: call(node.op, *((arg, ANY) for arg in node.args)),
}


def legacy_expr(expr: ir.PrimExpr) -> str:
    """`expr` as the compute DAG's listing shows it: all operators in parentheses, no spaces around * and /."""
    return render(expr, LEGACY, Names())
