"""Rewrites by patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...dataclass import dataclass, field
from ...errors import DeclarationError, PassError, TypeMismatchError
from ...lower.passes import ModulePass
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..analysis import remove_all_unused
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..rebuild import Rebuilder
from ..relations import bind_symbols
from ..struct_info import ObjectStructInfo, StructInfo, symbols_of, with_symbols
from ..visitor import Mutator, bindings_of, walk
from . import joint
from .context import PatternContext
from .matcher import Matcher
from .pattern import DFPattern, OrPattern
from .words import is_expr, is_op, is_tuple, is_tuple_get_item, wildcard

_ROUNDS = 100
Matched = Mapping[DFPattern, Any]


@dataclass(frozen=True, eq=False)
class Rule:
    """A pattern, what stands in place of what it matches, and functions that this calls, by name.

    func: from the expression and what the parts of the pattern match to the new expression; None, or the old one, leaves it.
    """

    pattern: DFPattern
    func: Callable[[Any, Matched], Any]
    functions: Mapping[str, Any] = field(default_factory=dict)


class _CallRewriter(Rebuilder):
    """Replaces what patterns match, the first one that does; values that match a tuple's fields `together`, or each by itself."""

    def __init__(self, rules: Sequence[Rule], mod: IRModule | None, together: bool) -> None:
        super().__init__(mod)
        self._rules, self._mod, self._together = rules, mod, together
        self._wholes = set[Var]()
        self.changed = False

    def rewrite(self, expr: Any) -> Any:
        """What a rule makes of an expression, or the expression."""
        # A variable is matched where it is bound, not at each of its uses.
        if self._together or isinstance(expr, (SeqExpr, Function, Var)):
            return expr
        for rule in self._rules:
            for pattern in _alternatives(rule.pattern):
                matched = Matcher(self.builder_.values).extract(pattern, expr)
                if matched is None:
                    continue
                made = self._made(rule, expr, {**matched, rule.pattern: matched[pattern]})
                if made is not None and made is not expr:
                    self.changed = True
                    return made
        return expr

    def _made(self, rule: Rule, expr: Any, matched: Matched) -> Any:
        """What a rule makes of what it has matched, of functions that the module has."""
        made = rule.func(expr, matched)
        return _Linked(self._added, rule.functions).visit(made) if rule.functions and made is not None and made is not expr else made

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten."""
        for rule in self._rules:
            if self._together and joint.is_joint(rule.pattern):
                made = joint.rewritten(block, rule.pattern, partial(self._made, rule), self.builder_.values)
                if made is not None:
                    self.changed, (block, whole) = True, made
                    self._wholes.add(whole)
        return super().block(block)

    def emit_value(self, binding: VarBinding, value: Any) -> None:
        """Emit a new value; of a tuple whose fields others are only these."""
        made = self.builder_.normalize(value)
        if binding.var in self._wholes and isinstance(made, Tuple):
            self._variables[binding.var] = made
        else:
            super().emit_value(binding, made)

    def _added(self, name: str, functions: Mapping[str, Any]) -> GlobalVar:
        """The variable of a function of a rule in the module."""
        if self._mod is None:
            raise DeclarationError(f"rewriting by patterns: the replacement calls {name}; rewrite a module, which gets that function")
        return self.builder_.add_func(_Linked(self._added, functions).visit(functions[name]), name)


class _Linked(Mutator):
    """Calls of a rule's functions as calls of those in the module."""

    def __init__(self, add: Callable[[str, Mapping[str, Any]], GlobalVar], functions: Mapping[str, Any]) -> None:
        super().__init__()
        self._add, self._functions = add, functions

    def visit(self, expr: Any) -> Any:
        """An expression of functions that the module has."""
        if isinstance(expr, GlobalVar) and expr.name_hint in self._functions:
            return self._add(expr.name_hint, self._functions)
        return expr if isinstance(expr, PrimFunc) else super().visit(expr)


def _alternatives(pattern: DFPattern) -> Iterator[DFPattern]:
    """The patterns that a pattern is one of: where a rule leaves what the first of them matches, the next one is tried."""
    if type(pattern) is OrPattern:
        yield from _alternatives(pattern.left)
        yield from _alternatives(pattern.right)
    else:
        yield pattern


