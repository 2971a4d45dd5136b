"""TVM's functions of this name that programs call though the package has no Python function for them."""

from .int_set import neg_inf as NegInf
from .int_set import pos_inf as PosInf
from .int_solver import solve_inequalities_as_condition as SolveInequalitiesAsCondition
from .narrow import narrow_predicate_expression as NarrowPredicateExpression
from .touched import domain_touched as DomainTouched

__all__ = ["DomainTouched", "NarrowPredicateExpression", "NegInf", "PosInf", "SolveInequalitiesAsCondition"]
