"""Index algebra: affine forms, bounds, congruences, proofs and the simplifiers made of them.

analyzer      one place to bind variables, enter constraints and ask, exact for machine arithmetic: what passes use
index_analyzer  the same for indices that don't overflow, with TVM's forms: what programs use;  queries: proofs by name
facts, constraints: what is known at a point
linear        affine forms, the fast path of everything;  exact: those that hold over the integers;  origin: where a value comes from
bounds        constant bounds;  node_limits: of one node from its operands;  modular: congruences;  interval: symbolic bounds
proofs        the engine behind every `known_*` query
simplify      the simplifier's driver;  rules/: one module per kind of node;  polynomial: products;  sympy_bridge: what is left
rewrite       rewriting by the tables of laws/;  canonical: sums of splits
int_set       sets with symbolic ends;  deduce: one comparison solved for a variable, linear equations, clips
scalable      conditions on vectors of unknown length
narrow        conditions without some of their variables;  int_solver: linear systems
regions       the bounds of regions;  touched: what a statement touches
iter_map      indices as splits and fusions of iterators, and their inverses
iter_affine_* the same with symbolic extents and padding;  iter_map_queries, iter_subspace: what programs ask of it
index_map     layouts and their inverses;  padded_inverse: where there is padding;  index_map_graph: as the JSON that traces carry
block_access  which regions a block touches
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _ffi_api
    from .bounds import NEG_INF, POS_INF, ConstIntBound
    from .deduce import deduce_bound, detect_clip_bound, detect_common_subexpr, detect_linear_equation
    from .index_analyzer import Analyzer, ConstraintScope, Extension, ProofStrength
    from .index_map import IndexMap
    from .index_map_graph import index_map_from_json, index_map_to_json
    from .int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
    from .int_set import IntervalSet, IntSet, PresburgerSet
    from .int_solver import solve_linear_equations, solve_linear_inequalities
    from .interval import Interval, extent_bound, relax
    from .iter_affine_map import (
        IterMapExpr,
        IterMapLevel,
        IterMapResult,
        IterMark,
        IterSplitExpr,
        IterSumExpr,
        normalize_iter_map_to_expr,
    )
    from .iter_map_queries import (
        detect_iter_map,
        inverse_affine_iter_map,
        iter_map_simplify,
        normalize_to_iter_sum,
    )
    from .iter_subspace import subspace_divide
    from .linear import Linear, linear_form
    from .modular import ModularSet
    from .narrow import narrow_predicate_expression
    from .regions import estimate_region_lower_bound, estimate_region_strict_bound, estimate_region_upper_bound
    from .touched import domain_touched

# Public name -> the module that has it, loaded when the name is first asked for.
_PLACES = {
    "Analyzer": "index_analyzer",
    "ConstIntBound": "bounds",
    "ConstraintScope": "index_analyzer",
    "Extension": "index_analyzer",
    "IndexMap": "index_map",
    "IntConstraints": "int_constraints",
    "IntConstraintsTransform": "int_constraints",
    "IntGroupBounds": "int_constraints",
    "IntSet": "int_set",
    "Interval": "interval",
    "IntervalSet": "int_set",
    "IterMapExpr": "iter_affine_map",
    "IterMapLevel": "iter_affine_map",
    "IterMapResult": "iter_affine_map",
    "IterMark": "iter_affine_map",
    "IterSplitExpr": "iter_affine_map",
    "IterSumExpr": "iter_affine_map",
    "Linear": "linear",
    "ModularSet": "modular",
    "NEG_INF": "bounds",
    "POS_INF": "bounds",
    "PresburgerSet": "int_set",
    "ProofStrength": "index_analyzer",
    "deduce_bound": "deduce",
    "detect_clip_bound": "deduce",
    "detect_common_subexpr": "deduce",
    "detect_iter_map": "iter_map_queries",
    "detect_linear_equation": "deduce",
    "domain_touched": "touched",
    "estimate_region_lower_bound": "regions",
    "estimate_region_strict_bound": "regions",
    "estimate_region_upper_bound": "regions",
    "extent_bound": "interval",
    "index_map_from_json": "index_map_graph",
    "index_map_to_json": "index_map_graph",
    "inverse_affine_iter_map": "iter_map_queries",
    "iter_map_simplify": "iter_map_queries",
    "linear_form": "linear",
    "narrow_predicate_expression": "narrow",
    "normalize_iter_map_to_expr": "iter_affine_map",
    "normalize_to_iter_sum": "iter_map_queries",
    "relax": "interval",
    "solve_linear_equations": "int_solver",
    "solve_linear_inequalities": "int_solver",
    "subspace_divide": "iter_subspace",
}

__all__ = [
    "NEG_INF",
    "POS_INF",
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "Extension",
    "IndexMap",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "Interval",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "Linear",
    "ModularSet",
    "PresburgerSet",
    "ProofStrength",
    "_ffi_api",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "domain_touched",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "extent_bound",
    "index_map_from_json",
    "index_map_to_json",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "linear_form",
    "narrow_predicate_expression",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "relax",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        if name in __all__:  # a module
            return importlib.import_module(f"tensorexpr.arith.{name}")
        raise AttributeError(f"module 'tensorexpr.arith' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tensorexpr.arith.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
