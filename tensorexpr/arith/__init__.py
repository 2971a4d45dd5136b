"""Index algebra: affine forms, bounds, congruences, proofs and the simplifier made of them."""

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
