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

from typing import TYPE_CHECKING

from ..later import later

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
    from .iter_affine_map import IterMapExpr, IterMapLevel, IterMapResult, IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr
    from .iter_map_queries import detect_iter_map, inverse_affine_iter_map, iter_map_simplify, normalize_to_iter_sum
    from .iter_subspace import subspace_divide
    from .linear import Linear, linear_form
    from .modular import ModularSet
    from .narrow import narrow_predicate_expression
    from .regions import estimate_region_lower_bound, estimate_region_strict_bound, estimate_region_upper_bound
    from .touched import domain_touched

_HOMES = {
    ".bounds": "ConstIntBound NEG_INF POS_INF",
    ".deduce": "deduce_bound detect_clip_bound detect_common_subexpr detect_linear_equation",
    ".index_analyzer": "Analyzer ConstraintScope Extension ProofStrength",
    ".index_map": "IndexMap",
    ".index_map_graph": "index_map_from_json index_map_to_json",
    ".int_constraints": "IntConstraints IntConstraintsTransform IntGroupBounds",
    ".int_set": "IntSet IntervalSet PresburgerSet",
    ".int_solver": "solve_linear_equations solve_linear_inequalities",
    ".interval": "Interval extent_bound relax",
    ".iter_affine_map": "IterMapExpr IterMapLevel IterMapResult IterMark IterSplitExpr IterSumExpr normalize_iter_map_to_expr",
    ".iter_map_queries": "detect_iter_map inverse_affine_iter_map iter_map_simplify normalize_to_iter_sum",
    ".iter_subspace": "subspace_divide",
    ".linear": "Linear linear_form",
    ".modular": "ModularSet",
    ".narrow": "narrow_predicate_expression",
    ".regions": "estimate_region_lower_bound estimate_region_strict_bound estimate_region_upper_bound",
    ".touched": "domain_touched",
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

__getattr__, __dir__ = later(__name__, _HOMES, submodules="_ffi_api")
