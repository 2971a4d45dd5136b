"""All names of the language: T, with T.axis in it, and what Python offers in a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...arith.index_map import IndexMap
from ...tir import expr as ir
from ...tir import intrin
from ...tir.arithmetic import const
from .blocks import AXES, BLOCKS
from .buffers import BUFFERS, buffer
from .dtypes import TYPES, is_type, type_builder, var
from .frames import FRAMES, FRAMES_IN_CONTEXT, let_expression
from .intrinsics import EXPRESSIONS, comm_reducer
from .loops import LOOPS, range_loop
from .operators import node
from .python import BUILTINS
from .values import Builder, Namespace, Number, as_expr


def _builders(prefix: str, table: Mapping[str, Callable[..., Any]], in_context: bool = False) -> dict[str, Any]:
    return {name: Builder(f"{prefix}.{name}", function, in_context) for name, function in table.items()}


def _types() -> dict[str, Any]:
    names = {"boolean": "bool", "Ptr": "", "buffer_var": ""}
    found = {name: Builder(f"T.{name}", function, dtype=names.get(name, name)) for name, function in TYPES.items()}
    found["ptr"] = found["handle"]
    return {
        **found,
        "buffer": Builder("T.buffer", buffer),
        "var": Builder("T.var", var),
        "Buffer": Builder("T.Buffer", buffer),
        "buffer_decl": Builder("T.buffer_decl", buffer),
    }


def _meta_var(value: Any) -> Any:
    return MetaVar(value)


def _index_map(mapping: Any, *, inverse_index_map: Any = None, index_dtype: str = "int64") -> IndexMap:
    """``T.index_map(lambda i, j: [j, i])``: where the element of each index goes."""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map, index_dtype=index_dtype)


# Nodes under their own names, which are classes in a script as in Python.
_CLASSES: tuple[type, ...] = (
    ir.BufferLoad, ir.Call, ir.CommReducer, ir.FloatImm, ir.IntImm, ir.IterVar, ir.ProducerLoad, ir.Reduce, ir.SizeVar,
    ir.StringImm, ir.Var,
)  # fmt: skip


class MetaVar:
    """``x = T.meta_var(value)``: another name for a value, where a plain assignment would define a variable."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


AXIS = Namespace("T.axis", _builders("T.axis", AXES, in_context=True))
TIR = Namespace(
    "T",
    {
        **_builders("T", EXPRESSIONS),
        **_types(),
        **_builders("T", LOOPS),
        **_builders("T", BLOCKS, in_context=True),
        **_builders("T", BUFFERS, in_context=True),
        **_builders("T", FRAMES),
        **_builders("T", FRAMES_IN_CONTEXT, in_context=True),
        "Let": Builder("T.Let", let_expression),
        "meta_var": Builder("T.meta_var", _meta_var),
        "comm_reducer": Builder("T.comm_reducer", comm_reducer),
        "index_map": Builder("T.index_map", _index_map),
        "const": Builder("T.const", const),  # `tvm.tir.const(...)`: names of the package tir are names of the language
        "axis": AXIS,
        **{kind.__name__: kind for kind in _CLASSES},
    },
    lambda name: Builder(f"T.{name}", type_builder(name), dtype=name) if is_type(name) else None,
)


def _on_numbers(calculate: Callable[..., Any], build: Callable[..., ir.PrimExpr]) -> Callable[..., Any]:
    """A function of Python's on numbers, a builder on anything else."""

    def choose(*args: Any) -> Any:
        return calculate(*args) if all(isinstance(arg, Number) for arg in args) else build(*map(as_expr, args))

    return choose


PYTHON: Mapping[str, Builder] = {
    "range": Builder("range", range_loop),
    "min": Builder("min", _on_numbers(min, node(ir.Min))),
    "max": Builder("max", _on_numbers(max, node(ir.Max))),
    "abs": Builder("abs", _on_numbers(abs, intrin.abs)),
    **{name: Builder(name, function) for name, (_, function) in BUILTINS.items()},
}