class PatternMatchingRewriter(ModulePass):
    """Rewrites what patterns match, until none does that changes anything; then what nothing uses goes. It is a pass, too.

    Args:
        rules: patterns, each with a function from the expression and what the parts of the pattern match to the new expression; it may
            return the expression itself, or None, to leave it.
    """

    rules: list[Rule]

    def __init__(self, rules: Sequence[Rule | tuple[DFPattern, Callable[[Any, Matched], Any]]]) -> None:
        super().__init__("PatternMatchingRewriter", lambda func, ctx: func, module_func=lambda mod, ctx: self._module(mod))
        object.__setattr__(self, "rules", [one if isinstance(one, Rule) else Rule(*one) for one in rules])

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callable[[Any, Matched], Any]) -> PatternMatchingRewriter:
        """A rewriter of one rule."""
        return PatternMatchingRewriter([(pattern, func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """A rewriter of a module with functions `pattern` and `replacement` of the same parameters, as `R.rewriter` makes one.

        The replacement may call other, private functions of the module: the rewritten module gets those that it needs.

        Raises:
            DeclarationError: if there aren't two such, or others aren't private.
            TypeMismatchError: if one of both is a tensor function.
        """
        functions: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items()}
        for name in ("pattern", "replacement"):
            if name not in functions:
                raise DeclarationError(f"a rewriter is a module of two functions of graphs, pattern and replacement; {name} is missing")
            if not isinstance(functions[name], Function):
                raise TypeMismatchError(f"{name} of a rewriter is a function of a graph, not a {type(functions[name]).__name__}")
        found, replacement = functions.pop("pattern"), functions.pop("replacement")
        signatures = [_signature(func) for func in (found, replacement)]
        if signatures[0] != signatures[1]:
            raise DeclarationError(f"pattern takes {signatures[0]} and replacement {signatures[1]}: both must have the same signature")
        public = [name for name, func in functions.items() if "global_symbol" in func.attrs]
        if public:
            raise DeclarationError(f"functions that a replacement calls are private; {public[0]} is publicly exposed")
        params = [_operand(param.struct_info) for param in found.params]

        def replaced(expr: Any, matched: Matched) -> Any:
            return _inlined(replacement, [matched[one] for one in params])

        return PatternMatchingRewriter([Rule(_as_pattern(found, params), replaced, functions)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self.rules, *other.rules])

    def __call__(self, mod: Any) -> Any:
        """A function or module rewritten.

        Raises:
            PassError: if the rules never come to an end.
            DeclarationError: if a replacement calls a function and no module is rewritten.
        """
        return super().__call__(mod) if isinstance(mod, IRModule) else self._function(mod, None)

    def _module(self, mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, self._function(func, made))
        return made

    def _function(self, func: Any, mod: IRModule | None) -> Any:
        """A function rewritten; the module gets functions that it calls then."""
        for _ in range(_ROUNDS):
            # A tuple that is there is rewritten as one; only then its fields where there is none.
            new = self._once(func, mod, False) or self._once(func, mod, True)
            if new is None:
                return func
            func = remove_all_unused(new) if isinstance(new, Function) else new
        raise PassError(f"rewriting by patterns: after {_ROUNDS} rounds a rule still changes something; let it leave what it has made")

    def _once(self, func: Any, mod: IRModule | None, together: bool) -> Any:
        """A function rewritten in one walk; None if nothing changes."""
        rewriter = _CallRewriter(self.rules, mod, together)
        new = rewriter.visit(func)
        for var, added in rewriter.builder_.get().functions_items():
            if mod is not None and var not in mod:
                mod.update_func(var, added)
        return new if rewriter.changed else None


def _signature(func: Function) -> list[str]:
    """What a function takes, with symbols by the order in which they come."""
    symbols = dict.fromkeys(symbol for param in func.params for symbol in symbols_of(param.struct_info))
    numbers = {symbol: Symbol(f"n{number}", symbol.dtype) for number, symbol in enumerate(symbols)}
    return [str(with_symbols(param.struct_info, numbers)) for param in func.params]


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
    """New values for variables. What several of them have in common, as parts of one product, is computed once."""

    def __init__(self, values: Mapping[Var, Any]) -> None:
        super().__init__()
        self._new = values
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity; the expressions live as long

    def visit(self, expr: Any) -> Any:
        """An expression rewritten, the same object each time."""
        if not isinstance(expr, (Call, Tuple, TupleGetItem)):
            return super().visit(expr)
        if id(expr) not in self._made:
            self._made[id(expr)] = expr, super().visit(expr)
        return self._made[id(expr)][1]

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten."""
        with self.builder_.sharing():
            return super().block(self._in_order(block))

    def _in_order(self, block: BindingBlock) -> BindingBlock:
        """The block with what new values use in front of them: the first of three products that become one needs the operands of all."""
        bound: dict[Var, Binding] = {binding.var: binding for binding in block.bindings}
        if bound.keys().isdisjoint(self._new):
            return block
        order: dict[Var, Binding] = {}
        begun: set[Var] = set()

        def place(binding: Binding) -> None:
            if binding.var in order:
                return
            if binding.var in begun:
                raise PassError(f"rewriting by patterns: the new value of {binding.var} is computed of {binding.var} itself")
            begun.add(binding.var)
            for node in walk(self._new.get(binding.var, binding.value)):
                if isinstance(node, Var) and node in bound:
                    place(bound[node])
            order[binding.var] = binding

        for binding in block.bindings:
            place(binding)
        return block if [*order.values()] == [*block.bindings] else type(block)(tuple(order.values()))

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
    symbols: dict[Any, Any] = {}
    for param, arg in known.items():
        bind_symbols(param.struct_info, arg.struct_info, symbols)
    extents = Mutator(symbols=symbols)

    def expr_of(expr: Any) -> Any:
        match expr:
            case Var():
                return known[expr]
            case Call():
                infos = tuple(with_symbols(info, symbols) for info in expr.sinfo_args)
                return Call(expr.op, tuple(map(expr_of, expr.args)), expr.attrs, infos)
            case Tuple(fields):
                return Tuple(tuple(map(expr_of, fields)))
            case TupleGetItem(value, index):
                return TupleGetItem(expr_of(value), index)
            case GlobalVar():
                return expr
        return extents.visit(expr)

    for binding in bindings_of(func.body):
        known[binding.var] = expr_of(binding.value)
    return expr_of(func.body.body)
