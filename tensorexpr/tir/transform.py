"""`tir.transform`: the module `lower.transform`, by the name that programs of the TE era import."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tensorexpr.lower.transform")
