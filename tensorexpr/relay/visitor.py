"""Walks over expressions of Relay's programs: each node once, however many others use it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..relax import expr as graph
from ..tir.op_registry import Op
from .adt import Clause, Constructor, Match, pattern_vars
from .expr import Call, Function, If, Let, Tuple, TupleGetItem, placed
from .references import RefCreate, Reference, RefRead, RefWrite


def operands(expr: Any) -> tuple[Any, ...]:
    """The expressions that an expression is made of."""
    match expr:
        case Let(var, value, body):
            return (var, value, body)
        case Function():
            return (*expr.params, expr.body)
        case graph.Call():
            return (*(() if isinstance(expr.op, Op) else (expr.op,)), *expr.args)
        case graph.Tuple():
            return expr.fields
        case graph.TupleGetItem():
            return (expr.tuple_value,)
        case graph.If():
            return (expr.cond, expr.true_branch, expr.false_branch)
        case Match(data, clauses):
            return (data, *(one for clause in clauses for one in (*pattern_vars(clause.lhs), clause.rhs)))
    return ()


def walk(expr: Any, parts: Callable[[Any], Sequence[Any]] = operands) -> Iterator[Any]:
    """All expressions, operands before what is made of them, each once; `parts` are what of an expression is walked first."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(expr, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(parts(node)))


Steps = Generator[Any, Any, Any]


def trampoline(first: Steps, begin: Callable[[Any], Steps | None], known: Callable[[Any], Any]) -> Any:
    """Run steps that ask for the results of other steps, without Python's stack: a network is thousands of calls deep.

    Args:
        first: a generator that yields expressions, gets their results and returns its own.
        begin: the steps of an expression that isn't known.
        known: the result of an expression, or None.
    """
    stack, result = [first], None
    while True:
        try:
            asked = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
            if not stack:
                return result
            continue
        result = known(asked)
        if result is None:
            steps = begin(asked)
            if steps is not None:
                stack.append(steps)


class ExprFunctor:
    """Calls the method of a node's kind, and remembers its result: a node that is used twice is visited once."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}

    def visit(self, expr: Any) -> Any:
        """The result for an expression.

        Raises:
            TypeError: for what is no expression.
        """
        if expr in self.memo_map:
            return self.memo_map[expr]
        if isinstance(expr, _ARGUMENTS):  # of the operators of graphs that a function may have: reshape(x, (n, 2))
            return expr
        name = next((method for kind, method in _METHODS.items() if isinstance(expr, kind)), None)
        if name is None:
            raise TypeError(f"a visitor visits expressions, not {type(expr).__name__}")
        made = getattr(self, name)(expr)
        self.memo_map[expr] = made
        return made

    def _unhandled(self, expr: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method for {type(expr).__name__}")

    visit_function = visit_let = visit_call = visit_var = visit_if = visit_tuple = visit_tuple_getitem = _unhandled
    visit_global_var = visit_op = visit_constant = visit_match = visit_constructor = _unhandled
    visit_ref_create = visit_ref_read = visit_ref_write = _unhandled


_METHODS: dict[type, str] = {
    RefCreate: "visit_ref_create", RefRead: "visit_ref_read", RefWrite: "visit_ref_write",  # which are calls, too
    Function: "visit_function", Let: "visit_let", graph.Call: "visit_call", graph.Var: "visit_var", graph.If: "visit_if",
    graph.Tuple: "visit_tuple", graph.TupleGetItem: "visit_tuple_getitem", graph.GlobalVar: "visit_global_var", Op: "visit_op",
    graph.Constant: "visit_constant", Match: "visit_match", Constructor: "visit_constructor",
}  # fmt: skip


_ARGUMENTS = (graph.ShapeExpr, graph.PrimValue, graph.StringImm, graph.DataTypeImm, graph.ExternFunc)


class ExprVisitor(ExprFunctor):
    """Visits all parts of an expression; a method that is overridden decides whether to go on."""

    def _operands(self, expr: Any) -> None:
        for one in operands(expr):
            self.visit(one)

    def visit_call(self, call: Any) -> None:
        """Visit the operator or function, then the arguments."""
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def _leaf(self, expr: Any) -> None:
        """Nothing to visit in it."""

    visit_function = visit_let = visit_if = visit_tuple = visit_tuple_getitem = visit_match = _operands
    visit_ref_create = visit_ref_read = visit_ref_write = _operands
    visit_var = visit_global_var = visit_op = visit_constant = visit_constructor = _leaf


class ExprMutator(ExprFunctor):
    """Rewrites an expression: a method returns what stands in place of its node. What doesn't change stays the node that it is."""

    def visit_function(self, fn: Function) -> Any:
        """Rewrite the parameters and the body."""
        params, body = tuple(map(self.visit, fn.params)), self.visit(fn.body)
        same = body is fn.body and all(a is b for a, b in zip(params, fn.params, strict=True))
        return fn if same else replace(fn, params=params, body=body, ret_type=fn.ret_type if body is fn.body else None)

    def visit_let(self, let: Let) -> Any:
        """Rewrite the variable, its value and the body."""
        made = self.visit(let.var), self.visit(let.value), self.visit(let.body)
        return let if made == (let.var, let.value, let.body) else Let(*made, let.span)

    def visit_call(self, call: Any) -> Any:
        """Rewrite the operator or function and the arguments."""
        op, args = self.visit(call.op), [self.visit(arg) for arg in call.args]
        return call if op is call.op and all(a is b for a, b in zip(args, call.args, strict=True)) else remade(call, op, args)

    def visit_tuple(self, tup: Any) -> Any:
        """Rewrite the values."""
        made = [self.visit(one) for one in tup.fields]
        return tup if all(a is b for a, b in zip(made, tup.fields, strict=True)) else Tuple(made, _span(tup))

    def visit_tuple_getitem(self, op: Any) -> Any:
        """Rewrite the tuple."""
        made = self.visit(op.tuple_value)
        if made is op.tuple_value:
            return op
        return made.fields[op.index] if isinstance(made, graph.Tuple) else TupleGetItem(made, op.index, _span(op))

    def visit_if(self, ite: Any) -> Any:
        """Rewrite the condition and the branches."""
        parts = ite.cond, ite.true_branch, ite.false_branch
        made: Any = tuple(map(self.visit, parts))
        return ite if all(a is b for a, b in zip(made, parts, strict=True)) else If(made[0], made[1], made[2], _span(ite))

    def visit_match(self, m: Match) -> Any:
        """Rewrite the value and what clauses are; patterns stay."""
        data, made = self.visit(m.data), [self.visit(clause.rhs) for clause in m.clauses]
        if data is m.data and all(a is clause.rhs for a, clause in zip(made, m.clauses, strict=True)):
            return m
        return Match(data, tuple(Clause(clause.lhs, a) for a, clause in zip(made, m.clauses, strict=True)), m.complete)

    def _reference(self, expr: Any) -> Any:
        args = [self.visit(arg) for arg in expr.args]
        return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else remade(expr, expr.op, args)

    visit_ref_create = visit_ref_read = visit_ref_write = _reference

    def _itself(self, expr: Any) -> Any:
        return expr

    visit_var = visit_global_var = visit_op = visit_constant = visit_constructor = _itself


