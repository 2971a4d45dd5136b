"""`tensorexpr.script.ir` by another path."""

import importlib
import sys
from typing import Any

# Itself, as who reads a script looks for the words by what it is.
sys.modules[__name__] = importlib.import_module("tensorexpr.script.ir")


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__name__], name)
