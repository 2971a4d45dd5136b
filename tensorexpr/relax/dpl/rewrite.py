"""Rewrites by patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError, PassError
from ...tir.function import IRModule
from ..analysis import remove_all_unused
from ..expr import Binding, Call, DataflowBlock, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..rebuild import Rebuilder
from ..struct_info import ObjectStructInfo, StructInfo
from ..visitor import bindings_of
from .context import PatternContext
from .matcher import Matcher
from .pattern import DFPattern
from .words import is_expr, is_op, is_tuple, is_tuple_get_item, wildcard

_ROUNDS = 100
Matched = Mapping[DFPattern, Any]


class _CallRewriter(Rebuilder):
    """Replaces what patterns match, the first one that does."""

    def __init__(self, rules: Sequence[tuple[DFPattern, Callable[[Any, Matched], Any]]], mod: IRModule | None = None) -> None:
        super().__init__(mod)
        self._rules = rules
        self.changed = False

    def rewrite(self, expr: Any) -> Any:
        """What a rule makes of an expression, or the expression."""
        # A variable is matched where it is bound, not at each of its uses.
        if isinstance(expr, (SeqExpr, Function, Var)):
            return expr
        for pattern, rule in self._rules:
            matched = Matcher(self.builder_.values).extract(pattern, expr)
            if matched is not None:
                made = rule(expr, matched)
                if made is not None and made is not expr:
                    self.changed = True
                    return made
        return expr


class PatternMatchingRewriter:
    """Rewrites what patterns match, until none does that changes anything; then what nothing uses goes.

    Args:
        rules: patterns, each with a function from the expression and what the parts of the pattern match to the new expression; it may
            return the expression itself, or None, to leave it.
    """

    def __init__(self, rules: Sequence[tuple[DFPattern, Callable[[Any, Matched], Any]]]) -> None:
        self.rules = list(rules)

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callable[[Any, Matched], Any]) -> PatternMatchingRewriter:
        """A rewriter of one rule."""
        return PatternMatchingRewriter([(pattern, func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """A rewriter of a module with functions `pattern` and `replacement` of the same parameters, as `R.rewriter` makes one.

        Raises:
            DeclarationError: if there aren't two such.
        """
        functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function)}
        found: Any = functions.get("pattern"), functions.get("replacement")
        for name, func in zip(("pattern", "replacement"), found, strict=True):
            if func is None:
                raise DeclarationError(f"a rewriter is a module of two functions of graphs, pattern and replacement; {name} is missing")
        if len(found[0].params) != len(found[1].params):
            raise DeclarationError(f"pattern takes {len(found[0].params)} values and replacement {len(found[1].params)}")
        params = [_operand(param.struct_info) for param in found[0].params]
        pattern = _as_pattern(found[0], params)

        def replaced(expr: Any, matched: Matched) -> Any:
            return _inlined(found[1], [matched[one] for one in params])

        return PatternMatchingRewriter([(pattern, replaced)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self.rules, *other.rules])

    def __call__(self, obj: Any) -> Any:
        """A function or module rewritten.

        Raises:
            PassError: if the rules never come to an end.
        """
        if isinstance(obj, IRModule):
            made = obj.clone()
            for var, func in obj.functions_items():
                if isinstance(func, Function):
                    made.update_func(var, self(func))
            return made
        for _ in range(_ROUNDS):
            rewriter = _CallRewriter(self.rules)
            new = rewriter.visit(obj)
            if not rewriter.changed:
                return new
            obj = remove_all_unused(new) if isinstance(new, Function) else new
        raise PassError(f"rewriting by patterns: after {_ROUNDS} rounds a rule still changes something; let it leave what it has made")


ExprPatternRewriter = PatternMatchingRewriter.from_pattern


def OrRewriter(lhs: PatternMatchingRewriter, rhs: PatternMatchingRewriter) -> PatternMatchingRewriter:
    """The rules of both."""
    return lhs | rhs


def rewrite_call(pattern: DFPattern, rewriter: Callable[[Any, Matched], Any], func: Function) -> Function:
    """A function in which each value that matches is what `rewriter` makes of it.

    Args:
        pattern: of values, which may reach over several bindings.
        rewriter: the expression and what each part of the pattern matches -> the new expression, or the old one.
        func: the function.

    Raises:
        PassError: if that never comes to an end.
    """
    made: Function = PatternMatchingRewriter([(pattern, rewriter)])(func)
    return made


def rewrite_bindings(
    ctx: PatternContext, rewriter: Callable[[dict[DFPattern, Var], dict[Var, Any]], Mapping[Var, Any]], func: Function
) -> Function:
    """A function in whose dataflow blocks values that match together are rewritten.

    Args:
        ctx: the patterns.
        rewriter: which variable each pattern matches, and what variables are bound to -> variables with new values.
        func: the function.
    """
    for number, block in enumerate(func.body.blocks):
        if isinstance(block, DataflowBlock):
            func = _rewritten_block(ctx, rewriter, func, number)
    return remove_all_unused(func)


def _rewritten_block(ctx: PatternContext, rewriter: Any, func: Function, number: int) -> Function:
    done: set[Var] = set()
    # A bound: each round is done with some variable, as what has matched doesn't match again.
    for _ in range(len(func.body.blocks[number].bindings) + 1):
        current = func.body.blocks[number]
        matched = next(ctx.matches(current, done), None)
        if matched is None:
            break
        values = {binding.var: binding.value for binding in current.bindings if isinstance(binding, VarBinding)}
        new = dict(rewriter(matched, values))
        done |= {var for var in matched.values() if var in values}
        replaced = _Replaced(new)
        func = replaced.visit(func)
        # Rewriting may put new variables in place of those that are done.
        done |= {replaced.visit(var) for var in done}
    return func


class _Replaced(Rebuilder):
    """New values for variables."""

    def __init__(self, values: Mapping[Var, Any]) -> None:
        super().__init__()
        self._new = values

    def emit_binding(self, binding: Binding) -> None:
        """Emit the new value of a variable, or the old one."""
        if isinstance(binding, VarBinding) and binding.var in self._new:
            self.emit_value(binding, self.visit(self._new[binding.var]))
        else:
            super().emit_binding(binding)


def _operand(info: StructInfo) -> DFPattern:
    return wildcard() if type(info) is ObjectStructInfo else wildcard().has_struct_info(info)


def _as_pattern(func: Function, params: Sequence[DFPattern]) -> DFPattern:
    """What a function returns, as a pattern of its parameters."""
    known: dict[Any, DFPattern] = dict(zip(func.params, params, strict=True))

    def pattern(expr: Any) -> DFPattern:
        match expr:
            case Var():
                return known[expr]
            case Call():
                callee = is_op(expr.op) if isinstance(expr.op, str) else is_expr(expr.op)
                made: DFPattern = callee(*map(pattern, expr.args), add_constraint=False)
                return made.has_attr(expr.attrs) if expr.attrs else made
            case Tuple(fields):
                return is_tuple([pattern(one) for one in fields])
            case TupleGetItem(value, index):
                return is_tuple_get_item(pattern(value), index)
        return is_expr(expr)

    for binding in bindings_of(func.body):
        known[binding.var] = pattern(binding.value)
    return pattern(func.body.body)


def _inlined(func: Function, args: Sequence[Any]) -> Any:
    """What a function returns for arguments, as one expression: bindings that occur twice are made once by who emits it."""
    known: dict[Any, Any] = dict(zip(func.params, args, strict=True))

    def expr_of(expr: Any) -> Any:
        match expr:
            case Var():
                return known[expr]
            case Call():
                return Call(expr.op, tuple(map(expr_of, expr.args)), expr.attrs, expr.sinfo_args)
            case Tuple(fields):
                return Tuple(tuple(map(expr_of, fields)))
            case TupleGetItem(value, index):
                return TupleGetItem(expr_of(value), index)
        return expr

    for binding in bindings_of(func.body):
        known[binding.var] = expr_of(binding.value)
    return expr_of(func.body.body)
