"""Laws written as text, one a line: `pattern -> result if condition   # remark`, compiled to matchers and builders.

    x, y, z, ...     any expression; the same letter twice is the same expression
    c1, c2, ...      an integer constant; arithmetic on constants is done when the law is applied
    n                the number of lanes
    min max tdiv tmod select ite ramp broadcast shl shr cast       the nodes that have no operator
    ~ pattern ...    every order of the operands of commutative nodes in the pattern

A condition is made of comparisons of constants and of questions to the prover: `prove(x >= 0)`, `multiple(x, c1)`.
The text is parsed with `ast`; nothing is evaluated but the nodes named here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import product
from math import gcd
from typing import Any

from ...dataclass import dataclass
from ...tir.arithmetic import ON_INTEGERS, binary, compare, convert, logical_and, logical_not, logical_or
from ...tir.dtype import parse_dtype, scalar_dtype, wrap_int
from ...tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Sub,
)  # fmt: skip
from ..facts import Facts

Env = dict[str, Any]
Prove = Callable[[Facts, PrimExpr], bool]
Term = tuple[Any, ...]  # (kind, ...): a pattern or a result as a tree

_BINARY: dict[type[ast.operator], type[BinaryExpr]] = {
    ast.Add: Add, ast.Sub: Sub, ast.Mult: Mul, ast.FloorDiv: FloorDiv, ast.Mod: FloorMod,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], type[CmpExpr]] = {
    ast.Eq: EQ, ast.NotEq: NE, ast.Lt: LT, ast.LtE: LE, ast.Gt: GT, ast.GtE: GE,
}  # fmt: skip
_NODES: dict[str, type[PrimExpr]] = {
    "min": Min, "max": Max, "tdiv": Div, "tmod": Mod, "select": Select, "ramp": Ramp, "broadcast": Broadcast,
}  # fmt: skip
_CALLS: dict[str, str] = {"ite": "tir.if_then_else", "shl": "tir.shift_left", "shr": "tir.shift_right", "likely": "tir.likely"}
_COMMUTATIVE = (Add, Mul, Min, Max, EQ, NE, And, Or)


_FUNCTIONS: dict[str, Callable[..., int]] = {"gcd": gcd}


_ON_CONSTANTS: dict[Any, Callable[[int, int], Any]] = {
    **ON_INTEGERS,
    EQ: lambda a, b: a == b,
    NE: lambda a, b: a != b,
    LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b,
    GT: lambda a, b: a > b,
    GE: lambda a, b: a >= b,
}


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """One rewrite: where it applies, what it makes, when it may, and its text."""

    pattern: Term
    result: Term
    condition: Term | None
    text: str

    def apply(self, facts: Facts, node: PrimExpr, prove: Prove) -> PrimExpr | None:
        """The rewritten node; None if the law doesn't apply."""
        env: Env = {}
        if not match(self.pattern, node, env):
            return None
        if self.condition is not None and not _holds(self.condition, env, facts, prove):
            return None
        return as_expr(build(self.result, env), node.dtype)


def laws(text: str) -> tuple[Law, ...]:
    """The laws of a table; empty lines and remarks are skipped."""
    found: list[Law] = []
    for line in text.splitlines():
        body = line.split("#")[0].strip()
        if body:
            found += _law(body)
    return tuple(found)


def _law(text: str) -> Iterator[Law]:
    shuffled = text.startswith("~")
    left, _, right = text.removeprefix("~").partition("->")
    result, _, condition = right.partition(" if ")
    pattern = _term(ast.parse(left.strip(), mode="eval").body)
    made = _term(ast.parse(result.strip(), mode="eval").body)
    needed = _term(ast.parse(condition.strip(), mode="eval").body) if condition else None
    for variant in dict.fromkeys(_orders(pattern)) if shuffled else (pattern,):  # x + x has one order, not two
        yield Law(variant, made, needed, text)


def _orders(term: Term) -> Iterator[Term]:
    """The term with the operands of its commutative nodes in every order."""
    if term[0] != "node":
        yield term
        return
    _, kind, operands = term
    # k nested commutative nodes have 2**k orders; patterns are small, and equal orders are dropped by `_law`.
    chosen = list(product(*(list(_orders(operand)) for operand in operands)))
    yield from (("node", kind, order) for order in chosen)
    if kind in _COMMUTATIVE:
        yield from (("node", kind, order[::-1]) for order in chosen)


def _term(node: ast.expr) -> Term:
    match node:
        case ast.Name(name):
            return ("const", name) if name[0] == "c" and name[1:].isdigit() else ("any", name)
        case ast.Constant(value):
            return "value", value
        case ast.UnaryOp(ast.USub(), negated):
            inner = _term(negated)
            # There is no node for negation: -x is 0 - x, -1 a constant.
            return ("value", -inner[1]) if inner[0] == "value" else ("node", Sub, (("value", 0), inner))
        case ast.UnaryOp(ast.Not(), negated):
            return "node", Not, (_term(negated),)
        case ast.BinOp(a, op, b):
            return "node", _BINARY[type(op)], (_term(a), _term(b))
        case ast.Compare(a, [op], [b]):
            return "node", _COMPARE[type(op)], (_term(a), _term(b))
        case ast.BoolOp(op, values):
            kind = And if isinstance(op, ast.And) else Or
            total = _term(values[0])
            for operand in values[1:]:
                total = ("node", kind, (total, _term(operand)))
            return total
        case ast.Call(ast.Name(name), args):
            operands = tuple(map(_term, args))
            if name in _FUNCTIONS:
                return "compute", name, operands
            if name in _NODES:
                return "node", _NODES[name], operands
            return ("call", _CALLS[name], operands) if name in _CALLS else ("ask", name, operands)
    raise ValueError(f"no law can be made of {ast.unparse(node)}")


