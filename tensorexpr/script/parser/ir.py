"""`tensorexpr.script.ir` by another path."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from .. import ir

    return getattr(ir, name)


def __dir__() -> list[str]:
    from .. import ir

    return dir(ir)
