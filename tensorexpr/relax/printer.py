"""Graphs as TVMScript: functions, expressions and struct infos. `script()` of a node loads it through the printer's table."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..arith.index_map import IndexMap
from ..tir.attrs import FrozenMap
from ..tir.expr import IntImm, PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.function import GlobalVar, IRModule
from ..tir.global_info import VDevice
from ..tir.node import Object
from ..tir.op_registry import Op
from ..tir.printer.expressions import quoted, script_expr, script_map
from ..tir.printer.options import MARK_LINE, Options
from ..tir.printer.program import info_text
from ..tir.printer.text import Names, identifier
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    RelaxExpr,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
)
from .visitor import walk

_INDENT = "    "
_VOID = TupleStructInfo(())
_STATED = ("call_tir", "call_tir_inplace", "call_tir_with_grad", "call_dps_packed")


class GraphPrinter:
    """Writes one function, or an expression by itself."""

    def __init__(self, options: Options, module: IRModule | None = None) -> None:
        self._r = options.relax_prefix
        self._names = Names(replace(options, int_dtype="int64"))  # extents are int64, so these are written as numbers
        self._options = options
        self._in_module = module is not None
        self._devices: Sequence[Any] = () if module is None else module.global_infos.get("vdevice", ())
        self._known: set[Symbol] = set()
        self._used: set[Any] = set()
        self.constants: list[Constant] = options.metadata.get("relax.expr.Constant", [])

    # Struct infos

    def info(self, info: StructInfo | None, quoting: bool = False) -> str:
        """A struct info; with `quoting` symbols are strings, as a signature has them."""
        r = self._r
        match info:
            case TensorStructInfo():
                parts = [] if info.shape is None else [self._shape(info, quoting)]
                parts += [f"dtype={quoted(info.dtype)}"] if info.dtype else []
                parts += [f"vdevice={self._attr(info.vdevice)}"] if info.vdevice is not None else []
                parts += [f"ndim={info.ndim}"] if info.shape is None and info.ndim != -1 else []
                return f"{r}.Tensor({', '.join(parts)})" if parts else f"{r}.Tensor"
            case ShapeStructInfo():
                if info.values is not None:
                    return f"{r}.Shape([{', '.join(self._extent(one, quoting) for one in info.values)}])"
                return f"{r}.Shape(ndim={info.ndim})" if info.ndim != -1 else f"{r}.Shape"
            case PrimStructInfo():
                if info.value is not None:
                    return f"{r}.Prim(value={self._extent(info.value, quoting)})"
                return f"{r}.Prim({quoted(info.dtype)})" if info.dtype else f"{r}.Prim"
            case TupleStructInfo(fields):
                return f"{r}.Tuple({', '.join(self.info(one, quoting) for one in fields)})" if fields else f"{r}.Tuple"
            case FuncStructInfo():
                return self._function_info(info, quoting)
        return f"{r}.Object"

    def _function_info(self, info: FuncStructInfo, quoting: bool) -> str:
        if info.params is None:
            return f"{self._r}.Callable(ret={self.info(info.ret, quoting)}, purity={info.purity})"
        params = ", ".join(self.info(one, quoting) for one in info.params)
        comma = "," if len(info.params) == 1 else ""
        return f"{self._r}.Callable(({params}{comma}), {self.info(info.ret, quoting)}, {info.purity})"

    def _shape(self, info: TensorStructInfo, quoting: bool) -> str:
        return (
            self.expr(info.shape)
            if not isinstance(info.shape, ShapeExpr)
            else self._tuple([self._extent(one, quoting) for one in info.shape.values])
        )

    def _extent(self, extent: PrimExpr, quoting: bool = False) -> str:
        text = script_expr(extent, self._names)
        return quoted(text) if quoting and not isinstance(extent, IntImm) else text

    @staticmethod
    def _tuple(items: Sequence[str]) -> str:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    # Expressions

    def expr(self, expr: Any) -> str:
        """An expression in one line."""
        r = self._r
        match expr:
            case Var():
                return self._names.get(expr, expr.name_hint)
            case GlobalVar():
                return (
                    f"{self._options.module_alias}.{identifier(expr.name_hint)}"
                    if self._in_module
                    else f"I.GlobalVar({quoted(expr.name_hint)})"
                )
            case Constant():
                return self._constant(expr)
            case ShapeExpr(values):
                return f"{r}.shape([{', '.join(self._extent(one) for one in values)}])"
            case PrimValue(value):
                return f"{r}.prim_value({script_expr(value, self._names)})"
            case StringImm(value):
                return f"{r}.str({quoted(value)})"
            case DataTypeImm(value):
                return f"{r}.dtype({quoted(value)})"
            case ExternFunc():
                return quoted(expr.global_symbol)
            case Tuple(fields):
                return self._tuple([self.expr(one) for one in fields]) if fields else f"{r}.tuple()"
            case TupleGetItem(value, index):
                return f"{self.expr(value)}[{index}]"
            case Call():
                return self._call(expr)
            case Op():
                return str(expr)
            case SeqExpr() if not expr.blocks:
                return self.expr(expr.body)
        return f"<{type(expr).__name__}>"

    def _constant(self, constant: Constant) -> str:
        values = constant.data.numpy()
        if not values.shape and values.dtype.kind in "fiub":
            return f"{self._r}.const({_number(values.item())}, {quoted(str(constant.data.dtype))})"
        if not any(one is constant for one in self.constants):
            self.constants.append(constant)
            self._options.metadata["relax.expr.Constant"] = self.constants
        place = next(n for n, one in enumerate(self.constants) if one is constant)
        return f'metadata["relax.expr.Constant"][{place}]'

    def _call(self, call: Call) -> str:
        args = [self.expr(arg) for arg in call.args]
        infos = [self.info(info) for info in call.sinfo_args]
        if not isinstance(call.op, Op):
            attrs = [f"{name}={self._attr(value)}" for name, value in call.attrs.items()]
            if isinstance(call.op, ExternFunc):
                return f"{self._r}.call_packed({', '.join([self.expr(call.op), *args, *attrs, *self._stated(infos)])})"
            return f"{self.expr(call.op)}({', '.join(args)})"
        name = call.op.partition("relax.")[2] or str(call.op)
        if name in _STATED:
            out = infos[0] if not isinstance(call.sinfo_args[0], TupleStructInfo) else self._results(call.sinfo_args[0])
            places = [f"inplace_indices={list(call.attrs['inplace_indices'])}"] if "inplace_indices" in call.attrs else []
            grads = [f"{key}={self._attr(call.attrs[key])}" for key in ("te_grad_name", "te_grad_kwargs") if call.attrs.get(key)]
            extra = [f"tir_vars={one}" for one in args[2:]]
            return f"{self._r}.{name}({', '.join([*args[:2], f'out_sinfo={out}', *places, *grads, *extra])})"
        if name in ("call_pure_packed", "call_inplace_packed", "invoke_closure", "invoke_pure_closure", "loop"):
            places = [f"inplace_indices={list(call.attrs['inplace_indices'])}"] if "inplace_indices" in call.attrs else []
            return f"{self._r}.{name}({', '.join([*args, *places, *self._stated(infos)])})"
        if name in ("print", "assert_op") and isinstance(call.args[-1], Tuple):
            rest = [self.expr(one) for one in call.args[-1].fields]
            shown = rest if name == "print" else [*args[:-1], f"format_args=[{', '.join(rest)}]"]
            shown.append(f"format={self._r}.str({quoted(call.attrs['format'])})")
            return f"{self._r}.{name}({', '.join(shown)})"
        attrs = [f"{key}={self._attr(value, key)}" for key, value in call.attrs.items()]
        return f"{self._r}.{name}({', '.join([*args, *attrs])})"

    def _results(self, info: TupleStructInfo) -> str:
        return f"[{', '.join(self.info(one) for one in info.fields)}]"

    def _stated(self, infos: Sequence[str]) -> list[str]:
        return [f"sinfo_args=({', '.join(infos)},)"] if infos else []

    def _attr(self, value: Any, key: str = "") -> str:
        if value is None:
            return '"void"' if key.endswith("dtype") else "None"
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, VDevice):
            short = value.short(self._devices)
            return info_text(value, self._names) if short is None else quoted(short)
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(self._attr(one) for one in value)}]"
        if isinstance(value, FrozenMap):
            return script_map(value, self._names)
        if isinstance(value, IndexMap):
            names = ", ".join(var.name for var in value.initial_indices)
            return f"lambda {names}: ({', '.join(map(str, value.final_indices))},)"
        return script_expr(value, self._names) if isinstance(value, PrimExpr) else _number(value)

    # Functions

    def function(self, func: Function, name: str, indent: int = 0) -> list[str]:
        """A function, line by line."""
        options = [] if "global_symbol" in func.attrs or not self._in_module or indent > 1 else ["private=True"]
        options += [] if func.is_pure else ["pure=False"]
        pad = _INDENT * indent
        symbols = [one for param in func.params for one in symbols_of(param.struct_info)]
        # An inner function may use the symbols of the one around it: only new ones are defined.
        symbols = [one for one in dict.fromkeys(symbols) if one not in self._known]
        for one in symbols:
            self._names.define(one, one.name)
        self._known |= set(symbols)
        params = [f"{self._names.define(p, p.name_hint)}: {self.info(p.struct_info, bool(symbols))}" for p in func.params]
        returned = self.info(func.ret_struct_info, bool(symbols))
        head = f"{pad}@{self._r}.function" + (f"({', '.join(options)})" if options else "")
        mark = MARK_LINE if id(func) in self._options.marked else ""
        lines = [head, f"{mark}{pad}def {identifier(name)}({', '.join(params)}) -> {returned}:"]
        inner = indent + 1
        # Before the body is written: a call for its effect alone gets no name there.
        self._used.update(node for node in walk(func.body) if isinstance(node, Var))
        body = list(self._body(func.body, inner))
        text = [f"{_INDENT * inner}{self._names.get(one, one.name)} = T.{one.dtype}()" for one in symbols]
        shown = {key: value for key, value in func.attrs.items() if key != "global_symbol" or value != name}
        if shown:
            text.append(f"{_INDENT * inner}{self._r}.func_attr({script_map(shown, self._names)})")
        if self._in_module and any(isinstance(node, GlobalVar) for node in walk(func.body)):
            text.append(f"{_INDENT * inner}{self._options.module_alias} = {self._options.name or 'Module'}")
        return [*lines, *text, *body]

    def _body(self, body: SeqExpr, indent: int, last: Callable[[str], str] = lambda value: f"return {value}") -> Iterator[str]:
        for block in body.blocks:
            yield from self.block(block, indent, body)
        yield f"{_INDENT * indent}{last(self.expr(body.body))}"

    def block(self, block: BindingBlock, indent: int, around: SeqExpr | None = None) -> Iterator[str]:
        """A block of bindings."""
        if not isinstance(block, DataflowBlock):
            for binding in block.bindings:
                yield from self.binding(binding, indent)
            return
        yield f"{_INDENT * indent}with {self._r}.dataflow():"
        for binding in block.bindings:
            yield from self.binding(binding, indent + 1)
        outputs = [self.expr(one.var) for one in block.bindings if type(one.var) is Var]
        yield f"{_INDENT * (indent + 1)}{self._r}.output({', '.join(outputs)})"

    def binding(self, binding: Binding, indent: int) -> Iterator[str]:
        """A binding, marked and with a remark if these are asked for."""
        mark = MARK_LINE if id(binding) in self._options.marked else ""
        remark = f"  # {self._options.remarks[id(binding)]}" if id(binding) in self._options.remarks else ""
        for number, line in enumerate(self._binding(binding, indent)):
            yield f"{mark}{line}{remark if not number else ''}"

    def _binding(self, binding: Binding, indent: int) -> Iterator[str]:
        """A binding, which is several lines where its value is an If or a function."""
        pad, var, value = _INDENT * indent, binding.var, binding.value
        if isinstance(value, Function):
            name = self._names.get(var, var.name_hint)
            yield from self.function(value, name, indent)
            return
        if isinstance(value, If):
            annotated = f"{self._names.get(var, var.name_hint)}: {self.info(var.struct_info)}"
            for head, branch in ((f"if {self.expr(value.cond)}:", value.true_branch), ("else:", value.false_branch)):
                yield f"{pad}{head}"
                sequence = branch if isinstance(branch, SeqExpr) else SeqExpr((), branch)
                last = sequence.blocks[-1].bindings[-1] if sequence.blocks and type(sequence.blocks[-1]) is BindingBlock else None
                if last is not None and last.var is sequence.body:  # the last binding is the one of the whole
                    self._names.alias(last.var, self._names.get(var, var.name_hint))
                    for block in sequence.blocks:
                        yield from self.block(block, indent + 1)
                else:
                    yield from self._body(sequence, indent + 1, lambda text: f"{annotated} = {text}")
            return
        if isinstance(binding, MatchCast):
            new = [one for one in symbols_of(binding.struct_info) if one not in self._known]
            for one in new:
                self._known.add(one)
                yield f"{pad}{self._names.define(one, one.name)} = T.{one.dtype}()"
            text = f"{self._r}.match_cast({self.expr(value)}, {self.info(binding.struct_info)})"
        elif isinstance(value, Tuple) and len(value.fields) > 1:
            text = ", ".join(self.expr(one) for one in value.fields)
        else:
            text = self.expr(value)
        if isinstance(value, Call) and var not in self._used and value.struct_info == _VOID:
            yield f"{pad}{text}"
            return
        # These calls say themselves what they return.
        is_stated = isinstance(value, Call) and isinstance(value.op, Op) and value.op.removeprefix("relax.") in _STATED
        annotation = "" if is_stated and not isinstance(binding, MatchCast) else f": {self.info(var.struct_info)}"
        yield f"{pad}{self._names.get(var, var.name_hint)}{annotation} = {text}"


def graph_lines(func: Any, name: str, indent: int, options: Options, module: IRModule) -> list[str]:
    """A function of a graph as lines; one of elsewhere is a name of the module."""
    if isinstance(func, ExternFunc):
        printer = GraphPrinter(options, module)
        stated = "" if func.stated is None else f", {printer.info(func.stated)}"
        return [f"{_INDENT * indent}{identifier(name)} = {options.relax_prefix}.ExternFunc({quoted(func.global_symbol)}{stated})"]
    return GraphPrinter(options, module).function(func, name, indent)


def script_graph(node: Any, options: Options) -> str | None:
    """A node of a graph as text; None for nodes of loops."""
    if isinstance(node, Function):
        printer = GraphPrinter(options)
        lines = printer.function(node, options.name or str(node.attrs.get("global_symbol", "main")))
        imports = [f"# from tvm.script import tir as {options.tir_prefix}"] if _has_symbols(node) else []
        return options.with_metadata("\n".join([*imports, f"# from tvm.script import relax as {options.relax_prefix}", "", *lines]))
    if isinstance(node, StructInfo):
        return GraphPrinter(options).info(node)
    if isinstance(node, If):
        return "\n".join(GraphPrinter(options).binding(VarBinding(Var("value", node.struct_info), node), 0))
    if isinstance(node, SeqExpr) and node.blocks:
        return "\n".join(GraphPrinter(options)._body(node, 0, str))
    if isinstance(node, RelaxExpr):
        return GraphPrinter(options).expr(node)
    if isinstance(node, Binding):
        return "\n".join(GraphPrinter(options).binding(node, 0))
    if isinstance(node, BindingBlock):
        return "\n".join(GraphPrinter(options).block(node, 0))
    return None


def _number(value: Any) -> str:
    """A number, or another value of Python, as text that reads back: inf and nan have no literals."""
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f"float({quoted(str(value))})"


def _saved(node: Any) -> str:
    text: str = importlib.import_module("tensorexpr.relax.graph_nodes").save_graph(node)
    return text


def _has_symbols(func: Function) -> bool:
    return any(symbols_of(param.struct_info) for param in func.params)


Object._printers.update({"graph": script_graph, "graph_lines": graph_lines, "json": _saved})  # type: ignore[dict-item]
__all__ = ["GraphPrinter", "graph_lines", "script_graph"]