def operands_of(node: PrimExpr) -> tuple[Any, ...]:
    """The operands of a node, as patterns name them."""
    match node:
        case BinaryExpr(a, b) | CmpExpr(a, b) | And(a, b) | Or(a, b):
            return a, b
        case Not(a):
            return (a,)
        case Select(condition, a, b):
            return condition, a, b
        case Ramp(base, stride, lanes):
            return base, stride, lanes
        case Broadcast(value, lanes):
            return value, lanes
    return ()


def match(term: Term, found: Any, env: Env) -> bool:
    """True if `found` has the shape of the pattern; `env` then says what its letters stand for."""
    kind = term[0]
    if kind == "any":
        name = term[1]
        # A letter that stands twice asks for one node: expressions are hash-consed, so equal ones are identical.
        known = env.setdefault(name, found)
        # Lanes are plain integers, and equal ones needn't be one object.
        return known is found or (isinstance(found, int) and known == found)
    if kind == "node":
        if type(found) is not term[1]:
            return False
        return all(match(inner, operand, env) for inner, operand in zip(term[2], operands_of(found), strict=True))
    if kind == "const":
        if not isinstance(found, IntImm):
            return False
        return bool(env.setdefault(term[1], found.value) == found.value)
    if kind == "value":
        # True == 1 in Python, so the dtype has to tell the constants apart.
        return isinstance(found, IntImm) and found.value == term[1] and (found.dtype == "bool") is isinstance(term[1], bool)
    if kind == "call":
        if not isinstance(found, Call) or found.op != term[1] or len(found.args) != len(term[2]):
            return False
        return all(match(inner, operand, env) for inner, operand in zip(term[2], found.args, strict=True))
    raise ValueError(f"{term} can't stand in a pattern")


def build(term: Term, env: Env) -> Any:
    """What a result stands for: an expression, or a Python integer if it is made of constants alone."""
    kind = term[0]
    if kind in ("any", "const"):
        return env[term[1]]
    if kind == "value":
        return term[1]
    inner = [build(operand, env) for operand in term[2]]
    if kind == "compute":
        return _FUNCTIONS[term[1]](*inner)
    if kind == "call":
        # A condition in front keeps its bool; the two arms, or what is shifted and by how much, share a dtype.
        arms = _agreed(inner[-2:])
        made = [*inner[:-2], *arms] if len(inner) > 1 else arms
        return Call(made[-1].dtype, term[1], tuple(made))
    return make(term[1], inner)


def make(node: type[PrimExpr], operands: list[Any]) -> Any:
    """A node of operands that may be Python integers; integers alone are computed with."""
    if len(operands) == 2 and all(isinstance(x, int) for x in operands):
        return _ON_CONSTANTS[node](*operands)
    if node is Not:
        return logical_not(operands[0])
    if node is Ramp:
        base, stride = _agreed(operands[:2])
        return Ramp(base, stride, operands[2])
    if node is Broadcast:
        return Broadcast(convert(operands[0]), operands[1])
    if node is Select:
        return Select(operands[0], *_agreed(operands[1:]))
    if node in (And, Or):
        a, b = (IntImm("bool", x) if isinstance(x, (bool, int)) else x for x in operands)
        return (logical_and if node is And else logical_or)(a, b)
    a, b = _agreed(operands)
    return compare(node, a, b) if issubclass(node, CmpExpr) else binary(node, a, b)  # type: ignore[arg-type]


def _agreed(operands: list[Any]) -> list[PrimExpr]:
    """Operands of one node, integers in the others' dtype."""
    dtype = next((x.dtype for x in operands if isinstance(x, PrimExpr)), "int32")
    return [as_expr(x, dtype) for x in operands]


def as_expr(value: Any, dtype: str) -> PrimExpr:
    """An expression as it is, an integer as a constant of the dtype."""
    if isinstance(value, PrimExpr):
        return value
    lanes = parse_dtype(dtype).lanes
    # Laws compute with unbounded integers; the constant is what the machine would hold.
    scalar = IntImm(scalar_dtype(dtype), wrap_int(int(value), scalar_dtype(dtype)))
    return scalar if lanes == 1 else Broadcast(scalar, lanes)


def _holds(term: Term, env: Env, facts: Facts, prove: Prove) -> bool:
    """True if a condition holds."""
    if term[0] == "node" and term[1] is And:
        return all(_holds(part, env, facts, prove) for part in term[2])
    if term[0] == "node" and term[1] is Or:
        return any(_holds(part, env, facts, prove) for part in term[2])
    if term[0] == "node" and term[1] is Not:
        return not _holds(term[2][0], env, facts, prove)
    if term[0] == "ask":
        return QUESTIONS[term[1]](facts, prove, *(build(part, env) for part in term[2]))
    return bool(build(term, env))


def _prove(facts: Facts, prove: Prove, condition: Any) -> bool:
    return condition if isinstance(condition, bool) else prove(facts, condition)


def _is_extremum(facts: Facts, prove: Prove, expr: PrimExpr) -> bool:
    return isinstance(expr, (Min, Max))


def _is_constant(facts: Facts, prove: Prove, expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm)


QUESTIONS: dict[str, Callable[..., bool]] = {"prove": _prove, "extremum": _is_extremum, "constant": _is_constant}
