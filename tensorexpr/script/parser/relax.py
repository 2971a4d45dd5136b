"""`tensorexpr.script.relax` by another path."""

import importlib
import sys
from typing import Any

sys.modules[f"{__name__}.entry"] = importlib.import_module("tensorexpr.relax.script_entry")
sys.modules[__name__] = importlib.import_module("tensorexpr.relax.script")


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__name__], name)
