"""Blocks: bodies of functions and Lets, branches, clauses. What several of them use stands in the innermost one around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..tir.function import GlobalVar
from ..tir.op_registry import Op
from .adt import Clause, Constructor, Match, pattern_vars
from .expr import Function, If, Let, Var
from .visitor import ExprMutator, operands, walk

# A block: which part of which node it is; None is the outermost one.
Block = tuple[Any, int] | None
_ATOMS = (graph.Var, graph.Constant, GlobalVar, Op, Constructor)


def parts(node: Any) -> tuple[tuple[Any, Any], ...]:
    """The operands of a node, each with the block that it begins, or None where it is in the block of the node."""
    match node:
        case Let():
            return (node.var, None), (node.value, None), (node.body, 0)
        case Function():
            return (*((param, None) for param in node.params), (node.body, 0))
        case graph.If():
            return (node.cond, None), (node.true_branch, 0), (node.false_branch, 1)
        case Match(data, clauses):
            variables = ((var, None) for clause in clauses for var in pattern_vars(clause.lhs))
            return (data, None), *variables, *((clause.rhs, place) for place, clause in enumerate(clauses))
    return tuple((one, None) for one in operands(node))


class Blocks:
    """In which block each node stands: the innermost one that contains all its uses."""

    def __init__(self, root: Any) -> None:
        self.of: dict[Any, Block] = {root: None}
        self.uses: dict[Any, int] = {root: 0}
        self.bound: set[Any] = set()  # values of Lets: the Let names them
        self.members: dict[Block, list[Any]] = {}
        order = list(walk(root))
        for node in reversed(order):  # users first: where all uses of a node are is known when it is reached
            if isinstance(node, Let):
                self.bound.add(node.value)
            for operand, number in parts(node):
                block: Block = self.of[node] if number is None else (node, number)
                known = operand in self.of
                self.of[operand] = self._common(self.of[operand], block) if known else block
                self.uses[operand] = self.uses.get(operand, 0) + 1
        for node in order:
            self.members.setdefault(self.of[node], []).append(node)

    def _outwards(self, block: Block) -> Iterator[Block]:
        while block is not None:
            yield block
            block = self.of[block[0]]
        yield None

    def _common(self, a: Block, b: Block) -> Block:
        if a == b:
            return a
        around = set(self._outwards(a))
        return next(block for block in self._outwards(b) if block in around)


def crossing(blocks: Blocks) -> list[Any]:
    """The values that branches, clauses or functions inside of their block use, operands first."""

    def around(block: Block) -> Block:
        """The block without the Lets at its beginning, behind which it goes on."""
        while block is not None and isinstance(block[0], Let):
            block = blocks.of[block[0]]
        return block

    found = {
        operand
        for node, block in blocks.of.items()
        for operand, number in parts(node)
        if not isinstance(operand, _ATOMS) and around(block if number is None else (node, number)) != around(blocks.of[operand])
    }
    return [node for own in blocks.members.values() for node in own if node in found]


class _Basic(ExprMutator):
    """Binds what blocks inside use by Lets at the beginning of the block that it stands in."""

    def __init__(self, root: Any) -> None:
        super().__init__()
        self._blocks = Blocks(root)
        self._bound: dict[Block, list[Any]] = {}
        for node in crossing(self._blocks):
            self._bound.setdefault(self._blocks.of[node], []).append(node)

    def block(self, root: Any, block: Block) -> Any:
        """The value of a block behind its Lets."""
        lets = []
        for number, node in enumerate(self._bound.get(block, ())):
            value = super().visit(node)
            lets.append((Var(f"x{number}"), value))
            self.memo_map[node] = lets[-1][0]
        made = self.visit(root)
        for var, value in reversed(lets):
            made = Let(var, value, made)
        return made

    def visit_function(self, fn: Function) -> Any:
        """The body is a block."""
        body = self.block(fn.body, (fn, 0))
        return fn if body is fn.body else replace(fn, body=body)

    def visit_let(self, let: Let) -> Any:
        """The value stands around the Let, the body is a block."""
        made = self.visit(let.value), self.block(let.body, (let, 0))
        return let if made == (let.value, let.body) else Let(let.var, *made, let.span)

    def visit_if(self, ite: Any) -> Any:
        """Branches are blocks."""
        made = self.visit(ite.cond), self.block(ite.true_branch, (ite, 0)), self.block(ite.false_branch, (ite, 1))
        return ite if made == (ite.cond, ite.true_branch, ite.false_branch) else If(*made, getattr(ite, "span", None))

    def visit_match(self, m: Match) -> Any:
        """Clauses are blocks."""
        data = self.visit(m.data)
        return Match(data, tuple(Clause(one.lhs, self.block(one.rhs, (m, n))) for n, one in enumerate(m.clauses)), m.complete)


def with_basic_blocks(func: Any) -> Any:
    """A function whose values are each used in the block that they stand in, or have a name there."""
    with deep_recursion:
        return _Basic(func).visit(func)


def check_basic_block_normal_form(expr: Any) -> None:
    """Check that what blocks inside of others use has a name: `transform.ToBasicBlockNormalForm` gives it one.

    Raises:
        DeclarationError: naming a value without one.
    """
    found = next(iter(crossing(Blocks(expr))), None)
    if found is not None:
        raise DeclarationError(f"no basic block normal form: blocks inside of its own use a value without a name, {found}")


__all__ = ["Block", "Blocks", "check_basic_block_normal_form", "crossing", "parts", "with_basic_blocks"]
