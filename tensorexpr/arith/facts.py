"""What is known at a point: ranges of variables, constraints in force, and the memos that hold under them.

A `Facts` never changes what it knows once something was derived from it; more knowledge makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..dataclass import dataclass, field
from ..tir.expr import PrimExpr, Range, Var
from .linear import Linear

Limits = tuple[int, int]
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class Facts:
    """Knowledge and its memos.

    `ranges` are symbolic ranges of variables, `values` what variables are known to equal, `limits` inclusive constant
    bounds of atoms, `congruences` maps atoms to (coefficient, base), `nonnegative` lists forms that are >= 0, `truths`
    are bools of known value. `symbols` are variables that measure or index something: sizes, variables of symbolic
    range and the variables in such ranges. Arithmetic on them is taken not to overflow (a program in which it does
    is out of every bound anyway). `constrained` are the variables that conditions in force speak of. With `index` all
    arithmetic of the index dtypes is taken not to overflow, whatever its operands are: what a program's indices mean.
    """

    ranges: Mapping[Var, Range] = field(default_factory=dict)
    values: Mapping[Var, PrimExpr] = field(default_factory=dict)
    limits: Mapping[PrimExpr, Limits] = field(default_factory=dict)
    congruences: Mapping[PrimExpr, tuple[int, int]] = field(default_factory=dict)
    nonnegative: tuple[Linear, ...] = ()
    truths: Mapping[PrimExpr, bool] = field(default_factory=dict)
    symbols: frozenset[Var] = frozenset()
    constrained: frozenset[Var] = frozenset()
    index: bool = False
    extensions: int = 0

    simplified: dict[PrimExpr, PrimExpr] = field(default_factory=dict)
    bounds: dict[PrimExpr, Limits] = field(default_factory=dict)
    modular: dict[PrimExpr, tuple[int, int]] = field(default_factory=dict)
    origins: dict[PrimExpr, int] = field(default_factory=dict)
    forms: dict[PrimExpr, Linear] = field(default_factory=dict)
    weights: dict[PrimExpr, int] = field(default_factory=dict)
    deep: dict[PrimExpr, Linear] = field(default_factory=dict)
    decided: dict[PrimExpr, bool] = field(default_factory=dict)
    scopes: dict[PrimExpr, Facts] = field(default_factory=dict)
    rewritten: dict[PrimExpr, PrimExpr] = field(default_factory=dict)
    canonical: dict[PrimExpr, PrimExpr] = field(default_factory=dict)


def derive(
    memo: dict[PrimExpr, Value], expr: PrimExpr, operands: Callable[[PrimExpr], Iterable[PrimExpr]], rule: Callable[[PrimExpr], Value]
) -> Value:
    """What `rule` says of an expression once `memo` has it of its operands. A stack, as expressions nest deeper than Python's calls do."""
    stack = [expr]
    while stack:
        node = stack[-1]
        # A node that two others share is on the stack twice.
        missing = [] if node in memo else [child for child in operands(node) if child not in memo]
        if missing:
            stack.extend(missing)
            continue
        if node not in memo:
            memo[node] = rule(node)
        stack.pop()
    return memo[expr]


def fresh_memos() -> dict[str, Any]:
    """Empty memos for facts that differ from those they are made of; affine forms and weights depend on no facts and stay."""
    return {name: {} for name in _MEMOS}


_MEMOS = ("simplified", "bounds", "modular", "origins", "deep", "decided", "scopes", "rewritten", "canonical")
