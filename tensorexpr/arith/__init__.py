"""Index algebra: affine forms, bounds, congruences, proofs and the simplifier made of them.

analyzer      one place to bind variables, enter constraints and ask;  facts, constraints: what is known at a point
linear        affine forms, the fast path of everything;  exact: those that hold over the integers;  origin: where a value comes from
bounds        constant bounds;  node_limits: of one node from its operands;  modular: congruences;  interval: symbolic bounds
proofs        the engine behind every `known_*` query
simplify      the simplifier's driver;  rules/: one module per kind of node;  polynomial: products;  sympy_bridge: what is left
iter_map      indices as splits and fusions of iterators, and their inverses
index_map     layouts and their inverses;  padded_inverse: where there is padding;  index_map_graph: as the JSON that traces carry
block_access  which regions a block touches
"""

from .analyzer import Analyzer
from .bounds import NEG_INF, POS_INF, ConstIntBound
from .index_map import IndexMap
from .index_map_graph import index_map_from_json, index_map_to_json
from .interval import Interval, extent_bound, relax
from .iter_map import IterMapResult, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map, inverse_affine_iter_map
from .linear import Linear, linear_form
from .modular import ModularSet

__all__ = [
    "NEG_INF",
    "POS_INF",
    "Analyzer",
    "ConstIntBound",
    "IndexMap",
    "Interval",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "Linear",
    "ModularSet",
    "detect_iter_map",
    "extent_bound",
    "index_map_from_json",
    "index_map_to_json",
    "inverse_affine_iter_map",
    "linear_form",
    "relax",
]
