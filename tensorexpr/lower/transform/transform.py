"""The factories of passes, by the module that programs of the TE era import them from."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("tensorexpr.lower.transform")
