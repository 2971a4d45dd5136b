"""Rules that say what stands in place of a call: what most passes that simplify consist of.

    def rule(graph: Rewriter, call: Call) -> expression | None

A rule looks at the call, at what its operands are bound to (`graph.value`), how often a variable is used (`graph.uses`), and returns
an expression that may nest: operands that are calls get variables of their own. `rewritten` applies rules until none fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import PassError
from ...lower.passes import ModulePass
from ...tir.op_registry import Op
from ..analysis import remove_all_unused
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..struct_info import StructInfo
from ..visitor import Mutator, bound_info, operands, walk
from .canonicalize import canonical
from .passes import each_function

Rule: TypeAlias = Callable[["Rewriter", Call], Any]
Rules: TypeAlias = Mapping[str, Sequence[Rule]]

_MOST_ROUNDS = 64


class Rewriter(Mutator):
    """Rewrites one function by rules, bindings in order.

    Args:
        rules: by the operators ("relax.add") of the calls that they look at; those of "" look at all.
        func: the function, for counting uses.
    """

    def __init__(self, rules: Rules, func: Any = None) -> None:
        super().__init__()
        self._rules = rules
        self._pending: list[Binding] = []
        self._in_dataflow = False
        self.bound: dict[Var, Any] = {}
        self._uses: Counter[Any] = Counter(node for node in walk(func) if isinstance(node, Var)) if func is not None else Counter()
        if isinstance(func, Function):
            # A walk comes to parameters where they are declared, which is no use.
            self._uses.subtract(func.params)
        self._users: dict[Any, list[Any]] = {}
        for sequence in [node for node in walk(func) if isinstance(node, SeqExpr)] if func is not None else ():
            for value in (*(binding.value for binding in sequence.bindings()), Tuple((sequence.body,))):
                for leaf in _leaves(value):
                    self._users.setdefault(leaf, []).append(value)
        self.changed = False

    # What rules ask

    def value(self, expr: Any) -> Any:
        """What a variable is bound to; other expressions, parameters among them, are themselves."""
        while isinstance(expr, Var) and expr in self.bound:
            expr = self.bound[expr]
        return expr

    def call(self, expr: Any, *names: str) -> Call | None:
        """The call that an operand is, if it is of one of these operators ("relax.add")."""
        found = self.value(expr)
        return found if isinstance(found, Call) and isinstance(found.op, Op) and str(found.op) in names else None

    def uses(self, expr: Any) -> int:
        """How often a variable is used; at least so often where rules have changed things."""
        return self._uses[expr]

    def only(self, expr: Any, *names: str) -> Call | None:
        """As `call`, of a variable that nothing else uses."""
        return self.call(expr, *names) if self._uses[expr] <= 1 else None

    def users(self, expr: Any) -> Sequence[Any]:
        """The values that a variable is an operand of, as they were before the rules; a tuple for the result of a sequence."""
        return self._users.get(expr, ())

    def has(self, name: str, rules: Sequence[Rule]) -> bool:
        """Whether these are among the rules for an operator ("relax.add")."""
        return all(rule in self._rules.get(name, ()) for rule in rules)

    def emit(self, expr: Any, hint: str = "lv") -> Any:
        """A variable for an expression; what is one, or a constant, is itself."""
        # Rules look at what other rules have made, too.
        made = self.rewrite(self._flat(expr))
        if not isinstance(made, (Call, TupleGetItem, If, Tuple)):
            return made
        var = (DataflowVar if self._in_dataflow else Var)(hint, made.struct_info)
        self._pending.append(VarBinding(var, made))
        self.bound[var] = made
        self._uses[var] = 1
        return var

    # How functions are rewritten

    def rewrite(self, expr: Any) -> Any:
        """What rules put in place of a call, until none fits."""
        for _ in range(_MOST_ROUNDS):
            if not isinstance(expr, Call):
                return expr
            found = self._by_a_rule(expr)
            if found is None:
                return expr
            self.changed = True
            expr = self._flat(found)
        raise PassError(f"rules don't come to an end at {expr}")

    def _by_a_rule(self, call: Call) -> Any:
        own = self._rules.get(call.op, ()) if isinstance(call.op, Op) else ()
        for rule in (*own, *self._rules.get("", ())):
            found = rule(self, call)
            if found is not None and found is not call:
                return found
        return None

    def _flat(self, expr: Any) -> Any:
        """An expression whose operands are variables and constants."""
        match expr:
            case Call():
                args = tuple(map(self.leaf, expr.args))
                if all(a is b for a, b in zip(args, expr.args, strict=True)):
                    return expr
                return Call(expr.op, args, expr.attrs, expr.sinfo_args, expr.__dict__.get("struct_info"))
            case Tuple(fields):
                made = tuple(map(self.leaf, fields))
                return expr if all(a is b for a, b in zip(made, fields, strict=True)) else Tuple(made)
            case TupleGetItem(value, index):
                leaf = self.leaf(value)
                return expr if leaf is value else TupleGetItem(leaf, index)
        return expr

    def leaf(self, expr: Any) -> Any:
        """An operand: what is none of its own gets a variable."""
        if isinstance(expr, Tuple):
            return self._flat(expr)
        return self.emit(expr) if isinstance(expr, (Call, TupleGetItem, If)) else expr

    def binding(self, binding: Binding) -> list[Binding]:
        """The bindings in place of one: those of operands first; none for a variable that is another one."""
        value = self._flat(self.visit(binding.value))
        if isinstance(binding, MatchCast):
            return [*self._taken(), MatchCast(self.define(binding.var, binding.struct_info), value, binding.struct_info)]
        # An output keeps its binding to a DataflowVar: that one can't be read behind the block.
        if isinstance(value, Constant) or (
            isinstance(value, Var) and (isinstance(binding.var, DataflowVar) or not isinstance(value, DataflowVar))
        ):
            self._variables[binding.var] = value
            self._uses[value] += self._uses[binding.var] - 1
            return self._taken()
        var = self.define(binding.var, bound_info(binding.var, value))
        self.bound[var] = value
        return [*self._taken(), VarBinding(var, value)]

    def _taken(self) -> list[Binding]:
        taken, self._pending = self._pending, []
        return taken

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable in place of one, which is used as often."""
        new = super().define(var, info)
        self._uses[new], self._users[new] = self._uses[var], self._users.get(var, [])
        return new

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten; the variables that end with it aren't seen afterwards."""
        outer = self._pending, self._in_dataflow
        self._pending, self._in_dataflow = [], isinstance(block, DataflowBlock)
        made = super().block(block)
        self._pending, self._in_dataflow = outer
        if isinstance(block, DataflowBlock):
            for binding in made.bindings:
                if any(isinstance(node, DataflowVar) for node in _leaves(binding.value)):
                    self.bound.pop(binding.var, None)
        return made

    def _mapped(self, expr: Any) -> Any:
        if not isinstance(expr, SeqExpr):
            return super()._mapped(expr)
        blocks = [self.block(block) for block in expr.blocks]
        outer, self._pending = (self._pending, self._in_dataflow), []
        self._in_dataflow = False
        body = self.leaf(self.visit(expr.body))
        # Calls of the body itself stand behind the last block, where a dataflow block has ended.
        if self._pending:
            blocks.append(BindingBlock(tuple(self._pending)))
        self._pending, self._in_dataflow = outer
        kept = tuple(block for block in blocks if block.bindings)
        same = body is expr.body and len(kept) == len(expr.blocks) and all(a is b for a, b in zip(kept, expr.blocks, strict=True))
        return expr if same else SeqExpr(kept, body)


def _leaves(expr: Any) -> Iterable[Any]:
    """The operands of an expression, and those that are in tuples."""
    for operand in operands(expr):
        yield from operand.fields if isinstance(operand, Tuple) else (operand,)


def joined(*tables: Rules) -> Rules:
    """The rules of several tables, in order."""
    return {name: [rule for table in tables for rule in table.get(name, ())] for table in tables for name in table}


def rewritten(func: Function, rules: Rules) -> Function:
    """A function to which rules have been applied until none fits; what they leave unused is gone.

    Raises:
        PassError: if the rules come to no end.
    """
    for _ in range(_MOST_ROUNDS):
        # Anew for each round: uses are counted in a function as it is before the rules.
        rewriter = Rewriter(rules, func)
        new = rewriter.function(func)
        if not rewriter.changed:
            return func
        func = remove_all_unused(canonical(new))
    raise PassError("rules don't come to an end")


def rule_pass(name: str, *tables: Rules) -> ModulePass:
    """A pass that applies rules to each function."""
    rules = joined(*tables)
    return each_function(name, lambda func, mod: rewritten(func, rules))
