"""Networks rewritten by the values of their weights: `func, params = bsr_dense.convert(func, params, (16, 1), 0.8)`."""

from . import bsr_dense, simplify_fc_transpose

__all__ = ["bsr_dense", "simplify_fc_transpose"]
