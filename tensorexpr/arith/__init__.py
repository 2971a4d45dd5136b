"""Index algebra: affine forms, bounds, congruences, proofs and the simplifier made of them."""

from .analyzer import Analyzer
from .bounds import NEG_INF, POS_INF, ConstIntBound
from .interval import Interval, extent_bound, relax
from .linear import Linear, linear_form
from .modular import ModularSet

__all__ = ["NEG_INF", "POS_INF", "Analyzer", "ConstIntBound", "Interval", "Linear", "ModularSet", "extent_bound", "linear_form", "relax"]
