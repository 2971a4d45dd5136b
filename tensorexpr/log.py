"""Logging. Modules log through `logging.getLogger(__name__)`; INFO is the progress of tuning, DEBUG the passes.

No handler is installed on import; `log.to_stderr()` is for scripts and notebooks that want to see the messages.
"""

from __future__ import annotations

import importlib
import logging
import sys
from functools import cache
from types import ModuleType
from typing import Any

ROOT = "tensorexpr"


@cache
def once(logger: logging.Logger, message: str) -> None:
    """Log a warning the first time it is given; later calls with the same text do nothing."""
    logger.warning(message)


def to_stderr(level: int | str = logging.INFO) -> None:
    """Show the library's messages from `level` on stderr. Calling it again only changes the level."""
    logger = logging.getLogger(ROOT)
    if not any(isinstance(handler, logging.StreamHandler) for handler in logger.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(level)


class _Log(ModuleType):
    """This module, which programs of release 0.6 call: there `tensorexpr.log(x)` is the logarithm of an expression."""

    def __call__(self, x: Any) -> Any:
        """`te.log`."""
        return importlib.import_module("tensorexpr.te").log(x)


sys.modules[__name__].__class__ = _Log
