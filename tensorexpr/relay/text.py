"""Relay's programs as text in Relay's syntax; `parser` reads it.

    def @main(%x: Tensor[(1, 16), float32], %w: Tensor[(8, 16), float32]) {
      %0 = nn.dense(%x, %w);
      nn.relu(%0)
    }

A number names a value that isn't a variable. It stands in the innermost block that contains all its uses: in `if`, a value that both
branches use is in front of the branches. That says what is shared, not what is computed when. Types are written behind values in functions
whose result's type is stated, as it is behind `relay.transform.InferType`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import DeclarationError, TypeMismatchError
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.struct_info import ShapeExpr
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.node import Object
from ..tir.op_registry import Op
from ..tir.printer.expressions import quoted
from .adt import Constructor, Match, PatternConstructor, PatternTuple, PatternVar
from .blocks import Block, Blocks
from .expr import Function, Let
from .ops.row import ROWS
from .ty import extent_text, type_of
from .type_names import GlobalTypeVar, RefType, TypeCall, TypeVar
from .visitor import free_vars

Annotate = Callable[[Any], str]

_INLINE = (
    graph.Var, graph.Constant, GlobalVar, Op, ShapeExpr, graph.PrimValue, graph.StringImm, graph.DataTypeImm, graph.ExternFunc, Constructor,
)  # fmt: skip
# What stands behind a number, by its dtype; other dtypes have no literals.
SUFFIXES = {
    "float32": "f", "float64": "f64", "float16": "f16", "int32": "", "int64": "i64", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "",
}  # fmt: skip


class RelayPrinter:
    """Writes functions and expressions; constants that have no literals are collected.

    Args:
        annotate: remarks by expression.
    """

    def __init__(self, annotate: Annotate | None = None) -> None:
        self.annotate = annotate
        self.constants: list[graph.Constant] = []
        self._places: dict[int, int] = {}
        self._reset(None, False)

    def _reset(self, root: Any, typed: bool) -> None:
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[Any, int] = {}
        self._typed = typed
        self._blocks = Blocks(root) if root is not None else None

    def function(self, func: Function, name: str) -> list[str]:
        """A function of a module, as lines."""
        self._reset(func, func.ret_type is not None)
        return self._function(func, f"def @{name}")

    def expression(self, expr: Any) -> list[str]:
        """An expression by itself: its free variables, then its values."""
        self._reset(expr, isinstance(expr, Function) and expr.ret_type is not None)
        lines = [f"free_var {self._name(var)}{self._type(var, ': ')};" for var in free_vars(expr)]
        return [*lines, *self._block(expr, None)]

    def _name(self, var: Any) -> str:
        found = self._names.get(var)
        if found is None:
            kept = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in var.name_hint)
            base = kept if kept[:1].isalpha() or kept[:1] == "_" else f"v{kept}"  # %3 is a value's number
            name, number = base, 0
            while name in self._taken:
                number += 1
                name = f"{base}_{number}"
            self._taken.add(name)
            found = self._names[var] = f"%{name}"
        return found

    @staticmethod
    def _type(var: Any, before: str) -> str:
        info = var.struct_info_annotation
        found = None if info is None else type_of(info)
        return "" if found is None else f"{before}{type_text(found)}"

    def _remark(self, node: Any) -> str:
        """What stands behind a value: its type, or what the caller says."""
        if self.annotate is not None:
            said = self.annotate(node)
            return f" {said}" if said else ""
        if not self._typed or isinstance(node, (Function, graph.If, Match)):
            return ""
        try:
            found = type_of(node.struct_info)
        except (DeclarationError, TypeMismatchError):
            return ""
        text = "_" if found is None else type_text(found)
        return "" if "_" in text else f" /* ty={text} */"  # variables whose types aren't stated

    def _function(self, func: Function, head: str) -> list[str]:
        params = [f"{self._name(param)}{self._type(param, ': ')}" for param in func.params]
        attrs = [f"{key}={attribute(value)}" for key, value in func.attrs.items() if key != "global_symbol"]
        ret = "" if func.ret_type is None else f" -> {type_text(func.ret_type)}"
        body = self._block(func.body, (func, 0))
        types = f"[{', '.join(map(type_text, func.type_params))}]" if func.type_params else ""
        return [f"{head}{types}({', '.join([*params, *attrs])}){ret} {{", *(f"  {line}" for line in body), "}"]

    def _block(self, root: Any, block: Block) -> list[str]:
        """A block as lines; the last one is its value."""
        lines: list[str] = []
        while True:
            assert self._blocks is not None
            for node in self._blocks.members.get(block, ()):
                # The value of a block, and of a Let, needs no number unless it is used elsewhere, too.
                named = node is root or node in self._blocks.bound
                if not isinstance(node, _INLINE) and (not named or self._blocks.uses[node] > 1):
                    made = self._value(node)  # before its own number: values in its blocks have theirs first
                    self._numbers[node] = number = len(self._numbers)
                    lines += [f"%{number} = {made[0]}", *made[1:]]
                    lines[-1] += f"{self._remark(node)};"
            if not isinstance(root, Let) or root in self._numbers:
                return [*lines, *self._last(root)]
            lines += self._let(root)
            block, root = (root, 0), root.body

    def _let(self, let: Let) -> list[str]:
        """The line, or lines, that bind a variable."""
        # Named before its value, in which a function may call itself.
        head = f"let {self._name(let.var)}{self._type(let.var, ': ')} = "
        made = self._last(let.value)
        made[0] = head + made[0]
        made[-1] += ";"
        return made

    def _last(self, root: Any) -> list[str]:
        if root in self._numbers or isinstance(root, _INLINE):
            return [self._operand(root)]
        made = self._value(root)
        made[-1] += self._remark(root)
        return made

    def _value(self, node: Any) -> list[str]:
        """A node by its operands, as lines."""
        match node:
            case Function():
                return self._function(node, "fn ")
            case Let():  # not the value of a block: a block of its own
                return ["{", *(f"  {line}" for line in [*self._let(node), *self._block(node.body, (node, 0))]), "}"]
            case graph.If():
                yes, no = self._block(node.true_branch, (node, 0)), self._block(node.false_branch, (node, 1))
                head = f"if ({self._operand(node.cond)}) {{"
                return [head, *(f"  {line}" for line in yes), "} else {", *(f"  {line}" for line in no), "}"]
            case Match(data, clauses, complete):
                lines = [f"match{'' if complete else '?'} ({self._operand(data)}) {{"]
                for place, clause in enumerate(clauses):
                    # The pattern first, which names its variables.
                    head = f"  {pattern_text(clause.lhs, self._bound)} => {{"
                    lines += [head, *(f"    {line}" for line in self._block(clause.rhs, (node, place))), "  },"]
                return [*lines, "}"]
            case graph.Tuple(fields):
                inside = ", ".join(map(self._operand, fields))
                return [f"({inside},)" if len(fields) == 1 else f"({inside})"]
            case graph.TupleGetItem(value, index):
                return [f"{self._operand(value)}.{index}"]
            case graph.Call():
                return [self._call(node)]
        raise TypeMismatchError(f"{type(node).__name__} has no text in Relay's syntax")

    def _bound(self, var: Any) -> str:
        return f"{self._name(var)}{self._type(var, ': ')}"

    def _call(self, call: Any) -> str:
        args = [self._operand(one) for one in call.args]
        if isinstance(call.op, Constructor) and not args:
            return call.op.name_hint
        callee = str(call.op) if isinstance(call.op, Op) else self._operand(call.op)
        defaults = attribute_defaults(call.op)
        shown = (
            f"{key}={attribute(value)}"
            for key, value in call.attrs.items()
            if key in _SHOWN.get(str(call.op), ()) or not _same(value, defaults.get(key, _NONE))
        )
        return f"{callee}({', '.join([*args, *shown])})"

    def _operand(self, node: Any) -> str:
        if node in self._numbers:
            return f"%{self._numbers[node]}"
        match node:
            case graph.Var():
                return self._name(node)
            case graph.Constant():
                return f"{self._constant(node)}{self._remark(node) if self._typed else ''}"
            case Constructor():
                return str(node.name_hint)
            case GlobalVar():
                return f"@{node.name_hint}"
            case ShapeExpr(values):
                return f"[{', '.join(map(extent_text, values))}]"
            case graph.StringImm(value):
                return quoted(value)
            case graph.DataTypeImm(value):
                return f"dtype({quoted(value)})"
            case graph.PrimValue(value):
                number = getattr(value, "value", None)
                return f"prim_value({extent_text(value) if number is None else attribute(number)})"
        return str(getattr(node, "global_symbol", node))

    def _constant(self, node: graph.Constant) -> str:
        found = literal(node)
        if found is not None:
            return found
        place = self._places.get(id(node))
        if place is None:
            place = self._places[id(node)] = len(self.constants)
            self.constants.append(node)
        return f"meta[relay.Constant][{place}]"


_NONE = object()


def _same(value: Any, default: Any) -> bool:
    """Whether an attribute is as the signature has it."""
    return type(value) is type(default) and bool(value == default)


def literal(node: graph.Constant) -> str | None:
    """A tensor without axes as a number that reads back as the same one; None for others."""
    kind = str(node.data.dtype)
    if len(node.data.shape) or kind not in SUFFIXES:
        return None
    value = node.view()[()]
    if isinstance(value, np.floating):
        return f"{str(value).removesuffix('.0')}{SUFFIXES[kind]}"
    return str(bool(value)) if kind == "bool" else f"{int(value)}{SUFFIXES[kind]}"


def attribute(value: Any) -> str:
    """An attribute as text."""
    match value:
        case None | bool():
            return str(value)
        case float():
            return f"{str(value).removesuffix('.0')}f" if math.isfinite(value) else f"{value}f"
        case str():
            return quoted(str(value))
        case tuple() | list():
            return f"[{', '.join(map(attribute, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{quoted(str(key))}={attribute(one)}' for key, one in value.items())}}}"
    return str(value)


# Attributes that a text of TVM leaves out where they are this, whatever the function that makes calls would take.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "nn.batch_matmul": {"transpose_b": False},
    "nn.leaky_relu": {"alpha": 0.25},
    "nn.lrn": {"alpha": 0.0001},
    "nn.bitpack": {"bit_axis": -1},
    **{f"image.resize{n}d": {"rounding_method": "round"} for n in (1, 2, 3)},
    "dyn.image.resize2d": {"rounding_method": "round"},
}
# Those that it never leaves out.
_SHOWN = {"transpose": ("axes",), **{f"nn.{kind}_pool{n}d": ("pool_size",) for kind in ("max", "avg") for n in (1, 2, 3)}}


def type_text(given: Any) -> str:
    """A type as text: `Tensor[(1, 16), float32]`, `float32`, `(int32, float32)`, `fn (float32) -> float32`."""
    if given is None:
        return "_"
    if isinstance(given, (str, TypeVar, GlobalTypeVar)) or hasattr(given, "shape"):
        return str(given)
    if isinstance(given, RefType):
        return f"ref({type_text(given.value)})"
    if isinstance(given, TypeCall):
        return f"{given.func}[{', '.join(map(type_text, given.args))}]" if given.args else str(given.func)
    if hasattr(given, "fields"):
        inside = ", ".join(map(type_text, given.fields))
        return f"({inside},)" if len(given.fields) == 1 else f"({inside})"
    if hasattr(given, "arg_types"):
        return f"fn ({', '.join(map(type_text, given.arg_types))}) -> {type_text(given.ret_type)}"
    found = type_of(given)
    return "_" if found is None else type_text(found)


def pattern_text(pattern: Any, name: Callable[[Any], str] = lambda var: f"%{var.name_hint}") -> str:
    """A pattern as text: `Cons(%h, _)`."""
    match pattern:
        case PatternVar(var):
            return name(var)
        case PatternConstructor(constructor, patterns):
            inside = ", ".join(pattern_text(one, name) for one in patterns)
            return f"{constructor.name_hint}({inside})" if patterns else str(constructor.name_hint)
        case PatternTuple(patterns):
            return f"({', '.join(pattern_text(one, name) for one in patterns)}{',' if len(patterns) == 1 else ''})"
    return "_"


def definition_text(definition: Any) -> list[str]:
    """The definition of an algebraic type, as lines."""
    params = f"[{', '.join(map(type_text, definition.type_vars))}]" if definition.type_vars else ""
    fields = ((one.name_hint, ", ".join(map(type_text, one.inputs))) for one in definition.constructors)
    return [f"type {definition.header}{params} {{", *(f"  {name}({inside})," if inside else f"  {name}," for name, inside in fields), "}"]


def attribute_defaults(op: Any) -> dict[str, Any]:
    """What attributes that a text leaves out are: as the function of the operator has them, but for those of which TVM says otherwise."""
    row = ROWS.get(op) if isinstance(op, Op) else None
    known = {} if row is None else {p.name: p.default for p in row.signature.parameters.values() if p.name not in row.arguments}
    return {**known, **_DEFAULTS.get(str(op), {})}


def _with_metadata(lines: list[str], printer: RelayPrinter, wanted: bool) -> str:
    text = "\n".join(lines)
    if not wanted or not printer.constants:
        return text
    saved = Object._printers["json"]({"relay.Constant": [graph.Constant(one.data) for one in printer.constants]})
    return f"{text}\n\n#[metadata]\n{saved}"


def expression_text(expr: Any, annotate: Annotate | None = None, metadata: bool = False) -> str:
    """An expression or function by itself."""
    printer = RelayPrinter(annotate)
    with deep_recursion:
        return _with_metadata(printer.expression(expr), printer, metadata)


def module_text(mod: IRModule, annotate: Annotate | None = None, metadata: bool = False, constants: list[Any] | None = None) -> str:
    """All functions of a module: those of Relay first, others in their own languages, which `parser` doesn't read.

    Args:
        mod: the module.
        annotate: remarks by expression.
        metadata: with the constants that have no literals.
        constants: gets these.
    """
    printer = RelayPrinter(annotate)
    printer.constants = printer.constants if constants is None else constants
    lines: list[str] = []
    others: list[str] = []
    for definition in mod.type_definitions.values():
        lines += [*([""] if lines else []), *definition_text(definition)]
    for var, func in sorted(mod.functions_items(), key=lambda item: (item[0].name_hint == "main", item[0].name_hint)):
        if isinstance(func, Function):
            with deep_recursion:
                lines += [*([""] if lines else []), *printer.function(func, var.name_hint)]
        else:
            others += ["", *(func.script(name=var.name_hint) if isinstance(func, PrimFunc) else str(func)).splitlines()]
    return _with_metadata([*lines, *others], printer, metadata)
