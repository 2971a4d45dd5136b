"""The functions that import operators, a file per family; each module of this package enters its own when it is loaded."""

from __future__ import annotations

import importlib
import pkgutil

for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")
