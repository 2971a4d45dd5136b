"""The words of functions of graphs for a builder, as R: another name of `tensorexpr.relax.ir_builder`, which this one loads."""

import importlib
import sys
from typing import Any

sys.modules[__name__] = importlib.import_module("tensorexpr.relax.ir_builder")


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__name__], name)
