"""Programs to files that a runner can measure.

builder          the protocol
local_builder    in worker processes of this machine;  artifact: the files
"""

from __future__ import annotations

from .builder import Builder, BuilderInput, BuilderResult, PyBuilder, create
from .local_builder import LocalBuilder

__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder", "create"]
