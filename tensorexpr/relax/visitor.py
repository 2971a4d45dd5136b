"""Walks through graphs: every expression in order of evaluation, and functions rewritten binding by binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..dataclass import replace
from ..tir.expr import PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.rewriting import substitute
from .expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    PrimValue,
    RelaxExpr,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .relations import is_base_of
from .struct_info import ShapeExpr, StructInfo, with_symbols


def operands(expr: Any) -> tuple[Any, ...]:
    """The expressions that an expression is made of, bindings aside."""
    match expr:
        case Call():
            return (*(() if isinstance(expr.op, str) else (expr.op,)), *expr.args)
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
        case If():
            return (expr.cond, expr.true_branch, expr.false_branch)
        case SeqExpr():
            return (*(binding.value for binding in expr.bindings()), expr.body)
        case Function():
            return (*expr.params, expr.body)
    return ()


def walk(expr: Any, parameters: bool = True) -> Iterator[Any]:
    """All expressions of a graph, operands before what is made of them; `parameters` of functions with them, where these are declared."""
    # By a stack: nested generators would hand each node through all levels above it.
    stack: list[tuple[Any, bool]] = [(expr, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        else:
            stack.append((node, True))
            inside = operands(node) if parameters or not isinstance(node, Function) else (node.body,)
            stack.extend((operand, False) for operand in reversed(inside))


def post_order_visit(expr: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call a function with each expression, operands before what is made of them; parameters where they are used, not where declared."""
    for node in walk(expr, parameters=False):
        fvisit(node)


def bindings_of(expr: Any) -> Iterator[Binding]:
    """All bindings of a graph, those of branches and inner functions among them."""
    for node in walk(expr):
        if isinstance(node, SeqExpr):
            yield from node.bindings()


def bound_info(var: Var, value: Any) -> StructInfo:
    """What is known of a variable that is bound to a value: what is known of that, but for a function that calls itself by the variable."""
    calls_itself = isinstance(value, Function) and any(node is var for node in walk(value))
    # Another variable would leave the calls inside without one.
    info: StructInfo = var.struct_info if calls_itself else value.struct_info
    return info


class Mutator:
    """Rewrites an expression, operands first; override `rewrite` for what shall be another.

    Variables of bindings are made anew where what is known of their value changes. An operator's result is derived again, unless it was
    stated.
    """

    def __init__(self, variables: Mapping[Var, Any] | None = None, symbols: Mapping[Symbol, PrimExpr] | None = None) -> None:
        self._variables: dict[Any, Any] = dict(variables or {})
        self._symbols = dict(symbols or {})

    def rewrite(self, expr: Any) -> Any:
        """What stands in place of an expression whose operands are rewritten."""
        return expr

    def binding(self, binding: Binding) -> list[Binding]:
        """The bindings in place of one."""
        value = self.visit(binding.value)
        if isinstance(binding, MatchCast):
            info = with_symbols(binding.struct_info, self._symbols)
            return [MatchCast(self.define(binding.var, info), value, info)]
        return [VarBinding(self.define(binding.var, bound_info(binding.var, value)), value)]

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable in place of one, of a value of which this is known."""
        # The same variable where nothing new is known, so that a function that nothing changes stays itself.
        new = var if info is var.struct_info or info == var.struct_info else type(var)(var.name_hint, info)
        self._variables[var] = new
        return new

    def visit(self, expr: Any) -> Any:
        """An expression rewritten."""
        if isinstance(expr, Var):
            return self._variables.get(expr, expr)
        return self.rewrite(self._mapped(expr))

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten; itself if nothing changes."""
        new = [made for binding in block.bindings for made in self.binding(binding)]
        same = len(new) == len(block.bindings) and all(
            a.var is b.var and a.value is b.value for a, b in zip(new, block.bindings, strict=True)
        )
        return block if same and not self._symbols else type(block)(tuple(new))

    def _mapped(self, expr: Any) -> Any:
        match expr:
            case Call():
                return self._call(expr)
            case Tuple(fields):
                new = tuple(map(self.visit, fields))
                return expr if _same(new, fields) else Tuple(new)
            case TupleGetItem(value, index):
                made = self.visit(value)
                return expr if made is value else made.fields[index] if isinstance(made, Tuple) else TupleGetItem(made, index)
            case If(cond, yes, no):
                parts = self.visit(cond), self.visit(yes), self.visit(no)
                return expr if _same(parts, (cond, yes, no)) else If(*parts)
            case SeqExpr():
                blocks = tuple(map(self.block, expr.blocks))
                body = self.visit(expr.body)
                blocks = tuple(block for block in blocks if block.bindings)
                return expr if body is expr.body and _same(blocks, expr.blocks) else SeqExpr(blocks, body)
            case Function():
                return self.function(expr)
            case ShapeExpr(values) if self._symbols:
                return ShapeExpr(tuple(substitute(value, self._symbols) for value in values))
            case PrimValue(value) if self._symbols:
                return PrimValue(substitute(value, self._symbols))
        return expr

    def _call(self, call: Call) -> Call:
        op, args = call.op if isinstance(call.op, str) else self.visit(call.op), tuple(map(self.visit, call.args))
        infos = tuple(with_symbols(info, self._symbols) for info in call.sinfo_args)
        if op is call.op and _same(args, call.args) and _same(infos, call.sinfo_args):
            return call
        # An operator's result follows from the new operands; what a function returns isn't known here, and stays as it was said.
        stated = call.__dict__.get("struct_info") if not isinstance(op, str) else None
        return Call(op, args, call.attrs, infos, None if stated is None else with_symbols(stated, self._symbols))

    def function(self, func: Function) -> Function:
        """A function rewritten; itself if nothing changes."""
        params = tuple(self.define(param, with_symbols(param.struct_info, self._symbols)) for param in func.params)
        body = self.visit(func.body)
        if _same(params, func.params) and body is func.body:
            return func
        # What is stated may be more than what is known of a new body; a body that contradicts it speaks for itself.
        stated = with_symbols(func.ret_struct_info, self._symbols)
        kept: Any = stated if is_base_of(body.struct_info, stated) else None
        return replace(func, params=params, body=body, ret_struct_info=kept)


def _same(new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


__all__ = ["DataflowBlock", "DataflowVar", "Mutator", "RelaxExpr", "bindings_of", "operands", "post_order_visit", "walk"]
