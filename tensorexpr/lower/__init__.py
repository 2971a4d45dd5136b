"""Lowering: from schedules to the loops that code generation takes. `pipeline` is the page that lists every pass.

The package can be called as the function `lower` that it exports: `tensorexpr.lower` is both, as users of TVM expect.
The passes are loaded when it is first called.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..tir.function import IRModule
from .context import PassContext

if TYPE_CHECKING:
    from .pipeline import lower


class _CallableModule(ModuleType):
    """A module that is also the function `lower`."""

    def __call__(self, *args: Any, **kwargs: Any) -> IRModule:
        """Lower; see `pipeline.lower`."""
        from .pipeline import lower

        return lower(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["PassContext", "lower"]


def __getattr__(name: str) -> Any:
    if name != "lower":
        raise AttributeError(f"module 'tensorexpr.lower' has no attribute {name!r}")
    from .pipeline import lower

    globals()[name] = lower
    return lower