class SameTypes(ExprMutator):
    """Rewrites what is computed and not its type, so that what functions state stays true."""

    def visit_function(self, fn: Function) -> Any:
        """A function."""
        made = super().visit_function(fn)
        return made if made is fn else replace(made, ret_type=fn.ret_type)


def _span(node: Any) -> Any:
    """Where a node stands; those of graphs don't say."""
    return getattr(node, "span", None)


def remade(call: Any, op: Any, args: Any) -> Any:
    """A call of the same attributes with another operator or arguments."""
    if isinstance(call, Reference):
        return placed(type(call)(*args), call.span)
    if isinstance(op, Op) and str(op).startswith("relax."):  # an operator of graphs, whose arguments may be shapes and numbers
        return graph.Call(op, args, call.attrs, call.sinfo_args)
    return Call(op, args, call.attrs, span=_span(call))


class _Substitution(ExprMutator):
    def __init__(self, values: Mapping[Any, Any]) -> None:
        super().__init__()
        self.memo_map.update(values)


def mutated(mutator: ExprMutator, expr: Any) -> Any:
    """An expression rewritten, from its operands up, so that no method of the mutator calls itself deeply."""
    for node in walk(expr):
        mutator.visit(node)
    return mutator.visit(expr)


def substitute(expr: Any, values: Mapping[Any, Any]) -> Any:
    """An expression with others in place of variables."""
    return mutated(_Substitution(values), expr)


def know_operands(expr: Any) -> None:
    """Derive what is known of an expression's operands from the bottom up: thousands of calls in a row are too many for Python's stack.

    What is known already isn't looked at again, so that a network whose layers ask for types takes a step for each, not all for each.
    """
    seen: set[int] = set()
    stack = [(expr, False)]
    while stack:
        node, done = stack.pop()
        if done:
            if node is not expr:
                _ = getattr(node, "struct_info", None)
        elif id(node) not in seen:  # marked when it is entered: what two others use is in front of both
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((one, False) for one in operands(node) if "struct_info" not in getattr(one, "__dict__", ("struct_info",)))


def has_effects(expr: Any) -> bool:
    """Whether there are references in an expression, or in functions in it."""
    return any(isinstance(node, Reference) for node in walk(expr))


def free_vars(expr: Any) -> list[Any]:
    """The variables that an expression uses and doesn't bind, in the order of their first uses."""
    order = list(walk(expr))
    bound = {node.var for node in order if isinstance(node, Let)}
    bound.update(param for node in order if isinstance(node, Function) for param in node.params)
    bound.update(var for node in order if isinstance(node, Match) for clause in node.clauses for var in pattern_vars(clause.lhs))
    return [node for node in order if isinstance(node, graph.Var) and node not in bound]


def post_order_visit(expr: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call a function with each expression once, operands before what is made of them."""
    for node in walk(expr):
        fvisit(node)
