"""`ir.instrument`: the module `lower.instruments`, by the name that programs of the TE era import."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tensorexpr.lower.instruments")
