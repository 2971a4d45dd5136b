"""`tensorexpr.relax.transform` by another path."""

import importlib
import sys
from typing import Any

sys.modules[__name__] = importlib.import_module("tensorexpr.relax.transform")


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__name__], name)
