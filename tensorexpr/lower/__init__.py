"""Lowering: from schedules to the loops that code generation takes. `pipeline` is the page that lists every pass.

The package can be called as the function `lower` that it exports: `tensorexpr.lower` is both, as users of TVM expect.
The passes are loaded when it is first called.

pipeline      the page;  passes: what a pass is, and the one way to run one;  specs: what holds after each phase
phase0/ phase1/ phase2/ phase3/     the passes, a file each
context, options, instruments     PassContext, its configuration keys, what watches passes;  plain_context: a context as data
transform, block_transform        passes as users call them
tensor_schedules                  schedules of tensors as one instruction of `tir.Schedule`
rebuild, scopes, copies, pragmas, lanes, register_file     what passes share
oob_checker   refuses accesses out of bounds
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..later import later
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

__getattr__, __dir__ = later(__name__, {".pipeline": "lower"})
