"""Lowering: from schedules to the loops that code generation takes. `pipeline` is the page that lists every pass.

The package can be called as the function `lower` that it exports: `tensorexpr.lower` is both, as users of TVM expect.
"""

import sys
from types import ModuleType
from typing import Any

from ..tir.function import IRModule
from .context import PassContext
from .pipeline import lower


class _CallableModule(ModuleType):
    """A module that is also the function `lower`."""

    def __call__(self, *args: Any, **kwargs: Any) -> IRModule:
        """Lower; see `pipeline.lower`."""
        return lower(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["PassContext", "lower"]
