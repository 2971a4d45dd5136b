"""The simplifier's driver: operands first, then the rules of the node's kind, until nothing changes; no recursion."""

from __future__ import annotations

from ..tir.arithmetic import fold
from ..tir.expr import Call, IntImm, PrimExpr, Select, Var
from ..tir.rewriting import children, map_children
from .bounds import limits_of, plain_form
from .branches import is_scoped
from .constraints import under
from .facts import Facts
from .linear import Linear, is_scalar_int
from .rules import rewrite_affine, rewrite_node

# A node settles within a few steps; the cap only guards against rules that undo each other.
_STEP_LIMIT = 64


class _Frame:
    """One node on its way to its simplest form."""

    __slots__ = ("current", "generation", "node", "steps")

    def __init__(self, node: PrimExpr, generation: int = 0) -> None:
        self.node = self.current = node
        self.steps = 0
        self.generation = generation  # rewrites on the way from the expression that was asked for to this node


def simplify(facts: Facts, expr: PrimExpr, depth: int = 0) -> PrimExpr:
    """The simplest form found of `expr`, equal to it in every lane wherever the facts hold."""
    memo = facts.simplified
    found = memo.get(expr)
    if found is not None:
        return found
    stack = [_Frame(expr)]
    while stack:
        frame = stack[-1]
        current = frame.current
        done = memo.get(current)
        if done is not None:
            memo[frame.node] = done
            stack.pop()
            continue
        missing = [operand for operand in _operands(facts, current, depth) if operand not in memo]
        if missing:
            stack.extend(_Frame(operand, frame.generation + frame.steps) for operand in missing)
            continue
        after = _step(facts, current, depth)
        frame.steps += 1
        if after is current or frame.generation + frame.steps > _STEP_LIMIT:
            memo[current] = memo[frame.node] = current
            stack.pop()
        else:
            frame.current = after
    return memo[expr]


def _operands(facts: Facts, node: PrimExpr, depth: int) -> tuple[PrimExpr, ...]:
    if isinstance(node, Var):
        return ()
    if is_scalar_int(node.dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return tuple(form.terms)
    inner = _parts(node)
    return inner[:1] if is_scoped(facts, node, depth) else inner


def _step(facts: Facts, node: PrimExpr, depth: int) -> PrimExpr:
    """`node` with its operands simplified and one rule applied; itself if nothing changed."""
    if isinstance(node, Var):
        return _of_var(facts, node)
    if node in facts.truths and node.dtype == "bool":
        return IntImm("bool", int(facts.truths[node]))
    memo = facts.simplified
    if is_scalar_int(node.dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return rewrite_affine(facts, node, _substituted(facts, form))
    scoped = is_scoped(facts, node, depth)
    rebuilt = _branches(facts, node, depth) if scoped else map_children(node, lambda child: memo[child])  # type: ignore[index]
    folded = fold(rebuilt)
    if folded is not None or rebuilt is not node:
        return rebuilt if folded is None else folded
    rewritten = rewrite_node(facts, node, simplify)
    return node if rewritten is None else rewritten


def _of_var(facts: Facts, var: Var) -> PrimExpr:
    """What a variable is known to equal: a bound value, or the one value of its range."""
    value = facts.values.get(var)
    if value is None and var in facts.limits:
        low, high = limits_of(facts, var)
        if low == high:
            return IntImm(var.dtype, low)
    return var if value is None else value


def _substituted(facts: Facts, form: Linear) -> Linear:
    """The form with simplified atoms."""
    memo = facts.simplified
    if all(memo[atom] is atom for atom in form.terms):
        return form
    total = Linear({}, form.constant)
    for atom, k in form.terms.items():
        total = total.add(plain_form(facts, memo[atom]), k)
    return total


def _branches(facts: Facts, node: PrimExpr, depth: int) -> PrimExpr:
    """A select or if_then_else whose arms are simplified under its condition."""
    condition, *arms = _parts(node)
    condition = facts.simplified[condition]
    if arms[0] is arms[1] or isinstance(condition, IntImm):  # the choice will go: its condition says nothing
        after = [simplify(facts, arm, depth + 1) for arm in arms]
    else:
        after = [simplify(under(facts, condition, holds), arm, depth + 1) for arm, holds in zip(arms, (True, False), strict=True)]
    if (condition, *after) == _parts(node):
        return node
    return Select(condition, *after) if isinstance(node, Select) else Call(node.dtype, "tir.if_then_else", (condition, *after))


def _parts(node: PrimExpr) -> tuple[PrimExpr, ...]:
    return children(node)  # type: ignore[return-value]
