"""Random numbers as functions that make calls: each takes a key and gives the next one (Salmon et al. 2011)."""

from ..ops.create import multinomial, normal, threefry_generate, threefry_key, threefry_split, uniform

__all__ = ["multinomial", "normal", "threefry_generate", "threefry_key", "threefry_split", "uniform"]
